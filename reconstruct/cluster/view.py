"""What the fold of one partition needs to know of its whole cluster: small, and the same for every partition."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from itertools import accumulate
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from ingest.shapes.broker_settings import BrokerSetting
from reconstruct.cluster.settings import (
    LAG_MESSAGES_DEFAULT,
    Configuration,
    Known,
    SettingsOverTime,
    lag_time_us,
    unclean_election,
)
from reconstruct.cluster.spans import (
    CountedRequests,
    Departure,
    LiveView,
    LogSpan,
    Registration,
    Tenure,
    registration_before,
)
from reconstruct.findings.log_files import RECREATION_US
from reconstruct.kept.asking import ALWAYS, Asked, NotedMap, NotedSequence, NotedSet, of_field
from reconstruct.model.versions import ANY_VERSION, UNCLEAN_ELECTION_CONFIGURABLE_SINCE, VersionRange
from reconstruct.time.instants import at_of
from reconstruct.time.intervals import Interval, as_of
from reconstruct.time.line_order import JUMP_BACK_US
from reconstruct.time.spans import within

#: A topic's first line may be a little older than the first of its cluster's controller, clock against clock.
_SLACK_US: Final = 5_000_000
#: The fields that note by which broker, topic or record they are asked.
_BY_KEY: Final = (
    *("liveness", "departures", "configurations"),
    *("process_starts", "shutdown_requests", "shutdown_controllers", "logs", "set_back", "counted_requests"),
)
_Asked = ParamSpec("_Asked")
_Answer = TypeVar("_Answer")


def _noted(
    method: Callable[Concatenate[ClusterView, _Asked], _Answer],
) -> Callable[Concatenate[ClusterView, _Asked], _Answer]:
    """A question that is noted as a whole, with what it is about, where the view notes any."""

    @wraps(method)
    def ask(view: ClusterView, /, *given: _Asked.args, **named: _Asked.kwargs) -> _Answer:
        if view.noted is None:
            return method(view, *given, **named)
        assert not named, "questions are noted by the order of what they are about"
        asked, facts = view.noted
        asked.note(method.__name__, *given)
        return method(facts, *given, **named)

    return ask


class _FirstStarts:
    """Of tenures, when the first of those with a higher epoch than one given began."""

    def __init__(self, tenures: Iterable[Tenure]) -> None:
        known = sorted((tenure.controller_epoch, tenure.start) for tenure in tenures)
        self._epochs = [epoch for epoch, _ in known]
        #: of each and those behind it
        self._starts = list(accumulate((start for _, start in reversed(known)), min))[::-1]

    def above(self, epoch: int) -> int | None:
        place = bisect_right(self._epochs, epoch)
        return self._starts[place] if place < len(self._starts) else None


@dataclass(frozen=True)
class ClusterView:
    """The cluster-wide timelines, each in its order; instants are microseconds since the epoch, UTC.

    Given to a fold, it notes what that asks (:mod:`reconstruct.kept.asking`).
    """

    cluster_id: str
    version: VersionRange = ANY_VERSION
    tenures: tuple[Tenure, ...] = ()
    liveness: Mapping[int, tuple[Interval[Registration], ...]] = field(default_factory=dict)
    #: the brokers that stopped serving, each with its departures in order.
    departures: Mapping[int, tuple[Departure, ...]] = field(default_factory=dict)
    #: when the cluster was created again in the same folders.
    recreations: tuple[int, ...] = ()
    #: what brokers' own configurations held when, where a file or a start's print says it.
    configurations: Mapping[int, Configuration] = field(default_factory=dict)
    #: what znodes below /config and ConfigRecords set, with their times: it goes before what brokers' own have.
    settings: SettingsOverTime = field(default_factory=SettingsOverTime)
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
    #: by broker, what it received of controllers without a gap: what such requests do not name they did not hold.
    counted_requests: Mapping[int, tuple[CountedRequests, ...]] = field(default_factory=dict)
    #: brokers in one of whose logs corrected times jump back, by how much at the most, µs: the clock was set, and is
    #: corrected in one log or for one time only.
    set_back: Mapping[int, int] = field(default_factory=dict)
    #: the controllers' lists of live brokers, in the order of time.
    live_views: tuple[LiveView, ...] = ()
    #: where questions are noted, and the view that answers them.
    noted: tuple[Asked, ClusterView] | None = field(default=None, repr=False, compare=False)

    def noting(self, asked: Asked) -> ClusterView:
        """The same view, which notes what it is asked; version, tenures and generations are not noted."""
        by_key: dict[str, Any] = {name: NotedMap(getattr(self, name), name, asked) for name in _BY_KEY}
        others: dict[str, Any] = {
            "lossy_logs": NotedSet(self.lossy_logs, "lossy_logs", asked),
            "live_views": NotedSequence(self.live_views, "live_views", asked),
        }
        return replace(self, noted=(asked, self), **by_key, **others)

    def answer(self, fact: str, /, *asked: Any) -> object:
        """The answer to a question that was noted. A log answers for a span of time with what it covers of that."""
        if fact == ALWAYS:
            return self.version, self.tenures, self.recreations, self.settings
        if fact == "logs" and len(asked) == 3:
            broker_id, start, end = asked
            return broker_id in self.lossy_logs, sorted(
                (max(span.start, start), min(span.end, end), span.level_floor or "", span.is_in_order, span.is_shared)
                for span in self.logs.get(broker_id, ())
                if span.start <= end and start <= span.end
            )
        if fact in _QUESTIONS:
            return getattr(self, fact)(*asked)
        return of_field(self, fact, asked)

    def _facts_of_log(self, broker_id: int, start: int, end: int) -> ClusterView:
        """The view to ask what of [start, end] a broker's state-change log holds."""
        if self.noted is None:
            return self
        asked, facts = self.noted
        asked.note_span("logs", broker_id, start, end)
        return facts

    def logs_all(self, broker_id: int, start: int, end: int, file: str = "") -> bool:
        """Whether one file of the broker's state-change log, at TRACE, in order, its own and with no line known to be
        missing, covers all of [start, end]: then what it does not say did not happen. With ``file`` only that one: of
        what another says nothing is missing in it."""
        facts = self._facts_of_log(broker_id, start, end)
        return broker_id not in facts.lossy_logs and any(
            span.level_floor == "TRACE"
            and span.is_in_order
            and not span.is_shared
            and span.start <= start
            and end <= span.end
            and (not file or span.file in ("", file))
            for span in facts.logs.get(broker_id, ())
        )

    def is_set_back(self, broker_id: int, start: int, end: int) -> bool:
        """Whether the broker's clock may have been set back about then: the times of a file of its state-change log
        with lines of [start, end] jump back by more than its threads overtake each other."""
        spans = self._facts_of_log(broker_id, start, end).logs.get(broker_id, ())
        return any(
            span.most_back_us > JUMP_BACK_US and span.start - span.most_back_us <= end and start <= span.end
            for span in spans
        )

    def is_in_one_file(self, broker_id: int, start: int, end: int) -> bool:
        """Whether one file of the broker's state-change log was begun by ``start`` and went on until ``end``."""
        facts = self._facts_of_log(broker_id, start, end)
        return any(span.start <= start and end <= span.end for span in facts.logs.get(broker_id, ()))

    def is_one_cluster(self, broker_id: int, start: int, end: int) -> bool:
        """Whether what the broker logged at both instants is of one cluster: it is not known to have been created again
        in between, and there was no time to, or one file of the broker's state-change log holds both. Folders that
        served one cluster after the other have files of each, often without the first elections and the start of the
        process."""
        if any(start < at <= end for at in self.recreations):
            return False
        return end - start <= RECREATION_US or self.is_in_one_file(broker_id, start, end)

    def before(self, instant: int) -> ClusterView:
        """What is known of what was before ``instant``: the same, whatever the cluster does later. Of each broker its
        first start after that is known, too, which ends whatever it went on with."""
        return replace(
            self,
            tenures=tuple(tenure.before(instant) for tenure in self.tenures if tenure.start < instant),
            liveness={
                broker_id: tuple(registration_before(span, instant) for span in spans if span.start < instant)
                for broker_id, spans in self.liveness.items()
            },
            departures={
                broker_id: tuple(departure for departure in departures if departure.unregistered_by < instant)
                for broker_id, departures in self.departures.items()
            },
            recreations=tuple(at for at in self.recreations if at < instant),
            configurations={broker_id: own.before(instant) for broker_id, own in self.configurations.items()},
            settings=self.settings.before(instant),
            process_starts={
                broker_id: starts[: bisect_left(starts, (instant,)) + 1]
                for broker_id, starts in self.process_starts.items()
            },
            shutdown_requests={
                broker_id: tuple(asked for asked in requests if asked[0] < instant)
                for broker_id, requests in self.shutdown_requests.items()
            },
            logs={
                broker_id: tuple(span.before(instant) for span in spans if span.start < instant)
                for broker_id, spans in self.logs.items()
            },
            counted_requests={
                broker_id: tuple(run.before(instant) for run in runs if run.start < instant)
                for broker_id, runs in self.counted_requests.items()
            },
            live_views=tuple(view for view in self.live_views if view.at < instant),
        )

    @_noted
    def keeps_order(self, broker_id: int) -> bool:
        """Whether the lines of the broker's state-change log stand in the order of what happened, in all its files."""
        return broker_id not in self._unordered_logs

    @cached_property
    def _unordered_logs(self) -> frozenset[int]:
        logs = self.logs.items()
        return frozenset(broker_id for broker_id, spans in logs if not all(span.is_in_order for span in spans))

    def unclean_election_allowed(self, topic: str, at: int | None = None) -> bool | None:
        """Whether the configuration allows an unclean election at ``at``; None where the evidence does not say.

        Without an instant: None too where it allowed them at some time and not at another, as far as that is known.
        """
        if self.version.is_before(UNCLEAN_ELECTION_CONFIGURABLE_SINCE):
            return True
        if at is not None:
            once = self._unclean_at(topic, at)
            return None if isinstance(once, Known) else once
        own = (at for each in self.configurations.values() for at in each.changes(BrokerSetting.UNCLEAN))
        every = [self._unclean_at(topic, instant) for instant in [0, *self.settings.changes(topic), *own]]
        over_time = {one for one in every if not isinstance(one, Known)}
        return over_time.pop() if len(over_time) == 1 else None

    def _unclean_at(self, topic: str, at: int) -> bool | Known | None:
        is_told = topic in self.settings.topics or self.settings.brokers
        found = self.settings.unclean_election(topic, at) if is_told else None
        if found is not None:
            return found
        every = {self._own_unclean_at(broker_id, own, at) for broker_id, own in self.configurations.items()}
        one = every - {Known.NOT}
        return one.pop() if len(one) == 1 else Known.NOT

    def _own_unclean_at(self, broker_id: int, own: Configuration, at: int) -> bool | Known:
        printed_at = own.printed_at(BrokerSetting.UNCLEAN, at)
        if printed_at is not None and self.settings.of_broker(broker_id, printed_at, "unclean_election") is not None:
            return Known.NOT  # what was printed was /config/brokers', which has it no more
        return unclean_election(own, at, self.version)

    def min_isr_changes(self, topic: str, leader: int) -> list[int]:
        """The instants at which min.insync.replicas of a topic's partitions that ``leader`` leads may have changed."""
        own = self.configurations.get(leader)
        return sorted({*self.settings.changes(topic), *(own.changes(BrokerSetting.MIN_ISR) if own is not None else ())})

    def min_isr(self, topic: str, leader: int, start: int, end: int | None = None) -> int | None:
        """min.insync.replicas of a partition of ``topic`` that ``leader`` leads, from ``start`` to ``end``; None where
        nothing says what held then, or where it changed meanwhile."""
        changes = self.min_isr_changes(topic, leader) if start != end else ()
        instants = [start, *(at for at in changes if start < at and (end is None or at < end))]
        found = {self._min_isr_at(topic, leader, at) for at in instants}
        return found.pop() if len(found) == 1 else None

    def _min_isr_at(self, topic: str, leader: int, at: int) -> int | None:
        found = self.settings.min_insync_replicas(topic, leader, at)
        if found is not None:
            return None if isinstance(found, Known) else found
        own = self.configurations.get(leader)
        if own is None:
            return None
        printed_at = own.printed_at(BrokerSetting.MIN_ISR, at)
        if printed_at is not None and self.settings.of_broker(leader, printed_at, "min_insync_replicas") is not None:
            return None  # what was printed was /config/brokers', which has it no more
        return own.number(BrokerSetting.MIN_ISR, at, 1)

    def lag_messages(self, broker_id: int, at: int) -> int | None:
        """0.8's replica.lag.max.messages of a broker at ``at``; None where it is not known."""
        own = self.configurations.get(broker_id)
        return None if own is None else own.number(BrokerSetting.LAG_MESSAGES, at, LAG_MESSAGES_DEFAULT)

    def lag_time_us(self, broker_id: int, at: int) -> int | None:
        """replica.lag.time.max.ms of a broker at ``at``, in µs; None where it is not known."""
        own = self.configurations.get(broker_id)
        return None if own is None else lag_time_us(own, at, self.version)

    def at_generation_of(self, instant: int) -> ClusterView:
        """The view of the generation of the cluster that ``instant`` falls into: one created again counts anew."""
        if len(self._generations) < 2:
            return self
        begun = [number for number, (start, _) in self._generations.items() if start <= instant + _SLACK_US]
        return self._generations[max(begun, default=min(self._generations))][1]

    @cached_property
    def _generations(self) -> dict[int, tuple[int, ClusterView]]:
        """When each began, and the view of it."""
        tenures: dict[int, list[Tenure]] = {}
        for tenure in self.tenures:
            tenures.setdefault(tenure.generation, []).append(tenure)
        return {
            number: (min(tenure.start for tenure in own), replace(self, tenures=tuple(own)))
            for number, own in tenures.items()
        }

    def tenure_at(self, instant: int) -> Tenure | None:
        """The tenure that holds at ``instant``: the highest epoch begun; None before the first known one."""
        begun = bisect_right(self._starts_from, instant)
        return self.tenures[begun - 1] if begun else None

    @cached_property
    def _starts_from(self) -> list[int]:
        """Of each tenure and those behind it, when the first began."""
        return list(accumulate((tenure.start for tenure in reversed(self.tenures)), min))[::-1]

    def tenure_of(self, controller_epoch: int | None) -> Tenure | None:
        """The tenure with that controller epoch; None where it is not known."""
        of_epoch = self.tenures_of(controller_epoch)
        return of_epoch[0] if of_epoch else None

    def tenures_of(self, controller_epoch: int | None) -> Sequence[Tenure]:
        """The tenures with that controller epoch: several where the cluster was created again, or two claim it."""
        return self._by_epoch.get(controller_epoch, ())

    @cached_property
    def _by_epoch(self) -> dict[int | None, list[Tenure]]:
        found: dict[int | None, list[Tenure]] = {}
        for tenure in self.tenures:
            found.setdefault(tenure.controller_epoch, []).append(tenure)
        return found

    def successor_start(self, controller_epoch: int) -> int | None:
        """When a controller with a higher epoch took over; None while none is known."""
        return self._first_starts.above(controller_epoch)

    @cached_property
    def _first_starts(self) -> _FirstStarts:
        return _FirstStarts(self.tenures)

    def tenure_bounds(self, controller_id: int | None, controller_epoch: int | None) -> tuple[int, int | None]:
        """When the tenure began, and when the same broker's next one did; the beginning of time where it is unknown."""
        own = (one.start for one in self.tenures_of(controller_epoch) if one.controller_id == controller_id)
        start = next(own, None)
        if start is None or controller_epoch is None:
            return 0, None
        return start, self._first_starts_of[controller_id].above(controller_epoch)

    @cached_property
    def _first_starts_of(self) -> dict[int | None, _FirstStarts]:
        """By controller."""
        of_controller: dict[int | None, list[Tenure]] = {}
        for tenure in self.tenures:
            of_controller.setdefault(tenure.controller_id, []).append(tenure)
        return {controller_id: _FirstStarts(own) for controller_id, own in of_controller.items()}

    @_noted
    def first_list_after(self, instant: int) -> LiveView | None:
        """The first list of live brokers that any controller logged after ``instant``."""
        index = bisect_right(self.live_views, instant, key=at_of)
        return self.live_views[index] if index < len(self.live_views) else None

    @_noted
    def asked_to_leave(self, since: int, until: int) -> frozenset[int]:
        """The brokers that asked to be shut down in [since, until]."""
        return frozenset(
            broker_id
            for broker_id, requests in self.shutdown_requests.items()
            if any(since <= at <= until for at, _ in requests)
        )

    @_noted
    def live_views_of(self, controller_id: int | None, since: int, until: int | None) -> list[LiveView]:
        """The lists of live brokers that one controller logged in [since, until), in their order."""
        views = within(self.live_views, since, None if until is None else until - 1)
        return [view for view in views if view.controller_id == controller_id]

    def is_registered(self, broker_id: int, start: int, end: int) -> bool:
        """Whether one registration of the broker lasted from ``start`` to ``end``."""
        known = as_of(self.liveness.get(broker_id, ()), start)
        return known is not None and (known.end is None or known.end > end)

    @_noted
    def lived_on(self, broker_id: int, start: int, end: int) -> bool:
        """Whether nothing tells that the broker's process may have ended by ``end``: no registration that lasted until
        ``start`` or longer ended behind a last sign of life of before that."""
        departures = self.departures.get(broker_id, ())
        return not any(left.served_until < end and start <= left.unregistered_by for left in departures)

    def is_live(self, broker_id: int, instant: int) -> bool | None:
        """Whether the broker was registered at ``instant``; None where nothing is known of the broker then."""
        intervals = self.liveness.get(broker_id, ())
        if not intervals or instant < intervals[0].start:
            return None
        return as_of(intervals, instant) is not None


#: What :func:`_noted` notes.
_QUESTIONS: Final = ("keeps_order", "first_list_after", "asked_to_leave", "live_views_of", "lived_on")
