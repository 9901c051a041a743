"""What a task reads, and the records it finds there, kept or rejected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

#: As much of a rejected record is kept.
RAW_BYTES: Final = 64 << 10


#: A file's id, and the byte that a part of it begins at.
Part = tuple[str, int]


@dataclass(frozen=True)
class WorkItem:
    """A file, or a part of it, to read.

    ``offset`` and ``line`` say where reading begins, ``end`` before which byte it ends; ``record_base`` is the
    file id that record ids are made of (another file's, for a log that forks from it). ``is_plain`` says that the
    bytes lie in the file as they are. ``snapshot_zxid`` is the last transaction before a snapshot of ZooKeeper's own
    was begun; ``streams`` are the brokers of a file that several processes wrote to, by the name each line begins
    with. An item with a ``reason`` stands for a file that is not read at all.
    """

    location: str
    member: str | None
    source_file: str
    kind: str
    cluster_id: str
    broker_id: int | None
    file_id: str
    record_base: str
    end: int
    offset: int = 0
    line: int = 1
    layout: str | None = None
    time_zone: str = "UTC"
    captured_at_ms: int | None = None
    captured_at_upper_ms: int | None = None
    directory: str | None = None
    chroot: str = ""
    snapshot_zxid: int | None = None
    streams: Mapping[str, int | None] | None = None
    damage: str | None = None
    reason: str | None = None
    raw: str = ""
    is_plain: bool = True

    @property
    def byte_count(self) -> int:
        return self.end - self.offset

    @property
    def part(self) -> Part:
        """Which part of which file it is."""
        return (self.file_id, self.offset)


class Place(NamedTuple):
    """Where a record stands, and its bytes (the first of them, where it is too long to hold)."""

    offset: int
    length: int
    line: int
    data: bytes


class Rejected(NamedTuple):
    """A record that cannot be read, with the reason in one sentence."""

    place: Place
    reason: str


class Kept(NamedTuple):
    """A record that was read: its values by column, those of its place and file left out."""

    place: Place
    values: Mapping[str, Any]
