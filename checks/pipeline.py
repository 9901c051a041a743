"""The one function that checks a lake."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from checks.catalog import CRITICAL, INFO
from checks.measure import Measurement, measure
from checks.metrics.judge import judge_values, metric_checks
from checks.metrics.measure import measure_metrics
from checks.metrics.passes import metric_passes
from checks.metrics.thresholds import Thresholds
from checks.registry import registry
from checks.results import CheckReport, CheckResult
from checks.rules import RuleOutcome, rule_ids, rule_outcomes
from ingest.lake.delta import Lake, PinnedLake
from ingest.lake.tables.quality import CHECK_RESULTS
from reconstruct.findings.verdicts import BROKEN, CANNOT_BE_JUDGED, KEPT
from reconstruct.model.rules_version import MODEL_VERSION

_SHOWN_LENGTH: Final = 400


def run_checks(
    lake: Lake, *, docs_dir: str | None, progress: Callable[[str], None], thresholds: Thresholds | None = None
) -> CheckReport:
    """Check every table of ``lake``, add the results to ``quality.check_results``, and say which gates fail.

    Spark counts, Great Expectations judges. Data Docs are built in the local folder ``docs_dir`` if it is given.
    Metrics are measured too, added to ``quality.run_metrics`` and judged by ``thresholds`` (None: the defaults).
    Kafka's rules are recorded too, with severity info. The tables must be there
    (:meth:`ingest.lake.delta.Lake.ensure`); otherwise :class:`ingest.lake.delta.LakeError` is raised.
    """
    from checks.data_docs import make_offline
    from checks.gate import judge  # Great Expectations takes seconds to import: not before it is needed

    checks, of_metrics = registry(), metric_checks(metric_passes(), thresholds or Thresholds())
    run_at = datetime.now(UTC)
    stamp = _Stamp(
        f"{run_at:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}",
        run_at,
        checks.fingerprint(rule_ids(), [each.check for each in of_metrics], metric_passes()),
    )
    measurements = measure(lake, checks, progress)
    metrics = measure_metrics(lake, stamp.run_id, run_at, progress)
    measurements += judge_values(of_metrics, metrics.values, metrics.earlier, metrics.unmeasured)
    progress("Great Expectations" if docs_dir is None else "Great Expectations and its Data Docs")
    holds = judge(measurements, docs_dir)
    index = None if docs_dir is None else make_offline(docs_dir)
    progress("rules")
    results = (
        *(stamp.of_measurement(m, holds[m.check.check_id]) for m in measurements),
        *(stamp.of_rule(outcome) for outcome in rule_outcomes(PinnedLake(lake))),
    )
    write_results(lake, results)
    critical = [m for m in measurements if m.check.severity == CRITICAL]
    failed = tuple(gate_sentence(m) for m in critical if not holds[m.check.check_id])
    return CheckReport(stamp.run_id, run_at, stamp.fingerprint, results, failed, index)


def write_results(lake: Lake, results: Sequence[CheckResult]) -> None:
    """Add the results of a run to ``quality.check_results``."""
    rows = [tuple(getattr(result, name) for name in CHECK_RESULTS.column_names) for result in results]
    lake.append(lake.spark.createDataFrame(rows, CHECK_RESULTS.struct), CHECK_RESULTS)


def gate_sentence(measurement: Measurement) -> str:
    """The table, the expectation, how many cases break it, and the first of them."""
    check = measurement.check
    if measurement.broken_count is None:
        return f"{check.table}: {check.name} cannot be judged, because a table it reads has not the declared columns"
    first = measurement.examples[0] if measurement.examples else "no example"
    if len(first) > _SHOWN_LENGTH:
        first = f"{first[:_SHOWN_LENGTH]}…"
    counts = f"{measurement.broken_count} of {measurement.checked_count}"
    return f"{check.table}: {check.name} is broken by {counts} ({check.explanation}); the first: {first}"


class _Stamp:
    """What all results of one run share."""

    def __init__(self, run_id: str, run_at: datetime, fingerprint: str) -> None:
        self.run_id, self.run_at, self.fingerprint = run_id, run_at, fingerprint

    def of_measurement(self, measurement: Measurement, holds: bool) -> CheckResult:
        check = measurement.check
        verdict = CANNOT_BE_JUDGED if measurement.broken_count is None else KEPT if holds else BROKEN
        counts = (measurement.checked_count, measurement.broken_count)
        return self._result(
            check.check_id, check.table, check.severity, verdict, counts, measurement.examples, check.explanation
        )

    def of_rule(self, outcome: RuleOutcome) -> CheckResult:
        counts = (outcome.kept_count + outcome.broken_count, outcome.broken_count)
        return self._result(
            outcome.rule.rule_id,
            outcome.rule.table,
            INFO,
            outcome.verdict,
            counts,
            outcome.examples,
            outcome.explanation,
        )

    def _result(
        self,
        check_id: str,
        table: str,
        severity: str,
        verdict: str,
        counts: tuple[int | None, int | None],
        examples: Sequence[str],
        explanation: str,
    ) -> CheckResult:
        shown = f"[{','.join(examples)}]" if examples else None
        return CheckResult(
            self.run_id,
            check_id,
            table,
            severity,
            verdict,
            *counts,
            shown,
            explanation,
            self.fingerprint,
            MODEL_VERSION,
            self.run_at,
        )


__all__ = ["gate_sentence", "run_checks", "write_results"]
