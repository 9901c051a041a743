"""``explain --topic T --partition P --at TIME``: the model's reasoning for one decision, inputs first, or with
``--from`` and ``--to`` for all between; ``explain --incident ID``: an incident's events, each with the
lines that show it."""

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

_OF_DECISION: Final = "--topic T --partition P --at TIME"
_WHOLE_INCIDENT: Final = (
    "an incident is told whole: leave out --broker, which is for --topic T --partition P; `report --broker ID` shows"
    " the incidents of one broker"
)
_DATE_ONLY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_FRACTION: Final = re.compile(r"\.(\d{1,6})")
_SECONDS: Final = re.compile(r"\d\d:\d\d:\d\d")


@dataclass(frozen=True)
class IncidentParams:
    """``incident_id`` may be the begin of the id."""

    lake: str
    incident_id: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{4,32}", self.incident_id):
            raise UsageError(
                f"incident {self.incident_id!r}: give an incident_id, or the first four digits of one or more"
            )


@dataclass(frozen=True)
class Params:
    """``at`` and ``until`` bound the instants that the time given may mean, UTC. ``broker_id``: only what changed that
    broker's place, or that it refused."""

    lake: str
    topic: str
    partition_id: int
    at: datetime
    until: datetime
    cluster_id: str | None = None
    broker_id: int | None = None

    @classmethod
    def of(
        cls,
        lake: str,
        topic: str,
        partition_id: int,
        at: str,
        cluster_id: str | None = None,
        *,
        until: str | None = None,
        named: str = "--at",
        broker_id: int | None = None,
    ) -> Params:
        """Of a time as people write it (:func:`span_of`), the option ``named``; or of all from it and before
        ``until``."""
        if partition_id < 0:
            raise UsageError(f"partition {partition_id}: partitions are numbered from 0")
        first, behind = span_of(at, named)
        if until is not None:
            behind = span_of(until, "--to")[0]
        if first >= behind:
            raise UsageError("--to must be later than --from")
        return cls(lake, topic, partition_id, first, behind, cluster_id, broker_id)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", metavar="T", help="topic")
    parser.add_argument("--partition", type=int, metavar="P", help="number of the partition")
    parser.add_argument(
        "--at",
        metavar="TIME",
        help="2026-11-21T03:28:06.155, UTC unless it names an offset; a time without seconds is the whole minute",
    )
    parser.add_argument("--from", dest="begin", metavar="TIME", help="with --to: every decision from this time on")
    parser.add_argument("--to", dest="end", metavar="TIME", help="... and before this time, instead of --at")
    parser.add_argument(
        "--broker", type=int, metavar="ID", help="only what changed this broker's place, or what it refused"
    )
    parser.add_argument("--cluster", metavar="ID", help="cluster, where several have that topic")
    parser.add_argument(
        "--incident", metavar="ID", help="instead of them: an incident_id, or its begin, of gold.incidents"
    )


def to_params(options: argparse.Namespace, common: Common) -> Params | IncidentParams:
    require_lake(common)
    at, begin, end = options.at, options.begin, options.end
    of_decision = {"--topic": options.topic, "--partition": options.partition, "--at": begin if at is None else at}
    missing = [option for option, value in of_decision.items() if value is None]
    if options.incident is not None:
        if len(missing) < len(of_decision) or end is not None:
            raise UsageError(f"give --incident ID, or {_OF_DECISION}")
        if options.broker is not None:
            raise UsageError(_WHOLE_INCIDENT)
        return IncidentParams(common.lake, options.incident)
    if missing:
        alone = "; of a broker alone `report --broker ID` and `ask broker-lives` tell"
        of_broker = "" if options.broker is None else alone
        raise UsageError(f"{', '.join(missing)} not given: give {_OF_DECISION}, or --incident ID{of_broker}")
    if (begin is None) != (end is None) or (at is not None and begin is not None):
        raise UsageError("give --at TIME, or --from TIME and --to TIME")
    named = "--from" if at is None else "--at"
    where = (common.lake, options.topic, options.partition, at or begin, options.cluster)
    return Params.of(*where, until=end, named=named, broker_id=options.broker)


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


def run(spark: SparkSession, params: Params | IncidentParams, progress: ShowProgress = silent) -> RunReport:
    progress(f"what is known of the {'incident' if isinstance(params, IncidentParams) else 'partition'}")
    text, problem = explained(spark, params)
    if text:
        print(text)
    return RunReport(problems=(problem,), exit_code=FAILED) if problem else RunReport()


def explained(spark: SparkSession, params: Params | IncidentParams) -> tuple[str, str]:
    """The explanation, and why there is none, in a sentence: one of both is empty."""
    lake = ready_lake_of(spark, params.lake)
    if isinstance(params, IncidentParams):
        from dashboards.texts.incident import incident_text

        text, problem = incident_text(lake, params.incident_id)
        return printable(text, "\n"), problem
    from reconstruct.explain.explain import Span
    from reconstruct.explain.spark.step import NothingKnown, Question, explain
    from reconstruct.time.instants import to_micros

    span = Span(to_micros(params.at), to_micros(params.until))
    question = Question(params.topic, params.partition_id, span, params.cluster_id, params.broker_id)
    try:
        return printable(explain(lake, question), "\n"), ""
    except NothingKnown as error:
        return "", str(error)


JOB: Final = Job(
    "explain",
    "say why one decision of the controller came out as it did, or what an incident was",
    add_arguments,
    to_params,
    run,
)


if __name__ == "__main__":
    sys.exit(main(JOB))
