"""What a run keeps beside the lake's tables: read back as it was, and gone when the run ends."""

from __future__ import annotations

import os
import time

import pytest
from pyspark.sql import functions as F

from ingest.lake.delta import Lake
from reconstruct.engine import staging as staging_
from reconstruct.engine.staging import ABANDONED_AFTER_S, FOLDER, staging


@pytest.fixture(params=["files", "memory"])
def bare_lake(request, spark, tmp_path, monkeypatch):
    """A lake without tables, of which rows are kept in one way and in the other."""
    if request.param == "files":
        monkeypatch.setattr(staging_, "IN_MEMORY_BYTES", -1)
    return Lake(spark, str(tmp_path / "lake"))


def test_rows_come_back_as_they_were_and_behind_a_plan_of_one_step(spark, bare_lake):
    kinds = "id bigint, at timestamp, ids array<int>, fields map<string,string>"
    made = spark.range(5).select(
        "id",
        F.timestamp_micros(F.lit(1_700_000_000_123_457) + F.col("id")).alias("at"),
        F.when(F.col("id") > 1, F.array(F.col("id").cast("int"), F.lit(None))).alias("ids"),
        F.create_map(F.lit("id"), F.col("id").cast("string")).alias("fields"),
    )
    with staging(bare_lake, "run") as stage:
        kept = stage.keep(made.union(made), "rows")
        assert kept.dtypes == spark.createDataFrame([], kinds).dtypes
        assert stage.rows_count("rows") == 10
        assert sorted(kept.collect(), key=str) == sorted(made.union(made).collect(), key=str)
        plan = kept._jdf.queryExecution().optimizedPlan().toString()
        assert "Union" not in plan
        assert "Range" not in plan
        with pytest.raises(ValueError, match="rows is kept already"):
            stage.keep(made, "rows")


def test_rows_without_any_row_have_their_columns(spark, bare_lake):
    with staging(bare_lake, "run") as stage:
        kept = stage.keep(spark.createDataFrame([], "topic string, leader int"), "none")
        assert (kept.columns, kept.count(), stage.rows_count("none")) == (["topic", "leader"], 0, 0)


def test_of_rows_of_several_tables_those_of_some_are_counted(spark, bare_lake):
    rows = spark.createDataFrame([("a", 1), ("b", 2), ("a", 3), (None, 4)], "table_name string, leader int")
    with staging(bare_lake, "run") as stage:
        stage.keep(rows, "rows")
        assert [stage.rows_count("rows", *names) for names in ((), ("a",), ("a", "b"), ("c",))] == [4, 2, 3, 0]


def test_few_rows_are_held_and_given_and_many_are_kept(spark, bare_lake, monkeypatch):
    rows = spark.createDataFrame([("t", 1, True), (None, None, None)], "topic string, leader int, is_known boolean")
    with staging(bare_lake, "run") as stage:
        held, given = stage.keep_or_hold(rows, "few")
        assert given == rows.collect()
        assert (held.dtypes, held.collect()) == (rows.dtypes, given)
        assert held._jdf.queryExecution().analyzed().nodeName() == "LocalRelation"
        monkeypatch.setattr(staging_, "MOST_NAMED", 1)
        kept, given = stage.keep_or_hold(rows, "many")
        assert given is None
        assert sorted(kept.collect(), key=str) == sorted(rows.collect(), key=str)
        assert stage.rows_count("many") == 2


def test_nothing_stays_when_a_run_ends_or_fails(spark, bare_lake, tmp_path):
    def fail() -> None:
        with staging(bare_lake, "run") as stage:
            stage.keep(spark.range(3), "rows")
            kept = files.is_dir(), spark.sparkContext._jsc.getPersistentRDDs().size() - held
            assert kept == ((True, 0) if staging_.IN_MEMORY_BYTES < 0 else (False, 1))
            raise InterruptedError

    files, held = (
        tmp_path / "lake" / FOLDER / "run" / "rows",
        spark.sparkContext._jsc.getPersistentRDDs().size(),
    )
    with pytest.raises(InterruptedError):
        fail()
    assert not (tmp_path / "lake" / FOLDER).exists()
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == held


def test_another_runs_rows_stay_until_they_are_a_day_old(spark, bare_lake, tmp_path):
    for name, age in (("killed", ABANDONED_AFTER_S + 60), ("running", 60)):
        folder = tmp_path / "lake" / FOLDER / name
        folder.mkdir(parents=True)
        os.utime(folder, (time.time() - age,) * 2)
    with staging(bare_lake, "mine") as stage:
        stage.keep(spark.range(3), "rows")
        of_mine = {"mine"} if staging_.IN_MEMORY_BYTES < 0 else set()
        assert {p.name for p in (tmp_path / "lake" / FOLDER).iterdir()} == {"running"} | of_mine
    assert {p.name for p in (tmp_path / "lake" / FOLDER).iterdir()} == {"running"}
