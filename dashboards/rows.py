"""Collected rows as dataclasses: each field of the dataclass is the column of its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar

from pyspark.sql import DataFrame

from ingest.lake.tables.shared import PARTITION_KEY

R = TypeVar("R")
PartitionKey = tuple[str, str, str, int]


def by_cluster(kind: type[R], rows: DataFrame) -> dict[str, tuple[R, ...]]:
    """The rows by ``cluster_id``, in their order. Fields that no column fills keep their default."""
    return {key[0]: found for key, found in grouped(kind, rows, ("cluster_id",)).items()}


def by_partition(kind: type[R], rows: DataFrame) -> dict[PartitionKey, tuple[R, ...]]:
    """The rows by their partition's key, in their order."""
    return grouped(kind, rows, PARTITION_KEY)


def grouped(kind: type[R], rows: DataFrame, by: Sequence[str]) -> dict[Any, tuple[R, ...]]:
    """The rows by the values of the columns ``by``, in their order."""
    names = [field.name for field in fields(kind) if field.name in rows.columns]  # type: ignore[arg-type]
    found: dict[tuple[Any, ...], list[R]] = {}
    for row in rows.select(*by, *(name for name in names if name not in by)).collect():
        values = row.asDict()
        made = kind(**{name: plain(values[name]) for name in names})
        found.setdefault(tuple(values[name] for name in by), []).append(made)
    return {key: tuple(group) for key, group in found.items()}


def plain(value: Any) -> Any:
    """An int where a float is whole, else rounded to a microsecond; a tuple for a list; anything else as it is."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else round(value, 3)
    return tuple(value) if isinstance(value, list) else value
