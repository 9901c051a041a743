"""What the bounds of one partition's offsets are made from: sightings, what brokers did, and what was decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from ingest.lake.tables.bronze import SourceKind
from reconstruct.model.value_class import value_class
from reconstruct.offsets.bound_steps import end_of
from reconstruct.offsets.clocks import OffsetClocks

HIGH_WATERMARK = "high_watermark"
LOG_END_OFFSET = "log_end_offset"
LOG_START_OFFSET = "log_start_offset"
RECOVERY_POINT = "recovery_point"
EPOCH_START = "epoch_start"
#: Where a fetcher begins: which offset of the replica that is depends on the version.
FETCH_OFFSET = "fetch_offset"

#: Sources whose sighting is a file's content: the value was true when the file was written, some time before the copy.
FILE_SOURCES = frozenset(
    {
        SourceKind.REPLICATION_OFFSET_CHECKPOINT,
        SourceKind.RECOVERY_POINT_OFFSET_CHECKPOINT,
        SourceKind.LOG_START_OFFSET_CHECKPOINT,
        SourceKind.LEADER_EPOCH_CHECKPOINT,
    }
)


#: Source whose sighting is a broker's own answer: the value was true at some instant between asking and answering.
PROBE = "probe"

#: A line and the act it tells of lie within this; nothing in a log says how far apart they are.
LINE_TO_ACT_US = 1_000_000
#: A line that prints an offset prints it as of an instant this close to its own time.
LINE_TO_VALUE_US = 50_000


@dataclass(frozen=True, slots=True)
class OffsetObservation:
    """One sighting, as a row of ``silver.offset_observations``; instants in microseconds since the epoch.

    It was made between ``observed_at`` and ``observed_at_upper`` (None: at ``observed_at``). Of a file's content that
    says only that the file had it then; ``written_after`` is an instant at which the file is known to have had another
    content, so that it was written between that and the copy. None: not known from the file as a whole; it then
    follows from the sighting before, if that shows another offset. ``is_minimum`` marks what is only known to be
    reached, as a leader knows its followers' log ends. ``copy`` tells the copies of one file apart.
    """

    replica_id: int
    offset_kind: str
    offset: int
    observed_at: int
    observed_at_upper: int | None = None
    leader_epoch: int | None = None
    source: str = ""
    written_after: int | None = None
    is_minimum: bool = False
    evidence_id: str = ""
    copy: str = ""

    @property
    def until(self) -> int:
        """The last instant at which it may have been made."""
        return self.observed_at if self.observed_at_upper is None else self.observed_at_upper

    @property
    def is_printed(self) -> bool:
        """Whether a line prints it: neither a copied file's content nor an answer."""
        return self.source not in FILE_SOURCES and self.observed_at_upper is None

    @property
    def evidence(self) -> tuple[str, ...]:
        return (self.evidence_id,) if self.evidence_id else ()


class TruncationCause(StrEnum):
    """Why a log was cut, the surest first.

    Down to where the leader says that the follower's last epoch ends; to the leader's log end or start, where the
    follower's fetch was out of range; to the follower's own high watermark, as up to 0.10 and where no epoch is known;
    by what a start did not find again.
    """

    LEADER_EPOCH = "leader_epoch"
    LEADER_LOG_START = "leader_log_start"
    LEADER_LOG_END = "leader_log_end"
    HIGH_WATERMARK = "high_watermark"
    START = "start"
    UNKNOWN = "unknown"


class ReplicaEventKind(StrEnum):
    """What a broker's log says that its replica did."""

    STARTED = "started"
    LEADS = "leads"
    FOLLOWS = "follows"
    TRUNCATED = "truncated"
    TRUNCATION_DECIDED = "truncation_decided"
    DELETED = "deleted"
    #: the broker says that it lowered the high watermark, as a cut and a first fetch from a new leader do (since 2.4).
    LOWERED = "high_watermark_lowered"


#: What may have cost a replica records, or tells that something did.
MAY_HAVE_LOST: Final = (ReplicaEventKind.STARTED, ReplicaEventKind.TRUNCATED, ReplicaEventKind.LOWERED)


@dataclass(frozen=True, slots=True)
class ReplicaEvent:
    """One such act at its line's time: ``offset`` and ``cause`` of a truncation, ``offset`` the high watermark for
    LOWERED, ``leader`` for FOLLOWS, ``previous_epoch`` the leader epoch that the process knew before it LEADS (-1:
    none); None: not known."""

    replica_id: int
    kind: ReplicaEventKind
    at: int
    offset: int | None = None
    leader: int | None = None
    leader_epoch: int | None = None
    evidence_id: str = ""
    cause: TruncationCause | None = None
    previous_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class DecidedState:
    """One interval of ``silver.leader_and_isr_timeline``; ``valid_to`` None while it holds, ``elr`` where no source
    says which replicas are eligible (KIP-966)."""

    valid_from: int
    valid_to: int | None
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None = None

    @property
    def end(self) -> int:
        return end_of(self.valid_to)


@dataclass(frozen=True, slots=True)
class CheckpointSchedule:
    """How long a broker's high watermark file may stay as it is while its high watermarks rise.

    A running broker writes it every ``interval_us`` (``replica.high.watermark.checkpoint.interval.ms``). One that does
    not run for ``longest_stall_us`` loses its session: ``zookeeper.session.timeout.ms`` and what ZooKeeper and the
    controller take to notice. ``sessions`` are spans in each of which the broker is known to have had one session.
    """

    interval_us: int
    longest_stall_us: int
    sessions: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True, slots=True)
class OffsetEvidence:
    """All of one partition incarnation.

    ``covered`` holds, by replica, the spans in which its broker's server.log is complete: there, what it does not say
    did not happen. Outside them every offset of that replica may fall at any instant. ``schedules`` by replica are
    optional; with them every copy of a high watermark file counts, those with an unchanged content too. ``clocks`` says
    how far lines, copies and decided states may be off each other in time.
    """

    observations: Sequence[OffsetObservation] = ()
    events: Sequence[ReplicaEvent] = ()
    decided: Sequence[DecidedState] = ()
    covered: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=dict)
    schedules: Mapping[int, CheckpointSchedule] = field(default_factory=dict)
    clocks: OffsetClocks = field(default_factory=OffsetClocks)

    def events_of(self, replica_id: int, *kinds: ReplicaEventKind) -> list[ReplicaEvent]:
        """What a replica did; of all ``kinds`` where none is given."""
        return [e for e in self.events if e.replica_id == replica_id and (not kinds or e.kind in kinds)]

    def in_order(self) -> OffsetEvidence:
        """The same, in an order that does not depend on the one given."""
        return replace(
            self,
            observations=sorted(
                self.observations,
                key=lambda o: (o.replica_id, o.offset_kind, o.observed_at, o.source, o.evidence_id, o.offset),
            ),
            events=sorted(self.events, key=lambda e: (e.at, e.replica_id, e.evidence_id)),
            decided=sorted(self.decided, key=lambda d: (d.valid_from, d.leader_epoch)),
        )


#: By offset: its bounds in :class:`OffsetBounds`, from below and, where anything bounds it so, from above.
BOUNDS: Final[Mapping[str, tuple[str, str | None]]] = {
    HIGH_WATERMARK: ("high_watermark_lower", "high_watermark_upper"),
    LOG_END_OFFSET: ("log_end_offset_lower", "log_end_offset_upper"),
    LOG_START_OFFSET: ("log_start_offset_lower", None),
    RECOVERY_POINT: ("recovery_point_lower", None),
}


@value_class
class OffsetBounds:
    """What is proven of one replica's offsets at every instant of ``[valid_from, valid_to)``; None: not bounded.

    One without length shows a probe's answer (:mod:`reconstruct.offsets.probe_answers`); it holds at no instant that
    ``[valid_from, valid_to)`` contains, and adds nothing to what its neighbours prove.
    """

    replica_id: int
    valid_from: int
    valid_to: int | None
    high_watermark_lower: int | None = None
    high_watermark_upper: int | None = None
    log_end_offset_lower: int | None = None
    log_end_offset_upper: int | None = None
    log_start_offset_lower: int | None = None
    recovery_point_lower: int | None = None
    evidence: tuple[str, ...] = ()

    @property
    def start(self) -> int:
        return self.valid_from

    @property
    def end(self) -> int:
        return end_of(self.valid_to)
