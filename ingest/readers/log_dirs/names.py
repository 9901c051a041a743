"""What Kafka names the files of a partition's directory: pure functions over names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

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

_SEGMENT: Final = re.compile(
    r"^(?P<base>[0-9]{20})\.(?P<extension>log|index|timeindex|txnindex|snapshot)(?P<suffix>\.(?:deleted|cleaned|swap))?$"
)
#: The directory of the metadata log (``KafkaRaftServer.MetadataPartition``), and the names of its snapshots
#: (``Snapshots``); ``bootstrap.checkpoint`` holds what a new cluster begins with.
METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_DIRECTORY: Final = f"{METADATA_TOPIC}-0"
_SNAPSHOT: Final = re.compile(r"^(?:\d{20}-\d{10}|bootstrap)\.checkpoint(?:\.deleted)?$")
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


def recognise_metadata_log(head: bytes, names: Sequence[str]) -> str | None:
    """The kind of a file of the metadata log of a KRaft quorum, by its directory and name; NULL where it is none. A
    snapshot that is being written (``.part``) is none."""
    name = _PACKED.sub("", names[-1]) if names else ""
    if _SNAPSHOT.match(name) and not is_text(head):
        return SourceKind.METADATA_SNAPSHOT
    found = partition_file(name) if len(names) > 1 and names[-2] == METADATA_DIRECTORY else None
    is_log = found is not None and found.file_kind == SourceKind.LOG_SEGMENT and not is_text(head)
    return SourceKind.METADATA_LOG if is_log else None


def is_text(head: bytes) -> bool:
    """Whether bytes are lines of plain text, as no binary file of Kafka's begins."""
    sample = head[:512]
    return len(sample) >= 16 and all(byte >= 32 or byte in b"\t\n\r\f" for byte in sample) and b"\x7f" not in sample
