"""On one machine: some rows of a table replaced, of its files those alone written anew that hold any of them.

For that Delta's own DELETE, MERGE and replaceWhere run four to twelve Spark jobs, however few the rows are; here two,
and one where no row has to go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.lake.direct import add_action, begin, commit, direct_folder, files_of, write_files
from ingest.lake.pinned import pinned_table
from ingest.lake.tables import TableSpec

RowsOf = Callable[[DataFrame], DataFrame]
_FILE: Final = "_file"


def rewrite(
    spark: SparkSession, path: str, spec: TableSpec, rows: DataFrame | None, gone: RowsOf, stay: RowsOf
) -> bool:
    """Put ``rows`` in place of those rows that ``gone`` selects, in one commit; ``stay`` selects all others.

    False, and nothing is done, where Delta has to: elsewhere than on this machine, or of a table of many files.
    """
    folder = direct_folder(spark, path)
    if folder is None:
        return False
    transaction = begin(spark, path)
    held = pinned_table(spark, path, transaction.snapshot().version())
    if held is None:
        return False
    transaction.readWholeTable()
    names = set()
    if held.files:
        named = held.frame(spark).select("*", F.col("_metadata.file_name").alias(_FILE))
        names = {row[_FILE] for row in gone(named).select(_FILE).distinct().collect()}
    touched = [file for file in held.files if file.rpartition("/")[2] in names]
    parts = [] if rows is None else [rows]
    if touched:
        parts.append(stay(replace(held, files=touched).frame(spark)).select(*spec.column_names))
    come = write_files(parts[0].unionAll(parts[-1]) if len(parts) > 1 else parts[0], folder, spec) if parts else []
    leave = [file for file in files_of(transaction) if file.path() in names]
    if come or leave:
        commit(spark, transaction, map(add_action, come), leave, replaces=bool(leave))
    return True
