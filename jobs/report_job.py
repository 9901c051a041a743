"""``report --out DIR``: the self-contained HTML report, ``DIR/index.html``; a postmortem's draft as Markdown; or what
happened day by day, as a page, for Grafana or for Superset."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from jobs.command.execution import main
from jobs.command.job import (
    FAILED,
    Common,
    Job,
    RunReport,
    ShowProgress,
    UsageError,
    output_folder,
    ready_lake_of,
    require_lake,
    suit_session_to,
)
from jobs.explain_job import span_of
from jobs.session.progress import silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


FORMATS: Final = {
    "html": "the report, DIR/index.html (default)",
    "markdown": "the draft of a postmortem, DIR/postmortem.md",
    "trends": "what happened day by day, DIR/trends.html",
    "grafana": "the same as a dashboard of each cluster with its data, DIR/grafana",
    "superset": "the same as an import for Superset, which asks `serve`, DIR/superset.zip",
}


@dataclass(frozen=True)
class Params:
    """``title``: the report's heading; None lets the report name the cluster and the time. ``format``: one of
    :data:`FORMATS`. ``topic``, ``broker``, ``begin`` and ``end`` are those of :class:`dashboards.scope.Scope`."""

    lake: str
    out_dir: str
    title: str | None = None
    format: str = "html"
    topic: str | None = None
    broker: int | None = None
    begin: datetime | None = None
    end: datetime | None = None
    is_redacted: bool = False

    def __post_init__(self) -> None:
        if self.is_redacted and self.format not in ("html", "markdown"):
            raise UsageError(f"--redact takes html and markdown: of {self.format}, make a copy of the lake by `redact`")
        if self.format == "superset" and (self.topic, self.broker, self.begin, self.end) != (None,) * 4:
            raise UsageError("--format superset takes no --topic, --broker, --from nor --to: filter in Superset")
        if self.begin is not None and self.end is not None and self.begin >= self.end:
            raise UsageError("--to must be later than --from")


def add_page_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the report goes, and its heading."""
    parser.add_argument("--out", metavar="DIR", default="report", help="folder of the report (default: ./report)")
    parser.add_argument("--title", metavar="TEXT", help="heading of the report")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_page_arguments(parser)
    formats = "; ".join(f"{name}: {what}" for name, what in FORMATS.items())
    parser.add_argument("--format", choices=tuple(FORMATS), default="html", help=formats)
    parser.add_argument("--topic", metavar="T", help="only this topic")
    parser.add_argument(
        "--broker", type=int, metavar="ID", help="only this broker, and partitions with a replica there"
    )
    redacted = "pseudonyms for hosts, topics and principals, and no text of an unknown shape"
    parser.add_argument("--redact", action="store_true", help=redacted)
    parser.add_argument("--from", dest="begin", metavar="TIME", help="only what was so at or after this time")
    parser.add_argument("--to", dest="end", metavar="TIME", help="only what was so before this time")


def to_params(options: argparse.Namespace, common: Common) -> Params:
    require_lake(common)
    begin, end = (
        None if given is None else span_of(given, option)[0]
        for option, given in (("--from", options.begin), ("--to", options.end))
    )
    out_dir = output_folder(options.out, "--out", common)
    shown = (options.topic, options.broker, begin, end, options.redact)
    return Params(common.lake, out_dir, options.title, options.format, *shown)


def run(spark: SparkSession, params: Params, progress: ShowProgress = silent) -> RunReport:
    from dashboards.scope import NothingInScope, Scope

    lake, topic = ready_lake_of(spark, params.lake, reads_all=True), params.topic
    if params.is_redacted:
        from jobs.redaction.lake import RedactedLake

        progress("looking for names")
        lake = RedactedLake(lake)
        topic = None if topic is None else lake.pseudonyms.topic(topic)
    scope = Scope(topic, params.broker, params.begin, params.end)
    try:
        return _written(lake, params, scope, progress)
    except NothingInScope as error:
        return RunReport(problems=(str(error),), exit_code=FAILED)


def _written(lake: Any, params: Params, scope: Any, progress: ShowProgress) -> RunReport:
    from dashboards import report
    from dashboards.trends.grafana import write_grafana
    from dashboards.trends.page import write_trends
    from dashboards.trends.superset import write_superset

    if params.format == "superset":
        return RunReport((f"superset  {write_superset(lake, params.out_dir, title=params.title, progress=progress)}",))
    if params.format in ("trends", "grafana"):
        drawn = write_trends if params.format == "trends" else write_grafana
        path = drawn(lake, params.out_dir, title=params.title, progress=progress, scope=scope)
        return RunReport((f"{params.format:<9} {path}",))
    made = report.write_report if params.format == "html" else report.write_postmortem
    written = made(lake, params.out_dir, title=params.title, progress=progress, scope=scope)
    return RunReport((*written.summary, report_line(written)))


def write(lake: Any, out_dir: str, title: str | None, progress: ShowProgress, *, before_checks: bool = False) -> Any:
    from dashboards.report import write_report

    suit_session_to(lake)
    return write_report(lake, out_dir, title=title, progress=progress, before_checks=before_checks)


def add_checks(lake: Any, report: Any) -> Any:
    """The same page, with what the checks found since."""
    from dashboards import report as page

    return page.add_checks(lake, report)


def data_docs_of(out_dir: str) -> str:
    """Where the Data Docs of the checks lie beside the report, which then links to them."""
    from dashboards.report import DATA_DOCS

    return os.path.join(out_dir, DATA_DOCS)


def report_line(report: Any) -> str:
    return f"report    {report.path}"


def prepare() -> None:
    from dashboards.render import compile_templates

    compile_templates()


JOB: Final = Job(
    "report",
    "write the self-contained HTML report",
    add_arguments,
    to_params,
    run,
    modules=("dashboards.report",),
    prepare=prepare,
)


if __name__ == "__main__":
    sys.exit(main(JOB))
