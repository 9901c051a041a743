"""The one place that writes Delta tables.

A lake is a folder, on any file system that Spark reaches, with a table at ``LAKE/<schema>/<table>``.
Tables are made from their :class:`~ingest.lake.tables.spec.TableSpec`; a lake made by another version of the
specs is refused with a sentence, never half-read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import and_
from typing import Any, ClassVar, Final, Literal, TypeVar

from delta.tables import DeltaTable
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from ingest.lake.creation import create_table
from ingest.lake.direct import NewFile, commit_files, direct_folder, write_files
from ingest.lake.pinned import delta_snapshot, is_worth_it, pinned_table
from ingest.lake.tables import SCHEMAS, TABLES, TableSpec
from ingest.lake.tables.spec import literals
from ingest.lake.tables.types import spark_type

_Each = TypeVar("_Each")
_Result = TypeVar("_Result")
VERSION_PROPERTY: Final = "kafkaStateReplay.tableVersion"


class LakeError(Exception):
    """The lake cannot be used as it is; the message says what to do."""


class Lake:
    """The tables under one path."""

    #: A table of less is written anew as a whole where some of its rows are replaced: that costs less than to look for
    #: the files that hold them.
    REWRITTEN_BYTES: ClassVar = 32 << 20

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.spark = spark
        self.root = root.rstrip("/")

    def path(self, spec: TableSpec) -> str:
        """Where the table lives."""
        return f"{self.root}/{spec.schema}/{spec.name}"

    def exists(self, spec: TableSpec) -> bool:
        return DeltaTable.isDeltaTable(self.spark, self.path(spec))

    def ensure(self, specs: Iterable[TableSpec] = tuple(TABLES.values())) -> None:
        """Make the tables that are missing; raise :class:`LakeError` where one is of another version."""
        side_by_side(self._ensure_one, specs)

    def _ensure_one(self, spec: TableSpec) -> None:
        snapshot = delta_snapshot(self.spark, self.path(spec))
        if snapshot.version() < 0:
            self._create(spec)
        else:
            self._require_version(spec, snapshot)

    def read(self, spec: TableSpec) -> DataFrame:
        """The table as it is now."""
        return self.spark.read.format("delta").load(self.path(spec))

    def pinned(self) -> Lake:
        """The lake as it is when a table of it is read first; see :class:`PinnedLake`."""
        return PinnedLake(self)

    def rows_count(self, spec: TableSpec) -> int:
        """How many rows the table has; without a Spark job where Delta's log says so."""
        pinned = pinned_table(self.spark, self.path(spec))
        return self.read(spec).count() if pinned is None or pinned.rows_count is None else pinned.rows_count

    def append(self, rows: DataFrame, spec: TableSpec) -> None:
        """Add rows."""
        rows, folder = self.conformed(rows, spec), direct_folder(self.spark, self.path(spec))
        if folder is None:
            rows.write.format("delta").mode("append").save(self.path(spec))
        else:
            self.add(write_files(rows, folder, spec), spec)

    def folder_of_tasks(self, spec: TableSpec) -> str | None:
        """The folder of this machine into which tasks may write files for :meth:`add`; None where Spark must write."""
        return None if spec.constraints else direct_folder(self.spark, self.path(spec))

    def add(self, files: Sequence[NewFile], spec: TableSpec) -> None:
        """Add the rows of files that tasks wrote (:func:`ingest.lake.direct.write_file`), in one commit."""
        commit_files(self.spark, self.path(spec), files, replaces_all=False)

    def overwrite(self, rows: DataFrame, spec: TableSpec) -> None:
        """Replace every row, in one commit."""
        rows, folder = self.conformed(rows, spec), direct_folder(self.spark, self.path(spec))
        if folder is None:
            rows.write.format("delta").mode("overwrite").save(self.path(spec))
        else:
            commit_files(self.spark, self.path(spec), write_files(rows, folder, spec), replaces_all=True)

    def overwrite_all(self, tables: Sequence[tuple[TableSpec, DataFrame]]) -> None:
        """Replace every row of several tables, a commit each; side by side, since small commits wait more than work."""
        side_by_side(lambda table: self.overwrite(table[1], table[0]), tables)

    def replace_keys(self, rows: DataFrame, gone: DataFrame, spec: TableSpec) -> None:
        """Replace the rows of some keys, in one commit: those of ``gone``, whose columns are the key, go, and ``rows``
        come. Of a table of more than :attr:`REWRITTEN_BYTES` the files that hold none of them stay."""
        key = gone.columns
        if self._bytes(spec) <= self.REWRITTEN_BYTES:
            self.overwrite(without(self.read(spec), gone).unionByName(self.conformed(rows, spec)), spec)
            return
        come = self.conformed(rows, spec).select("*", *(F.lit(None).alias(f"gone_{name}") for name in key))
        go = (
            gone.select(*(F.col(name).alias(f"gone_{name}") for name in key))
            .distinct()
            .withColumn("is_gone", F.lit(True))
        )
        changes = come.withColumn("is_gone", F.lit(False)).unionByName(go, allowMissingColumns=True)
        matches = " AND ".join(["change.is_gone", *(f"held.`{name}` <=> change.gone_{name}" for name in key)])
        values: dict[str, str | SparkColumn] = {f"`{name}`": F.col(f"change.`{name}`") for name in spec.column_names}
        merge = DeltaTable.forPath(self.spark, self.path(spec)).alias("held").merge(changes.alias("change"), matches)
        merge.whenMatchedDelete().whenNotMatchedInsert("NOT change.is_gone", values).execute()

    def _bytes(self, spec: TableSpec) -> int:
        return int(delta_snapshot(self.spark, self.path(spec)).sizeInBytes())

    def replace_where(self, rows: DataFrame, spec: TableSpec, predicate: str) -> None:
        """Replace the rows that satisfy ``predicate`` (SQL over the table's columns), in one commit."""
        writer = self.conformed(rows, spec).write.format("delta").mode("overwrite")
        writer.option("replaceWhere", predicate).save(self.path(spec))

    def delete(self, spec: TableSpec, predicate: str) -> None:
        """Delete the rows that satisfy ``predicate`` (SQL over the table's columns), in one commit."""
        DeltaTable.forPath(self.spark, self.path(spec)).delete(predicate)

    def register(self, specs: Iterable[TableSpec] = tuple(TABLES.values())) -> None:
        """Name these tables of the lake ``schema.table`` in this session, for SQL.

        The catalog lives in memory: names of another lake, registered before, are replaced.
        """
        for schema in SCHEMAS:
            self.spark.sql(f"CREATE DATABASE IF NOT EXISTS {schema}")
        side_by_side(self._register_one, specs)

    def _register_one(self, spec: TableSpec) -> None:
        if self.exists(spec):
            self.spark.sql(f"DROP TABLE IF EXISTS {spec.full_name}")
            self.spark.sql(f"CREATE TABLE {spec.full_name} USING DELTA LOCATION '{_quoted(self.path(spec))}'")

    def _create(self, spec: TableSpec) -> None:
        properties = {
            VERSION_PROPERTY: str(spec.version),
            "delta.dataSkippingStatsColumns": ",".join(spec.filtered_columns),
        }
        properties |= {f"delta.constraints.{name}": condition for name, condition in _constraints(spec).items()}
        create_table(self.spark, self.path(spec), spec, properties)

    def _require_version(self, spec: TableSpec, snapshot: Any) -> None:
        # from Delta's own log: ``DeltaTable.detail()`` starts a Spark job for each table
        value = snapshot.metadata().configuration().get(VERSION_PROPERTY)
        found = str(value.get()) if value.isDefined() else None
        if found != str(spec.version):
            raise LakeError(
                f"the lake {self.root} holds {spec.full_name} of version {found or 'unknown'}, this program writes"
                f" version {spec.version}: give another --lake, or ingest the sources again into a new one"
            )

    @staticmethod
    def conformed(rows: DataFrame, spec: TableSpec) -> DataFrame:
        """The rows with the table's columns in its order and types; raises :class:`ValueError` where one is missing."""
        given = {field.name: field.dataType for field in rows.schema.fields}
        missing = [name for name in spec.column_names if name not in given]
        if missing:
            raise ValueError(f"rows for {spec.full_name} lack {', '.join(missing)}")
        wanted = {column.name: spark_type(column.type) for column in spec.columns}
        if list(given.items()) == list(wanted.items()):
            return rows  # each step of a plan has Spark go through all of it
        return rows.select(*(name if given[name] == type_ else _cast(spec, name) for name, type_ in wanted.items()))


class PinnedLake(Lake):
    """A lake whose tables are read as they are when :meth:`read` is called, whatever is written to them afterwards.

    On one machine small tables are read from their files, which saves a Spark job for each scan. Their columns may
    then all hold NULL for all that Spark knows; what they do hold is the same.
    """

    def __init__(self, lake: Lake) -> None:
        super().__init__(lake.spark, lake.root)
        self._pins = is_worth_it(lake.spark)

    def read(self, spec: TableSpec) -> DataFrame:
        """The table as it is now, and stays."""
        pinned = pinned_table(self.spark, self.path(spec)) if self._pins else None
        return super().read(spec) if pinned is None else pinned.frame(self.spark)


#: Commits at a time: a small one is mostly waiting for the driver and the file system.
_COMMITS_AT_A_TIME: Final = 4


def side_by_side(action: Callable[[_Each], _Result], each: Iterable[_Each]) -> list[_Result]:
    """Run a Spark action for each; the first failure is raised when those that run have ended."""
    with ThreadPoolExecutor(max_workers=_COMMITS_AT_A_TIME) as pool:
        return list(pool.map(action, each))


def without(rows: DataFrame, gone: DataFrame) -> DataFrame:
    """The rows whose key is not one of ``gone``, whose columns are the key; NULL is a value like others."""
    return _of_keys(rows, gone, "left_anti")


def only(rows: DataFrame, keys: DataFrame) -> DataFrame:
    """The rows whose key is one of ``keys``, whose columns are the key; NULL is a value like others."""
    return _of_keys(rows, keys, "left_semi")


def _of_keys(rows: DataFrame, keys: DataFrame, how: Literal["left_anti", "left_semi"]) -> DataFrame:
    named = keys.select(*(F.col(name).alias(f"key_{name}") for name in keys.columns))
    return rows.join(named, reduce(and_, (F.col(n).eqNullSafe(F.col(f"key_{n}")) for n in keys.columns)), how)


def collect_all(frames: Sequence[DataFrame]) -> list[list[Row]]:
    """The rows of several small DataFrames, collected side by side."""
    return side_by_side(lambda frame: frame.collect(), frames)


def _cast(spec: TableSpec, name: str) -> SparkColumn:
    return F.col(f"`{name}`").cast(spec.column(name).type).alias(name)


def _constraints(spec: TableSpec) -> dict[str, str]:
    """The spec's own constraints and one for each closed vocabulary."""
    vocabularies = {
        f"{column.name}_vocabulary": f"{column.name} IS NULL OR {column.name} IN ({literals(column.vocabulary)})"
        for column in spec.columns
        if column.vocabulary
    }
    return vocabularies | dict(spec.constraints)


def _quoted(path: str) -> str:
    return path.replace("\\", "\\\\").replace("'", "\\'")
