"""Every check that may fail says what to do, and the terminal names those that did."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from checks.advice import MATTERS, advice
from checks.metrics.judge import metric_checks
from checks.metrics.passes import METRIC_PASSES
from checks.metrics.thresholds import Thresholds
from checks.registry import registry
from checks.results import CheckReport, CheckResult
from jobs import check_job, ingest_job, reconstruct_job, report_job, run_job
from jobs.command.job import DONE, GATE_FAILED, RunReport
from reconstruct.findings.verdicts import BROKEN, KEPT
from reconstruct.pipeline import ReconstructReport

WARNED = "quality.run_metrics.rejected_records_ratio_warning"


def report(*failed_gates: str) -> CheckReport:
    results = (
        CheckResult(WARNED, "quality.run_metrics", "warning", BROKEN, 7, 2, None, "share of the records read"),
        CheckResult("silver.x.unique_key", "silver.x", "critical", KEPT, 7, 0, None, "x"),
        CheckResult("R08", "gold.divergences", "info", BROKEN, 7, 2, None, "x"),
    )
    return CheckReport("run", datetime(2026, 1, 1, tzinfo=UTC), "f", results, failed_gates, ())


def test_every_check_has_its_own_advice() -> None:
    checks = [*registry().checks, *(each.check for each in metric_checks(METRIC_PASSES, Thresholds()))]
    assert {check.severity for check in checks} == set(MATTERS)
    missing = [
        c.check_id for c in checks if advice(c.check_id, c.severity) in ("", "look at the examples in the report")
    ]
    assert missing == []


def test_the_terminal_names_what_is_broken_and_says_whether_it_matters() -> None:
    first, second = check_job.checks_lines(report())
    assert (
        first
        == "checks    3 run, no gate failed, 1 warning. The tables are whole; less can be said from what was given."
    )
    assert second.startswith(f"  warning {WARNED}: 2 of 7 (share of the records read). To do: the report lists them")


@pytest.mark.parametrize(("gates", "code"), [((), DONE), (("silver.x: unique_key is broken",), GATE_FAILED)])
def test_run_ends_with_3_where_a_gate_fails(gates: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Written:
        path, summary = "report/index.html", ()

    monkeypatch.setattr(run_job, "lake_of", lambda *_: None)
    monkeypatch.setattr(ingest_job, "ingest", lambda *_: None)
    monkeypatch.setattr(ingest_job, "summary_of", lambda _: RunReport())
    monkeypatch.setattr(reconstruct_job, "reconstruct", lambda *_: ReconstructReport())
    monkeypatch.setattr(check_job, "check", lambda *_: report(*gates))
    monkeypatch.setattr(report_job, "write", lambda *_, before_checks: Written)
    monkeypatch.setattr(report_job, "add_checks", lambda _, written: written)
    monkeypatch.setattr(check_job, "write_data_docs", lambda *_: None)
    params = run_job.Params(ingest_job.Params(lake="lake", paths=("logs",)), "report")
    done = run_job.run(None, params)  # type: ignore[arg-type]
    assert done.exit_code == code
    assert done.problems == tuple(f"gate failed: {gate}" for gate in gates)
    assert any(WARNED in line for line in done.summary)
    assert done.facts["check"]["failed_gates"] == list(gates)
    assert done.facts["reconstruct"]["refused"] == ()
