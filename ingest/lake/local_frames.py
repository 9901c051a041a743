"""Rows that the driver has as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ingest.lake.tables.types import arrow_type, spark_schema


def local_frame(spark: SparkSession, columns: str, rows: Iterable[Sequence[Any]]) -> DataFrame:
    """Rows that are few, with ``columns`` as SQL declares them (``broker_id int, at_us bigint``).

    They are handed on as Arrow's columns: of rows alone Spark makes a task, for which a Python of its own is started.
    """
    types = dict(column.split(" ", 1) for column in columns.split(", "))
    held = list(rows)
    arrays = [pa.array([row[at] for row in held], arrow_type(type_)) for at, type_ in enumerate(types.values())]
    return spark.createDataFrame(pa.table(arrays, names=list(types)), spark_schema(types))
