"""What is in the order of time: what touches a span, or lies in it, without going through all."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Generic, Protocol, TypeVar

from reconstruct.time.instants import at_of


class Span(Protocol):
    """What lasts from ``start`` to ``end``."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


AnySpan = TypeVar("AnySpan", bound=Span)


class SpansByTime(Generic[AnySpan]):
    """``spans`` in the order of their starts; they may overlap, and one that ends late makes those behind it slower to
    find, not wrong."""

    def __init__(self, spans: Sequence[AnySpan]) -> None:
        self._spans = spans
        #: up to when the span, or one before it, lasts.
        self._furthest = list(accumulate((span.end for span in spans), max))

    def touching(self, first: int, last: int) -> list[AnySpan]:
        """Those that have an instant of [first, last], their own ends included, in order."""
        return list(self.each_touching(first, last))

    def each_touching(self, first: int, last: int) -> Iterator[AnySpan]:
        """The same, one after the other."""
        for index in range(bisect_left(self._furthest, first), len(self._spans)):
            span = self._spans[index]
            if span.start > last:
                return
            if span.end >= first:
                yield span


class Timed(Protocol):
    """What is of one instant."""

    @property
    def at(self) -> int: ...


AnyTimed = TypeVar("AnyTimed", bound=Timed)


def within(items: Sequence[AnyTimed], first: int, last: int | None) -> Sequence[AnyTimed]:
    """Those of an instant of [first, last], or from ``first`` on, of ``items`` in the order of time."""
    return items[bisect_left(items, first, key=at_of) : None if last is None else bisect_right(items, last, key=at_of)]


def each_from(items: Sequence[AnyTimed], first: int) -> Iterator[AnyTimed]:
    """Those from the instant ``first`` on, one after the other, of ``items`` in the order of time."""
    return map(items.__getitem__, range(bisect_left(items, first, key=at_of), len(items)))
