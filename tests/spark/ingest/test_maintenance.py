"""Upkeep changes files, and no row."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.lake.changes import changed_clusters
from ingest.lake.delta import UPKEEP, Lake, operations_since
from ingest.lake.maintenance import (
    FEWEST_FILES,
    MOST_TINY_FILES,
    TINY_FILE_BYTES,
    Upkeep,
    maintain,
    put_tiny_files_together,
)
from ingest.lake.tables.gold import DIVERGENCES
from ingest.lake.tables.quality import RUN_METRICS


@pytest.fixture(scope="module")
def worn(spark, tmp_path_factory) -> Lake:
    """A lake with one table of many small files."""
    lake = Lake(spark, str(tmp_path_factory.mktemp("worn") / "lake"))
    lake.ensure([RUN_METRICS])
    values = {"run_id": "string(id)", "cluster_id": "'c'", "metric": "'m'", "subject": "'s'", "value": "double(id)"}
    named = [f"{value} AS {name}" for name, value in values.items()]
    rows = spark.range(100).selectExpr(*named, "timestamp '2026-11-23 00:00:00' AS run_at")
    lake.append(rows.repartition(FEWEST_FILES), RUN_METRICS)
    return lake


def files_of(lake: Lake) -> int:
    return len(list(Path(lake.path(RUN_METRICS)).glob("*.parquet")))


def rows_of(lake: Lake) -> list:
    return sorted(lake.read(RUN_METRICS).collect())


def upkeep(lake: Lake, hours: float) -> Upkeep:
    told: list[str] = []
    (done,) = maintain(lake, hours, told.append, [RUN_METRICS])
    assert len(told) == 2
    return done


def test_small_files_become_one_and_old_ones_stay_while_they_may_be_asked_for(worn):
    before, stored = rows_of(worn), files_of(worn)
    first = upkeep(worn, 168)
    assert (first.table, first.files_before, first.files_after) == (RUN_METRICS.full_name, FEWEST_FILES, 1)
    assert files_of(worn) == stored + 1
    assert first.stored_bytes_after > first.stored_bytes_before
    assert rows_of(worn) == before
    assert not upkeep(worn, 168).changed
    assert operations_since(worn, RUN_METRICS, 1, 2) == {"OPTIMIZE"}
    assert worn.newest_version(RUN_METRICS) == 2, "no VACUUM where all files stay"
    last = upkeep(worn, 0)
    assert operations_since(worn, RUN_METRICS, 2, worn.newest_version(RUN_METRICS)) == {"VACUUM START", "VACUUM END"}
    assert files_of(worn) == 1
    assert (last.files_after, last.changed) == (1, True)
    assert last.stored_bytes_after < first.stored_bytes_before
    assert rows_of(worn) == before


def test_tiny_files_of_many_runs_become_one_and_larger_ones_stay(spark, lake, monkeypatch):
    def rows(begin, end):
        values = {"run_id": "string(id)", "cluster_id": "'c'", "metric": "'m'", "subject": "'s'", "value": "double(id)"}
        named = [f"{value} AS {name}" for name, value in values.items()]
        return spark.range(begin, end).selectExpr(*named, "timestamp '2026-11-23 00:00:00' AS run_at")

    def files():
        return sorted(file["size"] for file in listed(lake))

    lake.append(rows(0, 40_000).coalesce(1), RUN_METRICS)
    (large,) = files()
    assert large < TINY_FILE_BYTES
    monkeypatch.setattr("ingest.lake.maintenance.TINY_FILE_BYTES", large)
    for number in range(MOST_TINY_FILES + 1):
        put_tiny_files_together(lake, [RUN_METRICS, DIVERGENCES])
        assert len(files()) == 1 + number
        lake.append(rows(number, number + 1), RUN_METRICS)
    before, version = rows_of(lake), lake.newest_version(RUN_METRICS)
    put_tiny_files_together(lake, [replace(RUN_METRICS, constraints={"of_today": "false"}), DIVERGENCES])
    assert len(files()) == 2
    assert files()[-1] == large
    assert rows_of(lake) == before == sorted(lake.read_at(RUN_METRICS, version).collect())
    assert operations_since(lake, RUN_METRICS, version, version + 1) == {"OPTIMIZE"} < UPKEEP
    assert operations_since(lake, RUN_METRICS, version - 1, version + 1) == {"WRITE", "OPTIMIZE"}
    assert changed_clusters(lake, {RUN_METRICS.full_name: version}, {RUN_METRICS.full_name: version + 1}) == frozenset()


def test_a_commit_that_is_gone_may_have_done_anything(lake):
    for value in range(3):
        named = ", ".join(f"'{name}' AS {name}" for name in ("run_id", "cluster_id", "metric", "subject"))
        row = lake.spark.sql(f"SELECT {named}, double({value}) AS value, timestamp '2026-11-23 00:00:00' AS run_at")
        lake.append(row, RUN_METRICS)
    newest = lake.newest_version(RUN_METRICS)
    assert operations_since(lake, RUN_METRICS, newest - 2, newest) == {"WRITE"}
    Path(lake.path(RUN_METRICS), "_delta_log", f"{newest - 1:020d}.json").unlink()
    assert operations_since(lake, RUN_METRICS, newest - 2, newest) == {"WRITE", ""}
    assert operations_since(lake, RUN_METRICS, newest, newest) == frozenset()
    assert operations_since(lake, RUN_METRICS, newest + 1, newest) == {"RESTORE"}


def listed(lake: Lake) -> list[dict]:
    """The files of the newest version, as Delta's log adds them."""
    version = lake.newest_version(RUN_METRICS)
    checksum = Path(lake.path(RUN_METRICS), "_delta_log", f"{version:020d}.crc")
    return json.loads(checksum.read_text(encoding="utf-8"))["allFiles"]


def test_a_table_that_the_lake_lacks_is_left_out(spark, tmp_path):
    assert maintain(Lake(spark, str(tmp_path)), 0, lambda sentence: None, [RUN_METRICS]) == []
