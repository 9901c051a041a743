"""The answer to one statement of ``sql``: refused, run and written, or an error in one line."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from jobs.command.job import ShowProgress, UsageError
from jobs.session.progress import silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def answer(spark: SparkSession, statement: str, style: str, progress: ShowProgress = silent) -> int:
    """Run one statement and write its rows to standard output; the number of rows. :class:`UsageError` for bad SQL."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    from jobs.sql.output import WRITERS
    from jobs.sql.read_only import refusal

    try:
        refused = refusal(spark, statement)
        if refused:
            raise UsageError(refused)
        rows = spark.sql(statement)
        progress("")
        count = WRITERS[style](rows, sys.stdout)
        sys.stdout.flush()
        return count
    except (PySparkException, Py4JJavaError) as error:
        sentence = sql_error(error)
        if sentence is None:
            raise
        raise UsageError(sentence) from error


def sql_error(error: Exception | str) -> str | None:
    """The error as one line where the SQL is at fault; None where Spark is.

    Known by Spark's SQLSTATE, whose class says whose fault it is: 22 data, 42 syntax or names, 0A a feature, 21
    cardinality, 54 a limit, P0 raised by the query. An error at run time comes wrapped by Java, once for each
    thread it passed.
    """
    match = re.search(r"(\[[A-Z][A-Z0-9_.]+\] .*?SQLSTATE: (?:22|42|0A|21|54|P0)\w{3})", str(error), re.DOTALL)
    return " ".join(match.group(1).split()) if match else None
