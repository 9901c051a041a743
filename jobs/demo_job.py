"""``demo``: the whole pipeline on the real capture that ships with the package."""

from __future__ import annotations

import argparse
import dataclasses
import os
import shlex
import sys
import tempfile
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Final

from jobs import ingest_job, run_job
from jobs.command.execution import main
from jobs.command.job import PROGRAM, Common, Job, RunReport, ShowProgress, output_folder
from jobs.session.progress import silent
from jobs.session.run_configs import TINY_RUN_CONFIG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The capture, below the package: an unclean election of Kafka 3.9.1 with three brokers, at its default log level.
#: Every fifth checkpoint and every second snapshot of a real capture, without ZooKeeper's own log and the probes.
CAPTURE: Final = "demo_capture"
TITLE: Final = "Demo: an unclean leader election, Kafka 3.9.1"


@dataclass(frozen=True)
class Params:
    """``lake`` is None where a new temporary folder shall hold it."""

    lake: str | None
    out_dir: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", default="report", help="folder of the report (default: ./report)")


def to_params(options: argparse.Namespace, common: Common) -> Params:
    return Params(common.lake if common.names_lake else None, output_folder(options.out, "--out", common))


def run(spark: SparkSession, params: Params, progress: ShowProgress = silent) -> RunReport:
    """Run everything; the lake stays, so that it can be asked afterwards."""
    lake = params.lake or os.path.join(tempfile.mkdtemp(prefix=f"{PROGRAM}-demo-"), "lake")
    with resources.as_file(resources.files("jobs") / CAPTURE) as capture:
        ingest = ingest_job.Params(lake, (str(capture),))
        report = run_job.run(spark, run_job.Params(ingest, params.out_dir, title=TITLE), progress)
    query = "SELECT topic, partition_id, leader, isr, valid_from FROM silver.leader_and_isr_timeline LIMIT 10"
    ask = f'ask it     {PROGRAM} sql --lake {shlex.quote(lake)} "{query}"'
    return dataclasses.replace(report, summary=(*report.summary, ask))


JOB: Final = Job(
    "demo",
    "the whole pipeline on a real capture that ships with the package",
    add_arguments,
    to_params,
    run,
    config=TINY_RUN_CONFIG,
    reads=lambda params: None,
    modules=run_job.MODULES,
    prepare=run_job.JOB.prepare,
    loads_all_classes=True,
)


if __name__ == "__main__":
    sys.exit(main(JOB))
