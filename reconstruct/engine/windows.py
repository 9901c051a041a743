"""Rows looked up in windows of time that the driver knows, such as the tenures of controllers.

Spark holds each row against each window of its key where only times tell which one it is in: lines times windows, both
of which grow with a lake. So time is cut into stretches, and rows are joined with those windows that reach into their
stretch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.lake.local_frames import local_frame

#: The column by which rows are joined with windows, beside their key.
STRETCH: Final = "stretch"
#: Into so many stretches windows reach on average, at the most.
REACHED_AT_MOST: Final = 6


@dataclass(frozen=True, slots=True)
class Stretches:
    """Time in ``count`` stretches of ``width_us`` from ``first_us`` on; what is before or after is of the first or the
    last."""

    first_us: int
    width_us: int
    count: int

    @classmethod
    def of(cls, windows: Collection[tuple[int, int]]) -> Stretches:
        """For windows that begin and end at these µs: as many stretches as windows, fewer where these overlap, so that
        all together they reach into :data:`REACHED_AT_MOST` for each of them."""
        begins = [since for since, _ in windows]
        first, last = min(begins, default=0), max(begins, default=0)
        covered = sum(max(0, min(until, last) - since) for since, until in windows)
        count = max(1, min(len(begins), (REACHED_AT_MOST - 2) * len(begins) * (last - first) // max(1, covered)))
        return cls(first, (last - first) // count + 1, count)

    def reached(self, since: int, until: int) -> range:
        """Those that a window reaches into, from ``since`` to before ``until``; none where it has no length."""
        return range(self._holding(since), self._holding(until - 1) + 1) if since < until else range(0)

    def _holding(self, at: int) -> int:
        return min(max((at - self.first_us) // self.width_us, 0), self.count - 1)

    def holding(self, at: Column) -> Column:
        """The one of an instant, µs."""
        number = F.floor((at - self.first_us) / self.width_us)
        return F.least(F.greatest(number, F.lit(0)), F.lit(self.count - 1)).cast("int")


@dataclass(frozen=True, slots=True)
class Windows:
    """``frame``, which is broadcast: a row for each window and each of ``stretches`` that it reaches into, named in
    :data:`STRETCH`."""

    frame: DataFrame
    stretches: Stretches


def time_windows(
    spark: SparkSession,
    columns: str,
    rows: Collection[Sequence[Any]],
    *,
    since: str,
    until: str,
    untimed: Collection[Sequence[Any]] = (),
) -> Windows:
    """Windows with ``columns`` as SQL declares them, of which these say when they begin and before when they end (µs).
    ``untimed`` are rows whose key tells enough: their stretch is NULL."""
    names = [column.split(" ", 1)[0] for column in columns.split(", ")]
    begin, end = names.index(since), names.index(until)
    stretches = Stretches.of([(row[begin], row[end]) for row in rows])

    def placed() -> Iterator[tuple[Any, ...]]:
        for row in rows:
            for number in stretches.reached(row[begin], row[end]):
                yield *row, number
        for row in untimed:
            yield *row, None

    return Windows(F.broadcast(local_frame(spark, f"{columns}, {STRETCH} int", placed())), stretches)
