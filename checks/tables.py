"""The tables that are checked: each opened once for all who ask, and with a name in SQL for as long as they do."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from checks.catalog import tables_in
from ingest.lake.delta import Lake, LakeError
from ingest.lake.pinned import is_worth_it, pinned_table
from ingest.lake.tables import TABLES, TableSpec


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a table, the schema that Delta declares for them, and whether it is known that there are none, or
    that one task reads them best."""

    rows: DataFrame
    schema: T.StructType
    is_empty: bool = False
    is_tiny: bool = False


class NamedTables:
    """Tables by their full name, as they were when they were asked for first. Used as a context: at its end Spark
    forgets their names."""

    def __init__(self, spark: SparkSession, open_table: Callable[[TableSpec], Table]) -> None:
        self._spark, self._open_table = spark, open_table
        self._opened: dict[str, Table] = {}
        self._views: dict[str, str] = {}
        self._one_at_a_time = Lock()
        self._prefix = f"checked_{uuid.uuid4().hex[:8]}"

    def __enter__(self) -> NamedTables:
        return self

    def __exit__(self, *_: object) -> None:
        for view in self._views.values():
            self._spark.catalog.dropTempView(view)

    def __getitem__(self, name: str) -> Table:
        with self._one_at_a_time:
            return self._table(name)

    def answer(self, query: str) -> DataFrame:
        """The answer to a query in which ``{name}`` stands for the table of that name."""
        with self._one_at_a_time:
            views = {TABLES[name].name: self._view(name) for name in tables_in(query)}
        return self._spark.sql(query.format(**views))

    def _table(self, name: str) -> Table:
        if name not in self._opened:
            self._opened[name] = self._open_table(TABLES[name])
        return self._opened[name]

    def _view(self, name: str) -> str:
        if name not in self._views:
            view = f"{self._prefix}_{TABLES[name].name}"
            self._table(name).rows.createOrReplaceTempView(view)
            self._views[name] = view
        return self._views[name]


def tables_of(lake: Lake) -> NamedTables:
    """The tables of a lake as they are now, and stay: small ones of a local lake are read as files
    (:mod:`ingest.lake.pinned`). :class:`~ingest.lake.delta.LakeError` is raised where one that is asked for is missing.
    """
    pins = is_worth_it(lake.spark)

    def open_table(spec: TableSpec) -> Table:
        pinned = pinned_table(lake.spark, lake.path(spec)) if pins else None
        if pinned is None:
            return _read(lake, spec)
        rows = pinned.frame(lake.spark)
        return Table(rows, pinned.struct, is_empty=pinned.rows_count == 0, is_tiny=pinned.is_tiny)

    return NamedTables(lake.spark, open_table)


def candidate_tables(candidate: Lake) -> NamedTables:
    """The tables of a lake that is not published yet, as it gives them."""
    return NamedTables(candidate.spark, lambda spec: _read(candidate, spec))


def _read(lake: Lake, spec: TableSpec) -> Table:
    try:
        rows = lake.read(spec)
        return Table(rows, rows.schema)  # a table that is not there shows itself by its schema
    except AnalysisException as error:
        sentence = f"the lake {lake.root} has no table {spec.full_name}: run ingest and reconstruct first"
        raise LakeError(sentence) from error
