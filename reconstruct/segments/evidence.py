"""What is known of a log's segments: files of a copied or listed directory, and lines that tell of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

#: How much later than what it tells of a line may be, and a copy than the instant of its round: µs.
LINE_US = 1_000_000


@dataclass(frozen=True, slots=True)
class SegmentFiles:
    """One segment as one copy or listing of its directory shows it; None: not known, or no such file.

    The copy was made between ``seen_at`` and ``seen_at_upper``, in µs; ``copy`` names it. ``is_last``: no segment of
    the copy begins at a higher offset. ``next_offset`` is the offset after the last record. ``index_problem`` is of
    the offset index or of the time index, the first that has one. ``entries_count`` of the indexes' entries were held
    against batches, of so many one in ``entries_one_in``; ``entry_problem`` is of the first that differs.
    """

    replica_id: int
    base_offset: int
    copy: str
    is_last: bool
    seen_at: int | None = None
    seen_at_upper: int | None = None
    size_bytes: int | None = None
    valid_bytes: int | None = None
    next_offset: int | None = None
    segment_problem: str | None = None
    index_entries_count: int | None = None
    last_indexed_offset: int | None = None
    last_indexed_position: int | None = None
    last_timed_offset: int | None = None
    index_problem: str | None = None
    entries_count: int = 0
    entries_one_in: int = 1
    entry_problem: str | None = None
    files: tuple[str, ...] = ()


class SegmentActKind(StrEnum):
    """What a line says was done with segments: one begun, some deleted, one recovered; all with their replica, which is
    gone or made anew."""

    ROLLED = "rolled"
    DELETED = "segments_deleted"
    RECOVERED = "recovered"
    INDEX_REBUILT = "index_rebuilt"
    DAMAGED = "damaged"
    REPLICA_DELETED = "replica_deleted"
    REPLICA_CREATED = "replica_created"


class DeletionReason(StrEnum):
    """Why segments are deleted."""

    RETENTION_TIME = "retention_time"
    RETENTION_SIZE = "retention_size"
    LOG_START_OFFSET = "log_start_offset"
    TRUNCATION = "truncation"
    REPLICA_DELETED = "replica_deleted"
    NOT_TOLD = "not_told"


@dataclass(frozen=True, slots=True)
class SegmentAct:
    """One such line: ``base_offsets`` of the segments that it names (none: all), ``reason`` of a deletion.

    ``log_place`` is the line's file and ``line`` its place there, by which lines of one file are in order.
    """

    replica_id: int
    act: SegmentActKind
    at: int
    base_offsets: tuple[int, ...]
    reason: DeletionReason | None = None
    evidence_id: str = ""
    log_place: str = ""
    line: int = 0


class LogChangeKind(StrEnum):
    """What may make a log end or begin elsewhere: it was cut or deleted, its broker started, its role changed."""

    CUT = "cut"
    DELETED = "deleted"
    STARTED = "started"
    ROLE = "role"


@dataclass(frozen=True, slots=True)
class LogChange:
    """One such change; ``offset`` is what a cut leaves the log to end at."""

    replica_id: int
    kind: LogChangeKind
    at: int
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class SegmentEvidence:
    """All of one partition incarnation. ``slack_us`` by replica: how far its broker's lines may be off the copies'
    times."""

    files: Sequence[SegmentFiles] = ()
    acts: Sequence[SegmentAct] = ()
    changes: Sequence[LogChange] = ()
    slack_us: dict[int, int] = field(default_factory=dict)

    @property
    def replicas(self) -> list[int]:
        return sorted({file.replica_id for file in self.files} | {act.replica_id for act in self.acts})

    def copies_of(self, replica_id: int) -> list[list[SegmentFiles]]:
        """Each copy's segments by base offset, the copies in order of their times; those without one come last."""
        copies: dict[str, list[SegmentFiles]] = {}
        for file in self.files:
            if file.replica_id == replica_id:
                copies.setdefault(file.copy, []).append(file)
        in_order = [sorted(of_copy, key=lambda file: file.base_offset) for of_copy in copies.values()]
        return sorted(in_order, key=lambda of_copy: (_instant(of_copy[0]), of_copy[0].copy))

    def acts_of(self, replica_id: int) -> list[SegmentAct]:
        """Its lines by time, those of one instant in the order of their file."""
        own = (act for act in self.acts if act.replica_id == replica_id)
        return sorted(own, key=lambda act: (act.at, act.log_place, act.line, act.evidence_id))

    def changes_of(self, replica_id: int, kinds: Iterable[LogChangeKind] = LogChangeKind) -> list[LogChange]:
        """What changed its log or its role, by time."""
        wanted = frozenset(kinds)
        own = (change for change in self.changes if change.replica_id == replica_id and change.kind in wanted)
        return sorted(own, key=lambda change: (change.at, change.kind, change.offset or 0))


def _instant(file: SegmentFiles) -> int:
    return 1 << 62 if file.seen_at is None else file.seen_at
