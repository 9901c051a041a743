"""The one declaration a table has.

Creation, comments, ``docs/tables.md``, schema expectations and the constraints all come from a
:class:`TableSpec`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pyspark.sql import types as T

from ingest.lake.tables.types import spark_type


@dataclass(frozen=True)
class Column:
    """One column: its name, its Spark SQL type, what it means (with unit), and whether NULL is a value.

    ``vocabulary`` closes the set of values of a string column; an empty tuple leaves it open.
    """

    name: str
    type: str
    comment: str
    nullable: bool = field(default=True, kw_only=True)
    vocabulary: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        try:
            spark_type(self.type)
        except ValueError as error:
            raise ValueError(f"column {self.name}: {error}") from error


#: By these columns rows are asked for, where a table has them.
FILTERED: Final = (
    *("cluster_id", "topic", "partition_id", "broker_id", "severity"),
    *("event_time", "captured_at", "changed_at", "observed_at", "valid_from", "valid_to"),
    *("detected_at", "elected_at", "event_at", "decided_at", "run_at"),
)

#: As specs write it: ``col`` where NULL is a value, ``required`` where it is none.
col: Final = Column
required: Final = partial(Column, nullable=False)


@dataclass(frozen=True)
class TableSpec:
    """A table: where it lives, what one row is, what makes a row unique, and its columns.

    ``constraints`` are conditions in SQL by their names. ``version`` rises with every change that an existing lake does
    not already satisfy. By ``sorted_by`` rows lie beside each other in their files where tasks write these themselves:
    who asks for few of its values reads few pages.
    """

    schema: str
    name: str
    grain: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    constraints: Mapping[str, str] = field(default_factory=dict)
    version: int = 1
    sorted_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ValueError(f"{self.full_name}: column declared twice: {', '.join(doubled)}")
        unknown = [name for name in (*self.key, *self.sorted_by) if name not in names]
        if unknown:
            raise ValueError(f"{self.full_name}: key or order names no column: {', '.join(unknown)}")

    @property
    def full_name(self) -> str:
        """``schema.name``, as SQL and the documents write it."""
        return f"{self.schema}.{self.name}"

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """The column of that name; ``KeyError`` where there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{self.full_name} has no column {name}")

    @property
    def filtered_columns(self) -> tuple[str, ...]:
        """Of these Delta keeps the least and the greatest value of each file. By default it does so for the first 32
        columns, which takes a quarter of the time of writing."""
        return tuple(name for name in self.column_names if name in FILTERED)

    @property
    def struct(self) -> T.StructType:
        """The Spark schema, comments included."""
        return T.StructType(
            [T.StructField(c.name, spark_type(c.type), c.nullable, {"comment": c.comment}) for c in self.columns]
        )


def literals(vocabulary: tuple[str, ...]) -> str:
    """A vocabulary as a SQL list: ``'a', 'b'``."""
    return ", ".join(f"'{word}'" for word in vocabulary)
