"""Rows of tables, by the table specs: what a row may say is checked where it is written down.

A fixture gives a table's spec and the columns that its story is about. An instant is a number, of seconds since
:data:`START`; a topic has one incarnation unless one is given; what is left out is NULL, or empty where NULL is not
allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.lake.delta import Lake
from ingest.lake.tables import TableSpec
from ingest.lake.tables.types import arrow_type

START: Final = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
_EMPTY: Final[Mapping[str, Any]] = {
    "string": "",
    "int": 0,
    "bigint": 0,
    "double": 0.0,
    "boolean": False,
    "timestamp": START,
    "array<int>": [],
    "array<string>": [],
    "map<string,string>": {},
}
_VALUES: Final[Mapping[str, str]] = {
    "string": "'x'",
    "int": "7",
    "bigint": "7000000000",
    "double": "0.5",
    "boolean": "true",
    "timestamp": "TIMESTAMP '2026-11-21T01:02:03.123456Z'",
    "array<string>": "array('a', 'b')",
    "array<int>": "array(1, 2)",
    "map<string,string>": "map('k', 'v')",
}


def full_and_empty(spark: SparkSession, spec: TableSpec, count: int) -> DataFrame:
    """So many rows with a value in every column, and one with NULL wherever one may be."""
    full, empty = [], []
    for column in spec.columns:
        value = f"'{column.vocabulary[0]}'" if column.vocabulary else _VALUES[column.type]
        full.append(F.expr(value).cast(column.type).alias(column.name))
        empty.append(F.expr("NULL" if column.nullable else value).cast(column.type).alias(column.name))
    return spark.range(count).select(*full).unionAll(spark.range(1).select(*empty))


def at(seconds: float) -> datetime:
    """The instant so many seconds after :data:`START`."""
    return START + timedelta(milliseconds=round(seconds * 1000))


def row_of(spec: TableSpec, values: Mapping[str, Any]) -> dict[str, Any]:
    """A whole row of the table; ``ValueError`` names what is no column of it, or no value of its column."""
    unknown = values.keys() - set(spec.column_names)
    if unknown:
        raise ValueError(f"{spec.full_name} has no column {', '.join(sorted(unknown))}")
    row: dict[str, Any] = {}
    for column in spec.columns:
        anything = column.vocabulary[0] if column.vocabulary else _EMPTY.get(column.type, [])
        value = values.get(column.name, None if column.nullable else anything)
        if column.name == "topic_incarnation" and value in (None, "") and values.get("topic"):
            value = f"{values['topic']}-1"
        if column.type == "timestamp" and isinstance(value, int | float):
            value = at(value)
        try:
            pa.scalar(value, arrow_type(column.type))
        except (pa.ArrowException, TypeError) as error:
            raise ValueError(f"{spec.full_name}.{column.name} cannot be {value!r}: {error}") from error
        row[column.name] = value
    return row


def append(lake: Lake, spec: TableSpec, rows: Iterable[Mapping[str, Any]]) -> None:
    """Append rows, each completed by :func:`row_of`."""
    whole = [row_of(spec, row) for row in rows]
    if whole:
        lake.append(frame_of(lake, spec, whole), spec)


def frame_of(lake: Lake, spec: TableSpec, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """Rows of a table, each with all its columns, any of which may be NULL.

    They go by way of Arrow: tuples would be turned by Python workers, which costs more than to write them.
    """
    schema = pa.schema([(column.name, arrow_type(column.type)) for column in spec.columns])
    return lake.spark.createDataFrame(pa.Table.from_pylist([dict(row) for row in rows], schema))
