"""The files of a partition's directory, each to one row of ``bronze.log_segments``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from ingest.lake.tables.bronze import SourceKind
from ingest.readers import paths
from ingest.readers.log_dirs import indexes, names
from ingest.readers.log_dirs.partition_metadata import partition_metadata
from ingest.readers.log_dirs.segments import summarise
from ingest.readers.work import Kept, Place, Rejected, WorkItem

#: What reads the content of each kind: its bytes and the base offset of its segment to values of columns.
_CONTENT: Final[Mapping[str, Callable[[Iterable[bytes], int], Any]]] = {
    SourceKind.LOG_SEGMENT: summarise,
    SourceKind.OFFSET_INDEX: indexes.offset_index,
    SourceKind.TIME_INDEX: indexes.time_index,
    SourceKind.TRANSACTION_INDEX: indexes.transaction_index,
    SourceKind.PRODUCER_SNAPSHOT: lambda source, _: indexes.producer_snapshot(source),
    SourceKind.PARTITION_METADATA: lambda source, _: partition_metadata(source),
}


def read(item: WorkItem, source: Iterable[bytes]) -> Iterator[Kept | Rejected]:
    """The row of one file of the item's kind; damage is described in ``problem``, and the row is kept all the same."""
    digested = _Digested(source)
    name = names.file_name(item.source_file)
    found = names.partition_file(name)
    partition = paths.topic_partition(item.directory)
    values: dict[str, Any] | None = None
    if found is not None and partition is not None and found.file_kind == item.kind:
        values = vars(_CONTENT[item.kind](digested, found.base_offset or 0))
    digested.drain()
    data = b"%s %s" % (name.encode("utf-8", "replace")[:255], digested.sha256.hexdigest().encode())
    place = Place(item.offset, digested.size, item.line, data)
    if found is None or found.file_kind != item.kind:
        yield Rejected(place, "its name is not one that Kafka gives to such a file: keep it, as in BASE_OFFSET.log")
    elif partition is None or values is None:
        yield Rejected(place, "nothing in the file's path says which partition's it is: keep it below TOPIC-PARTITION/")
    else:
        yield Kept(place, row(item.directory or "", partition, name, found, is_read=True, **values))


def row(
    directory: str, partition: tuple[str, int], name: str, found: names.PartitionFile, *, is_read: bool, **known: Any
) -> dict[str, Any]:
    """The values of a row of ``bronze.log_segments``; ``known`` are those that only some files have."""
    return {
        "topic": partition[0],
        "partition_id": partition[1],
        "directory": directory,
        "file_name": name,
        "file_kind": found.file_kind,
        "base_offset": found.base_offset,
        "is_read": is_read,
        **known,
    }


class _Digested:
    """Blocks passed on, their bytes counted and digested."""

    def __init__(self, source: Iterable[bytes]) -> None:
        self._blocks = iter(source)
        self.sha256 = hashlib.sha256()
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        for block in self._blocks:
            self.sha256.update(block)
            self.size += len(block)
            yield block

    def drain(self) -> None:
        for _ in self:
            pass
