"""Steps of a plan that are taken in many places; those for which pyspark asks Spark once for each part, or each column,
here once: each time Spark goes through the whole plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import reduce
from operator import and_
from typing import Any, Final, Literal

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import StructType
from pyspark.util import PythonEvalType

#: So many files, or topics, are named to whoever reads what is theirs, that it may pass over all others.
MOST_NAMED: Final = 2000
_FILE: Final = ("cluster_id", "file_id")
#: In no name, as a rule: by which many are handed to Java at once.
_BETWEEN: Final = "\x01"
BatchFunction = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def union(parts: Iterable[DataFrame]) -> DataFrame:
    """All rows, columns by name; a column that a part lacks is NULL in its rows."""
    first, *others = parts
    if not others:
        return first
    spark = first.sparkSession
    jvm: Any = spark._jvm
    plans = jvm.PythonUtils.toSeq([part._jdf.logicalPlan() for part in (first, *others)])
    whole = jvm.org.apache.spark.sql.catalyst.plans.logical.Union(plans, True, True)
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, whole), spark)


def beside_each_other(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows of frames whose columns have nothing to do with each other: a column for each frame, which holds its
    rows whole, and NULL in those of others."""
    return union(frame.select(F.struct("*").alias(f"of_{number}")) for number, frame in enumerate(frames))


def differing(one: DataFrame, other: DataFrame) -> DataFrame:
    """The rows, each once, of which one has more than the other, whichever; the columns are those of ``one``."""
    counted = [rows.select(*one.columns, F.lit(by).alias("_more")) for rows, by in ((one, 1), (other, -1))]
    return union(counted).groupBy(*one.columns).agg(F.sum("_more").alias("_more")).where("_more <> 0").drop("_more")


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
    """The rows of several small DataFrames, of each in its order, collected by one query: to plan and to start another
    costs more than the rows do."""
    found: list[list[Row]] = [[] for _ in frames]
    for row in beside_each_other(frames).collect():
        for number, of_frame in enumerate(row):
            if of_frame is not None:
                found[number].append(of_frame)
    return found


def in_order(rows: Iterable[Row], *names: str) -> list[Row]:
    """A few collected rows in the order of these columns, NULL first, as Spark sorts them. To have Spark do it takes
    two jobs more, one of which makes all rows once more, to see where to cut."""
    return sorted(rows, key=lambda row: [(row[name] is not None, row[name]) for name in names])


def map_in_arrow(rows: DataFrame, function: BatchFunction, schema: StructType) -> DataFrame:
    """As ``rows.mapInArrow(function, schema)``, which has Spark look for each column on its own."""
    make: Any = pandas_udf
    mapped = make(function, schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    names = [f"`{name}`" for name in rows.columns]
    return DataFrame(rows._jdf.mapInArrow(mapped(*names)._jc, False, None), rows.sparkSession)


def named(rows: DataFrame, column: str, names: Collection[str]) -> DataFrame:
    """The rows that ``column`` names so, as by ``isin``, for which pyspark has Java make a column of each name."""
    text = _BETWEEN.join(names)
    if text.count(_BETWEEN) != len(names) - 1:
        return rows.where(F.col(column).isin(*names))
    jvm: Any = rows.sparkSession._jvm
    every = jvm.java.util.regex.Pattern.compile(_BETWEEN).split(text, -1)
    of_rows: Any = F.col(column)
    return rows.where(Column(of_rows._jc.isin(jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(every))))


def of_files(rows: DataFrame, keys: DataFrame, names: Collection[str] | None) -> DataFrame:
    """The rows of the files of ``keys`` (cluster and file); ``names`` are their ids, or None, as more than
    :data:`MOST_NAMED` are."""
    some = rows if names is None or len(names) > MOST_NAMED else named(rows, "file_id", names)
    return some.join(F.broadcast(keys), list(_FILE), "left_semi")
