"""Departures from the ISR and returns to it: how often, how long, who asked for them, and how far behind a replica was.

A leader takes a replica out that lags (Partition.maybeShrinkIsr) and in again once it has caught up (maybeExpandIsr); a
controller takes one out whose broker went, or that lost an election to another. A replica that goes and comes again and
again is what `replica.lag.max.messages` did under bursts of load (KIP-16), and what a slow disk or a full heap does
since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.events.fields import number
from reconstruct.partitions.assignment import Assignment
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from reconstruct.time.intervals import Interval, as_of

#: Departures and returns no further apart than this are of one window.
WINDOW_US: Final = 600_000_000
#: A line and the write that it is of lie within this.
_NEAR_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class _Move:
    """One replica that left the ISR or came into it, by a decided state."""

    at: int
    leaves: bool
    asked_by: str | None
    leader: int
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IsrFlapping:
    """One replica's departures and returns in one window; instants and counts as in the table.

    ``end`` is None while it is out. Lags are what the leader's lines print of the replica (offsets since 2.2, the time
    since 3.6): the most of any departure, None where no line prints it.
    """

    replica_id: int
    start: int
    end: int | None
    shrink_count: int
    expand_count: int
    shrinks_by_leader_count: int
    shrinks_by_controller_count: int
    leaders: tuple[int, ...]
    longest_absence_ms: int | None
    period_ms: int | None
    lag_count_max: int | None
    lag_ms_max: int | None
    evidence: tuple[str, ...]


def isr_flapping(
    decided: Sequence[Interval[LeaderAndIsrState]],
    assignments: Sequence[Interval[Assignment]],
    facts: Sequence[Evidence],
) -> list[IsrFlapping]:
    """By replica and time. What a reassignment takes out is no departure."""
    moves: dict[int, list[_Move]] = {}
    for before, after in pairwise(decided):
        assigned = as_of(assignments, after.start)
        old, new = set(before.value.isr), set(after.value.isr)
        for replica in sorted(old ^ new):
            leaves = replica in old
            if leaves and assigned is not None and replica not in assigned.value.replicas:
                continue
            leader = before.value.leader if leaves else after.value.leader
            move = _Move(after.start, leaves, after.value.written_by, leader, after.evidence)
            moves.setdefault(replica, []).append(move)
    printed = [fact for fact in facts if fact.kind == EventType.ISR_SHRINK_PROPOSED and fact.out_of_sync]
    return [
        _flapping(replica, window, printed)
        for replica, of_replica in sorted(moves.items())
        for window in _windows(of_replica)
    ]


def _windows(moves: Sequence[_Move]) -> list[list[_Move]]:
    """Each begins with a departure."""
    result: list[list[_Move]] = []
    for move in moves:
        if result and (move.at <= result[-1][-1].at + WINDOW_US or not move.leaves):
            result[-1].append(move)
        elif move.leaves:
            result.append([move])
    return result


def _flapping(replica: int, moves: Sequence[_Move], printed: Sequence[Evidence]) -> IsrFlapping:
    left = [move for move in moves if move.leaves]
    absences = [(back.at - gone.at) // 1000 for gone, back in pairwise(moves) if gone.leaves and not back.leaves]
    periods = [(after.at - before.at) // 1000 for before, after in pairwise(left)]
    start, end = moves[0].at, moves[-1].at
    lines = [
        (fact, behind)
        for fact in printed
        if start - _NEAR_US <= fact.at <= end + _NEAR_US
        for behind in [_behind(fact, replica)]
        if behind is not None
    ]
    ids = {*(name for move in moves for name in move.evidence), *(fact.evidence_id for fact, _ in lines)}
    return IsrFlapping(
        replica,
        start,
        None if moves[-1].leaves else end,
        len(left),
        len(moves) - len(left),
        sum(move.asked_by == "leader" for move in left),
        sum(move.asked_by == "controller" for move in left),
        tuple(sorted({move.leader for move in left if move.leader >= 0})),
        max(absences, default=None),
        int(median(periods)) if periods else None,
        max((count for _, (count, _) in lines if count is not None), default=None),
        max((lag_ms for _, (_, lag_ms) in lines if lag_ms is not None), default=None),
        tuple(sorted(ids)),
    )


def _behind(fact: Evidence, replica: int) -> tuple[int | None, int | None] | None:
    """By how many offsets, and ms since it was last caught up, a shrink's line says that the replica was behind."""
    for text in (fact.out_of_sync or "").split(","):
        name, *rest = text.split(":")
        if name != str(replica):
            continue
        end_offset, caught_up_ms = (number(part) for part in [*rest, "", ""][:2])
        count = None if end_offset is None or fact.log_end_offset is None else fact.log_end_offset - end_offset
        at = fact.at if fact.logged_at is None else fact.logged_at
        lag_ms = None if not caught_up_ms else at // 1000 - caught_up_ms
        return count, lag_ms if lag_ms is not None and lag_ms >= 0 else None
    return None
