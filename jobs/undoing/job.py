"""``undo``: the last run taken back, with or without what was ingested since the run before."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jobs.command.execution import main
from jobs.command.job import Common, Job, RunReport, ShowProgress, lake_of, require_lake
from jobs.session.progress import silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Params:
    """``bronze``: whether what was ingested since is taken out, too."""

    lake: str
    bronze: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bronze", action="store_true", help="take out also what was ingested since, and name some of the files"
    )


def to_params(options: argparse.Namespace, common: Common) -> Params:
    require_lake(common)
    return Params(common.lake, options.bronze)


def run(spark: SparkSession, params: Params, progress: ShowProgress = silent) -> RunReport:
    from reconstruct.kept.undoing import undo

    undone = undo(lake_of(spark, params.lake), progress, bronze=params.bronze)
    facts = dataclasses.asdict(undone) | {"ended_at": undone.ended_at.isoformat()}
    return RunReport(summary_of(undone), facts={"undo": facts})


def summary_of(undone: Any) -> tuple[str, ...]:
    """Lines that tell of a ``reconstruct.kept.undoing.Undone``."""
    left = f"silver and gold are as run {undone.number} left them ({undone.ended_at:%Y-%m-%d %H:%M:%S} UTC)"
    told = [f"{left}; tables brought back: {undone.tables}"]
    if undone.files:
        others = f" and {undone.files - len(undone.names)} more" if undone.files > len(undone.names) else ""
        what = (
            "were taken out: `ingest` those again that belong here"
            if undone.is_bronze_back
            else "are still in bronze, and the next `reconstruct` reads them (`undo --bronze` takes them out)"
        )
        told.append(f"files ingested since, {undone.files}, {what}: {', '.join(undone.names)}{others}")
    return tuple(told)


JOB: Final = Job(
    "undo",
    "bring the tables back to what the run before the last left",
    add_arguments,
    to_params,
    run,
    writes_lake=lambda params: True,
)


if __name__ == "__main__":
    sys.exit(main(JOB))
