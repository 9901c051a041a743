"""A listing of data directories, to one row per file of a partition that it names.

Each row's bytes are its line and the lines after it that hold nothing (blank ones, totals, directories, other
files); those before the first row belong to that row. So every byte belongs to one record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from ingest.lake.tables.bronze import LOG_SEGMENTS
from ingest.readers import paths
from ingest.readers.lines import line_places
from ingest.readers.log_dirs import names
from ingest.readers.log_dirs.listing_lines import Listed, names_partition_file, parse, recognise_listing
from ingest.readers.log_dirs.partition_files import row
from ingest.readers.logs.times import LogClock
from ingest.readers.work import Kept, Place, Rejected, WorkItem

__all__ = ["read", "recognise_listing"]

_SAMPLE_LINES: Final = 2000
#: A longer line names no file: a path has at most 4096 bytes.
_LINE_BYTES: Final = 8 << 10
_KINDS: Final = frozenset(next(c.vocabulary for c in LOG_SEGMENTS.columns if c.name == "file_kind"))


def read(item: WorkItem, source: Iterable[bytes]) -> Iterator[Kept | Rejected]:
    """The files that a listing names; local times are in the item's time zone.

    A line that seems to name a file of a partition and cannot be read is rejected. A listing that names none at
    all is one rejected record.
    """
    places = line_places(item, source, _LINE_BYTES)
    sample = [place for place, _ in zip(places, range(_SAMPLE_LINES), strict=False)]
    dialect = recognise_listing([place.data for place in sample])
    listing = _Listing(item, dialect)
    current: Kept | Rejected | None = None
    start, length, line = item.offset, 0, item.line
    first: Place | None = None
    for place in chain(sample, places):
        first = first or place
        found = listing.line(place)
        if found is not None:
            if current is not None:
                yield _placed(current, start, length, line)
                start, length, line = start + length, 0, place.line
            current = found
        length += place.length
    if current is not None:
        yield _placed(current, start, length, line)
    elif first is not None:
        whole = Place(start, length, line, first.data[:_LINE_BYTES])
        yield Rejected(whole, "a listing that names no file of a partition's directory")


class _Listing:
    """Reads line by line; a header says whose directory the following lines are."""

    def __init__(self, item: WorkItem, dialect: str | None) -> None:
        self._dialect = dialect
        self._clock = LogClock(item.time_zone)
        self._directory = item.directory or ""

    def line(self, place: Place) -> Kept | Rejected | None:
        """The record of a line; NULL where it holds nothing."""
        text = place.data.decode("utf-8", "replace").rstrip("\r\n")
        listed = parse(text, self._dialect, self._clock) if self._dialect and place.length <= _LINE_BYTES else None
        if listed is None:
            if names_partition_file(text):
                return Rejected(place, "a line that names a file of a partition, and is no line of the listing's kind")
            return None
        if listed.is_header:
            self._directory = listed.path.rstrip("/").rsplit("/", 1)[-1]
            return None
        return self._row(place, listed) if listed.is_file else None

    def _row(self, place: Place, listed: Listed) -> Kept | Rejected | None:
        parent, _, name = listed.path.rpartition("/")
        found = names.partition_file(name)
        if found is None or found.file_kind not in _KINDS:
            return None
        directory = parent.rsplit("/", 1)[-1]
        if directory in ("", "."):
            directory = self._directory
        partition = paths.topic_partition(directory)
        if partition is None:
            reason = "nothing in the listing says which partition's file it is: list it with its path"
            return Rejected(place, reason) if found.base_offset is not None else None
        values = row(
            directory,
            partition,
            name,
            found,
            is_read=False,
            size_bytes=listed.size_bytes,
            modified_at=listed.modified_at,
        )
        return Kept(place, values)


def _placed(record: Kept | Rejected, start: int, length: int, line: int) -> Kept | Rejected:
    return record._replace(place=Place(start, length, line, record.place.data))
