"""``ingest PATH...``: takes what is new under the paths into the bronze tables."""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jobs.command.execution import main
from jobs.command.job import (
    DONE,
    FAILED,
    Common,
    Job,
    RunReport,
    ShowProgress,
    UsageError,
    lake_of,
    last_run_at,
    local_path,
    require_folder,
    stopped_by_signals,
    text_of,
)
from jobs.session.progress import silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ingest.run.pipeline import IngestOptions, IngestReport

_LOOK_SECONDS: Final = 0.5


@dataclass(frozen=True)
class Params:
    """``options`` is what the files cannot say themselves; with ``interval_seconds`` the files are followed."""

    lake: str
    paths: tuple[str, ...]
    options: IngestOptions | None = None
    interval_seconds: float | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source_arguments(parser)
    parser.add_argument(
        "--follow", action="store_true", help="go on with what the files get, until SIGINT (Ctrl-C) or SIGTERM"
    )
    parser.add_argument(
        "--interval", metavar="SECONDS", type=float, default=10.0, help="with --follow: how often to look (default: 10)"
    )


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="file, folder or archive; sources are recognised by their content"
    )
    group = parser.add_argument_group("where the files cannot say")
    group.add_argument("--cluster", metavar="ID", help="id of the cluster that all files belong to")
    group.add_argument(
        "--broker",
        metavar="ID=PATH",
        action="append",
        default=[],
        help="what is at or below PATH comes from broker ID; once per broker. A PATH not given otherwise is read too",
    )
    group.add_argument(
        "--timezone", metavar="ZONE", default="UTC", help="zone of the logs' times, e.g. Europe/Berlin (default: UTC)"
    )
    group.add_argument("--kafka-version", metavar="X.Y.Z", help="version of Kafka that wrote the files")
    group.add_argument(
        "--final", action="store_true", help="no log grows any more: take a last line without its end as it is"
    )


def to_params(options: argparse.Namespace, common: Common) -> Params:
    brokers = dict(_broker(text, common) for text in options.broker)
    paths = [local_path(path, common) for path in options.paths]
    paths += [path for path in brokers if not any(_is_at_or_below(path, given) for given in paths)]
    if not paths:
        raise UsageError("no PATH given: name a file, folder or archive of a Kafka cluster's logs")
    for path in [*paths, *brokers]:
        if common.is_on_this_machine and os.path.isabs(path) and not os.path.lexists(path):
            raise UsageError(f"there is no file or folder {path}")
    require_folder(common.lake, "--lake")
    is_followed = getattr(options, "follow", False)
    if is_followed and options.final:
        raise UsageError("--final and --follow exclude each other: a log that is followed grows")
    if is_followed and options.interval <= 0:
        raise UsageError(f"--interval {options.interval:g}: give seconds above 0")
    time_zone, kafka_version = _time_zone(options.timezone), _kafka_version(options.kafka_version)

    from ingest.run.pipeline import IngestOptions

    given = IngestOptions(options.cluster, brokers, time_zone, kafka_version, is_final=options.final)
    return Params(common.lake, tuple(paths), given, options.interval if is_followed else None)


def run(spark: SparkSession, params: Params, progress: ShowProgress = silent) -> RunReport:
    lake = lake_of(spark, params.lake)
    if params.interval_seconds is not None:
        return _follow_until_stopped(lake, params, progress)
    return summary_of(ingest(lake, params, progress))


def ingest(lake: Any, params: Params, progress: ShowProgress) -> IngestReport:
    from ingest.run.pipeline import IngestOptions, ingest_paths

    return ingest_paths(lake, params.paths, params.options or IngestOptions(), progress)


def _follow_until_stopped(lake: Any, params: Params, progress: ShowProgress) -> RunReport:
    """Take what the files get, as they get it, until SIGINT or SIGTERM; the report sums up all batches."""
    from ingest.run.following import follow
    from ingest.run.pipeline import IngestOptions

    assert params.interval_seconds is not None
    total: list[IngestReport] = []
    failures: list[Exception] = []
    stopped = threading.Event()

    def each(report: IngestReport) -> None:
        total[:] = [_sum(total[0], report) if total else report]
        progress(f"{len(params.paths)} paths followed, {total[0].records_kept} records taken so far")

    with stopped_by_signals(stopped):
        query = follow(
            lake,
            params.paths,
            params.options or IngestOptions(),
            progress,
            interval_seconds=params.interval_seconds,
            each=each,
            failed=failures.append,
        )
        try:
            while not stopped.is_set() and not query.awaitTermination(_LOOK_SECONDS):  # type: ignore[arg-type]  # takes fractions, too
                pass
        except Exception as error:
            raise (failures[0] if failures else error) from None
        finally:
            query.stop()
    return summary_of(total[0]) if total else RunReport(("nothing new came while the paths were followed",))


def _sum(before: IngestReport, now: IngestReport) -> IngestReport:
    """What both runs did together; what a file is known for is as the later one saw it."""
    added = ("files_new", "files_grown", "files_rejected", "records_read", "records_kept", "records_rejected")
    return dataclasses.replace(now, **{name: getattr(before, name) + getattr(now, name) for name in added})


def summary_of(report: IngestReport) -> RunReport:
    clusters = ", ".join(report.clusters) or "none"
    apart = (
        f"; and {report.files_ambiguous} files that may be of several, each by itself" if report.files_ambiguous else ""
    )
    passed_over = f"others    {report.passed_over}: nothing that Kafka writes" if report.passed_over else ""
    problems = tuple(f"warning: {warning}" for warning in report.warnings)
    if report.nothing_recognised:
        problems += (
            "nothing recognised: no file under the paths is a Kafka log, a znode snapshot or a checkpoint file that"
            " this version reads; bronze.rejected_records and bronze.ingested_files say what each file was taken for",
        )
    return RunReport(
        summary=(
            f"files     {report.files_new} new, {report.files_grown} grown, {report.files_known} known already,"
            f" {report.files_not_read} of a kind not read yet, {report.files_rejected} rejected",
            *((passed_over,) if passed_over else ()),
            f"records   {report.records_read} read = {report.records_kept} kept + {report.records_rejected} rejected",
            f"clusters  {clusters}{apart}",
        ),
        problems=problems,
        exit_code=FAILED if report.nothing_recognised else DONE,
        facts={"ingest": dataclasses.asdict(report)},
    )


def _broker(text: str, common: Common) -> tuple[str, int]:
    identifier, equals, path = text.partition("=")
    if not equals or not path or not re.fullmatch(r"\d+", identifier):
        raise UsageError(f"--broker {text}: give a broker's id and a path, as in --broker 1=logs/first")
    return local_path(path, common), int(identifier)


def _is_at_or_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _time_zone(name: str) -> str:
    from ingest.readers.logs.times import zone

    try:
        zone(name)
    except ValueError:
        raise UsageError(
            f"--timezone {name}: no such zone; give a name such as UTC or America/New_York, or an offset such as +02:00"
        ) from None
    return name


def _kafka_version(text: str | None) -> str | None:
    if text is not None and not re.fullmatch(r"\d+(\.\d+){1,3}", text):
        raise UsageError(f"--kafka-version {text}: give numbers, as in 0.8.2.2 or 3.9.1")
    return text


def paths_read(params: Params) -> tuple[str, ...] | None:
    """Files that are followed are read for as long as they grow."""
    return (text_of(params.lake), *params.paths) if params.interval_seconds is None else None


JOB: Final = Job(
    "ingest",
    "take what is new under the paths into the bronze tables",
    add_arguments,
    to_params,
    run,
    reads=paths_read,
    known_until=lambda params: last_run_at(params.lake),
    # files that are followed: each batch by itself
    writes_lake=lambda params: params.interval_seconds is None,
    modules=("ingest.run.pipeline",),
)


if __name__ == "__main__":
    sys.exit(main(JOB))
