"""``partition.metadata``, since 2.8: the topic id of the partition that a directory holds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

#: The file has two short lines; no more of it is held.
_MOST_BYTES: Final = 4096
_VERSION: Final = re.compile(rb"^[^ \t\n\x0b\f\r]+[ \t\x0b\f]+([+-]?[0-9]{1,9})\s*$")
_TOPIC_ID: Final = re.compile(rb"^[^ \t\n\x0b\f\r]+[ \t\x0b\f]+([A-Za-z0-9_\-]{22})(?:==)?\s*$")
_NO_TOPIC_ID: Final = b"A" * 22


@dataclass(frozen=True)
class PartitionMetadata:
    """The topic id as Kafka prints it, 22 characters of Base64; NULL where the file has none: ``problem`` says why."""

    size_bytes: int
    topic_id: str | None
    problem: str | None


def partition_metadata(source: Iterable[bytes]) -> PartitionMetadata:
    """Read the file as Kafka does: a version of at least 0, then the topic id; what follows is not looked at."""
    head = b""
    size = 0
    for block in source:
        size += len(block)
        head += block[: _MOST_BYTES - len(head)]
    rows = head.split(b"\n")
    version = _VERSION.match(rows[0])
    if version is None:
        return PartitionMetadata(size, None, f"line 1 is no version: {_excerpt(rows[0])}")
    if int(version.group(1)) < 0:
        return PartitionMetadata(
            size, None, f"version {int(version.group(1))} of the file is not known: it begins at 0"
        )
    topic_id = _TOPIC_ID.match(rows[1]) if len(rows) > 1 else None
    if topic_id is None:
        found = _excerpt(rows[1]) if len(rows) > 1 else "the file ends there"
        return PartitionMetadata(size, None, f"line 2 is no topic id: {found}")
    if topic_id.group(1) == _NO_TOPIC_ID:
        return PartitionMetadata(size, None, "the topic id is all zeros, which no topic has")
    return PartitionMetadata(size, topic_id.group(1).decode(), None)


def _excerpt(row: bytes) -> str:
    return repr(row[:80].decode("utf-8", "replace").rstrip("\r\n"))
