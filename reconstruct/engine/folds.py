"""The one way between Spark and a pure fold: evidence in rows, out come rows of tables. Knows nothing of Kafka.

A room gathers its evidence as rows (:func:`select_evidence`), in which what a row says is one text: a hundred columns,
of which each kind of evidence has ten, cost more to plan, to move and to hand to Python. The room says by what the rows
are grouped and what tables come of them, and gives a function from the rows of one group to rows of those tables
(:mod:`reconstruct.engine.rows`). Rows of several tables travel in one wide shape, told apart by ``table_name``, so that
the fold runs once; :func:`rows_of` selects those of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ingest.lake.plans import map_in_arrow
from ingest.lake.tables import TableSpec
from ingest.lake.tables.gold import DIVERGENCES
from ingest.lake.tables.types import arrow_schema, spark_schema
from reconstruct.engine.batches import batches_of, rows_in
from reconstruct.engine.rows import KIND, SAYS, TABLE, VERDICT_COLUMNS, EvidenceRow, Row, columns_of, evidence_row


def select_evidence(
    rows: DataFrame,
    key: Sequence[str],
    columns: Mapping[str, str],
    of: type | None = None,
    /,
    **given: Column | str,
) -> DataFrame:
    """Evidence for :func:`fold`: the key, and beside it those of ``columns`` (:func:`evidence_columns`) that are
    ``given``, as one text of JSON (:data:`~reconstruct.engine.rows.SAYS`).

    A text that is given is an SQL expression. ``of`` is the dataclass of the rows, where there are several: a field of
    it that is not given is the rows' column of its name, if they have one. A text that its column cannot hold, a number
    of more bits for example, is NULL.
    """
    said = _given_columns(rows, {name: type_ for name, type_ in columns.items() if name not in key}, of, given)
    return rows.select(*key, F.to_json(F.struct(*said.values())).alias(SAYS))


def select_columns(
    rows: DataFrame, key: Sequence[str], columns: Mapping[str, str], /, **given: Column | str
) -> DataFrame:
    """Rows of one shape, of which Spark reads more: the key and every column of ``columns``, as ``given`` (see
    :func:`select_evidence`); the others are NULL."""
    wanted = {name: type_ for name, type_ in columns.items() if name not in key}
    narrow = rows.select(*key, *_given_columns(rows, wanted, None, given).values())
    # Spark adds the others in one step, which pyspark would tell it of one by one
    return narrow.to(T.StructType([*narrow.schema.fields[: len(key)], *spark_schema(wanted).fields]))


def _given_columns(
    rows: DataFrame, columns: Mapping[str, str], of: type | None, given: Mapping[str, Column | str]
) -> dict[str, Column]:
    """Those of ``columns`` that are given, by name, in the type of the column."""
    made = {name: F.expr(column) if isinstance(column, str) else column for name, column in given.items()}
    if of is not None:
        own = {name: F.col(name) for name in columns_of(of) if name in rows.columns}
        made = own | made | {KIND: F.lit(of.__name__)}
    return {name: made[name].try_cast(type_).alias(name) for name, type_ in columns.items() if name in made}


def evidence_columns(*kinds: type, **beside: str) -> dict[str, str]:
    """The columns of evidence of several kinds in one shape: which kind a row is, and the fields of all."""
    return {KIND: "string", **columns_of(*kinds, **beside)}


def table_columns(*specs: TableSpec) -> dict[str, str]:
    """The columns of the rows that one step makes for several tables; with ``gold.divergences`` come verdicts."""
    columns = {TABLE: "string"}
    for spec in specs:
        for column in spec.columns:
            known = columns.setdefault(column.name, column.type)
            if known != column.type:
                raise ValueError(f"{spec.full_name}.{column.name} is {column.type}, elsewhere {known}")
    return {**columns, **VERDICT_COLUMNS} if DIVERGENCES in specs else columns


def local_rows(spark: SparkSession, spec: TableSpec, rows: Iterable[Row]) -> DataFrame:
    """Rows of one table that are known here and few; a column that a row lacks is NULL."""
    columns = {column.name: column.type for column in spec.columns}
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), schema=arrow_schema(columns)), spark_schema(columns))


def rows_of(folded: DataFrame, spec: TableSpec) -> DataFrame:
    """The rows of one table."""
    return folded.where(F.col(TABLE) == spec.full_name).to(spark_schema({c.name: c.type for c in spec.columns}))


def fold(
    evidence: DataFrame,
    key: Sequence[str],
    columns: Mapping[str, str],
    function: Callable[[Iterator[EvidenceRow]], Iterable[Row]],
) -> DataFrame:
    """Rows of ``columns`` (:func:`table_columns`): what ``function`` makes of all evidence of each key.

    Every row is given the key; the order of the evidence is not defined, and it is read once: what ``function`` does
    not hold of it takes no memory. Each task goes through the keys of its own one
    after the other: to hand them to Python one by one (``applyInArrow``) takes 1.4 ms for each, as long as 200 rows.
    """
    in_order = evidence.repartition(*key).sortWithinPartitions(*key)
    return map_rows(in_order, columns, lambda rows: _fold_groups(rows, key, function))


def _fold_groups(
    rows: Iterable[Row], key: Sequence[str], function: Callable[[Iterator[EvidenceRow]], Iterable[Row]]
) -> Iterator[Row]:
    for values, group in groupby(rows, itemgetter(*key)):
        whose = dict(zip(key, values if len(key) > 1 else (values,), strict=True))
        for row in function(map(evidence_row, group)):
            yield {**whose, **row}


def map_rows(
    rows: DataFrame, columns: Mapping[str, str], function: Callable[[Iterator[dict[str, Any]]], Iterable[Row]]
) -> DataFrame:
    """Rows of ``columns``: what ``function`` makes of the rows of each task, one after the other
    (:mod:`reconstruct.engine.batches`)."""
    arrow = arrow_schema(columns)

    def apply(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches_of(function(row for batch in batches for row in rows_in(batch)), arrow)

    return map_in_arrow(rows, apply, spark_schema(columns))
