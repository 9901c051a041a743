"""``explain --topic T --partition P --at TIME``: the model's reasoning for one decision, inputs first."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from jobs.command.execution import main
from jobs.command.job import FAILED, Common, Job, RunReport, ShowProgress, UsageError, ready_lake_of, require_lake
from jobs.session.printable import printable
from jobs.session.progress import silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DATE_ONLY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_FRACTION: Final = re.compile(r"\.(\d{1,6})")
_SECONDS: Final = re.compile(r"\d\d:\d\d:\d\d")


@dataclass(frozen=True)
class Params:
    """``at`` and ``until`` bound the instants that the time given may mean, UTC."""

    lake: str
    topic: str
    partition_id: int
    at: datetime
    until: datetime
    cluster_id: str | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", required=True, metavar="T", help="topic")
    parser.add_argument("--partition", required=True, type=int, metavar="P", help="number of the partition")
    parser.add_argument(
        "--at",
        required=True,
        metavar="TIME",
        help="2026-11-21T03:28:06.155, UTC unless it names an offset; a time without seconds is the whole minute",
    )
    parser.add_argument("--cluster", metavar="ID", help="cluster, where several have that topic")


def to_params(options: argparse.Namespace, common: Common) -> Params:
    require_lake(common)
    if options.partition < 0:
        raise UsageError(f"--partition {options.partition}: partitions are numbered from 0")
    at, until = span_of(options.at)
    return Params(common.lake, options.topic, options.partition, at, until, options.cluster)


def span_of(text: str, option: str = "--at") -> tuple[datetime, datetime]:
    """The instants that a time as people write it may mean, as [first, first not meant)."""
    given = text.strip()
    try:
        at = datetime.fromisoformat(given)
    except ValueError:
        example = "2026-11-21T03:28:06 or 2026-11-21T03:28:06.155Z"
        raise UsageError(f"{option} {text!r} is no time: write {example}") from None
    fraction = _FRACTION.search(given)
    if fraction:
        width = timedelta(microseconds=10 ** (6 - len(fraction[1])))
    elif _SECONDS.search(given):
        width = timedelta(seconds=1)
    else:
        width = timedelta(days=1) if _DATE_ONLY.fullmatch(given) else timedelta(minutes=1)
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return aware, aware + width


def run(spark: SparkSession, params: Params, progress: ShowProgress = silent) -> RunReport:
    from reconstruct.explain.explain import Span
    from reconstruct.explain.spark.step import NothingKnown, Question, explain
    from reconstruct.time.instants import to_micros

    progress("what is known of the partition")
    span = Span(to_micros(params.at), to_micros(params.until))
    question = Question(params.topic, params.partition_id, span, params.cluster_id)
    try:
        print(printable(explain(ready_lake_of(spark, params.lake), question), kept="\n"))
    except NothingKnown as error:
        return RunReport(problems=(str(error),), exit_code=FAILED)
    return RunReport()


JOB: Final = Job("explain", "say why one decision of the controller came out as it did", add_arguments, to_params, run)


if __name__ == "__main__":
    sys.exit(main(JOB))
