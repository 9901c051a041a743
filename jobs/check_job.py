"""``check``: Great Expectations over the tables; exit code 3 if a gate fails."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from jobs.command.execution import main
from jobs.command.job import (
    DONE,
    GATE_FAILED,
    Common,
    Job,
    RunReport,
    ShowProgress,
    UsageError,
    lake_of,
    output_folder,
    require_lake,
    suit_session_to,
)
from jobs.session.progress import silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from checks.metrics.thresholds import Thresholds


@dataclass(frozen=True)
class Params:
    """``docs_dir``: where Data Docs go; None writes none. ``thresholds``: of the metrics; None are the defaults."""

    lake: str
    docs_dir: str | None = None
    thresholds: Thresholds | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--docs", metavar="DIR", help="write Great Expectations' Data Docs into this folder")
    add_threshold_argument(parser)


def add_threshold_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--thresholds", metavar="FILE", help="thresholds of the metrics, as TOML (default: our own)")


def thresholds_of(options: argparse.Namespace) -> Thresholds | None:
    """The thresholds given, None where none are; :class:`~jobs.command.job.UsageError` where they cannot be used."""
    if options.thresholds is None:
        return None
    from checks.metrics.thresholds import ThresholdError, read_thresholds

    try:
        return read_thresholds(options.thresholds)
    except ThresholdError as error:
        raise UsageError(f"--thresholds: {error}") from error


def to_params(options: argparse.Namespace, common: Common) -> Params:
    require_lake(common)
    docs_dir = output_folder(options.docs, "--docs", common) if options.docs else None
    return Params(common.lake, docs_dir, thresholds_of(options))


def run(spark: SparkSession, params: Params, progress: ShowProgress = silent) -> RunReport:
    from ingest.lake.delta import side_by_side

    lake = lake_of(spark, params.lake)
    side_by_side(lambda part: part(), (lake.ensure, partial(suit_session_to, lake)))
    report = check(lake, params.docs_dir, progress, params.thresholds)
    return RunReport(
        summary=checks_lines(report),
        problems=gate_problems(report),
        exit_code=GATE_FAILED if report.failed_gates else DONE,
        facts=facts_of(report),
    )


def check(lake: Any, docs_dir: str | None, progress: ShowProgress, thresholds: Thresholds | None = None) -> Any:
    """Check the lake, which the session suits, and write Data Docs into ``docs_dir`` if it is given."""
    from checks.pipeline import run_checks

    report = run_checks(lake, progress=progress, thresholds=thresholds)
    if docs_dir is not None:
        write_data_docs(report, docs_dir, progress)
    return report


def write_data_docs(report: Any, docs_dir: str, progress: ShowProgress) -> None:
    from checks import pipeline

    pipeline.write_data_docs(report, docs_dir, progress)


def checks_lines(report: Any) -> tuple[str, ...]:
    """How many checks were run and failed, then each warning with what to do; :func:`gate_problems` names the gates."""
    from checks.advice import MATTERS, advice

    gates, warnings = len(report.failed_gates), report.warnings
    failed = f"{gates or 'no'} gate{'s' if gates > 1 else ''} failed"
    if not warnings:
        return (f"checks    {len(report.results)} run, {failed}",)
    one_or_more = f"{len(warnings)} warning{'s' if len(warnings) > 1 else ''}"
    return (
        f"checks    {len(report.results)} run, {failed}, {one_or_more}. {MATTERS['warning']}",
        *(
            f"  warning {one.check_id}: {one.broken_count} of {one.checked_count} ({one.explanation})."
            f" To do: {advice(one.check_id, one.severity)}."
            for one in warnings
        ),
    )


def facts_of(report: Any) -> dict[str, Any]:
    """For ``--json``: of the checks those that do not hold."""
    shown = ("check_id", "severity", "checked_count", "broken_count", "explanation")
    broken = [{name: getattr(one, name) for name in shown} for one in report.warnings]
    counts = {"checks": len(report.results), "failed_gates": list(report.failed_gates), "warnings": broken}
    return {"check": {"run_id": report.run_id, **counts}}


def gate_problems(report: Any) -> tuple[str, ...]:
    return tuple(f"gate failed: {sentence}" for sentence in report.failed_gates)


JOB: Final = Job(
    "check",
    "check the tables' quality; exit code 3 if a gate fails",
    add_arguments,
    to_params,
    run,
    writes_lake=lambda params: True,
    modules=("checks.pipeline",),
)


if __name__ == "__main__":
    sys.exit(main(JOB))
