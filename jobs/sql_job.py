"""``sql 'QUERY'``, ``sql -f FILE``, ``sql``: one query, a file, a shell; read-only."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jobs.command.execution import main
from jobs.command.job import Common, Job, RunReport, ShowProgress, UsageError, require_lake
from jobs.session.progress import silent
from jobs.sql.answer import answer
from jobs.sql.text import statements_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dashboards.views import View
    from ingest.lake.tables import TableSpec

#: Words of statements that list tables, or whose tables are named only while they run.
_ANY_TABLE: Final = re.compile(r"\b(show|identifier|execute)\b")


@dataclass(frozen=True)
class Params:
    """``statements`` is None for the shell. ``format``: table, csv, json or markdown."""

    lake: str
    statements: tuple[str, ...] | None
    format: str = "table"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="?", metavar="QUERY", help="one statement; without it and -f, a shell")
    parser.add_argument("-f", "--file", metavar="FILE", help="file of statements, ; between them; - is standard input")
    formats = ("table", "csv", "json", "markdown")
    parser.add_argument("--format", choices=formats, default="table", help="default: table")


def to_params(options: argparse.Namespace, common: Common) -> Params:
    if options.query is not None and options.file is not None:
        raise UsageError("give a query or -f FILE, not both")
    require_lake(common)
    return Params(common.lake, _statements(options), options.format)


def run(spark: SparkSession, params: Params, progress: ShowProgress = silent) -> RunReport:
    """Print what the statements give; raise :class:`UsageError` at the first that is wrong or would do more than
    read."""
    from jobs.sql.read_only import reading_only

    progress("naming the lake's tables")
    open_lake(spark, params.lake, params.statements)
    progress("")
    with reading_only(spark):
        if params.statements is None:
            from jobs.sql.shell import interact

            interact(spark, params.format)
        else:
            for statement in params.statements:
                answer(spark, statement, params.format, progress)
    return RunReport()


def open_lake(spark: SparkSession, root: str, statements: Sequence[str] | None = None) -> None:
    """Name the tables of the lake, and views over them, that the statements may mean, without any all; nothing is made
    in it."""
    from dashboards.views import VIEWS, View
    from ingest.lake.delta import Lake
    from ingest.lake.tables import TABLES

    lake = Lake(spark, root)
    if not any(lake.exists(spec) for spec in TABLES.values()):
        raise UsageError(
            f"{root} holds no table of a lake: run `kafka-state-replay ingest PATH` first, or give --lake DIR"
        )
    meant = _meant([*TABLES.values(), *VIEWS.values()], statements)
    views = [one for one in meant if isinstance(one, View) and all(map(lake.exists, one.tables))]
    tables = [one for one in meant if not isinstance(one, View)] + [spec for view in views for spec in view.tables]
    lake.register({spec.full_name: spec for spec in tables}.values())
    for view in views:
        spark.sql(f"CREATE OR REPLACE VIEW {view.full_name} AS {view.sql}")


def _meant(every: Sequence[TableSpec | View], statements: Sequence[str] | None) -> list[TableSpec | View]:
    """The tables and views that the statements name; all of them where one may list tables, or make a name while it
    runs. To name a table takes a quarter of a second."""
    text = " ".join(statements or ()).lower()
    named = [one for one in every if one.name in text]
    return list(every) if not named or _ANY_TABLE.search(text) else named


def _statements(options: argparse.Namespace) -> tuple[str, ...] | None:
    if options.query is not None:
        found = tuple(statements_of(options.query))
        if len(found) > 1:
            raise UsageError("give one statement; several go into a file (-f FILE)")
    elif options.file is not None:
        found = tuple(statements_of(_text_of(options.file)))
    else:
        return None
    if not found:
        raise UsageError("there is no SQL statement")
    if options.format == "json" and len(found) > 1:
        raise UsageError("--format json gives one array: give one statement")
    return found


def _text_of(path: str) -> str:
    try:
        if path == "-":
            return sys.stdin.read()
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {path}: it is not UTF-8 text") from error


JOB: Final = Job(
    "sql", "ask the tables: one query, a file of them, or a shell; read-only", add_arguments, to_params, run
)


if __name__ == "__main__":
    sys.exit(main(JOB))
