"""What a cluster's own timelines are made of: facts about its controllers and brokers, its logs and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from ingest.shapes import versions_of
from ingest.shapes.event_types import EventType
from reconstruct.cluster.settings import Configuration, OwnSettings, SettingChange, SettingsOverTime
from reconstruct.cluster.spans import LiveView, LogSpan
from reconstruct.model.versions import (
    DYNAMIC_BROKER_SETTINGS_SINCE,
    NEWEST,
    OLDEST,
    KafkaVersion,
    VersionRange,
    release_of_level,
)

#: server.log events that say that a connection to another broker failed; a failed fetch says so with such an error.
UNREACHABLE: Final = (EventType.BROKER_UNREACHABLE, EventType.BROKER_DISCONNECTED)
UNREACHABLE_ERROR: Final = "disconnected before|Connection to|ConnectException|Connection refused"
#: server.log events of an orderly shutdown, before the broker stops serving.
LEAVING: Final = (
    EventType.BROKER_SERVER_SHUTTING_DOWN,
    EventType.CONTROLLED_SHUTDOWN_STARTED,
    EventType.CONTROLLED_SHUTDOWN_TRY_FAILED,
    EventType.CONTROLLED_SHUTDOWN_RETRIED,
    EventType.CONTROLLED_SHUTDOWN_FAILED,
    EventType.CONTROLLED_SHUTDOWN_SUCCEEDED,
)
#: events of a process that starts, before it registers (KafkaServer.startup).
STARTING: Final = (
    EventType.LOGGER_REGISTERED,
    EventType.SESSION_CONNECTING,
    EventType.CLUSTER_ID,
    EventType.LOGS_LOADING,
    EventType.LOGS_LOADED,
)
#: events that a broker logs only once it has registered: such a line is of no process that is starting.
LIVING: Final = (
    EventType.FETCH_FAILED,
    EventType.FETCHER_ADDED,
    EventType.FETCHER_REMOVED,
    EventType.ISR_SHRINK_PROPOSED,
    EventType.ISR_EXPAND_PROPOSED,
    EventType.ISR_UPDATE_COMMITTED,
    EventType.ISR_UPDATE_FAILED,
    EventType.LEADER_AND_ISR_RECEIVED,
    EventType.METADATA_CACHED,
    EventType.SESSION_EXPIRED,
)
#: Kinds of :class:`LifeSign`: one of :data:`LIVING` was logged; a process starts, and finds that the one before it did
#: not close its logs, or did.
LIVES: Final = "lives"
STARTS: Final = "starts"
FOUND_UNCLEAN: Final = "unclean"
FOUND_CLEAN: Final = "clean"
#: server.log events of a process that ends itself over an error.
HALTS: Final = (
    EventType.BROKER_HALTED,
    EventType.BROKER_SERVER_EXITING,
    EventType.BROKER_SERVER_FAILED,
    # ProcessTerminatingFaultHandler, of a KRaft node
    EventType.FATAL_FAULT,
    # ReplicaFetcherThread.handleOffsetOutOfRange, up to 2.0
    EventType.LOG_TRUNCATION_NOT_ALLOWED,
)
#: server.log events that tell how a process or its session ended: each is a sign of its own.
ENDINGS: Final = (
    *HALTS,
    EventType.SESSION_EXPIRED,
    EventType.BROKER_SERVER_SHUTDOWN,
    EventType.CONTROLLED_SHUTDOWN_STARTED,
    EventType.CONTROLLED_SHUTDOWN_RETRIED,
    EventType.CONTROLLED_SHUTDOWN_FAILED,
    EventType.CONTROLLED_SHUTDOWN_SUCCEEDED,
)


@dataclass(frozen=True, slots=True)
class ControllerFact:
    """One fact about the controller.

    ``kind``: ``znode_epoch`` (/controller_epoch was ``epoch`` from ``at``), ``znode_controller`` (/controller named
    ``controller_id``), ``elected`` (the broker logs that it raised the epoch), ``acted`` (the first line of an hour and
    a file that it logged in that epoch, or the first of a minute behind those of another epoch; ``level_floor`` is the
    lowest level of all of the hour), ``resigned``;
    ``cluster_id`` (the broker ``controller_id`` states the cluster's id), ``started`` (its process starts).
    ``log_file`` is that of a line of ``elected``, ``acted`` and ``started``; of ``set_back`` it is one whose times jump
    far back. ``is_of_quorum``: it is a record of a quorum's log, whose epochs are none of ZooKeeper's.
    """

    kind: str
    at: int
    evidence_id: str
    controller_id: int | None = None
    epoch: int | None = None
    level_floor: str | None = None
    stated_cluster_id: str | None = None
    log_file: str | None = None
    is_of_quorum: bool = False


@dataclass(frozen=True, slots=True)
class BrokerFact:
    """One fact about one broker.

    ``kind``: ``registered`` (its znode, created by transaction ``czxid``), ``unregistered`` (the znode of ``czxid`` was
    gone: between ``at`` and ``at_upper``), ``up`` and ``down`` (a controller logged that it came or went), ``live`` (a
    controller listed it among the live ones), ``absent`` (a controller listed the live ones without it),
    ``shutdown_requested`` (it asked for a controlled shutdown), ``epoch_listed`` (a controller listed its broker epoch,
    ``czxid``). ``controller_id`` is whose log tells it; None where no controller's does. ``is_of_quorum``: the records
    of a quorum tell it; ``czxid`` is then an offset of its log, and later than any of ZooKeeper's.
    """

    broker_id: int
    kind: str
    at: int
    evidence_id: str
    czxid: int | None = None
    at_upper: int | None = None
    controller_id: int | None = None
    is_of_quorum: bool = False


@dataclass(frozen=True, slots=True)
class LifeSign:
    """A sign that one broker lived, or did not.

    ``kind``: ``line`` (of its own logs), ``leaving`` (such a line of an orderly shutdown), ``written`` (its session
    wrote a znode), ``unreachable`` (another broker's connection to it failed), :data:`LIVES`, :data:`STARTS`,
    :data:`FOUND_UNCLEAN` (LogManager recovers segments that were not flushed), :data:`FOUND_CLEAN` (it finds the file
    that marks a clean shutdown); or one of :data:`ENDINGS`.
    """

    broker_id: int
    kind: str
    at: int
    evidence_id: str


@dataclass(frozen=True, slots=True)
class TakeOverLine:
    """A line of controller.log about a take-over or a resignation (:mod:`reconstruct.cluster.take_overs`).

    ``log_place`` is its file, ``line`` its place there. ``step`` is the one that the message names, ``found_brokers``
    are the live brokers that it lists, the counts those of the partitions whose states it lists; None: it lists none.
    """

    controller_id: int
    controller_event: str
    at: int
    evidence_id: str
    log_place: str
    line: int
    controller_epoch: int | None = None
    step: str | None = None
    found_brokers: tuple[int, ...] | None = None
    found_partitions_count: int | None = None
    found_offline_count: int | None = None


@dataclass(frozen=True, slots=True)
class ProcedureLine:
    """A line of controller.log about a procedure (:mod:`reconstruct.cluster.episodes.procedures`).

    ``log_place`` is its file, ``line`` its place there; ``partitions`` are those that it names, as TOPIC-PARTITION, in
    order, and ``named`` its other fields.
    """

    controller_id: int
    controller_event: str
    at: int
    evidence_id: str
    log_place: str
    line: int
    log_level: str | None = None
    partitions: tuple[str, ...] = ()
    named: Mapping[str, str] = field(default_factory=dict)

    def listed(self, name: str) -> tuple[str, ...]:
        """A field's list; empty where the line has none."""
        return tuple(filter(None, self.named.get(name, "").split(",")))

    @property
    def place(self) -> tuple[int, str, int, str]:
        return self.at, self.log_place, self.line, self.evidence_id


@dataclass(slots=True)
class ClusterFacts:
    """The facts of one cluster."""

    controllers: list[ControllerFact] = field(default_factory=list)
    brokers: list[BrokerFact] = field(default_factory=list)
    process_starts: list[tuple[int, int, str]] = field(default_factory=list)
    life_signs: list[LifeSign] = field(default_factory=list)
    take_over_lines: list[TakeOverLine] = field(default_factory=list)
    procedure_lines: list[ProcedureLine] = field(default_factory=list)
    live_views: list[LiveView] = field(default_factory=list)
    log_spans: list[tuple[int, LogSpan]] = field(default_factory=list)
    #: the brokers in whose state-change log or server log times jump back, and by how much at the most, µs.
    set_back: dict[int, int] = field(default_factory=dict)
    #: the highest levels of metadata.version that brokers of a KRaft cluster registered.
    metadata_levels: set[int] = field(default_factory=set)
    stated_versions: list[str] = field(default_factory=list)
    shapes: set[str] = field(default_factory=set)
    topic_settings: dict[str, list[SettingChange]] = field(default_factory=dict)
    broker_settings: dict[int, list[SettingChange]] = field(default_factory=dict)
    #: a topic of which nothing is known there sets nothing: the cluster's metadata log was given.
    has_all_settings: bool = False
    own_settings: OwnSettings = field(default_factory=OwnSettings)

    @property
    def life_signs_by_broker(self) -> dict[int, list[LifeSign]]:
        """In the order of their times."""
        signs: dict[int, list[LifeSign]] = {}
        for sign in sorted(self.life_signs, key=attrgetter("at", "kind", "evidence_id")):
            signs.setdefault(sign.broker_id, []).append(sign)
        return signs

    @property
    def settings(self) -> SettingsOverTime:
        """Those of znodes and of the metadata log, in the order of their times; brokers' where the version has them."""
        brokers = {} if self.version.is_before(DYNAMIC_BROKER_SETTINGS_SINCE) else self.broker_settings
        return SettingsOverTime(
            {topic: sorted(changes, key=lambda change: change.at) for topic, changes in self.topic_settings.items()},
            {broker: sorted(changes, key=lambda change: change.at) for broker, changes in brokers.items()},
            self.has_all_settings,
        )

    def configuration_of(self, broker_id: int) -> Configuration | None:
        """What its own configuration held when; None where no copy and no print is known."""
        return self.own_settings.of_broker(broker_id, (at for id_, at, _ in self.process_starts if id_ == broker_id))

    @property
    def configurations(self) -> dict[int, Configuration]:
        """By broker, of those of which a copy or a print is known."""
        found = ((broker_id, self.configuration_of(broker_id)) for broker_id in self.own_settings.brokers)
        return {broker_id: own for broker_id, own in found if own is not None}

    @property
    def version(self) -> VersionRange:
        """What the logs state, else what brokers registered, else what the shapes of the logs' messages allow."""
        stated = sorted(v for v in map(KafkaVersion.parse, self.stated_versions) if v is not None)
        stated = stated or sorted(v for v in map(release_of_level, self.metadata_levels) if v is not None)
        if stated:
            return VersionRange(stated[0], stated[-1])
        spans = [versions_of(shape) for shape in sorted(self.shapes)]
        lows = [v for v in (KafkaVersion.parse(since) for since, _ in spans) if v is not None]
        highs = [KafkaVersion.parse(until) or NEWEST for _, until in spans]
        low, high = max(lows, default=OLDEST), min(highs, default=NEWEST)
        # several versions wrote these logs: only the widest range is certain
        return VersionRange(low, high) if low <= high else VersionRange(min(lows), max(highs))
