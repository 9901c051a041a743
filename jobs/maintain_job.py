"""``maintain``: the lake's small files put together, and what only old versions of its tables need deleted."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jobs.command.execution import main
from jobs.command.job import Common, Job, RunReport, ShowProgress, UsageError, lake_of, require_lake
from jobs.session.progress import silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HOURS_A_DAY: Final = 24


@dataclass(frozen=True)
class Params:
    """``keep_days``: versions of tables that are younger stay readable (Delta's time travel)."""

    lake: str
    keep_days: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep-days",
        metavar="DAYS",
        type=float,
        default=7.0,
        help="keep what tables were in the last DAYS days, to read or restore it (default: 7)",
    )


def to_params(options: argparse.Namespace, common: Common) -> Params:
    require_lake(common)
    if not options.keep_days >= 0:
        raise UsageError(f"--keep-days {options.keep_days:g}: give days, 0 or more")
    return Params(common.lake, options.keep_days)


def run(spark: SparkSession, params: Params, progress: ShowProgress = silent) -> RunReport:
    from ingest.lake.maintenance import maintain
    from reconstruct.kept.last_run import hours_to_keep

    lake = lake_of(spark, params.lake)
    done = maintain(lake, max(params.keep_days * _HOURS_A_DAY, hours_to_keep(lake)), progress)
    changed = [table for table in done if table.changed]
    width = max((len(table.table) for table in changed), default=0)
    freed = sum(table.stored_bytes_before - table.stored_bytes_after for table in done)
    return RunReport(
        summary=(
            *(
                f"{table.table:{width}}  {table.files_before:>6,} -> {table.files_after:,} files,"
                f" {_megabytes(table.stored_bytes_before)} -> {_megabytes(table.stored_bytes_after)} stored"
                for table in changed
            ),
            f"{len(changed)} of {len(done)} tables changed,"
            f" {_megabytes(abs(freed))} {'more' if freed < 0 else 'less'} stored",
        ),
        facts={"maintain": [dataclasses.asdict(table) for table in changed]},
    )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


JOB: Final = Job(
    "maintain",
    "put the lake's small files together and delete what only old versions of its tables need",
    add_arguments,
    to_params,
    run,
    known_until=lambda params: None,
    writes_lake=lambda params: True,
)


if __name__ == "__main__":
    sys.exit(main(JOB))
