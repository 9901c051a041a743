"""Rows of batches, and batches of rows, are what pyarrow's own way makes of them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from reconstruct.engine import batches
from reconstruct.engine.batches import batches_of, rows_in
from reconstruct.engine.rows import TABLE, Row

SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("at_us", pa.int64()),
        ("fields", pa.map_(pa.string(), pa.string())),
        ("isr", pa.list_(pa.int64())),
        ("mark", pa.struct([("at_us", pa.int64())])),
    ]
)
ROWS = [
    {"name": "a", "at_us": 1, "fields": {"leader": "1", "epoch": None}, "isr": [1, 2], "mark": {"at_us": 5}},
    {"name": None, "at_us": None, "fields": None, "isr": None, "mark": None},
    {"name": "c", "at_us": 3, "fields": {}, "isr": [], "mark": {"at_us": None}},
    {"name": "d", "at_us": 4, "fields": {"leader": "2"}, "isr": [3], "mark": {"at_us": 6}},
]


@pytest.fixture
def batch() -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(ROWS, schema=SCHEMA)


def test_rows_are_dictionaries_and_so_are_maps(batch: pa.RecordBatch) -> None:
    assert list(rows_in(batch)) == ROWS


@pytest.mark.parametrize(("offset", "length"), [(0, 2), (1, 2), (3, 1), (2, 0)])
def test_a_slice_has_its_own_rows(batch: pa.RecordBatch, offset: int, length: int) -> None:
    assert list(rows_in(batch.slice(offset, length))) == ROWS[offset : offset + length]


@pytest.mark.parametrize(
    "rows",
    [
        [{"name": "a", "more": 1}, {"at_us": 2}],
        [{"name": "a", "more": 1}, {"name": "b", "at_us": 2}],
        [{"name": "a", "at_us": 1}, {"at_us": 2, "name": "b"}],
        [{"name": "a"}, {"name": "b"}],
        [{"name": "a"}, {}],
    ],
)
def test_what_a_row_lacks_is_null_and_what_the_columns_lack_is_left_out(rows: list[Row]) -> None:
    (batch,) = batches_of(rows, SCHEMA)
    assert batch.schema == SCHEMA
    assert batch.to_pylist() == [{name: row.get(name) for name in SCHEMA.names} for row in rows]


def test_rows_there_and_back(batch: pa.RecordBatch) -> None:
    (again,) = batches_of(rows_in(batch), SCHEMA)
    assert again.equals(batch)


def test_tables_have_batches_of_their_own_in_the_order_of_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_BATCH", 4)
    schema = pa.schema([(TABLE, pa.string()), ("at_us", pa.int64())])
    rows = [{TABLE: "one" if at % 3 else "other", "at_us": at} for at in range(9)]
    taken: list[dict[str, object]] = []

    def handed() -> Iterator[dict[str, object]]:
        for row in rows:
            taken.append(row)
            yield row

    made: list[list[dict[str, object]]] = []
    for batch in batches_of(handed(), schema):
        made.append(batch.to_pylist())
        assert len(taken) - sum(map(len, made[:-1])) <= 4
    assert all(of_batch and len({row[TABLE] for row in of_batch}) == 1 for of_batch in made)
    for table in ("one", "other"):
        of_table = [row for of_batch in made for row in of_batch if row[TABLE] == table]
        assert of_table == [row for row in rows if row[TABLE] == table]


def test_no_rows_are_no_batch() -> None:
    assert not list(batches_of([], SCHEMA))
