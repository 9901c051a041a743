"""What the fold of one partition needs to know of its whole cluster: small, and the same for every partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from reconstruct.cluster.generations import RECREATION_US
from reconstruct.model.versions import ANY_VERSION, UNCLEAN_ELECTION_CONFIGURABLE_SINCE, VersionRange
from reconstruct.time.intervals import Interval

#: A topic's first line may be a little older than the first of its cluster's controller, clock against clock.
_SLACK_US: Final = 5_000_000


@dataclass(frozen=True, slots=True)
class Tenure:
    """One controller's hold of one controller epoch; ``controller_id`` is -1 where nothing says who it was.

    ``level_floor`` is the lowest level seen in its state-change log: None where none of that log was given.
    """

    controller_id: int
    controller_epoch: int
    start: int
    end: int | None
    evidence: tuple[str, ...]
    level_floor: str | None = None
    #: counts how often the cluster had been created again in the same folders: epochs start again each time.
    generation: int = 0

    @property
    def logs_transitions(self) -> bool:
        """Whether replica transitions and partitions going offline are in the log that was given."""
        return self.level_floor == "TRACE"


@dataclass(frozen=True, slots=True)
class Registration:
    """A broker's registration and why it ended; None while it lasts or where nothing says."""

    end_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Departure:
    """A broker that stopped serving before, or as, its registration ended; instants in µs since the epoch.

    ``served_until`` is its last sign of life. At ``gone_by`` it had stopped; None where nothing proves when: it lived
    on, paused or cut off, or neither a later start nor failed connections tell of its death. Its registration ended
    between ``unregistered_after`` and ``unregistered_by``.
    """

    served_until: int
    gone_by: int | None
    unregistered_after: int
    unregistered_by: int
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogSpan:
    """What one file of a broker's state-change log covers, in µs; ``level_floor`` is the lowest level seen in it.

    ``is_in_order``: its times allow that its lines stand in the order in which they were written
    (:mod:`reconstruct.time.line_order`).
    """

    start: int
    end: int
    level_floor: str | None
    is_in_order: bool = True


@dataclass(frozen=True, slots=True)
class LiveView:
    """The live brokers as a controller listed them: its own, processed view."""

    at: int
    controller_id: int | None
    live: frozenset[int]
    evidence_id: str


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The cluster-wide timelines, each in its order; instants are microseconds since the epoch, UTC."""

    cluster_id: str
    version: VersionRange = ANY_VERSION
    tenures: tuple[Tenure, ...] = ()
    liveness: Mapping[int, tuple[Interval[Registration], ...]] = field(default_factory=dict)
    #: the brokers that stopped serving, each with its departures in order.
    departures: Mapping[int, tuple[Departure, ...]] = field(default_factory=dict)
    #: when the cluster was created again in the same folders.
    recreations: tuple[int, ...] = ()
    #: min.insync.replicas of a topic, where its configuration says.
    min_insync_replicas: Mapping[str, int] = field(default_factory=dict)
    #: the brokers' own min.insync.replicas, where their configuration was given (Kafka's default is 1).
    broker_min_insync_replicas: Mapping[int, int] = field(default_factory=dict)

    #: unclean.leader.election.enable of a topic, where its configuration says.
    unclean_election: Mapping[str, bool] = field(default_factory=dict)
    #: the brokers' own setting, the version's default included; None where their configuration was not given.
    broker_unclean_election: bool | None = None
    #: when each broker's process started, and the record that says so.
    process_starts: Mapping[int, tuple[tuple[int, str], ...]] = field(default_factory=dict)
    #: when each broker asked to be shut down, and the record that says so.
    shutdown_requests: Mapping[int, tuple[tuple[int, str], ...]] = field(default_factory=dict)
    #: by the record of such a request, the controller in whose log it stands.
    shutdown_controllers: Mapping[str, int] = field(default_factory=dict)
    #: the state-change logs that were given, by broker, in order of their begin.
    logs: Mapping[int, tuple[LogSpan, ...]] = field(default_factory=dict)
    #: brokers whose state-change log is proven to lack lines: what it does not say proves nothing.
    lossy_logs: frozenset[int] = frozenset()
    #: the controllers' lists of live brokers, in their order.
    live_views: tuple[LiveView, ...] = ()

    def logs_all(self, broker_id: int, start: int, end: int) -> bool:
        """Whether one file of the broker's state-change log, at TRACE, in order and with no line known to be missing,
        covers all of [start, end]: then what it does not say did not happen."""
        return broker_id not in self.lossy_logs and any(
            span.level_floor == "TRACE" and span.is_in_order and span.start <= start and end <= span.end
            for span in self.logs.get(broker_id, ())
        )

    def is_one_cluster(self, broker_id: int, start: int, end: int) -> bool:
        """Whether what the broker logged at both instants is of one cluster: it is not known to have been created again
        in between, and there was no time to, or one file of the broker's state-change log holds both. Folders that
        served one cluster after the other have files of each, often without the first elections and the start of the
        process."""
        if any(start < at <= end for at in self.recreations):
            return False
        spans = self.logs.get(broker_id, ())
        return end - start <= RECREATION_US or any(span.start <= start and end <= span.end for span in spans)

    def keeps_order(self, broker_id: int) -> bool:
        """Whether the lines of the broker's state-change log stand in the order of what happened, in all its files."""
        return all(span.is_in_order for span in self.logs.get(broker_id, ()))

    def unclean_election_allowed(self, topic: str) -> bool | None:
        """Whether the configuration allows an unclean election; None where the evidence does not say."""
        if self.version.is_before(UNCLEAN_ELECTION_CONFIGURABLE_SINCE):
            return True
        return self.unclean_election.get(topic, self.broker_unclean_election)

    def at_generation_of(self, instant: int) -> ClusterView:
        """The view of the generation of the cluster that ``instant`` falls into: one created again counts anew."""
        begins: dict[int, int] = {}
        for tenure in self.tenures:
            begins[tenure.generation] = min(tenure.start, begins.get(tenure.generation, tenure.start))
        if len(begins) < 2:
            return self
        begun = [generation for generation, start in begins.items() if start <= instant + _SLACK_US]
        chosen = max(begun, default=min(begins))
        return replace(self, tenures=tuple(tenure for tenure in self.tenures if tenure.generation == chosen))

    def tenure_at(self, instant: int) -> Tenure | None:
        """The tenure that holds at ``instant``: the highest epoch begun; None before the first known one."""
        found = None
        for tenure in self.tenures:
            if tenure.start <= instant:
                found = tenure
        return found

    def tenure_of(self, controller_epoch: int | None) -> Tenure | None:
        """The tenure with that controller epoch; None where it is not known."""
        return next((tenure for tenure in self.tenures if tenure.controller_epoch == controller_epoch), None)

    def successor_start(self, controller_epoch: int) -> int | None:
        """When a controller with a higher epoch took over; None while none is known."""
        return min((t.start for t in self.tenures if t.controller_epoch > controller_epoch), default=None)

    def tenure_bounds(self, controller_id: int | None, controller_epoch: int | None) -> tuple[int, int | None]:
        """When the tenure began, and when the same broker's next one did; the beginning of time where it is unknown."""
        own = [tenure for tenure in self.tenures if tenure.controller_id == controller_id]
        start = next((tenure.start for tenure in own if tenure.controller_epoch == controller_epoch), None)
        if start is None or controller_epoch is None:
            return 0, None
        return start, min((tenure.start for tenure in own if tenure.controller_epoch > controller_epoch), default=None)

    def live_views_of(self, controller_id: int | None, since: int, until: int | None) -> list[LiveView]:
        """The lists of live brokers that one controller logged in [since, until), in their order."""
        return [
            view
            for view in self.live_views
            if view.controller_id == controller_id and since <= view.at and (until is None or view.at < until)
        ]

    def is_registered(self, broker_id: int, start: int, end: int) -> bool:
        """Whether one registration of the broker lasted from ``start`` to ``end``."""
        return any(i.start <= start and (i.end is None or i.end > end) for i in self.liveness.get(broker_id, ()))

    def is_live(self, broker_id: int, instant: int) -> bool | None:
        """Whether the broker was registered at ``instant``; None where nothing is known of the broker then."""
        intervals = self.liveness.get(broker_id, ())
        if not intervals or instant < intervals[0].start:
            return None
        return any(interval.holds_at(instant) for interval in intervals)
