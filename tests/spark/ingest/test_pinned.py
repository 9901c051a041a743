"""Small tables read from their files: the rows are Delta's, and the plan asks Delta nothing."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException

from ingest.lake.delta import Lake, PinnedLake
from ingest.lake.pinned import MOST_FILES, pinned_table
from ingest.lake.tables.quality import RUN_METRICS


def rows(spark: Any, *subjects: str) -> Any:
    kinds = "run_id string, cluster_id string, metric string, subject string, value double, run_at timestamp"
    return spark.sql("SELECT TIMESTAMP '2026-11-21T01:02:03.123456Z' AS run_at").crossJoin(
        spark.createDataFrame([("r", "c", "m", subject, 0.5) for subject in subjects], kinds.rsplit(",", 1)[0])
    )


def subjects(frame: Any) -> list[str]:
    return sorted(row["subject"] for row in frame.collect())


def plan(frame: Any) -> str:
    return str(frame._jdf.queryExecution().optimizedPlan().toString())


def test_a_table_without_rows_is_known_to_have_none_before_anything_runs(lake: Lake) -> None:
    frame = PinnedLake(lake).read(RUN_METRICS)
    assert frame.schema == lake.read(RUN_METRICS).schema
    assert plan(frame).startswith("LocalRelation <empty>")
    assert (frame.collect(), lake.rows_count(RUN_METRICS)) == ([], 0)


def test_the_rows_are_those_that_delta_reads(spark: Any, lake: Lake) -> None:
    pinned = PinnedLake(lake)
    pinned.append(rows(spark, "a", "b"), RUN_METRICS)
    pinned.append(rows(spark, "c"), RUN_METRICS)
    frame = pinned.read(RUN_METRICS)
    assert sorted(frame.collect()) == sorted(lake.read(RUN_METRICS).collect())
    assert frame.dtypes == lake.read(RUN_METRICS).dtypes
    assert subjects(frame) == ["a", "b", "c"]
    assert lake.rows_count(RUN_METRICS) == 3


def test_it_is_read_as_it_was_whatever_is_written_later(spark: Any, lake: Lake) -> None:
    pinned = PinnedLake(lake)
    pinned.append(rows(spark, "before"), RUN_METRICS)
    frame = pinned.read(RUN_METRICS)
    lake.overwrite(rows(spark, "after"), RUN_METRICS)
    assert subjects(frame) == ["before"]
    assert subjects(pinned.read(RUN_METRICS)) == ["after"]
    lake.delete(RUN_METRICS, "subject = 'after'")
    assert subjects(pinned.read(RUN_METRICS)) == []


def test_a_table_of_many_files_is_left_to_delta(spark: Any, lake: Lake) -> None:
    count = 10 * (MOST_FILES + 1)  # so that no file gets none
    many = rows(spark, *(str(number) for number in range(count)))
    lake.append(many.repartition(MOST_FILES + 1), RUN_METRICS)
    assert pinned_table(spark, lake.path(RUN_METRICS)) is None
    assert len(subjects(PinnedLake(lake).read(RUN_METRICS))) == lake.rows_count(RUN_METRICS) == count


@pytest.mark.parametrize("property_", ["'delta.enableDeletionVectors' = 'true'", "'delta.columnMapping.mode' = 'name'"])
def test_a_table_whose_files_are_not_its_rows_is_left_to_delta(spark: Any, lake: Lake, property_: str) -> None:
    lake.append(rows(spark, "a", "b"), RUN_METRICS)
    spark.sql(f"ALTER TABLE delta.`{lake.path(RUN_METRICS)}` SET TBLPROPERTIES ({property_})")
    lake.delete(RUN_METRICS, "subject = 'a'")
    assert pinned_table(spark, lake.path(RUN_METRICS)) is None
    assert subjects(PinnedLake(lake).read(RUN_METRICS)) == ["b"]


def test_a_table_that_is_not_there_is_missed_as_delta_misses_it(spark: Any, tmp_path: Any) -> None:
    bare = Lake(spark, str(tmp_path / "none"))
    with pytest.raises(AnalysisException, match="PATH"):
        PinnedLake(bare).read(RUN_METRICS).collect()
