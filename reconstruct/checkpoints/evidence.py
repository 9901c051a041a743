"""What the health of one broker's checkpoint files is judged from: copies of them, its log's lines, its assignments.

Instants are microseconds since the epoch. A *directory* is a log directory as its copies name it: what stands before
``FILE/MILLISECONDS`` (or before ``FILE``) in their paths. A *round* is one instant at which files of a directory were
copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import zip_longest
from typing import Any, Final

from ingest.lake.tables.bronze import SourceKind
from ingest.shapes.event_types import EventType
from reconstruct.events.fields import number, partitions_of
from reconstruct.model.value_class import value_class
from reconstruct.model.versions import ANY_VERSION, VersionRange

#: Topic, its incarnation, partition.
Replica = tuple[str, str, int]

HIGH_WATERMARKS: Final = SourceKind.REPLICATION_OFFSET_CHECKPOINT
RECOVERY_POINTS: Final = SourceKind.RECOVERY_POINT_OFFSET_CHECKPOINT
LOG_STARTS: Final = SourceKind.LOG_START_OFFSET_CHECKPOINT
CLEANER: Final = SourceKind.CLEANER_OFFSET_CHECKPOINT
CHECKPOINT_KINDS: Final = (HIGH_WATERMARKS, RECOVERY_POINTS, LOG_STARTS, CLEANER)


@dataclass(frozen=True, slots=True)
class RejectedEntry:
    """A line of a copy that Kafka would not read, as ``bronze.rejected_records`` holds it."""

    reason: str
    text: str
    evidence_id: str


@dataclass(frozen=True, slots=True)
class CheckpointCopy:
    """One copy of one checkpoint file; ``content`` is a hash of it, ``taken_at`` None where nothing says when."""

    directory: str
    kind: str
    taken_at: int | None
    entry_count: int
    bad: tuple[RejectedEntry, ...] = ()
    content: str = ""

    @property
    def at(self) -> int:
        """When it was made; 0 where nothing says."""
        return self.taken_at or 0


@dataclass(frozen=True, slots=True)
class CheckpointEntry:
    """One entry of a dated copy. ``begins_run``: the copy of the same file before it has no entry for this replica.

    Entries between two of one run may be left out where they show nothing: where they rise.
    """

    directory: str
    kind: str
    replica: Replica
    taken_at: int
    offset: int
    evidence_id: str = ""
    begins_run: bool = False


class LineKind(StrEnum):
    """What a line of the broker's log says of a log directory or a replica."""

    LOADED = "log loaded"  # offset: the log end offset
    INITIAL = "initial high watermark"
    NO_ENTRY = "no checkpointed high watermark"
    CREATED = "log created"
    TRUNCATED = "log truncated"
    DELETED = "log deleted"
    ROLE = "leader or follower"
    UNREADABLE = "checkpoint not readable"
    DIRECTORY_FAILED = "log directory failed"
    DIRECTORY_CREATED = "log directory created"
    NO_META_PROPERTIES = "no meta.properties"
    QUORUM = "leader of the quorum"  # offset: the quorum's epoch


#: By event type: what the line says, and the field that holds its offset.
LINE_KINDS: Final[Mapping[str, tuple[LineKind, str]]] = {
    EventType.LOG_LOADED: (LineKind.LOADED, "log_end_offset"),
    EventType.HIGH_WATERMARK_INITIALISED: (LineKind.INITIAL, "high_watermark"),
    EventType.HIGH_WATERMARK_CHECKPOINT_MISSING: (LineKind.NO_ENTRY, ""),
    EventType.LOG_CREATED: (LineKind.CREATED, ""),
    EventType.LOG_TRUNCATED: (LineKind.TRUNCATED, "offset"),
    EventType.LOG_DELETION_SCHEDULED: (LineKind.DELETED, ""),
    EventType.LOG_MARKED_STRAY: (LineKind.DELETED, ""),
    EventType.LOG_DELETED: (LineKind.DELETED, ""),
    EventType.STOP_REPLICA_HANDLED: (LineKind.DELETED, ""),
    EventType.FETCHER_ADDED: (LineKind.ROLE, ""),
    EventType.BECOME_LEADER_COMPLETED: (LineKind.ROLE, ""),
    EventType.LEADER_EPOCH_STARTED: (LineKind.ROLE, ""),
    EventType.CHECKPOINT_MALFORMED: (LineKind.UNREADABLE, ""),
    EventType.CHECKPOINT_ERROR: (LineKind.UNREADABLE, ""),
    EventType.LOG_DIR_FAILED: (LineKind.DIRECTORY_FAILED, ""),
    EventType.LOG_DIR_CREATED: (LineKind.DIRECTORY_CREATED, ""),
    EventType.META_PROPERTIES_MISSING: (LineKind.NO_META_PROPERTIES, ""),
    EventType.QUORUM_STATE_CHANGED: (LineKind.QUORUM, "quorum_epoch"),
}
_OF_REPLICAS: Final = frozenset(LineKind) - {
    LineKind.UNREADABLE,
    LineKind.DIRECTORY_FAILED,
    LineKind.DIRECTORY_CREATED,
    LineKind.NO_META_PROPERTIES,
    LineKind.QUORUM,
}
#: Of these it counts when they were printed, and with which offset: they are the most, and no finding quotes them.
ROLE_KINDS: Final[Mapping[str, tuple[LineKind, str]]] = {
    event_type: of for event_type, of in LINE_KINDS.items() if of[0] in (LineKind.ROLE, LineKind.INITIAL)
}
_PATHS: Final = ("log_dir", "file", "path", "log_dirs")


@value_class
class BrokerLine:
    """One such line; ``path`` is the file or directory that it names, ``cause`` its exception's first line."""

    at: int
    kind: LineKind
    replica: Replica | None = None
    offset: int | None = None
    path: str = ""
    cause: str = ""
    evidence_id: str = ""


@dataclass(frozen=True, slots=True)
class RoleLines:
    """Lines of one of :data:`ROLE_KINDS` about one replica, in order: when each was printed, and, where its kind has
    one, its offset."""

    event_type: str
    instants: tuple[int, ...]
    offsets: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class AssignedSpan:
    """An interval of a partition's assignment (``end`` None while it lasts), and whether the broker is in it."""

    start: int
    end: int | None
    is_assigned: bool


@dataclass(frozen=True, slots=True)
class ProvenHighWatermark:
    """From ``start`` to ``end`` the replica's high watermark was at least ``offset``, by evidence besides its file."""

    start: int
    end: int | None
    offset: int
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokerCheckpoints:
    """All of one broker.

    ``starts`` are its process's starts with their evidence; ``covered`` the spans in which its server.log is complete;
    ``sessions`` the spans in each of which it certainly had one session. ``written_within`` is how long a running
    broker may leave its high watermark file unwritten without losing its session; None where its settings are not
    known. ``known_until`` is the last instant of which anything of the cluster is known: undated copies are taken to be
    of then. ``clock_slack_us`` is by how much the clock of its lines and starts may still be off that of the copies,
    ``decided_slack_us`` by how much that of assignments and proven high watermarks may. ``is_set_back``: times in one
    of its logs jump back, so that its lines need not have been written in the order of their times.
    """

    broker_id: int
    version: VersionRange = ANY_VERSION
    copies: Sequence[CheckpointCopy] = ()
    entries: Sequence[CheckpointEntry] = ()
    lines: Sequence[BrokerLine] = ()
    starts: Sequence[tuple[int, str]] = ()
    assigned: Mapping[Replica, Sequence[AssignedSpan]] = field(default_factory=dict)
    proven: Mapping[Replica, Sequence[ProvenHighWatermark]] = field(default_factory=dict)
    covered: Sequence[tuple[int, int]] = ()
    sessions: Sequence[tuple[int, int]] = ()
    written_within: int | None = None
    known_until: int = 0
    clock_slack_us: int = 0
    decided_slack_us: int = 0
    is_set_back: bool = False


def lines_of(
    at: int,
    evidence_id: str,
    event_type: str,
    fields: Mapping[str, str],
    cause: str = "",
    cause_type: str = "",
    incarnation: str = "",
    once: Callable[[Any], Any] = lambda value: value,
) -> Iterator[BrokerLine]:
    """What one record of a broker's server.log says of its log directories; a line may name several partitions.

    ``once`` gives of equal replicas and paths, which many lines have, the same."""
    is_known = event_type in LINE_KINDS
    kind, name = LINE_KINDS.get(event_type if is_known else cause_type, (None, ""))
    if kind is None or (not is_known and kind in _OF_REPLICAS):
        return
    if kind is LineKind.QUORUM and "quorum_leader" not in fields:
        return
    if kind is LineKind.LOADED and fields.get("is_deleted") == "true":
        return
    path = once(next((fields[field_name] for field_name in _PATHS if field_name in fields), ""))
    offset = number(fields.get(name))
    if kind not in _OF_REPLICAS:
        yield BrokerLine(at, kind, None, offset, path, cause, evidence_id)
        return
    for topic, partition_id in partitions_of(fields):
        yield BrokerLine(at, kind, once((topic, incarnation, partition_id)), offset, path, cause, evidence_id)


def role_lines(told: RoleLines, replica: Replica) -> Iterator[BrokerLine]:
    """The same lines one by one, without evidence."""
    kind, _ = ROLE_KINDS[told.event_type]
    for at, offset in zip_longest(told.instants, told.offsets):
        yield BrokerLine(at, kind, replica, offset)
