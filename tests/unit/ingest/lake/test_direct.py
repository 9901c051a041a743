"""Parquet files that tasks write themselves: what is in them, what Delta's log says of them, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest.lake import direct
from ingest.lake.direct import NewFile, RowError, write_file, write_parts
from ingest.lake.tables.spec import TableSpec, col, required
from ingest.lake.tables.types import arrow_schema

SPEC = TableSpec(
    "bronze",
    "lines",
    "one row per line",
    ("record_id",),
    (
        required("record_id", "string", "Its id."),
        required("cluster_id", "string", "Its cluster."),
        col("event_time", "timestamp", "When."),
        col("log_level", "string", "How loud.", vocabulary=("INFO", "WARN")),
        col("ingested_at", "timestamp", "Our clock."),
    ),
)
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
LEVELS = ("WARN", "INFO", "WARN", "INFO")
SCHEMA = arrow_schema({column.name: column.type for column in SPEC.columns if column.name != "ingested_at"})


def rows(*values: tuple[Any, ...]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in values], schema=SCHEMA)


def at(microsecond: int) -> datetime:
    return datetime(2026, 11, 21, 3, 4, 5, microsecond, tzinfo=UTC)


def written(folder: Path, *batches: pa.RecordBatch) -> NewFile:
    (file,) = write_file(batches, str(folder), SPEC, NOW)
    return file


def test_rows_lie_beside_each_other_as_the_spec_says_and_pages_say_what_they_hold(tmp_path: Path) -> None:
    batches = [
        rows((name, "c", at(number), level)) for number, (name, level) in enumerate(zip("abcd", LEVELS, strict=True))
    ]
    (file,) = write_file(batches, str(tmp_path), replace(SPEC, sorted_by=("log_level",)), NOW)
    found = pq.ParquetFile(tmp_path / file.name)
    assert [row["record_id"] for row in found.read().to_pylist()] == ["b", "d", "a", "c"], "else as they came"
    assert found.metadata.row_group(0).column(0).has_column_index
    assert json.loads(file.stats)["maxValues"]["event_time"].endswith(".000Z"), "of all rows"
    plain = pq.ParquetFile(tmp_path / written(tmp_path, *batches).name)
    assert [row["record_id"] for row in plain.read().to_pylist()] == ["a", "b", "c", "d"]
    assert not plain.metadata.row_group(0).column(0).has_column_index
    with pytest.raises(ValueError, match="names no column: level"):
        replace(SPEC, sorted_by=("level",))


def test_the_file_holds_the_rows_of_all_batches_and_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "_GROUP_BYTES", 1)
    file = written(tmp_path, rows(("a", "c", at(7), "INFO")), rows(("b", "c", None, None)))
    found = pq.read_table(tmp_path / file.name)
    assert found.to_pylist() == [
        {"record_id": "a", "cluster_id": "c", "event_time": at(7), "log_level": "INFO", "ingested_at": NOW},
        {"record_id": "b", "cluster_id": "c", "event_time": None, "log_level": None, "ingested_at": NOW},
    ]
    assert file.size == (tmp_path / file.name).stat().st_size


def test_the_log_is_told_of_the_columns_that_rows_are_asked_for_by(tmp_path: Path) -> None:
    file = written(
        tmp_path, rows(("a", "d", at(345_678), "INFO"), ("b", "c", at(1_999), None)), rows(("z", "e", None, None))
    )
    assert json.loads(file.stats) == {
        "numRecords": 3,
        "minValues": {"cluster_id": "c", "event_time": "2026-11-21T03:04:05.001Z"},
        "maxValues": {"cluster_id": "e", "event_time": "2026-11-21T03:04:05.345Z"},
        "nullCount": {"cluster_id": 0, "event_time": 1},
    }


def test_of_a_text_that_the_log_would_cut_it_is_told_nothing(tmp_path: Path) -> None:
    stats = json.loads(written(tmp_path, rows(("a", "c" * 33, at(1), None))).stats)
    assert set(stats["minValues"]) == set(stats["maxValues"]) == {"event_time"}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ((None, "c", None, None), "record_id is NULL in 1 rows"),
        (("a", "c", None, "LOUD"), "log_level cannot be 'LOUD'"),
    ],
)
def test_what_the_table_must_not_hold_is_refused(row: tuple[Any, ...], words: str, tmp_path: Path) -> None:
    with pytest.raises(RowError, match=words):
        written(tmp_path, rows(row))


def test_rows_of_several_tables_come_to_the_files_of_each(tmp_path: Path) -> None:
    others = replace(SPEC, name="others")
    folders = {"lines": (str(tmp_path / "lines"), SPEC), "others": (str(tmp_path / "others"), others)}
    for folder, _ in folders.values():
        Path(folder).mkdir()
    mixed = rows(("a", "c", at(1), "INFO"), ("b", "c", at(2), None), ("x", "c", at(3), None), ("y", "d", None, "WARN"))
    of = pa.array(["others", "lines", "no table of ours", "others"])
    batches = [
        mixed.append_column("table_name", of),
        mixed.slice(1, 1).append_column("table_name", pa.array(["lines"])),
    ]
    found = {file.table: file for file in write_parts(batches, "table_name", folders, NOW)}
    assert set(found) == {"bronze.lines", "bronze.others"}
    ids = {
        name: pq.read_table(Path(folder) / found[f"bronze.{name}"].name).column("record_id").to_pylist()
        for name, (folder, _) in folders.items()
    }
    assert ids == {"lines": ["b", "b"], "others": ["a", "y"]}
    assert json.loads(found["bronze.others"].stats)["maxValues"]["cluster_id"] == "d"


def test_no_rows_give_no_file(tmp_path: Path) -> None:
    assert list(write_file((), str(tmp_path), SPEC, NOW)) == []
    assert list(tmp_path.iterdir()) == []
