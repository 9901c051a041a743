"""The command line ``kafka-state-replay COMMAND``: options in, a job run, an exit code out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Final

from jobs import (
    ask_job,
    capture_job,
    check_job,
    demo_job,
    explain_job,
    ingest_job,
    maintain_job,
    mcp_job,
    merge_job,
    reconstruct_job,
    report_job,
    run_job,
    sql_job,
)
from jobs.command.execution import EXIT_CODES, declare, installed_version, parsed, run
from jobs.command.job import PROGRAM, Common, Job
from jobs.lab import job as lab
from jobs.redaction import job as redaction
from jobs.registering import job as registering
from jobs.serving import job as serving
from jobs.undoing import job as undoing

JOBS: Final[tuple[Job[Any], ...]] = (
    demo_job.JOB,
    run_job.JOB,
    capture_job.JOB,
    ingest_job.JOB,
    reconstruct_job.JOB,
    check_job.JOB,
    report_job.JOB,
    ask_job.JOB,
    explain_job.JOB,
    sql_job.JOB,
    merge_job.JOB,
    redaction.JOB,
    mcp_job.JOB,
    serving.JOB,
    registering.JOB,
    maintain_job.JOB,
    undoing.JOB,
    lab.JOB,
)

_DESCRIPTION: Final = (
    "Rebuilds what a Kafka cluster decided and believed from the logs, znodes and checkpoint files it leaves behind,"
    " and shows where that breaks Kafka's own rules."
)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROGRAM, description=_DESCRIPTION, epilog=EXIT_CODES, allow_abbrev=False)
    parser.add_argument(
        "--version", action="version", version=f"{PROGRAM} {installed_version(PROGRAM) or '0 (not installed)'}"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for job in JOBS:
        command = commands.add_parser(
            job.name, help=job.help, description=job.help, epilog=EXIT_CODES, allow_abbrev=False
        )
        declare(job, command)
    return parser


def parse(argv: Sequence[str] | None = None) -> tuple[Job[Any], Common, Any]:
    """The job asked for, the options of every command, and the job's parameters.

    Raises :class:`~jobs.command.job.UsageError`; where argparse knows that options are wrong it ends the process
    with 2.
    """
    return parsed(build_parser().parse_args(argv))


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, run, and return the exit code."""
    return run(build_parser().parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
