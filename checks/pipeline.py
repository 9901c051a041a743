"""The two functions that check a lake: after a run all of it, and before gold is published gold alone."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Final, cast

from checks.advice import advice
from checks.catalog import CRITICAL, fingerprint
from checks.measure import Measurement, measure, measure_passes
from checks.metrics.judge import judge_values, metric_checks
from checks.metrics.measure import Measured, measure_metrics
from checks.metrics.passes import METRIC_PASSES
from checks.metrics.thresholds import Thresholds
from checks.registry import registry
from checks.results import CheckReport, CheckResult, examples_array, write_results
from checks.rules import rule_results
from checks.tables import candidate_tables, tables_of
from ingest.lake.delta import Lake, PinnedLake, side_by_side
from reconstruct.findings.verdicts import BROKEN, CANNOT_BE_JUDGED, KEPT
from reconstruct.rule_book import RULES

_SHOWN_LENGTH: Final = 400
_Parts = tuple[tuple[Measurement, ...], Measured, tuple[CheckResult, ...]]


def run_checks(lake: Lake, *, progress: Callable[[str], None], thresholds: Thresholds | None = None) -> CheckReport:
    """Check every table of ``lake``, add the results to ``quality.check_results``, and say which gates fail.

    A check holds where it was judged and no case breaks it. Metrics are measured too, added to ``quality.run_metrics``
    and judged by ``thresholds`` (None: the defaults). Kafka's rules are recorded too, with severity info. The tables
    must be there (:meth:`ingest.lake.delta.Lake.ensure`); otherwise :class:`ingest.lake.delta.LakeError` is raised.
    """
    checks, of_metrics = registry(), metric_checks(METRIC_PASSES, thresholds or Thresholds())
    run_at = datetime.now(UTC)
    run_id = f"{run_at:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
    every_check = (*checks.checks, *(each.check for each in of_metrics))
    judged_by = fingerprint(every_check, (*checks.passes, *METRIC_PASSES), RULES)
    counted = f"{len(every_check)} checks in {len(checks.passes) + len(METRIC_PASSES)} passes"
    progress(f"checking the tables: {counted}, and {len(RULES)} rules of Kafka")
    with tables_of(lake) as tables:
        parts: tuple[Callable[[], object], ...] = (
            partial(measure, tables, checks),
            partial(measure_metrics, lake, tables, run_id, run_at),
            partial(rule_results, PinnedLake(lake)),
        )
        measurements, metrics, of_rules = cast(_Parts, side_by_side(lambda part: part(), parts))
    measurements += judge_values(of_metrics, metrics.values, metrics.earlier, metrics.unmeasured)
    results = (*map(_result, measurements), *of_rules)
    report = CheckReport(run_id, run_at, judged_by, results, _failed_gates(measurements), measurements)
    write_results(lake, report)
    return report


def write_data_docs(report: CheckReport, docs_dir: str, progress: Callable[[str], None]) -> str:
    """Have Great Expectations judge the counts and write its pages into a local folder; gives the path of the first.

    Raises :class:`checks.gate.GateError` where it cannot judge, or does not say what the report says.
    """
    from checks.data_docs import make_offline
    from checks.gate import GateError, judge  # Great Expectations takes seconds to import: not before it is needed

    progress("Great Expectations and its Data Docs")
    holds = judge(report.measurements, docs_dir)
    for measurement in report.measurements:
        if holds[measurement.check.check_id] != measurement.holds:
            raise GateError(f"Great Expectations judges {measurement.check.check_id} otherwise than its counts do")
    return make_offline(docs_dir)


def audit_gold(candidate: Lake, progress: Callable[[str], None]) -> tuple[str, ...]:
    """The gate before publication: a sentence for each critical check of gold that ``candidate`` breaks. Without any,
    it may be published.

    Columns and types are not asked for: rows that are published take those of their table.
    """
    passes = [each for each in registry().passes if each.stage == "gold"]
    progress(f"audit: {sum(len(each.checks) for each in passes)} checks of gold before it is published")
    with candidate_tables(candidate) as tables:
        return _failed_gates(measure_passes(tables, passes))


def _result(measurement: Measurement) -> CheckResult:
    check, checked, broken = measurement.check, measurement.checked_count, measurement.broken_count
    verdict = CANNOT_BE_JUDGED if broken is None else KEPT if measurement.holds else BROKEN
    examples = examples_array(measurement.examples)
    return CheckResult(
        check.check_id, check.table, check.severity, verdict, checked, broken, examples, check.explanation
    )


def _failed_gates(measurements: Iterable[Measurement]) -> tuple[str, ...]:
    return tuple(gate_sentence(m) for m in measurements if m.check.severity == CRITICAL and not m.holds)


def gate_sentence(measurement: Measurement) -> str:
    """The table, the expectation, how many cases break it, and the first of them."""
    check = measurement.check
    if measurement.broken_count is None:
        return f"{check.table}: {check.name} cannot be judged, because a table it reads has not the declared columns"
    first = measurement.examples[0] if measurement.examples else "no example"
    if len(first) > _SHOWN_LENGTH:
        first = f"{first[:_SHOWN_LENGTH]}…"
    counts = f"{measurement.broken_count} of {measurement.checked_count}"
    broken = f"{check.table}: {check.name} is broken by {counts} ({check.explanation}); the first: {first}"
    return f"{broken}. To do: {advice(check.check_id, check.severity)}"
