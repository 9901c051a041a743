"""The catalogue of metrics: names, units, queries, and the checks that they give."""

from __future__ import annotations

import hashlib
import re

import pytest

from checks.catalog import CRITICAL, WARNING, fingerprint, tables_in
from checks.metrics.catalog import HIGHER, LOWER, Metric, MetricPass, values_sql
from checks.metrics.judge import metric_checks
from checks.metrics.passes import METRIC_PASSES, METRICS
from checks.metrics.queries import BROKER_HOURS, HOURLY_METRIC, HOURLY_QUERY
from checks.metrics.thresholds import Limits, Thresholds, parse_thresholds
from checks.registry import registry
from ingest.lake.tables import TABLES
from ingest.lake.tables.quality import RUN_METRICS, VERDICTS
from reconstruct.rule_book import RULES
from tests import ROOT

#: A name is a meaning, and a trend compares the values of one name. Whoever changes what a metric measures gives it
#: another name; whoever only writes its query in another way puts the new hash here.
MEANINGS = {
    "broker_live_hours_logged_ratio": "20d5d5783b9f",
    "clock_bounded_ratio": "5315b4a2cc25",
    "clock_bounds_width_ms": "fa4cd9b85a7f",
    "elections_exact_ratio": "7e9185bea94d",
    "elections_of_known_kind_ratio": "b9c4baab6642",
    "elections_with_inputs_explained_ratio": "950a783adebd",
    "observed_transitions_ratio": "252540d86ef3",
    "rejected_records_ratio": "d212c731d559",
    "snapshots_replayed_ratio": "fc9f6e75ffa1",
    "typed_records_by_version_ratio": "7722429587f3",
    "typed_state_changes_by_version_ratio": "9d334b0d1438",
}


def meaning(each: MetricPass, metric: Metric) -> str:
    return hashlib.sha256("\n".join((each.cases, each.subject, metric.value)).encode()).hexdigest()[:12]


def ids(passes: tuple[MetricPass, ...], thresholds: Thresholds) -> dict[str, str]:
    return {each.check.check_id: each.check.severity for each in metric_checks(passes, thresholds)}


def test_a_name_keeps_its_meaning() -> None:
    assert {m.name: meaning(each, m) for each in METRIC_PASSES for m in each.metrics} == MEANINGS


def test_a_metric_is_defined_once() -> None:
    assert len(METRICS) == sum(len(each.metrics) for each in METRIC_PASSES)
    assert HOURLY_METRIC not in METRICS
    assert len({each.name for each in (*METRIC_PASSES, *registry().passes)}) == len(METRIC_PASSES) + len(
        registry().passes
    ), "passes are told apart by name in the fingerprint"


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_a_metric_has_a_unit_a_meaning_and_thresholds_that_its_own_rules_allow(metric: Metric) -> None:
    assert metric.name.endswith(("_ratio", "_ms", "_count"))
    assert re.fullmatch(r"[a-z_]+", metric.name)
    assert metric.better in (HIGHER, LOWER)
    assert metric.meaning
    assert not metric.meaning.endswith(".")
    for limit in (metric.warning, metric.critical):
        assert limit is None or (0 <= limit <= 1 if metric.is_ratio else limit >= 0)
    if metric.critical is not None:
        assert metric.warning is not None
        assert metric.critical == metric.warning or metric.is_worse(metric.critical, metric.warning)


def test_no_metric_is_taken_for_a_verdict_that_reconstruct_counted() -> None:
    counted = {f"rule_{verdict}_count" for verdict in VERDICTS}
    assert not counted & set(METRICS)
    assert not any(re.match(r"rule_.*_count$", name) for name in (*METRICS, HOURLY_METRIC)), "the report looks so"
    assert "typed_records_ratio" not in METRICS, "reconstruct's own, by source kind"


def test_the_queries_read_the_tables_that_they_name() -> None:
    for each in METRIC_PASSES:
        assert set(re.findall(r"{(\w+)}", values_sql(each))) == {TABLES[name].name for name in each.reads}, each.name
    assert tables_in(HOURLY_QUERY) == ("quality.evidence_coverage", "silver.broker_liveness_timeline")
    assert BROKER_HOURS in HOURLY_QUERY


def test_metrics_of_one_pass_share_one_aggregation() -> None:
    (elections,) = (each for each in METRIC_PASSES if each.name == "elections")
    assert values_sql(elections).count("{leader_elections}") == 1
    assert len(elections.metrics) == 3


def test_a_metric_gives_a_check_per_threshold_and_one_of_its_trend() -> None:
    metric = Metric("kept_ratio", "share kept", HIGHER, "avg(kept)", warning=0.9, critical=0.5)
    each = MetricPass("kept", "SELECT 1", "''", (metric,))
    table = RUN_METRICS.full_name
    assert ids((each,), Thresholds()) == {
        f"{table}.kept_ratio_warning": WARNING,
        f"{table}.kept_ratio_critical": CRITICAL,
        f"{table}.kept_ratio_trend": WARNING,
    }
    assert ids((each,), Thresholds({"kept_ratio": Limits(None, None, None)})) == {}


def test_ids_of_metrics_are_their_own() -> None:
    found = ids(METRIC_PASSES, Thresholds())
    assert len(found) == len(metric_checks(METRIC_PASSES, Thresholds()))
    assert not set(found) & ({check.check_id for check in registry().checks} | set(RULES))


def test_by_default_only_one_metric_can_fail_the_gate() -> None:
    critical = {check_id for check_id, severity in ids(METRIC_PASSES, Thresholds()).items() if severity == CRITICAL}
    assert critical == {"quality.run_metrics.typed_state_changes_by_version_ratio_critical"}


def fingerprint_of(thresholds: Thresholds, passes: tuple[MetricPass, ...]) -> str:
    checks = (*registry().checks, *(each.check for each in metric_checks(passes, thresholds)))
    return fingerprint(checks, (*registry().passes, *passes), RULES)


def test_the_fingerprint_covers_metrics_and_thresholds() -> None:
    passes = METRIC_PASSES
    usual = fingerprint_of(Thresholds(), passes)
    assert usual == fingerprint_of(Thresholds(), passes)
    others = [
        fingerprint_of(Thresholds({"rejected_records_ratio": Limits(0.02, None, 0.1)}), passes),
        fingerprint_of(Thresholds({"rejected_records_ratio": Limits(0.01, 0.5, 0.1)}), passes),
        fingerprint_of(Thresholds({"rejected_records_ratio": Limits(0.01, None, 0.2)}), passes),
        fingerprint_of(Thresholds(max_fall_ratio=0.2), passes),
        fingerprint_of(Thresholds(), passes[1:]),
        fingerprint(registry().checks, registry().passes, RULES),
    ]
    assert len({usual, *others}) == len(others) + 1


DOCUMENT = ROOT / "docs" / "checks.md"


def test_the_page_about_checks_lists_every_metric_with_its_thresholds() -> None:
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in DOCUMENT.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| `\w+_(ratio|ms|count)` \|", line)
    ]
    shown = {name.strip("`"): (better, warning, critical) for name, _, _, better, warning, critical in cells}
    assert shown.pop(HOURLY_METRIC) == ("", "", "")

    def text(limit: float | None) -> str:
        return "" if limit is None else f"{limit:g}"

    assert shown == {m.name: (m.better, text(m.warning), text(m.critical)) for m in METRICS.values()}


def test_the_example_of_the_page_about_checks_can_be_used() -> None:
    (example,) = re.findall(r"^```toml\n(.*?)^```$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    given = parse_thresholds(example, METRICS)
    assert given.max_fall_ratio == 0.2
    assert given.of(METRICS["rejected_records_ratio"]) == Limits(0.001, 0.05, 0.2)
    assert given.of(METRICS["clock_bounds_width_ms"]) == Limits(1000.0, None, None)
    assert given.of(METRICS["typed_state_changes_by_version_ratio"]) == Limits(0.99, None, 0.2)
