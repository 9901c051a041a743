"""Steps of a plan for which pyspark asks Spark once for each part, or each column: here once. Each time Spark goes
through the whole plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import StructType
from pyspark.util import PythonEvalType

#: So many files, or topics, are named to whoever reads what is theirs, that it may pass over all others.
MOST_NAMED: Final = 200
_FILE: Final = ("cluster_id", "file_id")
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


def differing(one: DataFrame, other: DataFrame) -> DataFrame:
    """The rows, each once, of which one has more than the other, whichever; the columns are those of ``one``."""
    counted = [rows.select(*one.columns, F.lit(by).alias("_more")) for rows, by in ((one, 1), (other, -1))]
    return union(counted).groupBy(*one.columns).agg(F.sum("_more").alias("_more")).where("_more <> 0").drop("_more")


def map_in_arrow(rows: DataFrame, function: BatchFunction, schema: StructType) -> DataFrame:
    """As ``rows.mapInArrow(function, schema)``, which has Spark look for each column on its own."""
    make: Any = pandas_udf
    mapped = make(function, schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    names = [f"`{name}`" for name in rows.columns]
    return DataFrame(rows._jdf.mapInArrow(mapped(*names)._jc, False, None), rows.sparkSession)


def of_files(rows: DataFrame, keys: DataFrame, names: Collection[str] | None) -> DataFrame:
    """The rows of the files of ``keys`` (cluster and file); ``names`` are their ids, or None, as more than
    :data:`MOST_NAMED` are."""
    named = rows if names is None or len(names) > MOST_NAMED else rows.where(F.col("file_id").isin(*names))
    return named.join(F.broadcast(keys), list(_FILE), "left_semi")
