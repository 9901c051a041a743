"""Small tables read from their files: the rows are Delta's, and the plan asks Delta nothing."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any, Final

import pytest
from delta.tables import DeltaTable
from pyspark.errors import AnalysisException, PySparkException

from ingest.lake import file_system, pinned
from ingest.lake.delta import Lake, OfClusters, PinnedLake
from ingest.lake.pinned import MOST_FILES, newest_version, pinned_table
from ingest.lake.tables.quality import RUN_METRICS
from jobs.sql.names import LakeNames

#: Delta's own check that what is taken away is a week old.
UNCHECKED: Final = "spark.databricks.delta.retentionDurationCheck.enabled"


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


def test_a_relative_path_is_of_where_java_is(spark: Any, lake: Lake) -> None:
    relative = Lake(spark, os.path.relpath(lake.root, spark._jvm.java.lang.System.getProperty("user.dir")))
    relative.append(rows(spark, "a"), RUN_METRICS)
    assert subjects(PinnedLake(relative).read(RUN_METRICS)) == subjects(PinnedLake(lake).read(RUN_METRICS)) == ["a"]
    relative.replace_keys(rows(spark, "b"), rows(spark, "a"), RUN_METRICS)
    assert subjects(lake.read(RUN_METRICS)) == ["b"]


def test_it_is_read_as_it_was_whatever_is_written_later(spark: Any, lake: Lake) -> None:
    pinned = PinnedLake(lake)
    pinned.append(rows(spark, "before"), RUN_METRICS)
    frame = pinned.read(RUN_METRICS)
    lake.overwrite(rows(spark, "after"), RUN_METRICS)
    assert subjects(frame) == ["before"]
    assert subjects(pinned.read(RUN_METRICS)) == ["after"]
    lake.delete(RUN_METRICS, "subject = 'after'")
    assert subjects(pinned.read(RUN_METRICS)) == []


def test_an_earlier_version_is_read_from_its_files_where_delta_still_lists_them(spark: Any, lake: Lake) -> None:
    path, of_files = lake.path(RUN_METRICS), PinnedLake(lake)
    lake.append(rows(spark, "a"), RUN_METRICS)
    lake.append(rows(spark, "b"), RUN_METRICS)
    lake.overwrite(rows(spark, "c"), RUN_METRICS)
    for version, found in enumerate(([], ["a"], ["a", "b"], ["c"])):
        listed = pinned_table(spark, path, version)
        assert listed is not None
        assert listed.rows_count == len(found)
        assert subjects(of_files.read_at(RUN_METRICS, version)) == found
        assert subjects(lake.read_at(RUN_METRICS, version)) == found
    (Path(path) / "_delta_log" / f"{1:020d}.crc").unlink()
    assert pinned_table(spark, path, 1) is None
    assert subjects(of_files.read_at(RUN_METRICS, 1)) == ["a"]
    assert pinned_table(spark, path, 9) is None
    with pytest.raises(PySparkException):
        of_files.read_at(RUN_METRICS, 9).collect()


def test_what_came_since_a_version_is_read_from_the_files_that_came(spark: Any, lake: Lake) -> None:
    of_files, of_cluster, of_no_cluster = PinnedLake(lake), OfClusters(lake, ["c"]), OfClusters(lake, ["d"])
    for subject in "abc":
        lake.append(rows(spark, subject), RUN_METRICS)
    since = [subjects(of_files.read_since(RUN_METRICS, version)) for version in range(4)]
    assert since == [["a", "b", "c"], ["b", "c"], ["c"], []]
    assert subjects(of_cluster.read_since(RUN_METRICS, 2)) == ["c"]
    assert subjects(of_no_cluster.read_since(RUN_METRICS, 2)) == []
    lake.delete(RUN_METRICS, "subject = 'b'")
    assert subjects(of_files.read_since(RUN_METRICS, 3)) == [], "a file is gone"
    lake.overwrite(rows(spark, "a", "d"), RUN_METRICS)
    assert subjects(of_files.read_since(RUN_METRICS, 3)) == ["a", "d"], "all rows are in a new file"
    (Path(lake.path(RUN_METRICS)) / "_delta_log" / f"{3:020d}.crc").unlink()
    assert subjects(of_files.read_since(RUN_METRICS, 3)) == ["a", "d"], "nothing says which files it had"
    assert subjects(lake.read_since(RUN_METRICS, 5)) == ["a", "d"]


def test_its_state_is_another_when_anything_was_written_or_it_was_made_anew(spark: Any, lake: Lake) -> None:
    states = [lake.state_read(RUN_METRICS)]
    assert lake.state_read(RUN_METRICS) == states[0]
    lake.append(rows(spark, "one"), RUN_METRICS)
    states.append(lake.state_read(RUN_METRICS))
    assert PinnedLake(lake).state_read(RUN_METRICS) == states[1]
    shutil.rmtree(lake.path(RUN_METRICS))
    time.sleep(0.01)  # a commit is told from another by its file's milliseconds
    lake.ensure([RUN_METRICS])
    lake.append(rows(spark, "another"), RUN_METRICS)
    states.append(lake.state_read(RUN_METRICS))
    assert [version for version, _ in states] == [0, 1, 1]
    assert len(set(states)) == len(states)


@pytest.mark.parametrize("is_local", [True, False], ids=["on this machine", "in another file system"])
def test_the_newest_version_is_known_without_listing_the_log(
    spark: Any, lake: Lake, is_local: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_local:
        monkeypatch.setattr(pinned, "LISTED_VERSIONS", 1)
        for module in (pinned, file_system):
            monkeypatch.setattr(module, "local_path", lambda *_: None)
    folder = Path(lake.path(RUN_METRICS))
    log = folder / "_delta_log"

    def newest() -> Any:
        return pinned._known_table(spark, str(folder)).newest

    lake.append(rows(spark, "a"), RUN_METRICS)
    assert newest_version(spark, str(folder)).number == 1
    first = newest()
    assert pinned._is_newest(spark, str(folder), first)
    assert newest_version(spark, str(folder)) is first, "Delta was not asked"
    # as another process commits
    shutil.copy(log / f"{1:020d}.json", log / f"{2:020d}.json")
    assert not pinned._is_newest(spark, str(folder), first)
    assert newest_version(spark, str(folder)).number == 2
    second = newest()
    assert pinned._is_newest(spark, str(folder), second)
    # and as one deletes the table and makes it anew
    shutil.rmtree(folder)
    assert not pinned._is_newest(spark, str(folder), second)
    assert newest_version(spark, str(folder)).number == -1
    lake.ensure([RUN_METRICS])
    for subject in ("b", "c"):
        lake.append(rows(spark, subject), RUN_METRICS)
    assert not pinned._is_newest(spark, str(folder), second)
    assert newest_version(spark, str(folder)).number == 2
    assert subjects(PinnedLake(lake).read(RUN_METRICS)) == ["b", "c"]


def test_delta_is_asked_only_where_its_files_do_not_say_what_a_table_is(
    spark: Any, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Asked(Exception):
        pass

    def asked(*_: Any) -> Any:
        raise Asked

    lake.append(rows(spark, "a"), RUN_METRICS)
    by_delta = lake.size_bytes(RUN_METRICS)
    pinned._known_table.cache_clear()
    monkeypatch.setattr(pinned, "delta_log", asked)
    assert lake.ensure([RUN_METRICS]) == []
    assert (lake.newest_version(RUN_METRICS), lake.size_bytes(RUN_METRICS)) == (1, by_delta)
    assert subjects(PinnedLake(lake).read(RUN_METRICS)) == ["a"]
    checksum = Path(lake.path(RUN_METRICS), "_delta_log", f"{1:020d}.crc")
    for said in (checksum.read_text()[:-9], "[]", "{}", "null"):
        checksum.write_text(said)
        pinned._known_table.cache_clear()
        with pytest.raises(Asked):
            lake.newest_version(RUN_METRICS)


@pytest.mark.parametrize("written", [[], [["a"]], [["a", "b"], ["c"]]], ids=["no row", "a file", "two files"])
def test_named_for_sql_it_has_the_rows_and_types_that_delta_reads(
    spark: Any, lake: Lake, written: list[list[str]]
) -> None:
    for some in written:
        lake.append(rows(spark, *some), RUN_METRICS)
    lake.register([RUN_METRICS], stays=True)
    named = spark.table(RUN_METRICS.full_name)
    assert sorted(named.collect()) == sorted(lake.read(RUN_METRICS).collect())
    assert named.dtypes == lake.read(RUN_METRICS).dtypes
    assert "_delta_log" not in plan(named)
    assert ("parquet" in plan(named)) == bool(written), "Delta is asked nothing"


def test_where_a_file_is_gone_it_is_named_as_delta_has_it_and_its_rows_are_missed(spark: Any, lake: Lake) -> None:
    for subject in ("a", "b"):
        lake.append(rows(spark, subject), RUN_METRICS)
    pinned = pinned_table(spark, lake.path(RUN_METRICS))
    assert pinned is not None
    Path(pinned.files[0].removeprefix("file:")).unlink()
    lake.register([RUN_METRICS], stays=True)
    with pytest.raises(Exception, match="FILE_NOT_EXIST"):
        spark.table(RUN_METRICS.full_name).collect()


def test_a_statement_reads_what_was_written_since_the_one_before(spark: Any, lake: Lake) -> None:
    names = LakeNames(spark, lake.root)
    statement = f"SELECT subject FROM {RUN_METRICS.full_name}"

    def asked() -> list[str]:
        names.name((statement,))
        return subjects(spark.sql(statement))

    assert asked() == []
    for subject in ("a", "b"):
        lake.append(rows(spark, subject), RUN_METRICS)
    assert asked() == ["a", "b"]
    names.name((f"DESCRIBE HISTORY {RUN_METRICS.full_name}",))
    assert spark.sql(f"DESCRIBE HISTORY {RUN_METRICS.full_name}").count() == 3
    assert asked() == ["a", "b"]
    names.name((f"DESCRIBE HISTORY {RUN_METRICS.full_name}",))
    assert spark.sql(f"DESCRIBE HISTORY {RUN_METRICS.full_name}").count() == 3
    table = DeltaTable.forPath(spark, lake.path(RUN_METRICS))
    table.optimize().executeCompaction()
    spark.conf.set(UNCHECKED, "false")
    table.vacuum(0)
    spark.conf.unset(UNCHECKED)
    assert asked() == ["a", "b"], "the files of before are gone"


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
