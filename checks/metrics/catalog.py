"""What a metric is: a figure per cluster and subject, kept in ``quality.run_metrics`` with every run of the checks.

A metric's **name is its meaning**: a trend compares the values of one name, so a metric that comes to mean something
else gets another name. A share of nothing is no value, never 0 or 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from checks.catalog import Query

HIGHER: Final = "higher"
LOWER: Final = "lower"

#: A subject comes from data; a longer one is cut there.
SUBJECT_LENGTH: Final = 200


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure, and what is thought of it.

    ``name`` ends with the unit (``_ratio``, ``_ms``, ``_count``). ``meaning`` is one sentence without its full stop.
    ``better`` is :data:`HIGHER` or :data:`LOWER`. ``value`` is a Spark SQL aggregate over the cases of its pass, NULL
    where there is nothing to measure. ``warning`` and ``critical`` are the default thresholds, in the metric's unit: a
    value that equals one still holds, a worse one breaks it; None sets none. ``least_change``, in the unit as well, is
    the smallest change that the trend speaks of. ``advice`` is one sentence without its full stop: what to do where a
    value is worse than a threshold.
    """

    name: str
    meaning: str
    better: str
    value: str
    warning: float | None = None
    critical: float | None = None
    least_change: float = 0.0
    advice: str = ""

    @property
    def is_ratio(self) -> bool:
        """Whether the value is a share, from 0 to 1."""
        return self.name.endswith("_ratio")

    def is_worse(self, value: float, than: float) -> bool:
        """Whether ``value`` lies on the bad side of ``than``."""
        return value < than if self.better == HIGHER else value > than

    @property
    def worse_side(self) -> str:
        """The word between a value and the threshold that it breaks."""
        return "below" if self.better == HIGHER else "above"


@dataclass(frozen=True, slots=True)
class MetricPass(Query):
    """Metrics over the same cases: one aggregation, grouped by cluster and subject, answers all of them.

    The cases have a column ``cluster_id``; ``subject`` is a Spark SQL expression over a case. Subjects are few:
    versions, kinds, brokers, tables; what grows with time is no subject.
    """

    subject: str
    metrics: tuple[Metric, ...]


def values_sql(each: MetricPass) -> str:
    """``cluster_id``, ``subject``, ``metric`` and ``value`` of a pass, one row per value that there is."""
    named = ", ".join(f"CAST({metric.value} AS DOUBLE) AS {metric.name}" for metric in each.metrics)
    stacked = ", ".join(f"'{metric.name}', {metric.name}" for metric in each.metrics)
    return (
        f"SELECT cluster_id, subject, metric, value FROM (SELECT cluster_id, subject,"
        f" stack({len(each.metrics)}, {stacked}) AS (metric, value) FROM ("
        f"SELECT cluster_id, left({each.subject}, {SUBJECT_LENGTH}) AS subject, {named}"
        f" FROM ({each.cases}) GROUP BY 1, 2)) WHERE value IS NOT NULL"
    )
