"""Kafka's checkpoint files, to one row per entry; the good entries of a damaged file are kept.

The format: a version line (0), a line with the number of entries, then that many entries. What Kafka itself
would refuse is a rejected record that says what is wrong and where. Kafka reads white space as Java does
(``\\s+`` between parts, none before the first), takes a file of no lines or of a version line alone as empty, and
of two entries for one partition the later. See docs/sources/checkpoints.md for what each version does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from ingest.lake.tables.bronze import SourceKind
from ingest.readers import paths
from ingest.readers.lines import line_places
from ingest.readers.work import Kept, Place, Rejected, WorkItem

#: More entries than a log directory can have partitions: those after them are rejected, so that memory is bounded.
MAX_ENTRIES: Final = 1 << 18
#: A topic's name has at most 255 characters: of a longer line only so many bytes are held.
MAX_LINE_BYTES: Final = 512
CUT_OFF: Final = "the file ends without a line end, so this entry may be cut off: Kafka ends every line"

_INT: Final = re.compile(r"^[+-]?[0-9]{1,30}$")
_INT32: Final = range(-(1 << 31), 1 << 31)
_INT64: Final = range(-(1 << 63), 1 << 63)
_WHITE_SPACE: Final = re.compile(r"[ \t\n\x0b\f\r]+")
_TOPIC: Final = re.compile(r"^[A-Za-z0-9._\-]{1,255}$")


class _Bad(NamedTuple):
    reason: str


def read(item: WorkItem, source: Iterable[bytes]) -> Iterator[Kept | Rejected]:
    """The entries of an offset checkpoint or a leader epoch checkpoint.

    The version and the count line give no record unless something is wrong with them. Of several entries for one
    key, the one that Kafka would use is kept.
    """
    places = line_places(item, source, MAX_LINE_BYTES)
    directory = paths.topic_partition(item.directory)
    of_epochs = item.kind == SourceKind.LEADER_EPOCH_CHECKPOINT
    if of_epochs and directory is None:
        reason = "nothing in the file's path says which partition's it is: keep it below TOPIC-PARTITION/"
        yield from (Rejected(place, reason) for place in places)
        return
    version = next(places, None)
    if version is None:
        return
    if version.data.strip() != b"0":
        yield Rejected(version, f"version {_excerpt(version)} of the checkpoint format is not known: only 0 is")
        for place in places:
            yield Rejected(place, "an entry of a checkpoint whose version is not known")
        return
    if version.data.rstrip(b"\r\n") != b"0":
        yield Rejected(version, f"white space around the version, {_excerpt(version)}: Kafka refuses such a file")
    count = next(places, None)
    if count is None:
        return
    expected, problem = _count(count)
    if problem is not None:
        yield Rejected(count, problem)
    found = _Entries(of_epochs)
    last = count
    for place in places:
        last = place
        overflow = found.add(place)
        if overflow is not None:
            yield from found.drain(directory)
            yield overflow
    yield from found.drain(directory)
    if expected is not None and expected != found.count:
        end = Place(last.offset + last.length, 0, last.line + 1, count.data[:120])
        yield Rejected(end, f"{expected} entries were announced, {found.count} are there")


class _Entries:
    """The entries so far, held until it is known which of several for one key counts."""

    def __init__(self, of_epochs: bool) -> None:
        self._of_epochs = of_epochs
        self._rows: list[tuple[Place, tuple[Any, ...] | _Bad]] = []
        self._positions: dict[tuple[Any, ...], int] = {}
        self._is_full = False
        self.count = 0

    def add(self, place: Place) -> Rejected | None:
        """Take a line; the line itself, rejected, where no more can be held."""
        self.count += 1
        if self._is_full or len(self._rows) >= MAX_ENTRIES:
            self._is_full = True
            return Rejected(place, f"more than {MAX_ENTRIES} entries, more than a log directory has partitions")
        values = self._parsed(place)
        if not isinstance(values, _Bad):
            key = values[:-1]
            before = self._positions.get(key)
            if before is not None:
                earlier = self._rows[before][0]
                if self._of_epochs and values[-1] >= self._rows[before][1][-1]:
                    values = _Bad(f"a second entry for epoch {key[0]}, which began on line {earlier.line}")
                else:
                    self._rows[before] = (
                        earlier,
                        _Bad(f"a second entry for the same key, on line {place.line}, counts"),
                    )
            if not isinstance(values, _Bad):
                self._positions[key] = len(self._rows)
        self._rows.append((place, values))
        return None

    def drain(self, directory: tuple[str, int] | None) -> Iterator[Kept | Rejected]:
        """Give what is held, in the order of the file."""
        for place, values in self._rows:
            if isinstance(values, _Bad):
                yield Rejected(place, values.reason)
            elif self._of_epochs:
                topic, partition = directory or ("", 0)
                epoch, start = values
                row = {"topic": topic, "partition_id": partition, "leader_epoch": epoch, "start_offset": start}
                yield Kept(place, row)
            else:
                yield Kept(place, dict(zip(("topic", "partition_id", "offset"), values, strict=True)))
        self._rows = []

    def _parsed(self, place: Place) -> tuple[Any, ...] | _Bad:
        if place.length > MAX_LINE_BYTES:
            return _Bad(f"a malformed entry, longer than any can be: {_excerpt(place)}")
        parts = _WHITE_SPACE.split(place.data.decode("utf-8", "replace"))
        while parts and not parts[-1]:
            parts.pop()
        values = _epoch_entry(parts, place) if self._of_epochs else _offset_entry(parts, place)
        if not isinstance(values, _Bad) and not place.data.endswith(b"\n"):
            return _Bad(CUT_OFF)
        return values


def _count(place: Place) -> tuple[int | None, str | None]:
    """The announced number of entries, and what is wrong with the line."""
    text = place.data[:120].decode("utf-8", "replace")
    number = text.strip()
    if not _INT.match(number) or place.length > 120:
        return None, f"the number of entries is not a number: {_excerpt(place)}"
    if int(number) < 0:
        return None, f"the number of entries is negative: {_excerpt(place)}"
    if int(number) not in _INT32:
        return None, f"the number of entries is more than a file can have: {_excerpt(place)}"
    if text.rstrip("\r\n") != number:
        return int(number), f"white space around the number of entries, {_excerpt(place)}: Kafka refuses such a file"
    return int(number), None


def _offset_entry(parts: Sequence[str], place: Place) -> tuple[str, int, int] | _Bad:
    if len(parts) != 3 or not parts[0]:
        return _Bad(f"a malformed entry, not TOPIC PARTITION OFFSET: {_excerpt(place)}")
    partition, offset = _number(parts[1], _INT32), _number(parts[2], _INT64)
    if partition is None or offset is None:
        return _Bad(f"a malformed entry, its partition or offset is not a number in range: {_excerpt(place)}")
    if partition < 0:
        return _Bad(f"a malformed entry, its partition is negative: {_excerpt(place)}")
    if not _TOPIC.match(parts[0]):
        return _Bad(f"a malformed entry, no topic can have that name: {_excerpt(place)}")
    return parts[0], partition, offset


def _epoch_entry(parts: Sequence[str], place: Place) -> tuple[int, int] | _Bad:
    if len(parts) != 2:
        return _Bad(f"a malformed entry, not EPOCH OFFSET: {_excerpt(place)}")
    epoch, start = _number(parts[0], _INT32), _number(parts[1], _INT64)
    if epoch is None or start is None:
        return _Bad(f"a malformed entry, its epoch or offset is not a number in range: {_excerpt(place)}")
    if epoch < 0 or start < 0:
        return _Bad(f"a malformed entry, its epoch or offset is negative: {_excerpt(place)}")
    return epoch, start


def _number(text: str, among: range) -> int | None:
    number = int(text) if _INT.match(text) else None
    return number if number is not None and number in among else None


def _excerpt(place: Place) -> str:
    return repr(place.data[:120].decode("utf-8", "replace").rstrip("\r\n"))
