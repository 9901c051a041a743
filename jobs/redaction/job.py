"""``redact --out DIR``: a copy of the lake in which hosts, topics and principals are pseudonyms, to be shared."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jobs.command.execution import main
from jobs.command.job import (
    Common,
    Job,
    RunReport,
    ShowProgress,
    UsageError,
    output_folder,
    ready_lake_of,
    require_lake,
)
from jobs.session.progress import silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Params:
    """``out``: where the copy is made."""

    lake: str
    out: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", required=True, help="folder of the copy; it must hold no lake")


def to_params(options: argparse.Namespace, common: Common) -> Params:
    require_lake(common)
    return Params(common.lake, output_folder(options.out, "--out", common))


def run(spark: SparkSession, params: Params, progress: ShowProgress = silent) -> RunReport:
    """Copy every table; :class:`UsageError` where something is at the place of the copy."""
    from ingest.lake.delta import Lake, side_by_side
    from ingest.lake.tables import TABLES
    from jobs.redaction.lake import RedactedLake

    lake, copy = ready_lake_of(spark, params.lake, reads_all=True), Lake(spark, params.out)
    if any(map(copy.exists, TABLES.values())):
        raise UsageError(f"{params.out} holds a lake: give another --out, or delete it first")
    progress("looking for names")
    redacted = RedactedLake(lake)
    progress("copying the tables")
    copy.ensure()
    side_by_side(lambda spec: copy.append(redacted.read(spec), spec), TABLES.values())
    rows = {name: (lake.rows_count(spec), copy.rows_count(spec)) for name, spec in TABLES.items()}
    unlike = [
        f"{name}: {before} rows, of the copy {after}" for name, (before, after) in rows.items() if before != after
    ]
    assert not unlike, unlike
    names = redacted.pseudonyms
    return RunReport(
        summary=(
            f"redacted  {params.out}: {sum(after for _, after in rows.values()):,} rows,"
            f" {len(names.topics):,} topics, {len(names.hosts):,} hosts, principals where they are named",
        ),
        facts={"rows": {name: after for name, (_, after) in rows.items()}},
    )


JOB: Final = Job(
    "redact",
    "copy the lake with pseudonyms for hosts, topics and principals, to share it or reports of it",
    add_arguments,
    to_params,
    run,
    known_until=lambda params: None,
)


if __name__ == "__main__":
    sys.exit(main(JOB))
