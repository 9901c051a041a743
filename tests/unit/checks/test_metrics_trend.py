"""When a value is a fall, and how values become results."""

from __future__ import annotations

import json

import pytest

from checks.catalog import CRITICAL, WARNING
from checks.measure import EXAMPLES_COUNT, Measurement
from checks.metrics.catalog import HIGHER, LOWER, Metric, MetricPass
from checks.metrics.judge import Value, is_fall, judge_values, metric_checks, trend_of
from checks.metrics.thresholds import Limits, Thresholds

KEPT = Metric("kept_ratio", "share kept", HIGHER, "avg(kept)", warning=0.9, critical=0.5)
LOST = Metric("lost_ratio", "share lost", LOWER, "avg(lost)", warning=0.1)
WIDTH = Metric("width_ms", "width", LOWER, "max(width)", least_change=100.0)
PASSES = (
    MetricPass("records", "SELECT 1", "kind", (KEPT, LOST)),
    MetricPass("clocks", "SELECT 2", "broker_id", (WIDTH,)),
)


def falls(metric: Metric, value: float, *earlier: float, ratio: float = 0.1) -> bool:
    trend = trend_of(value, earlier)
    return trend is not None and is_fall(trend, metric, ratio)


def test_fewer_than_three_earlier_runs_say_nothing() -> None:
    assert trend_of(0.0, ()) is None
    assert trend_of(0.0, (1.0, 1.0)) is None
    assert falls(KEPT, 0.0, 1.0, 1.0, 1.0)


def test_the_last_ten_runs_give_the_median_and_no_older_one() -> None:
    trend = trend_of(0.5, (*[0.5] * 10, *[1.0] * 90))
    assert trend is not None
    assert (trend.median, len(trend.earlier)) == (0.5, 10)
    even = trend_of(0.5, (0.4, 0.6, 1.0, 0.0))
    assert even is not None
    assert even.median == 0.5


@pytest.mark.parametrize(
    ("metric", "value", "earlier", "is_one"),
    [
        (KEPT, 0.89, 1.0, True),
        (KEPT, 0.90, 1.0, False),
        (KEPT, 0.63, 0.70, False),  # a tenth of it, but for floating point
        (KEPT, 0.62, 0.70, True),
        (KEPT, 1.0, 0.5, False),
        (KEPT, 0.0, 0.0, False),
        (LOST, 0.000002, 0.000001, False),  # twice as many, of a million
        (LOST, 0.11, 0.0, True),
        (LOST, 0.10, 0.0, False),
        (LOST, 0.0, 0.5, False),
        (LOST, 1.0, 1.0, False),
        (WIDTH, 1200.0, 1000.0, True),
        (WIDTH, 1100.0, 1000.0, False),
        (WIDTH, 9.0, 3.0, False),  # three times as wide, and still nothing
        (WIDTH, 900.0, 0.0, False),  # no share of nothing
        (WIDTH, 10.0, 1000.0, False),
    ],
)
def test_a_fall_is_worse_than_the_median_by_more_than_its_share(
    metric: Metric, value: float, earlier: float, is_one: bool
) -> None:
    assert falls(metric, value, earlier, earlier, earlier) is is_one


def judged(values: list[Value], earlier=None, thresholds: Thresholds | None = None, unmeasured=()):
    checks = metric_checks(PASSES, thresholds or Thresholds())
    found = judge_values(checks, values, earlier or {}, unmeasured)
    assert [m.check.check_id for m in found] == [c.check.check_id for c in checks]
    return {m.check.name: m for m in found}


def counts(measurement: Measurement) -> tuple[int | None, int | None]:
    return measurement.checked_count, measurement.broken_count


def test_a_value_at_its_threshold_holds_and_a_worse_one_breaks_it() -> None:
    found = judged(
        [
            Value("c", "kept_ratio", "equal", 0.9),
            Value("c", "kept_ratio", "warned", 0.6),
            Value("c", "kept_ratio", "gone", 0.4),
            Value("c", "lost_ratio", "", 0.1),
        ]
    )
    assert counts(found["kept_ratio_warning"]) == (3, 2)
    assert counts(found["kept_ratio_critical"]) == (3, 1)
    assert counts(found["lost_ratio_warning"]) == (1, 0)
    assert [json.loads(e)["subject"] for e in found["kept_ratio_warning"].examples] == ["gone", "warned"]
    assert json.loads(found["kept_ratio_critical"].examples[0]) == {
        "cluster_id": "c",
        "subject": "gone",
        "value": 0.4,
        "threshold": 0.5,
    }
    assert (found["kept_ratio_warning"].check.severity, found["kept_ratio_critical"].check.severity) == (
        WARNING,
        CRITICAL,
    )


def test_the_worst_come_first_and_examples_are_few() -> None:
    many = [Value("c", "lost_ratio", str(n), n / 100) for n in range(101)]
    found = judged(many)["lost_ratio_warning"]
    assert counts(found) == (101, 90)
    assert [json.loads(e)["value"] for e in found.examples] == [(100 - n) / 100 for n in range(EXAMPLES_COUNT)]


def test_thresholds_of_a_file_replace_the_defaults() -> None:
    thresholds = Thresholds({"kept_ratio": Limits(None, 0.95, None)})
    found = judged([Value("c", "kept_ratio", "", 0.94)], thresholds=thresholds)
    assert counts(found["kept_ratio_critical"]) == (1, 1)
    assert not {"kept_ratio_warning", "kept_ratio_trend"} & set(found)


def test_a_fall_tells_both_values_and_the_earlier_ones() -> None:
    earlier = {("c", "kept_ratio", "3.9.1"): [0.99, 0.98, 1.0], ("c", "kept_ratio", "new"): [1.0, 1.0]}
    values = [
        Value("c", "kept_ratio", "3.9.1", 0.8),
        Value("c", "kept_ratio", "new", 0.0),
        Value("other", "kept_ratio", "3.9.1", 0.0),
    ]
    found = judged(values, earlier)["kept_ratio_trend"]
    assert counts(found) == (1, 1), "a new subject and another cluster have no trend"
    assert found.check.severity == WARNING
    assert found.check.explanation.endswith(
        ": cluster c, 3.9.1: 0.8, against a median of 0.99 of 3 earlier runs (0.99, 0.98, 1)"
    )
    assert json.loads(found.examples[0]) == {
        "cluster_id": "c",
        "subject": "3.9.1",
        "value": 0.8,
        "median": 0.99,
        "earlier": [0.99, 0.98, 1.0],
    }


def test_a_sentence_names_five_falls_and_counts_the_others() -> None:
    values = [Value("c", "kept_ratio", str(n), 0.1) for n in range(8)]
    earlier = {("c", "kept_ratio", str(n)): [1.0] * 3 for n in range(8)}
    explanation = judged(values, earlier)["kept_ratio_trend"].check.explanation
    assert explanation.count("against a median") == 5
    assert explanation.endswith("; and 3 more")


def test_what_could_not_be_measured_cannot_be_judged() -> None:
    found = judged([Value("c", "width_ms", "1", 3.0)], unmeasured={"records"})
    assert counts(found["kept_ratio_critical"]) == (None, None)
    assert counts(found["lost_ratio_trend"]) == (None, None)
    assert counts(found["width_ms_trend"]) == (0, 0)
