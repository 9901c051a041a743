"""If the leader died now: which records would be gone, at least and at most.

Two answers, at every instant of which the offsets of the replicas are bounded:

* *clean*: the next leader that the ISR and the assignment give takes over; where nobody else is in the ISR, one of the
  eligible leader replicas (KIP-966, ``PartitionChangeBuilder.isValidNewLeader`` of 4.0). What the leader has above that
  replica's log end offset is gone. Committed records are not among them, for every such replica has those: only what
  producers with ``acks`` 0 or 1 take for written.
* *unclean*: the replica that is neither, with the shortest log, live or not yet back, is elected. What was committed
  above its log end offset is gone, ``acks=all`` or not.

While there is no leader, the last one's high watermark says what was committed: nothing can be added to it.

What becomes of the copies on the other replicas is by version (``truncation``): since 0.11 they cut their logs to the
new leader's epoch, so that the records are gone everywhere; up to 0.10 they cut to their own high watermark, so that
some stay in their logs, where the new leader has others, and are never served again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import Final

from reconstruct.model.states import NO_LEADER
from reconstruct.model.versions import VersionRange, truncation_of
from reconstruct.offsets.bound_steps import EVER_AFTER, end_of, interval_at
from reconstruct.offsets.evidence import DecidedState, OffsetBounds

Span = tuple[int, int | None]


@dataclass(frozen=True, slots=True)
class AssignedReplicas:
    """One interval of an assignment, the preferred leader first; ``end`` None while it lasts."""

    start: int
    end: int | None
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RecordsAtRisk:
    """What holds at every instant of ``[valid_from, valid_to)``; None: not bounded, or there is no such replica.

    ``leader`` is -1 while there is none; ``last_leader`` is then the one whose log counts. Counts are of offsets.
    """

    valid_from: int
    valid_to: int | None
    leader: int
    last_leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None = None
    uncommitted_lower: int | None = None
    uncommitted_upper: int | None = None
    held_by: tuple[int, ...] = ()
    next_leader: int | None = None
    clean_from_offset: int | None = None
    clean_lost_lower: int | None = None
    clean_lost_upper: int | None = None
    worst_replica: int | None = None
    unclean_from_offset: int | None = None
    unclean_lost_lower: int | None = None
    unclean_lost_upper: int | None = None
    truncation: str | None = None
    evidence: tuple[str, ...] = ()


#: All but from when to when, and by which evidence.
_SAYS: Final = attrgetter(
    *(field.name for field in fields(RecordsAtRisk) if field.name not in ("valid_from", "valid_to", "evidence"))
)


def records_at_risk(
    decided: Sequence[DecidedState],
    bounds: Iterable[OffsetBounds],
    assigned: Sequence[AssignedReplicas],
    live: Mapping[int, Sequence[Span]],
    version: VersionRange,
) -> list[RecordsAtRisk]:
    """Contiguous as long as a state was decided; neighbours that say the same are one.

    ``bounds`` are those of every replica of the partition, ``live`` the registrations of every broker of which they are
    known: a broker without any counts as live.
    """
    by_replica: dict[int, list[OffsetBounds]] = {}
    for row in sorted(bounds, key=lambda row: (row.replica_id, row.start, row.end)):
        by_replica.setdefault(row.replica_id, []).append(row)
    states = sorted(decided, key=lambda state: (state.valid_from, state.end))
    cuts = _instants(states, by_replica, assigned, live)
    truncations = {truncation_of(v).value for v in (version.low, version.high)}
    truncation = truncations.pop() if len(truncations) == 1 else None
    result: list[RecordsAtRisk] = []
    last: tuple[int, OffsetBounds | None] | None = None
    place = 0
    for start, end in pairwise(cuts):
        while place < len(states) and states[place].end <= start:
            place += 1
        if place == len(states):
            break
        state = states[place]
        if state.valid_from > start:
            continue
        known = {replica: now for replica, rows in by_replica.items() if (now := interval_at(rows, start)) is not None}
        if state.leader != NO_LEADER:
            last = (state.leader, known.get(state.leader))
        if last is None:
            continue
        replicas = next((a.replicas for a in assigned if a.start <= start < end_of(a.end)), None)
        dead = {broker for broker, spans in live.items() if not _is_live(spans, start)}
        _append(result, _risk((start, _open(end)), truncation, state, last, known, replicas, dead))
    return result


def _risk(
    span: Span,
    truncation: str | None,
    state: DecidedState,
    last: tuple[int, OffsetBounds | None],
    known: Mapping[int, OffsetBounds],
    replicas: tuple[int, ...] | None,
    dead: set[int],
) -> RecordsAtRisk:
    leader, own = last
    risk = partial(RecordsAtRisk, *span, state.leader, leader, state.leader_epoch, state.isr, state.elr)
    if own is None:
        return risk(truncation=truncation)
    eligible = set(state.elr or ())
    order = [*(replicas or ()), *sorted({*state.isr, *eligible} - set(replicas or ()))]
    taken = [replica for replica in order if replica != leader and replica not in dead]
    candidates = [replica for replica in taken if replica in state.isr] or [r for r in taken if r in eligible]
    # one that is down may be the first to come back
    outside = [r for r in (replicas or sorted(known)) if r not in state.isr and r not in eligible and r != leader]
    next_leader = candidates[0] if candidates and replicas is not None else None
    clean = [known.get(next_leader)] if next_leader is not None else [known.get(replica) for replica in candidates]
    worst = _shortest(outside, known)
    shortest = None if worst is None else known.get(worst)
    used = [own, *(row for row in (*clean, shortest) if row is not None)]
    return risk(
        uncommitted_lower=_less(own.log_end_offset_lower, own.high_watermark_upper),
        uncommitted_upper=_less(own.log_end_offset_upper, own.high_watermark_lower),
        held_by=_holders(known, own.high_watermark_upper),
        next_leader=next_leader,
        clean_from_offset=_of_all(min, [row.log_end_offset_lower if row else None for row in clean]),
        clean_lost_lower=_of_all(
            min, [_less(own.log_end_offset_lower, row.log_end_offset_upper if row else None) or 0 for row in clean]
        ),
        clean_lost_upper=_of_all(
            max, [_less(own.log_end_offset_upper, row.log_end_offset_lower if row else None) for row in clean]
        ),
        worst_replica=worst,
        unclean_from_offset=shortest.log_end_offset_lower if shortest else None,
        unclean_lost_lower=(_less(own.high_watermark_lower, shortest.log_end_offset_upper) or 0)
        if shortest
        else None
        if not outside
        else 0,
        unclean_lost_upper=_less(own.high_watermark_upper, shortest.log_end_offset_lower) if shortest else None,
        truncation=truncation,
        evidence=tuple(sorted({name for row in used for name in row.evidence})),
    )


def _shortest(outside: Sequence[int], known: Mapping[int, OffsetBounds]) -> int | None:
    """The replica that may have the shortest log; None where one's is not bounded from below: it may be shorter."""
    ends = [(row.log_end_offset_lower if (row := known.get(replica)) else None, replica) for replica in outside]
    bounded = [(end, replica) for end, replica in ends if end is not None]
    return min(bounded)[1] if bounded and len(bounded) == len(ends) else None


def _holders(known: Mapping[int, OffsetBounds], committed: int | None) -> tuple[int, ...]:
    """Replicas proven to hold every committed record."""
    if committed is None:
        return ()
    return tuple(
        replica
        for replica, row in sorted(known.items())
        if row.log_end_offset_lower is not None and row.log_end_offset_lower >= committed
    )


def _less(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one - other, 0)


def _of_all(pick: Callable[[Iterable[int]], int], values: Iterable[int | None]) -> int | None:
    """The least (``min``) or most (``max``) of all; None where there is none, or one is not bounded."""
    every = list(values)
    known = [value for value in every if value is not None]
    return pick(known) if known and len(known) == len(every) else None


def _instants(
    states: Sequence[DecidedState],
    by_replica: Mapping[int, Sequence[OffsetBounds]],
    assigned: Sequence[AssignedReplicas],
    live: Mapping[int, Sequence[Span]],
) -> list[int]:
    """Every instant at which anything changes, from the first decided state on."""
    spans: list[Span] = [(state.valid_from, state.valid_to) for state in states]
    spans += [(row.valid_from, row.valid_to) for rows in by_replica.values() for row in rows]
    spans += [(a.start, a.end) for a in assigned]
    spans += [span for registered in live.values() for span in registered]
    first = states[0].valid_from if states else EVER_AFTER
    return sorted({at for start, end in spans for at in (start, end_of(end)) if at >= first})


def _append(result: list[RecordsAtRisk], risk: RecordsAtRisk) -> None:
    """Joined to the one before where that says the same; the evidence is that of its first instant."""
    before = result[-1] if result else None
    if before is not None and before.valid_to == risk.valid_from and _SAYS(before) == _SAYS(risk):
        result[-1] = replace(before, valid_to=risk.valid_to)
    else:
        result.append(risk)


def _is_live(spans: Sequence[Span], instant: int) -> bool:
    return not spans or instant < spans[0][0] or any(start <= instant < end_of(end) for start, end in spans)


def _open(instant: int) -> int | None:
    return None if instant == EVER_AFTER else instant
