"""Which brokers were alive when: from their registrations in /brokers/ids, and from what controllers saw of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from ingest.shapes.event_types import EventType
from reconstruct.cluster.controllers import recreations
from reconstruct.cluster.evidence import BrokerFact, ControllerFact
from reconstruct.cluster.generations import GenerationStart
from reconstruct.cluster.spans import Registration
from reconstruct.time.instants import at_of
from reconstruct.time.intervals import Interval
from reconstruct.time.spans import within

#: A controller that hears of a lost registration logs it after the fact, and a snapshot's round takes a while.
_SLACK_US: Final = 30_000_000
#: A new controller lists the live brokers within this time of its election.
_FAILOVER_US: Final = 5_000_000


@dataclass(frozen=True, slots=True)
class RegistrationSpan:
    """One registration: it ended between ``ended_after`` and ``ended_before``, where these are known.

    Both are the interval's end where a transaction tells it; else that end is the latest possible, and inferred.
    """

    interval: Interval[Registration]
    ended_before: int | None

    @property
    def ended_after(self) -> int | None:
        return self.interval.value.ended_after


def broker_registrations(
    facts: Iterable[BrokerFact],
    controllers: Iterable[ControllerFact] = (),
    process_starts: Iterable[tuple[int, int, str]] = (),
) -> dict[int, list[RegistrationSpan]]:
    """By broker, its registrations in order: by znodes where any were given, and by the controllers' logs where these
    tell of more.

    ``controllers`` tell who was elected in a broker's place: its session, and so its registration, had ended by then.
    So had all where the cluster was created again, that of a broker that is listed with a higher epoch (2.2 and later),
    and that of a controller that lists itself after its process started (:func:`process_starts`) and it was elected.
    """
    controllers = list(controllers)
    elections = sorted((f for f in controllers if f.controller_id is not None), key=lambda f: (f.at, f.kind))
    again = recreations(controllers)
    starts: dict[int, list[ProcessStart]] = {}
    for broker_id, at, evidence_id in sorted(process_starts):
        starts.setdefault(broker_id, []).append(ProcessStart(at, evidence_id))
    by_broker: dict[int, list[BrokerFact]] = {}
    for fact in sorted(facts, key=lambda f: (f.at, f.kind, f.evidence_id)):
        by_broker.setdefault(fact.broker_id, []).append(fact)
    has_znodes = any(f.kind == "registered" for facts_of in by_broker.values() for f in facts_of)
    result = {}
    for broker_id, facts_of in sorted(by_broker.items()):
        told = _OfEnds.of(facts_of, elections)
        logged = _from_logs(facts_of, told, again, starts.get(broker_id, ()))
        result[broker_id] = _with_logged(_from_znodes(facts_of, told), logged) if has_znodes else logged
    return {broker_id: spans for broker_id, spans in result.items() if spans}


def _with_logged(known: list[RegistrationSpan], logged: Sequence[RegistrationSpan]) -> list[RegistrationSpan]:
    """Those of znodes, ``known``, with what was ``logged`` before and after them: snapshots that are taken now and then
    do not see each registration. Logs add only as many as they tell of more than znodes do, as a wrong clock makes none
    of one that is known."""
    more = len(logged) - len(known)
    if more <= 0:
        return known
    if not known:
        return [span for span in logged if span.interval.end is not None]
    first, last = known[0].interval.start, known[-1]
    before = [span for span in logged if span.interval.end is not None and span.interval.end <= first][:more]
    after = logged[len(before) + len(known) :]
    if after:
        ends = logged[len(before) + len(known) - 1].interval
        if last.ended_before is None and ends.end is not None and ends.end > last.interval.start:
            last = _ended(last, ends)
        if last.ended_before is None or after[0].interval.start < last.ended_before:
            after = []
    return [*before, *known[:-1], last, *after] if after else [*before, *known]


def _ended(span: RegistrationSpan, logged: Interval[Registration]) -> RegistrationSpan:
    """One that no snapshot saw end, ended as logs tell."""
    evidence = tuple(dict.fromkeys((*span.interval.evidence, *logged.evidence)))
    value = Registration(logged.value.end_reason, span.interval.start)
    return RegistrationSpan(
        Interval(span.interval.start, logged.end, value, evidence, "effect_logged"), ended_before=logged.end
    )


@dataclass(frozen=True, slots=True)
class _OfEnds:
    """What is told of the ends of one broker's registrations, in order: that it went or was missing, that it asked to
    be shut down (µs), the elections of another controller in its place, and its own (µs)."""

    losses: Sequence[BrokerFact]
    stops: Sequence[int]
    successors: Sequence[ControllerFact]
    elected: Sequence[int]

    @classmethod
    def of(cls, facts: Sequence[BrokerFact], controllers: Sequence[ControllerFact]) -> _OfEnds:
        stops = [fact.at for fact in facts if fact.kind == "shutdown_requested"]
        losses = [fact for fact in facts if fact.kind in ("down", "absent")]
        broker_id = facts[0].broker_id
        elected = [fact.at for fact in controllers if fact.kind == "elected" and fact.controller_id == broker_id]
        return cls(losses, stops, list(_successors(broker_id, stops, controllers)), elected)

    def first_loss(self, since: int, until: int) -> BrokerFact | None:
        """Of [since, until]."""
        return next(iter(within(self.losses, since, until)), None)

    def successor(self, after: int, until: int) -> ControllerFact | None:
        """The last election of another controller in (after, until]: the controller's znode and its registration are of
        one session and end with it."""
        found = within(self.successors, after + 1, until)
        return found[-1] if found else None

    def end_reason(self, start: int, end: int, *, was_lost: bool) -> str:
        if bisect_left(self.stops, start) < bisect_right(self.stops, end):
            return EventType.CONTROLLED_SHUTDOWN
        return "registration_lost" if was_lost else "registered_again"


def _successors(
    broker_id: int, stops: Sequence[int], controllers: Iterable[ControllerFact]
) -> Iterator[ControllerFact]:
    """The elections of another controller where the broker was the one before. One that resigned while it served on may
    have kept its registration; one that was shut down has not."""
    holder = None
    for fact in controllers:
        if fact.kind != "resigned":
            if holder == broker_id != fact.controller_id:
                yield fact
            holder = fact.controller_id
        elif fact.controller_id == holder and not (stops and stops[0] <= fact.at):
            holder = None


def _from_znodes(facts: Sequence[BrokerFact], told: _OfEnds) -> list[RegistrationSpan]:
    registered: dict[tuple[bool, int], BrokerFact] = {}
    for fact in facts:
        if fact.kind == "registered" and fact.czxid is not None:
            registered.setdefault((fact.is_of_quorum, fact.czxid), fact)
    gone = {(f.is_of_quorum, f.czxid): f for f in facts if f.kind == "unregistered"}
    order = [registered[key] for key in sorted(registered)]
    spans: list[RegistrationSpan] = []
    for index, fact in enumerate(order):
        following = order[index + 1] if index + 1 < len(order) else None
        lost = gone.get((fact.is_of_quorum, fact.czxid))
        start = max(fact.at, (spans[-1].interval.end if spans else None) or fact.at)
        if lost is None and following is None:
            spans.append(RegistrationSpan(Interval(start, None, Registration(), (fact.evidence_id,)), None))
            continue
        earliest = lost.at if lost else fact.at
        ends = (lost.at_upper if lost else None, following.at if following else None)
        latest = min(at for at in ends if at is not None)
        heard = told.first_loss(earliest, latest + _SLACK_US)
        inferred: str | None = "znode_snapshot"
        bound: BrokerFact | ControllerFact | None = None
        if lost is not None and lost.at == lost.at_upper:
            inferred = None
        else:
            effects: list[BrokerFact | ControllerFact] = [
                f for f in (heard, told.successor(earliest, latest)) if f is not None
            ]
            bound = min((f for f in effects if f.at < latest), key=lambda f: f.at, default=None)
            if bound is not None:
                latest, inferred = bound.at, "effect_logged"
        end = max(start, latest)
        evidence = [known.evidence_id for known in (fact, lost, heard, bound) if known is not None]
        reason = told.end_reason(start, end, was_lost=lost is not None or heard is not None)
        value = Registration(reason, min(end, max(start, earliest)))
        spans.append(RegistrationSpan(Interval(start, end, value, tuple(dict.fromkeys(evidence)), inferred), end))
    return spans


def _from_logs(
    facts: Sequence[BrokerFact],
    told: _OfEnds,
    recreations: Sequence[GenerationStart],
    starts: Sequence[ProcessStart],
) -> list[RegistrationSpan]:
    spans: list[RegistrationSpan] = []
    opened: BrokerFact | None = None
    epoch: int | None = None
    told_of: list[BrokerFact | GenerationStart] = [*facts, *recreations]
    for fact in sorted(told_of, key=at_of):
        if isinstance(fact, GenerationStart):
            if opened is not None:
                spans.append(_ended_by(fact, opened, told))
            opened = epoch = None
            continue
        if opened is not None:
            is_another = fact.kind == "epoch_listed" and epoch is not None and epoch < (fact.czxid or 0)
            ends_by = _own_start(fact, opened, starts, told.elected) or (fact if is_another else None)
            if ends_by is not None:
                spans.append(_ended_by(ends_by, opened, told))
                opened, epoch = (fact if is_another else None), None
        if fact.kind == "epoch_listed":
            epoch = max(epoch or 0, fact.czxid or 0)  # a controller that was deposed lists an older one
        elif fact.kind in ("up", "live") and opened is None:
            opened = fact
        elif fact.kind in ("down", "absent") and opened is not None:
            inferred = "log_gap" if fact.kind == "absent" else _begun(opened) or "effect_logged"
            evidence: tuple[str, ...] = (opened.evidence_id, fact.evidence_id)
            end = fact.at
            if fact.kind == "absent":
                earliest = max(opened.at, fact.at - _FAILOVER_US)
                successor = told.successor(earliest, fact.at)
                if successor is not None:
                    end, evidence = successor.at, (*evidence, successor.evidence_id)
            reason = told.end_reason(opened.at, end, was_lost=True)
            spans.append(RegistrationSpan(Interval(opened.at, end, Registration(reason), evidence, inferred), end))
            opened = epoch = None
    if opened is not None:
        spans.append(
            RegistrationSpan(Interval(opened.at, None, Registration(), (opened.evidence_id,), _begun(opened)), None)
        )
    return spans


def _own_start(
    fact: BrokerFact, opened: BrokerFact, starts: Sequence[ProcessStart], elected: Sequence[int]
) -> ProcessStart | None:
    """The start of the broker's process since its registration began, where the broker then lists itself as the
    controller that it was elected to be since: nobody else may have seen that it was away. By the lines of another,
    whose clock may differ, a start proves nothing; nor without an election, for a second process may have been started
    that could not lock the log directories."""
    if fact.kind not in ("live", "epoch_listed") or fact.controller_id != fact.broker_id:
        return None
    number = bisect_right(elected, fact.at)
    before = within(starts, opened.at + 1, elected[number - 1]) if number else ()
    return before[-1] if before else None


def _ended_by(
    event: GenerationStart | ProcessStart | BrokerFact, opened: BrokerFact, told: _OfEnds
) -> RegistrationSpan:
    """One that had ended by then: with its ZooKeeper, with the session of the process before, or by the epoch of the
    next."""
    reason = told.end_reason(opened.at, event.at, was_lost=True)
    evidence = (opened.evidence_id, event.evidence_id)
    return RegistrationSpan(Interval(opened.at, event.at, Registration(reason), evidence, "log_gap"), event.at)


def _begun(opened: BrokerFact) -> str | None:
    return None if opened.kind == "up" else "retention_boundary"


class ProcessStart(NamedTuple):
    """When a broker's process started, µs, and the record that says so."""

    at: int
    evidence_id: str


class StartStep(IntEnum):
    """What a line of a start says, in the order of one process; a broker of ZooKeeper has the last alone.

    A node of a KRaft cluster tells its start in steps, the controller's before the broker's, seconds apart. Lines
    between the first step and the last are of the new process.
    """

    CONTROLLER_STARTING = 0
    BROKER_LEAVES_SHUTDOWN = 1
    BROKER_STARTING = 2


def process_starts(lines: Iterable[tuple[int, int, StartStep, str]]) -> list[tuple[int, int, str]]:
    """When each process started, by the first line that says so: broker, instant, record.

    ``lines`` are (broker, instant, step, record) of all lines of starts.

    >>> lines = [(1, 10, StartStep.CONTROLLER_STARTING, "a"), (1, 13, StartStep.BROKER_STARTING, "b")]
    >>> process_starts([*lines, (1, 90, StartStep.BROKER_STARTING, "c")])
    [(1, 10, 'a'), (1, 90, 'c')]
    """
    found: list[tuple[int, int, str]] = []
    last: dict[int, StartStep] = {}
    for broker_id, at, step, record_id in sorted(lines):
        if broker_id not in last or step <= last[broker_id]:
            found.append((broker_id, at, record_id))
        last[broker_id] = step
    return found
