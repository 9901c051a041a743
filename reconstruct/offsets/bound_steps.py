"""Bounds of one quantity over time, as steps: what single facts prove between the instants at which it may fall.

A quantity here is a replica's high watermark or an offset of its log. Each only rises, except within known *drops*:
spans of time in which it may fall. So a fact "at least v at t" holds on, up to the next drop; "at most v at t" holds
back, down to the last drop before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

#: Instants are microseconds since the epoch; these two stand for "since ever" and "for ever".
EVER_BEFORE = -(2**62)
EVER_AFTER = 2**62


@dataclass(frozen=True, slots=True, order=True)
class Fact:
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


@dataclass(frozen=True, slots=True)
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
    active: list[Drop] = []
    changes: list[tuple[int, Fact | None]] = []
    held: Fact | None = None
    for at, _, item in timeline:
        active = [drop for drop in active if drop.end >= at]
        if isinstance(item, Drop):
            active.append(item)
            held = _capped(held, [item])
        else:
            capped = _capped(item, [drop for drop in active if (drop.end, drop.last_offset) != (at, item.offset)])
            if capped is not None and (held is None or capped.offset > held.offset):
                held = capped
        changes.append((at, held))
    return _steps(changes)


def _capped(fact: Fact | None, drops: Sequence[Drop]) -> Fact | None:
    for drop in drops:
        if fact is None or drop.floor is None:
            return None
        fact = Fact(fact.at, min(fact.offset, drop.floor), fact.evidence)
    return fact


def upper_steps(facts: Iterable[Fact], drops: Sequence[Drop]) -> list[Step]:
    """The best upper bound at every instant that has one: each fact holds back to the end of the last drop before."""
    timeline: list[tuple[int, int, Fact | Drop]] = [(-fact.at, 0, fact) for fact in sorted(facts)]
    timeline += [(-drop.end, 1, drop) for drop in drops]
    timeline.sort(key=lambda entry: (entry[0], entry[1]))
    active: list[Drop] = []
    changes: list[tuple[int, Fact | None]] = []
    held: Fact | None = None
    for at, _, item in timeline:
        active = [drop for drop in active if drop.start < -at]
        if isinstance(item, Drop):
            active.append(item)
            held = None
        elif not active and (held is None or item.offset < held.offset):
            held = item
        changes.append((at, held))
    return [Step(-step.end, -step.start, step.offset, step.evidence) for step in reversed(_steps(changes))]


def _steps(changes: Sequence[tuple[int, Fact | None]]) -> list[Step]:
    """Steps between changes; of several at one instant the last holds, equal neighbours are joined."""
    result: list[Step] = []
    for (start, held), (end, _) in pairwise([*changes, (EVER_AFTER, None)]):
        if held is None or start == end:
            continue
        if (
            result
            and result[-1].end == start
            and (result[-1].offset, result[-1].evidence)
            == (
                held.offset,
                held.evidence,
            )
        ):
            result[-1] = Step(result[-1].start, end, held.offset, held.evidence)
        else:
            result.append(Step(start, end, held.offset, held.evidence))
    return result


def step_at(steps: Sequence[Step], instant: int) -> Step | None:
    """The step that holds at ``instant``."""
    low, high = 0, len(steps)
    while low < high:
        middle = (low + high) // 2
        if steps[middle].end <= instant:
            low = middle + 1
        else:
            high = middle
    return steps[low] if low < len(steps) and steps[low].start <= instant else None
