"""Rows as Python's dictionaries, and back: batches of Arrow, column by column. Knows nothing of Kafka.

What is done for each row is done millions of times: pyarrow's own way makes a list of pairs of each map, and of rows of
several tables in one wide shape it looks up, for each, every column of all tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from operator import itemgetter
from typing import Any, Final, cast

import pyarrow as pa

from reconstruct.engine.rows import TABLE, Row

#: The most rows of one Arrow batch that a task hands back.
_BATCH: Final = 10_000


def rows_in(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch, by the names of its columns; a map is a dictionary."""
    names = batch.schema.names
    return (dict(zip(names, values, strict=True)) for values in zip(*map(_values, batch.columns), strict=True))


def _values(column: pa.Array) -> Iterable[Any]:
    if not isinstance(column, pa.MapArray):
        return cast("list[Any]", column.to_pylist())
    keys, items, offsets = (part.to_pylist() for part in (column.keys, column.items, column.offsets))
    ends = pairwise(offsets)
    maps = (dict(zip(keys[start:end], items[start:end], strict=True)) for start, end in ends)
    if not column.null_count:
        return maps
    return (one if is_there else None for one, is_there in zip(maps, column.is_valid().to_pylist(), strict=True))


def batches_of(rows: Iterable[Row], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows in batches of the columns of ``schema``; what a row lacks is NULL. Rows of one table (:data:`TABLE`) stay in
    their order, those of different tables do not; no more rows than a batch may have are held."""
    held: defaultdict[str | None, list[Row]] = defaultdict(list)
    handed = 0
    for count, row in enumerate(rows, 1):
        held[row.get(TABLE)].append(row)
        if count - handed == _BATCH:
            most = max(held, key=lambda table: len(held[table]))
            handed += len(held[most])
            yield _batch(held.pop(most), schema)
    for of_table in held.values():
        yield _batch(of_table, schema)


def _batch(rows: list[Row], schema: pa.Schema) -> pa.RecordBatch:
    given = _columns(rows)
    columns = [
        pa.array(given[field.name], field.type) if field.name in given else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _columns(rows: list[Row]) -> dict[str, Sequence[Any]]:
    """The values of rows, by name; what a row lacks is None."""
    names = tuple(rows[0])
    if len(names) > 1 and {*map(len, rows)} == {len(names)}:
        with suppress(KeyError):  # rows of one table have the same columns nearly always: in half the time
            return dict(zip(names, zip(*map(itemgetter(*names), rows), strict=True), strict=True))
    return {name: [row.get(name) for row in rows] for name in set().union(*rows)}
