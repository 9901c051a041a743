"""``report --out DIR``: the self-contained HTML report, ``DIR/index.html``; a postmortem's draft as Markdown; or what
happened day by day, ``DIR/trends.html``."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jobs.command.execution import main
from jobs.command.job import (
    Common,
    Job,
    RunReport,
    ShowProgress,
    output_folder,
    ready_lake_of,
    require_lake,
    suit_session_to,
)
from jobs.session.progress import silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Params:
    """``title``: the report's heading; None lets the report name the cluster and the time. ``format``: html, markdown
    or trends."""

    lake: str
    out_dir: str
    title: str | None = None
    format: str = "html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", default="report", help="folder of the report (default: ./report)")
    parser.add_argument("--title", metavar="TEXT", help="heading of the report")
    formats = (
        "html: the report, DIR/index.html (default); markdown: the draft of a postmortem, DIR/postmortem.md; trends:"
        " what happened day by day, DIR/trends.html"
    )
    parser.add_argument("--format", choices=("html", "markdown", "trends"), default="html", help=formats)


def to_params(options: argparse.Namespace, common: Common) -> Params:
    require_lake(common)
    return Params(common.lake, output_folder(options.out, "--out", common), options.title, options.format)


def run(spark: SparkSession, params: Params, progress: ShowProgress = silent) -> RunReport:
    lake = ready_lake_of(spark, params.lake)
    if params.format == "trends":
        from dashboards.trends.page import write_trends

        path = write_trends(lake, params.out_dir, title=params.title, progress=progress)
        return RunReport((f"trends    {path}",))
    made = write if params.format == "html" else write_postmortem
    report = made(lake, params.out_dir, params.title, progress)
    return RunReport((*report.summary, report_line(report)))


def write(lake: Any, out_dir: str, title: str | None, progress: ShowProgress, *, before_checks: bool = False) -> Any:
    from dashboards.report import write_report

    suit_session_to(lake)
    return write_report(lake, out_dir, title=title, progress=progress, before_checks=before_checks)


def write_postmortem(lake: Any, out_dir: str, title: str | None, progress: ShowProgress) -> Any:
    from dashboards import report

    suit_session_to(lake)
    return report.write_postmortem(lake, out_dir, title=title, progress=progress)


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


JOB: Final = Job(
    "report",
    "write the self-contained HTML report",
    add_arguments,
    to_params,
    run,
    modules=("dashboards.report",),
)


if __name__ == "__main__":
    sys.exit(main(JOB))
