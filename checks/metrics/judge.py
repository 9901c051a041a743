"""Values of metrics as checks: whether each keeps to its thresholds, and to what earlier runs found.

A metric gives up to three checks, over all clusters and subjects: ``NAME_warning``, ``NAME_critical`` and
``NAME_trend``. A case is a value; an example shows it beside what it is measured by.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import median
from typing import Any, Final

from checks.catalog import CRITICAL, WARNING, Check
from checks.measure import EXAMPLE_LENGTH, EXAMPLES_COUNT, Measurement
from checks.metrics.catalog import LOWER, Metric, MetricPass
from checks.metrics.thresholds import Thresholds
from ingest.lake.tables.quality import RUN_METRICS

#: What earlier runs found, by (cluster, metric, subject): the latest first.
Earlier = Mapping[tuple[str, str, str], Sequence[float]]

#: Earlier runs that a value is compared with, the latest ones; fewer than the least say nothing.
EARLIER_RUNS_COUNT: Final = 10
LEAST_EARLIER_RUNS_COUNT: Final = 3
#: Differences of floating point are no change.
_NOISE: Final = 1e-9
_NAMED_COUNT: Final = 5  # falls that a sentence names; the examples hold more


@dataclass(frozen=True, slots=True)
class Value:
    """A row of ``quality.run_metrics`` of this run."""

    cluster_id: str
    metric: str
    subject: str
    value: float


@dataclass(frozen=True, slots=True)
class Trend:
    """A value and those before it, the latest first."""

    value: float
    earlier: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the earlier values."""
        return float(median(self.earlier))


@dataclass(frozen=True, slots=True)
class MetricCheck:
    """A check of one metric against ``limit``: a threshold, or for a trend the greatest fall."""

    check: Check
    metric: Metric
    limit: float
    of_pass: str
    is_trend: bool = False


def metric_checks(passes: Iterable[MetricPass], thresholds: Thresholds) -> tuple[MetricCheck, ...]:
    """The checks that these thresholds give; what decides a verdict is in their ``applies`` and ``broken``."""
    found = []
    for each, metric in [(of_pass, metric) for of_pass in passes for metric in of_pass.metrics]:
        limits = thresholds.of(metric)
        for severity, limit in ((WARNING, limits.warning), (CRITICAL, limits.critical)):
            if limit is not None:
                check = _threshold_check(each, metric, severity, limit)
                found.append(MetricCheck(check, metric, limit, each.name))
        if limits.max_fall_ratio is not None:
            check = _trend_check(each, metric, limits.max_fall_ratio)
            found.append(MetricCheck(check, metric, limits.max_fall_ratio, each.name, is_trend=True))
    return tuple(found)


def judge_values(
    checks: Iterable[MetricCheck], values: Iterable[Value], earlier: Earlier, unmeasured: Collection[str] = ()
) -> tuple[Measurement, ...]:
    """The checks over the values of this run; those over the passes named ``unmeasured`` cannot be judged."""
    of_metric: dict[str, list[Value]] = {}
    for value in sorted(values, key=lambda v: (v.metric, v.cluster_id, v.subject)):
        of_metric.setdefault(value.metric, []).append(value)
    found = []
    for each in checks:
        own = of_metric.get(each.metric.name, [])
        if each.of_pass in unmeasured:
            found.append(Measurement(each.check, None, None))
        elif each.is_trend:
            found.append(_against_earlier(each.check, each.metric, each.limit, own, earlier))
        else:
            found.append(_against_threshold(each.check, each.metric, each.limit, own))
    return tuple(found)


def _threshold_check(each: MetricPass, metric: Metric, severity: str, limit: float) -> Check:
    explanation = f"{metric.meaning}; broken {metric.worse_side} {limit:.10g}"
    return _check(each, metric, severity, explanation, f"{metric.value} {metric.worse_side} {limit!r}", severity)


def _trend_check(each: MetricPass, metric: Metric, fall: float) -> Check:
    explanation = (
        f"{metric.meaning}; broken where it is worse than the median of the last {EARLIER_RUNS_COUNT} runs of the same"
        f" cluster by more than {fall:.4g} of it, and at least {LEAST_EARLIER_RUNS_COUNT} runs are known"
    )
    broken = f"{metric.value} worse by {fall!r}, at least {metric.least_change!r}"
    return _check(each, metric, "trend", explanation, broken, WARNING)


def _check(each: MetricPass, metric: Metric, kind: str, explanation: str, broken: str, severity: str) -> Check:
    name, judged = f"{metric.name}_{kind}", f"by {each.subject}"
    return Check(RUN_METRICS.full_name, name, explanation, broken, judged, severity=severity)


def _against_threshold(check: Check, metric: Metric, limit: float, values: Sequence[Value]) -> Measurement:
    broken = sorted((v for v in values if metric.is_worse(v.value, limit)), key=lambda v: v.value)
    worst = broken if metric.is_worse(0, 1) else broken[::-1]
    return Measurement(check, len(values), len(broken), _examples({**_named(v), "threshold": limit} for v in worst))


def _against_earlier(
    check: Check, metric: Metric, fall: float, values: Sequence[Value], earlier: Earlier
) -> Measurement:
    trends = [(v, trend_of(v.value, earlier.get((v.cluster_id, v.metric, v.subject), ()))) for v in values]
    judged = [(value, trend) for value, trend in trends if trend is not None]
    fallen = [(value, trend) for value, trend in judged if is_fall(trend, metric, fall)]
    if fallen:
        falls = "; ".join(fall_sentence(value, trend) for value, trend in fallen[:_NAMED_COUNT])
        more = f"; and {len(fallen) - _NAMED_COUNT} more" if len(fallen) > _NAMED_COUNT else ""
        check = replace(check, explanation=f"{check.explanation}: {falls}{more}")
    examples = _examples({**_named(v), "median": t.median, "earlier": list(t.earlier)} for v, t in fallen)
    return Measurement(check, len(judged), len(fallen), examples)


def trend_of(value: float, earlier: Sequence[float]) -> Trend | None:
    """The trend of a value against ``earlier`` ones, the latest first; None where they are too few."""
    latest = tuple(earlier[:EARLIER_RUNS_COUNT])
    return Trend(value, latest) if len(latest) >= LEAST_EARLIER_RUNS_COUNT else None


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


def fall_sentence(value: Value, trend: Trend) -> str:
    """``cluster c, 3.9.1: 0.8, against a median of 0.99 of 3 earlier runs (0.99, 0.98, 1)``"""
    of = f"cluster {value.cluster_id}{', ' + value.subject if value.subject else ''}"
    before = ", ".join(f"{each:.4g}" for each in trend.earlier)
    median = f"a median of {trend.median:.4g} of {len(trend.earlier)} earlier runs ({before})"
    return f"{of}: {trend.value:.4g}, against {median}"


def _named(value: Value) -> dict[str, Any]:
    return {"cluster_id": value.cluster_id, "subject": value.subject, "value": value.value}


def _examples(rows: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(json.dumps(row, ensure_ascii=False)[:EXAMPLE_LENGTH] for row in islice(rows, EXAMPLES_COUNT))
