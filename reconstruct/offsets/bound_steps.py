"""Bounds of one quantity over time, as steps: what single facts prove between the instants at which it may fall.

A quantity here is a replica's high watermark or an offset of its log. Each only rises, except within known *drops*:
spans of time in which it may fall. So a fact "at least v at t" holds on, up to the next drop; "at most v at t" holds
back, down to the last drop before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from reconstruct.model.value_class import value_class
from reconstruct.time.spans import AnySpan

#: Instants are microseconds since the epoch; these two stand for "since ever" and "for ever".
EVER_BEFORE = -(2**62)
EVER_AFTER = 2**62


def end_of(valid_to: int | None) -> int:
    """The end of an interval that may still be open (None)."""
    return EVER_AFTER if valid_to is None else valid_to


class Fact(NamedTuple):
    """The quantity was at least (or at most) ``offset`` at the instant ``at``; ``evidence`` says whence."""

    at: int
    offset: int
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class Drop:
    """Between ``start`` and ``end``, both inclusive, the quantity may fall, but not below ``floor`` (None: anywhere).

    A floor says: whatever it was, it stays at least the smaller of that and the floor. ``last_offset`` is what the
    quantity is known to have had when the drop was over, where the sighting of just that shows that it was. Where the
    ends are of lines of the replica's own log, ``slack_us`` is by how much its clock widened them, on either side.
    """

    start: int
    end: int
    floor: int | None = None
    last_offset: int | None = None
    slack_us: int = 0


@value_class
class Step:
    """From ``start`` up to and without ``end`` the bound is ``offset``."""

    start: int
    end: int
    offset: int
    evidence: tuple[str, ...] = ()


def lower_steps(facts: Iterable[Fact], drops: Sequence[Drop]) -> list[Step]:
    """The best lower bound at every instant that has one, in order and without overlaps."""
    timeline: list[tuple[int, int, Fact | Drop]] = [(fact.at, 1, fact) for fact in sorted(facts)]
    timeline += [(drop.start, 0, drop) for drop in drops]
    timeline.sort(key=lambda entry: (entry[0], entry[1]))
    begun = _BegunDrops()
    changes: list[tuple[int, Fact | None]] = []
    best: Fact | None = None
    for at, _, item in timeline:
        if isinstance(item, Drop):
            begun.add(item)
            best = _capped(best, item.floor)
        else:
            capped = begun.capped(item)
            if capped is not None and (best is None or capped.offset > best.offset):
                best = capped
        changes.append((at, best))
    return _steps(changes)


class _BegunDrops:
    """Drops, each added when it begins, and what they leave of a fact, asked in the order of time. Where a replica is
    never seen to fetch, hundreds may last to the end of all that is known."""

    def __init__(self) -> None:
        self._floors: list[tuple[int, int]] = []  # a heap of floors, each with its drop's end
        self._without_floor_until = EVER_BEFORE
        self._ending: dict[int, list[Drop]] = {}

    def add(self, drop: Drop) -> None:
        if drop.floor is None:
            self._without_floor_until = max(self._without_floor_until, drop.end)
        else:
            heappush(self._floors, (drop.floor, drop.end))
        self._ending.setdefault(drop.end, []).append(drop)

    def capped(self, fact: Fact) -> Fact | None:
        """What is sure of it whatever falls; None where nothing is. The fact shows that a drop which ends with it, and
        is known to have left just that, is over."""
        if self._without_floor_until > fact.at:
            return None
        while self._floors and self._floors[0][1] <= fact.at:
            heappop(self._floors)
        left = _capped(fact, self._floors[0][0]) if self._floors else fact
        for drop in self._ending.get(fact.at, ()):
            if drop.last_offset != fact.offset:
                left = _capped(left, drop.floor)
        return left


def _capped(fact: Fact | None, floor: int | None) -> Fact | None:
    if fact is None or floor is None:
        return None
    return Fact(fact.at, min(fact.offset, floor), fact.evidence)


def upper_steps(facts: Iterable[Fact], drops: Sequence[Drop]) -> list[Step]:
    """The best upper bound at every instant that has one: each fact holds back to the end of the last drop before."""
    timeline: list[tuple[int, int, Fact | Drop]] = [(-fact.at, 0, fact) for fact in sorted(facts)]
    timeline += [(-drop.end, 1, drop) for drop in drops]
    timeline.sort(key=lambda entry: (entry[0], entry[1]))
    falls_from = EVER_AFTER  # the earliest begin of a drop that ends then or later
    changes: list[tuple[int, Fact | None]] = []
    best: Fact | None = None
    for at, _, item in timeline:
        if isinstance(item, Drop):
            falls_from = min(falls_from, item.start)
            best = None
        elif falls_from >= -at and (best is None or item.offset < best.offset):
            best = item
        changes.append((at, best))
    return [Step(-step.end, -step.start, step.offset, step.evidence) for step in reversed(_steps(changes))]


def _steps(changes: Sequence[tuple[int, Fact | None]]) -> list[Step]:
    """Steps between changes; of several at one instant the last holds, equal neighbours are joined."""
    result: list[Step] = []
    for (start, best), (end, _) in pairwise([*changes, (EVER_AFTER, None)]):
        if best is None or start == end:
            continue
        last = result[-1] if result else None
        if last is not None and (last.end, last.offset, last.evidence) == (start, best.offset, best.evidence):
            start = result.pop().start
        result.append(Step(start, end, best.offset, best.evidence))
    return result


def interval_at(intervals: Sequence[AnySpan], instant: int) -> AnySpan | None:
    """The one that holds at ``instant``, of intervals in order and without overlaps."""
    index = bisect_right(intervals, instant, key=lambda interval: interval.end)
    return intervals[index] if index < len(intervals) and intervals[index].start <= instant else None


def intervals_over(intervals: Sequence[AnySpan], first: int, last: int) -> list[AnySpan]:
    """Those that hold at an instant from ``first`` to ``last``, both inclusive; none where there is a gap."""
    result: list[AnySpan] = []
    reached = first
    for index in range(bisect_right(intervals, first, key=lambda interval: interval.end), len(intervals)):
        interval = intervals[index]
        if reached > last or interval.start > reached:
            break
        if interval.end > interval.start:
            result.append(interval)
            reached = interval.end
    return result if reached > last else []
