"""Records to Arrow batches of the bronze tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from ingest.lake.tables import TableSpec
from ingest.lake.tables.bronze import REJECTED_RECORDS
from ingest.lake.tables.types import arrow_schema, arrow_type
from ingest.readers.identity import record_ids
from ingest.readers.secrets import masked_text
from ingest.readers.work import RAW_BYTES, Kept, Place, Rejected, WorkItem

#: Filled in by the driver: our clock, the same for all rows of a run.
CLOCK_COLUMN: Final = "ingested_at"
BATCH_ROWS: Final = 20_000
BATCH_BYTES: Final = 16 << 20


def batch(spec: TableSpec, item: WorkItem, columns: Mapping[str, Any], rows: int) -> pa.RecordBatch:
    """An Arrow batch of the spec's columns but the clock's: those not given are the item's own, or NULL."""
    of_item = {
        "cluster_id": item.cluster_id,
        "file_id": item.file_id,
        "broker_id": item.broker_id,
        "source_kind": item.kind,
        "source_file": item.source_file,
        "captured_at": _micros(item.captured_at_ms),
        "captured_at_upper": _micros(item.captured_at_upper_ms),
        "directory": item.directory,
    }
    arrays = []
    for column in spec.columns:
        if column.name == CLOCK_COLUMN:
            continue
        kind = arrow_type(column.type)
        values = columns.get(column.name)
        if isinstance(values, pa.Array):
            arrays.append(values)
        elif values is not None:
            arrays.append(pa.array(values, type=kind))
        else:
            arrays.append(pa.repeat(pa.scalar(of_item.get(column.name), type=kind), rows))
    return pa.RecordBatch.from_arrays(arrays, schema=table_schema(spec))


def table_schema(spec: TableSpec) -> pa.Schema:
    """The spec's columns but the clock's, as Arrow types."""
    return arrow_schema({c.name: c.type for c in spec.columns if c.name != CLOCK_COLUMN})


def _micros(milliseconds: int | None) -> int | None:
    return None if milliseconds is None else milliseconds * 1000


def place_columns(item: WorkItem, places: Sequence[Place]) -> dict[str, list[Any]]:
    """The columns that say where records stand, and their ids."""
    record_id = record_ids(item.record_base)
    return {
        "record_id": [record_id(place.offset, place.data) for place in places],
        "source_line": [place.line for place in places],
        "byte_offset": [place.offset for place in places],
        "byte_length": [place.length for place in places],
    }


def kept_batches(
    spec: TableSpec, item: WorkItem, rows: Iterable[Kept | Rejected]
) -> Iterator[pa.RecordBatch | Rejected]:
    """Kept rows in batches, rejected ones as they are; a row leaves out what is NULL, or its item's."""
    for group in _groups(rows):
        yield from (row for row in group if isinstance(row, Rejected))
        kept = [row for row in group if isinstance(row, Kept)]
        if kept:
            columns = place_columns(item, [row.place for row in kept])
            names = {name for row in kept for name in row.values}
            columns |= {name: [row.values.get(name) for row in kept] for name in names}
            yield batch(spec, item, columns, len(kept))


def rejected_batches(item: WorkItem, rows: Iterable[Rejected]) -> Iterator[pa.RecordBatch]:
    """Batches of ``bronze.rejected_records``: what is not read may hold secrets all the same."""
    for group in _groups(rows):
        columns = place_columns(item, [row.place for row in group])
        columns["reason"] = [masked_text(row.reason) for row in group]
        columns["raw"] = [masked_text(row.place.data[:RAW_BYTES].decode("utf-8", "replace")) for row in group]
        yield batch(REJECTED_RECORDS, item, columns, len(group))


def _groups(rows: Iterable[Any]) -> Iterator[list[Any]]:
    group: list[Any] = []
    size = 0
    for row in rows:
        group.append(row)
        size += len(row.place.data)
        if len(group) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
