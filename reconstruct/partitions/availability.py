"""Intervals in which a partition was not as it should be, swept from the timelines."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from operator import attrgetter
from typing import Final

from reconstruct.cluster.spans import Departure
from reconstruct.cluster.view import ClusterView
from reconstruct.model.states import NO_LEADER
from reconstruct.partitions.assignment import Assignment, Window
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from reconstruct.partitions.roles import LEADER, Role
from reconstruct.time.instants import utc
from reconstruct.time.intervals import Interval, as_of

#: How the reason begins of a partition that has no leader by decision, and not only none that is registered.
NO_LEADER_DECIDED: Final = "no leader was decided"
_START: Final = attrgetter("start")


@dataclass(frozen=True, slots=True)
class Unavailability:
    """``kind`` held from ``start`` to ``end`` (None while it lasts), microseconds since the epoch.

    It may have begun as early as ``valid_from_lower``; None where ``start`` is exact. ``brokers`` are those that were
    missing when it began.
    """

    kind: str
    start: int
    end: int | None
    opened_by: str
    closed_by: str | None
    evidence: tuple[str, ...]
    valid_from_lower: int | None = None
    inferred_from: str | None = None
    brokers: tuple[int, ...] = ()


#: Why something is not as it should be, and which brokers are missing.
_Reason = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Moment:
    """The timelines at one instant."""

    at: int
    state: Interval[LeaderAndIsrState] | None
    assignment: Assignment | None
    leader_is_live: bool | None
    min_isr: int | None
    last_leader: int

    @property
    def missing(self) -> tuple[int, ...]:
        """Replicas that are not in the ISR; none where the state or the assignment is not known."""
        if self.state is None or self.assignment is None:
            return ()
        return tuple(replica for replica in self.assignment.target if replica not in self.state.value.isr)


def availability(
    topic: str,
    decided: Sequence[Interval[LeaderAndIsrState]],
    assignments: Sequence[Interval[Assignment]],
    reassigning: Sequence[Window],
    deleting: Sequence[Window],
    roles: Mapping[int, Sequence[Interval[Role]]],
    cluster: ClusterView,
) -> list[Unavailability]:
    """All kinds, each in time order. What depends on evidence that is not there is left out, not guessed."""
    instants = _boundaries(topic, decided, assignments, cluster)
    moments = [_moment(topic, at, decided, assignments, cluster) for at in instants]
    result = [span for kind, why in _KINDS.items() for span in _spans(kind, moments, why)]
    result.extend(_without_live_leader(decided, roles, cluster))
    for kind, windows in (("reassigning", reassigning), ("deleting", deleting)):
        for start, end, evidence in windows:
            closed = None if end is None else f"{kind} ended"
            result.append(Unavailability(kind, start, end, f"{kind} requested", closed, evidence))
    return result


def _boundaries(
    topic: str,
    decided: Sequence[Interval[LeaderAndIsrState]],
    assignments: Sequence[Interval[Assignment]],
    cluster: ClusterView,
) -> list[int]:
    instants: set[int] = set()
    for start, end in [(i.start, i.end) for i in decided] + [(i.start, i.end) for i in assignments]:
        instants.update(at for at in (start, end) if at is not None)
    if not instants:
        return []
    first = min(instants)
    ended = decided[-1].end if decided else None
    changes = set(cluster.settings.changes(topic))
    for leader in {interval.value.leader for interval in decided}:
        changes.update(cluster.min_isr_changes(topic, leader))
        for registration in cluster.liveness.get(leader, ()):
            for at in (registration.start, registration.end):
                if at is not None and at > first and (ended is None or at < ended):
                    instants.add(at)
    instants.update(at for at in changes if at > first and (ended is None or at < ended))
    return sorted(instants)


def _moment(
    topic: str,
    at: int,
    decided: Sequence[Interval[LeaderAndIsrState]],
    assignments: Sequence[Interval[Assignment]],
    cluster: ClusterView,
) -> _Moment:
    state = as_of(decided, at)
    assignment = as_of(assignments, at)
    leader = state.value.leader if state else NO_LEADER
    is_live = None if leader == NO_LEADER else cluster.is_live(leader, at)
    min_isr = cluster.min_isr(topic, leader, at, at)
    if min_isr is not None and assignment is not None:
        min_isr = min(min_isr, len(assignment.value.replicas))
    last = leader
    if state is not None and leader == NO_LEADER:
        begun = (decided[place].value.leader for place in range(_begun_by(decided, at) - 1, -1, -1))
        last = next((known for known in begun if known != NO_LEADER), NO_LEADER)
    return _Moment(at, state, assignment.value if assignment else None, is_live, min_isr, last)


def _begun_by(decided: Sequence[Interval[LeaderAndIsrState]], at: int) -> int:
    """How many of them began by then."""
    return bisect_right(decided, at, key=_START)


def _offline(moment: _Moment) -> _Reason | None:
    if moment.state is None:
        return None
    leader = moment.state.value.leader
    if leader == NO_LEADER:
        last = () if moment.last_leader == NO_LEADER else (moment.last_leader,)
        gone = tuple(sorted({*moment.state.value.isr, *last}))
        return f"{NO_LEADER_DECIDED} (leader epoch {moment.state.value.leader_epoch})", gone
    return (f"leader {leader} lost its registration", (leader,)) if moment.leader_is_live is False else None


def _under_replicated(moment: _Moment) -> _Reason | None:
    if moment.state is None or moment.assignment is None:
        return None
    if len(moment.state.value.isr) >= len(moment.assignment.target) or not moment.missing:
        return None
    return f"replica {', '.join(map(str, moment.missing))} not in the ISR", moment.missing


def _at_min_isr(moment: _Moment) -> _Reason | None:
    if moment.state is None or moment.min_isr is None or len(moment.state.value.isr) != moment.min_isr:
        return None
    return f"ISR of {moment.min_isr}, min.insync.replicas {moment.min_isr}", moment.missing


def _under_min_isr(moment: _Moment) -> _Reason | None:
    if moment.state is None or moment.min_isr is None or len(moment.state.value.isr) >= moment.min_isr:
        return None
    return f"ISR of {len(moment.state.value.isr)}, min.insync.replicas {moment.min_isr}", moment.missing


def _non_preferred(moment: _Moment) -> _Reason | None:
    if moment.state is None or moment.assignment is None or not moment.assignment.replicas:
        return None
    leader, preferred = moment.state.value.leader, moment.assignment.replicas[0]
    return None if leader in (NO_LEADER, preferred) else (f"leader {leader}, preferred {preferred}", (preferred,))


_KINDS: Final[dict[str, Callable[[_Moment], _Reason | None]]] = {
    "offline": _offline,
    "under_replicated": _under_replicated,
    "at_min_isr": _at_min_isr,
    "under_min_isr": _under_min_isr,
    "non_preferred_leader": _non_preferred,
}


def _spans(kind: str, moments: Sequence[_Moment], why: Callable[[_Moment], _Reason | None]) -> list[Unavailability]:
    spans: list[Unavailability] = []
    opened: tuple[_Moment, _Reason] | None = None
    for moment in moments:
        reason = why(moment)
        if reason is not None and opened is None:
            opened = (moment, reason)
        elif reason is None and opened is not None:
            spans.append(_span(kind, opened, moment))
            opened = None
    if opened is not None:
        spans.append(_span(kind, opened, None))
    return spans


def _span(kind: str, opened: tuple[_Moment, _Reason], closed: _Moment | None) -> Unavailability:
    start, (reason, brokers) = opened
    evidence = start.state.evidence[:2] if start.state else ()
    if closed is None:
        return Unavailability(kind, start.at, None, reason, None, evidence, brokers=brokers)
    if closed.state is None:
        by = "the partition was deleted"
    else:
        state = closed.state.value
        by = f"leader {state.leader} at leader epoch {state.leader_epoch}, ISR {','.join(map(str, state.isr))}"
        evidence = (*evidence, *(e for e in closed.state.evidence[:1] if e not in evidence))
    return Unavailability(kind, start.at, closed.at, reason, by, evidence, brokers=brokers)


def _without_live_leader(
    decided: Sequence[Interval[LeaderAndIsrState]],
    roles: Mapping[int, Sequence[Interval[Role]]],
    cluster: ClusterView,
) -> list[Unavailability]:
    """One interval for each leader that stopped serving while it led: until another took over, or it came back."""
    leaders = {interval.value.leader for interval in decided}
    found = [
        span
        for leader in sorted(leaders)
        for departure in cluster.departures.get(leader, ())
        if (span := _leaderless(leader, departure, decided, roles, cluster)) is not None
    ]
    apart: list[Unavailability] = []
    for span in sorted(found, key=lambda span: (span.start, span.opened_by)):
        ended = apart[-1].end if apart else span.valid_from_lower
        if ended is None or (apart and span.end is not None and span.end <= ended):
            continue
        lower = max(span.valid_from_lower or span.start, ended)
        apart.append(replace(span, start=max(span.start, ended), valid_from_lower=lower))
    return apart


def _leaderless(
    leader: int,
    departure: Departure,
    decided: Sequence[Interval[LeaderAndIsrState]],
    roles: Mapping[int, Sequence[Interval[Role]]],
    cluster: ClusterView,
) -> Unavailability | None:
    ends_after = max(departure.served_until, departure.unregistered_after)
    begun = range(_begun_by(decided, departure.unregistered_by) - 1, -1, -1)
    lasting = takewhile(lambda index: (decided[index].end or ends_after) >= ends_after, begun)
    led = next((index for index in lasting if decided[index].value.leader == leader), None)
    if led is None:
        return None
    first = last = led
    while first > 0 and decided[first - 1].value.leader == leader:
        first -= 1
    lower = max(departure.served_until, decided[first].start)
    since_then = (decided[place] for place in range(last, len(decided)))
    found = _taken_over(leader, departure, since_then, roles, cluster)
    ended = decided[-1].end
    end, by, evidence = found or (ended, None if ended is None else "the partition was deleted", ())
    proven = [max(at, lower) for at in (departure.gone_by, end) if at is not None]
    if not proven:
        return None
    start = min(proven)
    if departure.gone_by is None:
        opened = f"leader {leader} lost its registration; it may have stopped serving at {utc(lower)} already"
    else:
        opened = f"leader {leader} stopped serving; its last sign of life is of {utc(departure.served_until)}"
    of = (*departure.evidence, *evidence)
    return Unavailability("no_live_leader", start, end, opened, by, of, lower, "effect_logged", (leader,))


def _taken_over(
    gone: int,
    departure: Departure,
    decided: Iterable[Interval[LeaderAndIsrState]],
    roles: Mapping[int, Sequence[Interval[Role]]],
    cluster: ClusterView,
) -> tuple[int, str, tuple[str, ...]] | None:
    """When a live leader led again, as its own log tells it, else as it was decided; None where none did."""
    registrations = cluster.liveness.get(gone, ())
    returned = bisect_left(registrations, departure.unregistered_by, key=_START)
    for interval in decided:
        leader, since = interval.value.leader, interval.start
        if leader == gone:
            if returned == len(registrations):
                continue
            since = max(since, registrations[returned].start)
            if interval.end is not None and interval.end <= since:
                continue
        elif leader == NO_LEADER or cluster.is_live(leader, since) is False:
            continue
        own = roles.get(leader, ())
        for place in range(bisect_left(own, since, key=_START), len(own)):
            role = own[place]
            if interval.end is not None and role.start >= interval.end:
                break
            epochs = (role.value.leader_epoch, interval.value.leader_epoch)
            if role.value.role == LEADER and (None in epochs or epochs[0] == epochs[1]):
                return role.start, f"leader {leader} took over at leader epoch {epochs[1]}", role.evidence[:1]
        # one that came back to what it led leads when its log tells so, or when a controller decides anew
        if leader != gone or interval.end is None or interval.start >= since:
            by = f"leader {leader} was decided at leader epoch {interval.value.leader_epoch}"
            return since, by, interval.evidence[:1]
    return None
