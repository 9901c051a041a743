"""Where the difference of two clocks changed: one difference, piecewise constant, bounded from both sides.

Each causal pair bounds the difference ``x = offset(b) - offset(a)`` from above (a's event was first) or from below (b's
was). Where one ``x`` fits all, the clocks kept their distance. Where a few pairs contradict all others, those pairs are
wrong: two records were taken for cause and effect that are not. Where many in a row do, a clock was set.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

#: Contradictions up to this are the wander of a disciplined clock (NTP slews it), not a jump: µs.
WANDER_US: Final = 25_000
#: So many distinct events in a row must contradict the rest before a clock is taken to have been set.
MIN_RUN: Final = 3
#: The share of pairs that may be wrong before their contradiction is taken for wander.
WRONG_SHARE: Final = 0.02


@dataclass(frozen=True, slots=True)
class Bound:
    """One pair as a bound of ``x``: ``value`` µs, from above or from below; when, by each clock; the pair's index."""

    is_upper: bool
    value: int
    at_a: int
    at_b: int
    index: int


@dataclass(frozen=True, slots=True)
class Part:
    """Bounds between two changes, in the order of one clock, and the indices of those that were dropped."""

    bounds: tuple[Bound, ...]
    dropped: frozenset[int]

    @property
    def kept(self) -> tuple[Bound, ...]:
        return tuple(bound for bound in self.bounds if bound.index not in self.dropped)

    @property
    def region(self) -> tuple[int | None, int | None]:
        """The values of ``x`` that the kept bounds allow; for clocks that wander, the range they wander in."""
        lower = max((b.value for b in self.kept if not b.is_upper), default=None)
        upper = min((b.value for b in self.kept if b.is_upper), default=None)
        return (upper, lower) if lower is not None and upper is not None and lower > upper else (lower, upper)


def parts(bounds: Sequence[Bound], axis: Callable[[Bound], int]) -> list[Part]:
    """The parts of time with one difference each, in the order of ``axis``; together they may leave out some bounds.

    The two events of a pair may lie on either side of a change. So a stretch that is not bounded from both sides is
    left out between two that are: nothing says to which it belongs.
    """
    found = _split(tuple(sorted(bounds, key=lambda b: (axis(b), b.index))))
    strong = [position for position, part in enumerate(found) if None not in part.region and _is_enough(part.kept)]
    if strong:
        ends = (strong[0], strong[-1])
        found = [
            part
            for position, part in enumerate(found)
            if position in strong or (not ends[0] < position < ends[1] and _is_enough(part.kept))
        ]
    merged: list[Part] = []
    for part in found:
        if merged and _meet(merged[-1].region, part.region):
            merged[-1] = Part(merged[-1].bounds + part.bounds, merged[-1].dropped | part.dropped)
        else:
            merged.append(part)
    return merged


def _split(bounds: tuple[Bound, ...]) -> list[Part]:
    wrong = _violated(bounds, 0)
    if len(wrong) <= max(1, WRONG_SHARE * len(bounds)) and _long_run(bounds, wrong) is None:
        return [Part(bounds, frozenset(wrong))]
    wrong = _violated(bounds, WANDER_US)
    run = _long_run(bounds, wrong)
    if run is None:
        return [Part(bounds, frozenset(wrong))]
    first, last = run
    pieces = [bounds[:first], bounds[first : last + 1], bounds[last + 1 :]]
    if any(len(piece) == len(bounds) for piece in pieces):
        return [Part(bounds, frozenset(wrong))]
    return [part for piece in pieces if piece for part in _split(piece)]


def _violated(bounds: Sequence[Bound], wander: int) -> set[int]:
    """Indices of the bounds that the value which fits most does not fit; on a tie, those of every such value."""
    lowers = sorted(b.value - wander for b in bounds if not b.is_upper)
    uppers = sorted(b.value + wander for b in bounds if b.is_upper)
    if not lowers or not uppers or lowers[-1] <= uppers[0]:
        return set()
    fits = [(bisect_right(lowers, x) + len(uppers) - bisect_left(uppers, x), x) for x in {*lowers, *uppers}]
    most = max(fits)[0]
    best = [x for count, x in fits if count == most]
    least, greatest = min(best), max(best)
    return {b.index for b in bounds if (b.value + wander < greatest if b.is_upper else b.value - wander > least)}


def _long_run(bounds: Sequence[Bound], wrong: set[int]) -> tuple[int, int] | None:
    """Positions of the first and last bound of a run of wrong ones, unbroken among those of its side."""
    for is_upper in (True, False):
        side = [(position, b) for position, b in enumerate(bounds) if b.is_upper is is_upper]
        for is_wrong, group in groupby(side, key=lambda item: item[1].index in wrong):
            run = list(group)
            if is_wrong and _is_enough([b for _, b in run]):
                return run[0][0], run[-1][0]
    return None


def _is_enough(bounds: Sequence[Bound]) -> bool:
    """Whether bounds are evidence of several events: one wrong record makes several wrong pairs."""
    return min(len({b.at_a for b in bounds}), len({b.at_b for b in bounds})) >= MIN_RUN


def _meet(one: tuple[int | None, int | None], other: tuple[int | None, int | None]) -> bool:
    lowers = [value for value in (one[0], other[0]) if value is not None]
    uppers = [value for value in (one[1], other[1]) if value is not None]
    return not lowers or not uppers or max(lowers) <= min(uppers)
