"""What one pass over a file's bytes found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ingest.lake.tables.bronze import GROWING_KINDS, LINE_KINDS, LOG_KINDS
from ingest.readers import paths

#: ``streams`` of a log that several brokers wrote, without a word of which line is whose.
SHARED: Final[Mapping[str, int | None]] = {"": None}


@dataclass(frozen=True)
class Inspected:
    """A file or member and everything its bytes and its path say, before the other files are looked at.

    ``complete_bytes`` and ``complete_hash`` end at the last line feed; of what cannot be read the hash is empty.
    ``splits`` are (byte offset, line) of records at which a long log may be divided. ``cluster_id`` comes with its
    ``cluster_rank`` and, to order evidence, ``cluster_at`` (text). ``birth_id`` is the id made of the creation of
    ``/brokers``. ``snapshot_zxid`` and ``streams`` as in :class:`ingest.readers.work.WorkItem`; ``is_interleaved`` says
    that a log's lines may be those of several processes, or of the two channels of one, mixed. Of a log with times as
    Kafka's own layout prints them ``first_at`` and ``last_at`` are the first and the last
    (``2026-11-21 04:40:22.700``), and ``statements`` are all of its lines that state the cluster's id: (time, id), in
    their order. ``marks`` are those of a metadata log (:mod:`ingest.files.metadata_marks`).
    """

    location: str
    source_file: str
    member: str | None
    compression: str
    kind: str
    status: str
    reason: str | None = None
    size_bytes: int = 0
    content_hash: str = ""
    complete_bytes: int = 0
    complete_hash: str = ""
    line_count: int = 0
    layout: str | None = None
    prints_zone: bool = False
    first_line: str | None = None
    broker_id: int | None = None
    cluster_id: str | None = None
    cluster_rank: int = 0
    cluster_at: str = ""
    birth_id: str | None = None
    kafka_version: str | None = None
    captured_at_ms: int | None = None
    directory: str | None = None
    chroot: str = ""
    snapshot_zxid: int | None = None
    streams: Mapping[str, int | None] | None = None
    is_interleaved: bool = False
    splits: tuple[tuple[int, int], ...] = ()
    damage: str | None = None
    raw: str = ""
    is_declared_final: bool = False
    first_at: str | None = None
    last_at: str | None = None
    statements: tuple[tuple[str, str], ...] = ()
    marks: frozenset[str] = frozenset()

    @property
    def is_shared(self) -> bool:
        """Whether several brokers wrote the log, and its lines do not say which wrote what."""
        return self.streams == SHARED

    @property
    def is_read(self) -> bool:
        """Whether its records are taken."""
        return self.status == "ingested"

    @property
    def is_log(self) -> bool:
        return self.kind in LOG_KINDS

    @property
    def has_lines(self) -> bool:
        """Whether the file is written line by line."""
        return self.kind in LINE_KINDS

    @property
    def is_growing(self) -> bool:
        """Whether the file is of a kind that is written on at its end."""
        return self.kind in GROWING_KINDS

    @property
    def names(self) -> tuple[str, ...]:
        return paths.segments(self.location, self.member)

    @property
    def is_final(self) -> bool:
        """Whether nothing can follow the file's last byte: a copy, or a log that was rotated away. A transaction log
        is allocated ahead: what follows its last transaction is nothing yet."""
        if self.is_growing and not self.has_lines:
            return False
        return (
            self.is_declared_final
            or not self.has_lines
            or self.compression != "none"
            or paths.is_rotated(self.names[-1])
        )

    @property
    def ingestible_bytes(self) -> int:
        """The bytes to read: of a live file of lines, those up to its last line feed; of a transaction log, those up to
        the end of its last whole transaction."""
        return self.size_bytes if self.is_final else self.complete_bytes

    @property
    def ingestible_hash(self) -> str:
        return self.content_hash if self.is_final else self.complete_hash
