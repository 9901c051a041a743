"""A value beside those that earlier runs found for the same metric, cluster and subject."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from checks.metrics.catalog import LOWER, Metric

#: Earlier runs that a value is compared with, the latest ones; fewer than the least say nothing.
EARLIER_RUNS_COUNT: Final = 10
LEAST_EARLIER_RUNS_COUNT: Final = 3
#: Differences of floating point are no change.
_NOISE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Trend:
    """A value and those before it, the latest first."""

    value: float
    earlier: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the earlier values."""
        return float(median(self.earlier))


def trend_of(value: float, earlier: Sequence[float]) -> Trend | None:
    """The trend of a value against ``earlier`` ones, the latest first; None where they are too few."""
    known = tuple(earlier[:EARLIER_RUNS_COUNT])
    return Trend(value, known) if len(known) >= LEAST_EARLIER_RUNS_COUNT else None


def is_fall(trend: Trend, metric: Metric, max_fall_ratio: float) -> bool:
    """Whether the value is worse than the median by more than ``max_fall_ratio`` of the median.

    Of a share of which less is better the complement is compared: from one rejected record in a million to two is no
    doubling, since 999,998 are kept. Where the median is 0 there is no share of it, and so no fall.
    """
    value, before, falls_if_less = trend.value, trend.median, metric.better != LOWER
    if metric.is_ratio and metric.better == LOWER:
        value, before, falls_if_less = 1 - value, 1 - before, True
    if before <= 0:
        return False
    worse_by = before - value if falls_if_less else value - before
    return worse_by > max_fall_ratio * before + _NOISE and worse_by >= metric.least_change
