"""Half-open intervals of one key: the one place that closes them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Generic, TypeVar

from reconstruct.model.value_class import value_class

Value = TypeVar("Value")


@value_class
class Interval(Generic[Value]):
    """``value`` applied from ``start`` (inclusive) to ``end`` (exclusive; None while open), in µs since the epoch."""

    start: int
    end: int | None
    value: Value
    evidence: tuple[str, ...]
    inferred_from: str | None = None

    def holds_at(self, instant: int) -> bool:
        return self.start <= instant and (self.end is None or instant < self.end)


@value_class
class Change(Generic[Value]):
    """From ``at`` on the value is ``value``; None ends the interval before and begins none (a deletion)."""

    at: int
    value: Value | None
    evidence: tuple[str, ...]
    inferred_from: str | None = None


def close_intervals(changes: Iterable[Change[Value]]) -> list[Interval[Value]]:
    """Contiguous intervals from changes in their order; a change that steps back in time counts at the one before it.

    Order is the caller's (epochs, not clocks, say what came first): an instant that contradicts it is corrected to the
    instant before, never the order.
    """
    result: list[Interval[Value]] = []
    floor: int | None = None
    is_open = False
    for change in changes:
        at = change.at if floor is None else max(floor, change.at)
        floor = at
        if is_open:
            result[-1] = replace(result[-1], end=at)
            is_open = False
        if change.value is not None:
            result.append(Interval(at, None, change.value, change.evidence, change.inferred_from))
            is_open = True
    return result


def as_of(intervals: Sequence[Interval[Value]], instant: int) -> Interval[Value] | None:
    """The interval that holds at ``instant``; None outside all. They are in order and do not overlap, as
    :func:`close_intervals` makes them."""
    for index in range(bisect_right(intervals, instant, key=attrgetter("start")) - 1, -1, -1):
        found = intervals[index]
        if found.start != found.end:  # one of no length never holds
            return found if found.holds_at(instant) else None
    return None
