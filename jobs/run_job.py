"""``run PATH... [--out DIR]``: ingest, reconstruct, check and report in one go."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jobs import check_job, ingest_job, reconstruct_job, report_job
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
    output_folder,
)
from jobs.session.progress import silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from checks.metrics.thresholds import Thresholds


@dataclass(frozen=True)
class Params:
    """What the four jobs take."""

    ingest: ingest_job.Params
    out_dir: str
    title: str | None = None
    thresholds: Thresholds | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    ingest_job.add_source_arguments(parser)
    check_job.add_threshold_argument(parser)
    report_job.add_page_arguments(parser)


def to_params(options: argparse.Namespace, common: Common) -> Params:
    out_dir = output_folder(options.out, "--out", common)
    thresholds = check_job.thresholds_of(options)
    return Params(ingest_job.to_params(options, common), out_dir, options.title, thresholds)


def run(spark: SparkSession, params: Params, progress: ShowProgress = silent) -> RunReport:
    """The four jobs over one lake.

    The report is there before the tables are checked, and is written again with what the checks say: it is written even
    where a gate fails, and then says so. The Data Docs come last.
    """
    lake = lake_of(spark, params.ingest.lake)
    ingested = ingest_job.summary_of(ingest_job.ingest(lake, params.ingest, progress))
    if ingested.exit_code != DONE:
        return ingested
    reconstructed = reconstruct_job.reconstruct(lake, progress)
    written = report_job.write(lake, params.out_dir, params.title, progress, before_checks=True)
    progress(f"the report is at {written.path}; now the checks of the tables")
    checked = check_job.check(lake, None, progress, params.thresholds)
    report_job.add_checks(lake, written)
    check_job.write_data_docs(checked, report_job.data_docs_of(params.out_dir), progress)
    written = report_job.add_checks(lake, written)  # with a link to them
    return RunReport(
        summary=(
            *ingested.summary,
            reconstruct_job.findings_line(reconstructed.findings),
            *check_job.checks_lines(checked),
            *written.summary,
            f"lake      {params.ingest.lake}",
            report_job.report_line(written),
        ),
        problems=ingested.problems + reconstruct_job.refusals(reconstructed) + check_job.gate_problems(checked),
        exit_code=GATE_FAILED if reconstructed.refused or checked.failed_gates else DONE,
        facts={**ingested.facts, **reconstruct_job.facts_of(reconstructed), **check_job.facts_of(checked)},
    )


MODULES: Final = (*ingest_job.JOB.modules, *reconstruct_job.JOB.modules, *report_job.JOB.modules)
JOB: Final = Job(
    "run",
    "ingest, reconstruct, check and report in one go",
    add_arguments,
    to_params,
    run,
    reads=lambda params: ingest_job.paths_read(params.ingest),
    known_until=lambda params: last_run_at(params.ingest.lake),
    writes_lake=lambda params: True,
    modules=MODULES,
    prepare=report_job.prepare,
    loads_all_classes=True,
)


if __name__ == "__main__":
    sys.exit(main(JOB))
