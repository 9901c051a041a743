"""Rows looked up in windows of time that the driver knows, such as the tenures of controllers.

Spark holds each row against each window of its key where only times tell which one it is in: lines times windows, both
of which grow with a lake. Time is cut into stretches, of which there are as many as a key has windows; rows are joined
with those windows that reach into their stretch.
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


@dataclass(frozen=True, slots=True)
class Stretches:
    """Time in ``count`` stretches of ``width_us`` from ``first_us`` on; what is before or after is of the first or the
    last."""

    first_us: int
    width_us: int
    count: int

    @classmethod
    def of(cls, windows: Collection[tuple[int, int]], keys_count: int) -> Stretches:
        """As many as a key has windows, which begin and end at these µs."""
        begins = [since for since, _ in windows]
        first, count = min(begins, default=0), max(1, len(begins) // max(1, keys_count))
        return cls(first, (max(begins, default=0) - first) // count + 1, count)

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
    key: Sequence[str],
    since: str,
    until: str,
    untimed: Collection[Sequence[Any]] = (),
) -> Windows:
    """Windows with ``columns`` as SQL declares them, of which these say their key, when they begin and before when they
    end (µs). ``untimed`` are rows whose key tells enough: their stretch is NULL."""
    names = [column.split(" ", 1)[0] for column in columns.split(", ")]
    begin, end = names.index(since), names.index(until)
    of_key = [names.index(name) for name in key]
    keys = {tuple(row[place] for place in of_key) for row in rows}
    stretches = Stretches.of([(row[begin], row[end]) for row in rows], len(keys))

    def placed() -> Iterator[tuple[Any, ...]]:
        for row in rows:
            for number in stretches.reached(row[begin], row[end]):
                yield *row, number
        for row in untimed:
            yield *row, None

    return Windows(F.broadcast(local_frame(spark, f"{columns}, {STRETCH} int", placed())), stretches)
