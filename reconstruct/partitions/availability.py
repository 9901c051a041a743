"""Intervals in which a partition was not as it should be, swept from the timelines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from reconstruct.cluster.view import ClusterView
from reconstruct.model.states import NO_LEADER
from reconstruct.partitions.assignment import Assignment
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from reconstruct.time.intervals import Interval, as_of

Window = tuple[int, int | None, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Unavailability:
    """``kind`` held from ``start`` to ``end`` (None while it lasts), microseconds since the epoch."""

    kind: str
    start: int
    end: int | None
    opened_by: str
    closed_by: str | None
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Moment:
    """The timelines at one instant."""

    at: int
    state: Interval[LeaderAndIsrState] | None
    assignment: Assignment | None
    leader_is_live: bool | None
    min_isr: int | None


def availability(
    topic: str,
    decided: Sequence[Interval[LeaderAndIsrState]],
    assignments: Sequence[Interval[Assignment]],
    reassigning: Sequence[Window],
    deleting: Sequence[Window],
    cluster: ClusterView,
) -> list[Unavailability]:
    """All kinds, each in time order. What depends on evidence that is not there is left out, not guessed."""
    instants = _boundaries(decided, assignments, cluster)
    moments = [_moment(topic, at, decided, assignments, cluster) for at in instants]
    result = [span for kind, why in _KINDS.items() for span in _spans(kind, moments, why)]
    for kind, windows in (("reassigning", reassigning), ("deleting", deleting)):
        for start, end, evidence in windows:
            closed = None if end is None else f"{kind} ended"
            result.append(Unavailability(kind, start, end, f"{kind} requested", closed, evidence))
    return result


def _boundaries(
    decided: Sequence[Interval[LeaderAndIsrState]], assignments: Sequence[Interval[Assignment]], cluster: ClusterView
) -> list[int]:
    instants: set[int] = set()
    for start, end in [(i.start, i.end) for i in decided] + [(i.start, i.end) for i in assignments]:
        instants.update(at for at in (start, end) if at is not None)
    if not instants:
        return []
    first = min(instants)
    ended = decided[-1].end if decided else None
    for leader in {interval.value.leader for interval in decided}:
        for registration in cluster.liveness.get(leader, ()):
            for at in (registration.start, registration.end):
                if at is not None and at > first and (ended is None or at < ended):
                    instants.add(at)
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
    min_isr = cluster.min_insync_replicas.get(topic, cluster.broker_min_insync_replicas.get(leader))
    if min_isr is not None and assignment is not None:
        min_isr = min(min_isr, len(assignment.value.replicas))
    return _Moment(at, state, assignment.value if assignment else None, is_live, min_isr)


def _offline(moment: _Moment) -> str | None:
    if moment.state is None:
        return None
    leader = moment.state.value.leader
    if leader == NO_LEADER:
        return f"no leader was decided (leader epoch {moment.state.value.leader_epoch})"
    return f"leader {leader} lost its registration" if moment.leader_is_live is False else None


def _under_replicated(moment: _Moment) -> str | None:
    if moment.state is None or moment.assignment is None:
        return None
    missing = [replica for replica in moment.assignment.target if replica not in moment.state.value.isr]
    if len(moment.state.value.isr) >= len(moment.assignment.target) or not missing:
        return None
    return f"replica {', '.join(map(str, missing))} not in the ISR"


def _at_min_isr(moment: _Moment) -> str | None:
    if moment.state is None or moment.min_isr is None or len(moment.state.value.isr) != moment.min_isr:
        return None
    return f"ISR of {moment.min_isr}, min.insync.replicas {moment.min_isr}"


def _under_min_isr(moment: _Moment) -> str | None:
    if moment.state is None or moment.min_isr is None or len(moment.state.value.isr) >= moment.min_isr:
        return None
    return f"ISR of {len(moment.state.value.isr)}, min.insync.replicas {moment.min_isr}"


def _non_preferred(moment: _Moment) -> str | None:
    if moment.state is None or moment.assignment is None or not moment.assignment.replicas:
        return None
    leader, preferred = moment.state.value.leader, moment.assignment.replicas[0]
    return None if leader in (NO_LEADER, preferred) else f"leader {leader}, preferred {preferred}"


_KINDS: Final[dict[str, Callable[[_Moment], str | None]]] = {
    "offline": _offline,
    "under_replicated": _under_replicated,
    "at_min_isr": _at_min_isr,
    "under_min_isr": _under_min_isr,
    "non_preferred_leader": _non_preferred,
}


def _spans(kind: str, moments: Sequence[_Moment], why: Callable[[_Moment], str | None]) -> list[Unavailability]:
    spans: list[Unavailability] = []
    opened: tuple[_Moment, str] | None = None
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


def _span(kind: str, opened: tuple[_Moment, str], closed: _Moment | None) -> Unavailability:
    start, reason = opened
    evidence = start.state.evidence[:2] if start.state else ()
    if closed is None:
        return Unavailability(kind, start.at, None, reason, None, evidence)
    if closed.state is None:
        by = "the partition was deleted"
    else:
        state = closed.state.value
        by = f"leader {state.leader} at leader epoch {state.leader_epoch}, ISR {','.join(map(str, state.isr))}"
        evidence = (*evidence, *(e for e in closed.state.evidence[:1] if e not in evidence))
    return Unavailability(kind, start.at, closed.at, reason, by, evidence)
