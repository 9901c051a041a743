"""Types of columns: one name, the same type in Spark and in Arrow."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import types as T

from ingest.lake.tables import TABLES
from ingest.lake.tables.spec import col
from ingest.lake.tables.types import arrow_type, spark_type

NESTED = "array<struct<id:int,names:array<string>,by_name:map<string,bigint>>>"


def test_a_nested_type_is_what_its_name_says() -> None:
    assert spark_type(NESTED) == T.ArrayType(
        T.StructType(
            [
                T.StructField("id", T.IntegerType()),
                T.StructField("names", T.ArrayType(T.StringType())),
                T.StructField("by_name", T.MapType(T.StringType(), T.LongType())),
            ]
        )
    )
    assert arrow_type(NESTED) == pa.list_(
        pa.struct([("id", pa.int32()), ("names", pa.list_(pa.string())), ("by_name", pa.map_(pa.string(), pa.int64()))])
    )


def test_the_name_is_the_one_that_spark_gives_the_type() -> None:
    names = {column.type for spec in TABLES.values() for column in spec.columns} | {NESTED}
    assert {name: spark_type(name).simpleString() for name in names} == {name: name for name in names}


@pytest.mark.parametrize("name", ["", "text", "array<int", "array<int,int>", "map<int>", "struct<>", "struct<a>"])
def test_what_is_no_type_is_refused_with_the_column(name: str) -> None:
    with pytest.raises(ValueError, match=r"^column held: .*is no type that a column may have$"):
        col("held", name, "What it holds.")
