"""What Kafka names the files of a partition's directory: pure functions over names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ingest.lake.tables.bronze import SourceKind

#: The kind of a segment's file, by what follows the base offset.
KIND_OF_EXTENSION: Final[Mapping[str, str]] = {
    "log": SourceKind.LOG_SEGMENT,
    "index": SourceKind.OFFSET_INDEX,
    "timeindex": SourceKind.TIME_INDEX,
    "txnindex": SourceKind.TRANSACTION_INDEX,
    "snapshot": SourceKind.PRODUCER_SNAPSHOT,
}
#: The kind of a partition's other files, by name.
KIND_OF_NAME: Final[Mapping[str, str]] = {
    "partition.metadata": SourceKind.PARTITION_METADATA,
    "leader-epoch-checkpoint": SourceKind.LEADER_EPOCH_CHECKPOINT,
}
#: Files with these suffixes are no part of the log: to be deleted, or not yet complete.
_NOT_IN_LOG: Final = frozenset({".deleted", ".cleaned"})

_SEGMENT: Final = re.compile(
    r"^(?P<base>[0-9]{20})\.(?P<extension>log|index|timeindex|txnindex|snapshot)(?P<suffix>\.(?:deleted|cleaned|swap))?$"
)
_PACKED: Final = re.compile(r"\.(?:gz|zst|xz|bz2)$")
_INT64_END: Final = 1 << 63


class PartitionFile(NamedTuple):
    """A file of a partition's directory, as its name says.

    ``file_kind`` is one of ``PARTITION_FILE_KINDS`` or ``leader_epoch_checkpoint``; ``base_offset`` is NULL for
    files of no segment (of a producer snapshot it is the offset that it was taken at); ``suffix`` is ``.deleted``,
    ``.cleaned``, ``.swap`` or empty.
    """

    file_kind: str
    base_offset: int | None
    suffix: str


def partition_file(name: str) -> PartitionFile | None:
    """What a file name says; NULL for names that no file of a partition's directory has."""
    kind = KIND_OF_NAME.get(name)
    if kind is not None:
        return PartitionFile(kind, None, "")
    found = _SEGMENT.match(name)
    if found is None or int(found.group("base")) >= _INT64_END:
        return None
    return PartitionFile(
        KIND_OF_EXTENSION[found.group("extension")], int(found.group("base")), found.group("suffix") or ""
    )


def file_name(source_file: str) -> str:
    """The name that a file had in its directory: the last one of a path, or of ``ARCHIVE!MEMBER``, unpacked."""
    name = source_file.rsplit("!", 1)[-1].rsplit("/", 1)[-1]
    return _PACKED.sub("", name)


def recognise_segment(head: bytes, names: Sequence[str]) -> str | None:
    """The kind of a file of a partition's directory, by its name; NULL where it is none, or holds plain text.

    ``head`` is the file's first bytes, ``names`` the names along its path. The ``leader-epoch-checkpoint`` is
    recognised with the other checkpoints, not here. A damaged segment is one all the same: what is wrong with it
    is for its reader to say.
    """
    found = partition_file(_PACKED.sub("", names[-1])) if names else None
    if found is None or found.file_kind == SourceKind.LEADER_EPOCH_CHECKPOINT:
        return None
    if found.file_kind != SourceKind.PARTITION_METADATA and is_text(head):
        return None
    return found.file_kind


def is_text(head: bytes) -> bool:
    """Whether bytes are lines of plain text, as no binary file of Kafka's begins."""
    sample = head[:512]
    return len(sample) >= 16 and all(byte >= 32 or byte in b"\t\n\r\f" for byte in sample) and b"\x7f" not in sample


def log_end_offset(rows: Iterable[Mapping[str, Any]]) -> int | None:
    """The log end offset of one directory, from its rows of ``bronze.log_segments`` of one copy.

    It is ``next_offset`` of the segment with the highest base offset; segments that are deleted or not yet in
    place do not count. NULL where there is no segment, or the last one was only listed and not read.
    """
    last: tuple[int, int | None] | None = None
    for row in rows:
        found = partition_file(row["file_name"])
        if found is None or found.file_kind != SourceKind.LOG_SEGMENT or found.suffix in _NOT_IN_LOG:
            continue
        assert found.base_offset is not None
        next_offset = row.get("next_offset")
        if last is None or found.base_offset > last[0]:
            last = (found.base_offset, next_offset)
        elif found.base_offset == last[0] and next_offset is not None:
            last = (last[0], max(next_offset, last[1] if last[1] is not None else next_offset))
    return None if last is None else last[1]
