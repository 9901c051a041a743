"""``merge``: the lines of all brokers' state-change logs as one log, as Kafka's StateChangeLogMerger gave them."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from jobs.command.execution import main
from jobs.command.job import Common, Job, RunReport, ShowProgress, UsageError, ready_lake_of, require_lake
from jobs.session.printable import printable
from jobs.session.progress import silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Params:
    """``selection`` holds what :class:`dashboards.texts.merged_lines.Selection` takes."""

    lake: str
    selection: dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", metavar="T", help="only lines that name a partition of this topic")
    parser.add_argument("--partitions", metavar="P,P", help="only lines that name one of these partitions of it")
    time = "printed at or {} this time (UTC unless it names an offset): '2026-11-21 03:28:06,155'"
    parser.add_argument("--start-time", metavar="TIME", help="only lines " + time.format("after"))
    parser.add_argument("--end-time", metavar="TIME", help="only lines " + time.format("before"))
    parser.add_argument(
        "--logs", metavar="FILE,FILE", help="only of the files whose path below the folder taken in ends so"
    )
    parser.add_argument("--logs-regex", metavar="REGEX", help="only of the files whose path matches")
    parser.add_argument("--cluster", metavar="ID", help="only of this cluster")
    parser.add_argument(
        "--corrected",
        action="store_true",
        help="by corrected clocks: causes stand before their effects where that is proven",
    )


def to_params(options: argparse.Namespace, common: Common) -> Params:
    require_lake(common)
    if options.partitions is not None and options.topic is None:
        raise UsageError("--partitions needs --topic: partitions are numbered by topic")
    if options.logs is not None and options.logs_regex is not None:
        raise UsageError("give --logs or --logs-regex, not both")
    if options.logs_regex is not None:
        try:
            re.compile(options.logs_regex)
        except re.error as error:
            raise UsageError(f"--logs-regex {options.logs_regex!r} is no regular expression: {error}") from None
    selection = {
        "cluster_id": options.cluster,
        "topic": options.topic,
        "partitions": _numbers(options.partitions),
        "start": _instant("--start-time", options.start_time),
        "end": _instant("--end-time", options.end_time),
        "logs": tuple(name for name in (options.logs or "").split(",") if name),
        "logs_regex": options.logs_regex,
        "is_corrected": options.corrected,
    }
    return Params(common.lake, selection)


def _numbers(text: str | None) -> tuple[int, ...]:
    numbers = [each.strip() for each in (text or "").split(",") if each.strip()]
    if not all(number.isdecimal() and number.isascii() for number in numbers):
        raise UsageError(f"--partitions {text!r}: give their numbers, as in 0,1,2")
    return tuple(sorted({int(number) for number in numbers}))


def _instant(option: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text.strip().strip('"'))
    except ValueError:
        raise UsageError(f"{option} {text!r} is no time: write '2026-11-21 03:28:06,155'") from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def run(spark: SparkSession, params: Params, progress: ShowProgress = silent) -> RunReport:
    from dashboards.texts.merged_lines import Selection, merged_lines

    progress("merging the state-change logs")
    lines = merged_lines(ready_lake_of(spark, params.lake), Selection(**params.selection))
    for (text,) in lines.toLocalIterator(prefetchPartitions=True):
        print(printable(text, kept="\n\t"))
    return RunReport()


JOB: Final = Job(
    "merge", "print the state-change logs of all brokers as one, in the order of time", add_arguments, to_params, run
)


if __name__ == "__main__":
    sys.exit(main(JOB))
