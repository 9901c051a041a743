"""The ``fields`` of a record decoded by Spark, for every room: NULL where a record has no such field, or other text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F


def text_field(name: str) -> Column:
    """The field as the message prints it."""
    return F.col("fields")[name]


def int_field(name: str) -> Column:
    """The field as a number of 32 bits."""
    return text_field(name).try_cast("int")


def long_field(name: str) -> Column:
    """The field as a number of 64 bits: an offset."""
    return text_field(name).try_cast("bigint")


def boolean_field(name: str) -> Column:
    """The field ``true`` or ``false``."""
    return text_field(name).try_cast("boolean")


def ints_field(name: str) -> Column:
    """The field ``1,2,3`` as an array; empty text is an empty array."""
    return F.when(text_field(name) == "", F.array().cast("array<int>")).otherwise(
        F.transform(F.split(text_field(name), ","), lambda number: F.trim(number).try_cast("int"))
    )


_DECODERS: Final[Mapping[str, Callable[[str], Column]]] = {
    "string": text_field,
    "int": int_field,
    "bigint": long_field,
    "boolean": boolean_field,
    "array<int>": ints_field,
}


def field_of_type(name: str, type_: str) -> Column:
    """The field as a column of a Spark type."""
    return _DECODERS[type_](name)


def speaker() -> Column:
    """The broker that speaks: the one that the message names, since one file may hold the logs of several brokers; else
    the one whose log it is."""
    return F.coalesce(int_field("broker_id"), F.col("broker_id"))
