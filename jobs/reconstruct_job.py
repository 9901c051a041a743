"""``reconstruct``: silver events and timelines, and gold findings, from the bronze tables."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jobs.command.execution import main
from jobs.command.job import (
    DONE,
    GATE_FAILED,
    Common,
    Job,
    RunReport,
    ShowProgress,
    lake_of,
    last_run_at,
    require_lake,
    suit_session_to,
)
from jobs.session.progress import silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: In the order in which they matter.
SEVERITIES: Final = ("error", "warning", "info")


@dataclass(frozen=True)
class Params:
    """The lake whose bronze tables are read, and whose silver and gold are brought in line with them; ``full`` makes
    all of it anew."""

    lake: str
    full: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--full", action="store_true", help="make everything anew, also what nothing new concerns; gives the same rows"
    )


def to_params(options: argparse.Namespace, common: Common) -> Params:
    require_lake(common)
    return Params(common.lake, options.full)


def run(spark: SparkSession, params: Params, progress: ShowProgress = silent) -> RunReport:
    report = reconstruct(lake_of(spark, params.lake), progress, full=params.full)
    exit_code = GATE_FAILED if report.refused else DONE
    return RunReport(summary_of(report), refusals(report), exit_code, facts_of(report))


def reconstruct(lake: Any, progress: ShowProgress, full: bool = False) -> Any:
    """Gold is published only if its critical checks hold."""
    from checks.pipeline import audit_gold
    from reconstruct import pipeline

    suit_session_to(lake, None if full else last_run_at(lake.root))
    return pipeline.reconstruct(
        lake, progress=progress, audit=lambda candidate: audit_gold(candidate, progress), full=full
    )


def facts_of(report: Any) -> dict[str, Any]:
    """For ``--json``."""
    return {"reconstruct": dataclasses.asdict(report)}


def refusals(report: Any) -> tuple[str, ...]:
    """Why gold was not published, and where what was refused lies; nothing where it was."""
    from reconstruct.engine.publication import REFUSED

    if not report.refused:
        return ()
    named = ", ".join(report.clusters_refused)
    kept = f"gold of {named} stays as it was before this run: what it would have been lies in the lake's {REFUSED}"
    return (*(f"gate failed: {sentence}" for sentence in report.refused), kept)


def summary_of(report: Any) -> tuple[str, ...]:
    """Lines of a ``reconstruct.pipeline.ReconstructReport``."""
    rows: Mapping[str, int] = report.rows
    width = max((len(name) for name in rows), default=0)
    counts = (f"{name:{width}}  {count:>9,} rows" for name, count in rows.items())
    return (*counts, findings_line(report.findings), report.how)


def findings_line(findings: Mapping[str, int]) -> str:
    """``findings  2 error, 0 warning, 1 info``"""
    known = [f"{findings.get(severity, 0)} {severity}" for severity in SEVERITIES]
    others = [f"{count} {severity}" for severity, count in sorted(findings.items()) if severity not in SEVERITIES]
    return "findings  " + ", ".join(known + others)


JOB: Final = Job(
    "reconstruct",
    "derive timelines and findings from bronze",
    add_arguments,
    to_params,
    run,
    known_until=lambda params: None if params.full else last_run_at(params.lake),
    writes_lake=lambda params: True,
    modules=("reconstruct.pipeline", "checks.pipeline"),
    loads_all_classes=True,
)


if __name__ == "__main__":
    sys.exit(main(JOB))
