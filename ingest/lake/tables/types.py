"""The types of columns, by the name that Spark SQL gives them: as Spark's and as Arrow's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

import pyarrow as pa
from pyspark.sql import types as T

_SIMPLE: Final[Mapping[str, tuple[T.DataType, pa.DataType]]] = {
    "string": (T.StringType(), pa.string()),
    "int": (T.IntegerType(), pa.int32()),
    "bigint": (T.LongType(), pa.int64()),
    "double": (T.DoubleType(), pa.float64()),
    "boolean": (T.BooleanType(), pa.bool_()),
    "timestamp": (T.TimestampType(), pa.timestamp("us", tz="UTC")),
}


def spark_type(name: str) -> T.DataType:
    """Spark's type of that name, as ``array<struct<broker_id:int,host:string>>``; ``ValueError`` for what is none."""
    return _types(name)[0]


def arrow_type(name: str) -> pa.DataType:
    """Arrow's type for the values of a column of that type; ``ValueError`` for what is none."""
    return _types(name)[1]


def arrow_schema(columns: Mapping[str, str]) -> pa.Schema:
    """The Arrow schema of columns given by name and type."""
    return pa.schema([(name, arrow_type(kind)) for name, kind in columns.items()])


def spark_schema(columns: Mapping[str, str]) -> T.StructType:
    """Spark's schema of columns given by name and type; each may be NULL."""
    return T.StructType([T.StructField(name, spark_type(kind)) for name, kind in columns.items()])


@cache
def _types(name: str) -> tuple[T.DataType, pa.DataType]:
    if name in _SIMPLE:
        return _SIMPLE[name]
    outer, _, rest = name.partition("<")
    inner = _parts(rest.removesuffix(">")) if rest.endswith(">") else []
    if outer == "array" and len(inner) == 1:
        element, arrow = _types(inner[0])
        return T.ArrayType(element), pa.list_(arrow)
    if outer == "map" and len(inner) == 2:
        (key, arrow_key), (value, arrow_value) = map(_types, inner)
        return T.MapType(key, value), pa.map_(arrow_key, arrow_value)
    if outer == "struct" and inner:
        fields = [(field, _types(kind)) for field, _, kind in (part.partition(":") for part in inner)]
        spark = T.StructType([T.StructField(field, kind) for field, (kind, _) in fields])
        return spark, pa.struct([(field, arrow) for field, (_, arrow) in fields])
    raise ValueError(f"{name} is no type that a column may have")


def _parts(text: str) -> list[str]:
    """What commas divide, but for those within angle brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
