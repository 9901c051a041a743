"""A table brought back to an earlier version of it, in one commit that writes no row: Delta's log names the files of
that version again.

Delta's own RESTORE does as much, but who reads the lake as a run left it follows that at once (:class:`Lake`), and of
several tables restored one after the other would see some as they were before and some after.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import SparkSession

from ingest.lake.direct import begin, commit, files_listed, files_of
from ingest.lake.file_system import file_system_of
from ingest.lake.pinned import delta_log


def files_missing(spark: SparkSession, path: str, version: int) -> int:
    """How many files of that version lie in the table's folder no more. Raises as Delta does where its log does not
    reach back to it."""
    files, folder = file_system_of(spark, path)
    there = {str(status.getPath().getName()) for status in files.listStatus(folder)}
    return len(_files_at(_snapshot_at(spark, path, version)).keys() - there)


def bring_back(spark: SparkSession, path: str, version: int) -> None:
    """Give the table the rows, columns and properties of an earlier version."""
    then = _snapshot_at(spark, path, version)
    transaction = begin(spark, path, json.loads(then.metadata().json())["metaData"])
    transaction.readWholeTable()
    wanted, held = _files_at(then), {str(file.path()): file for file in files_of(transaction)}
    come = [json.loads(wanted[name].json())["add"] | {"dataChange": True} for name in wanted.keys() - held.keys()]
    commit(spark, transaction, come, [held[name] for name in held.keys() - wanted.keys()], replaces=True)


def _snapshot_at(spark: SparkSession, path: str, version: int) -> Any:
    none = spark._jvm.scala.Option.empty()  # type: ignore[union-attr]
    return delta_log(spark, path).getSnapshotAt(version, none, none, False)


def _files_at(snapshot: Any) -> dict[str, Any]:
    """Delta's objects of the files, by their names: tables of ours have no folders in theirs."""
    listed = files_listed(snapshot)
    return {str(file.path()): file for file in (snapshot.allFiles().collect() if listed is None else listed)}
