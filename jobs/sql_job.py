"""``sql 'QUERY'``, ``sql -f FILE``, ``sql``: one query, a file, a shell; read-only."""

from __future__ import annotations

import argparse
import sys
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jobs.command.execution import main
from jobs.command.job import Common, Job, RunReport, ShowProgress, UsageError, require_lake
from jobs.session.printable import printable
from jobs.session.progress import silent
from jobs.sql.answer import answer
from jobs.sql.text import statements_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    from jobs.sql.names import LakeNames
    from jobs.sql.read_only import reading_only

    progress("naming the lake's tables")
    names = LakeNames(spark, params.lake, live=params.statements is None)
    if params.statements is not None:
        names.name(params.statements)
    progress("")
    with reading_only(spark):
        if params.statements is None:
            from jobs.sql.shell import interact

            interact(spark, names, params.format)
        else:
            for number, statement in enumerate(params.statements, 1):
                _answer_one_of(spark, params, number, statement, progress)
    return RunReport()


def _answer_one_of(spark: SparkSession, params: Params, number: int, statement: str, progress: ShowProgress) -> None:
    """The answer to one statement, below its number and begin where it is one of several."""
    count = len(params.statements or ())
    label = f"statement {number} of {count}: {printable(textwrap.shorten(statement, 80, placeholder=' ...'))}"
    if count > 1 and params.format in ("table", "markdown"):
        print(f"{'' if number == 1 else chr(10)}-- {label}\n")
    try:
        answer(spark, statement, params.format, progress)
    except UsageError as error:
        if count > 1:
            raise UsageError(f"{label}: {error}") from error
        raise


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
