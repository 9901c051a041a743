"""Tables that tasks write themselves: the rows that Spark would have written, in as many versions, and no row lost."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import functions as F

from ingest.lake import delta
from ingest.lake.delta import Lake
from ingest.lake.direct import commit_files, direct_folder, write_files
from ingest.lake.plans import union
from ingest.lake.tables import TABLES, TableSpec
from ingest.lake.tables.kept import CLOCK_MARKS, KEPT_TABLES, TOPIC_NAMINGS
from tests.support.lakes.rows import full_and_empty

SPECS = [TABLES[name] for name in ("bronze.log_records", "silver.leader_and_isr_timeline", "gold.divergences")]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.full_name)
def test_the_rows_are_those_that_spark_writes(
    spec: TableSpec, spark: Any, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert direct_folder(spark, lake.path(spec)) is not None
    lake.append(full_and_empty(spark, spec, 2), spec)
    by_tasks = lake.read(spec)
    found, types = sorted(by_tasks.collect(), key=str), by_tasks.dtypes
    lake.overwrite(full_and_empty(spark, spec, 5), spec)
    assert (lake.read(spec).count(), lake.rows_count(spec)) == (6, 6), "what was there is replaced"
    monkeypatch.setattr("ingest.lake.delta.direct_folder", lambda *_: None)
    lake.overwrite(full_and_empty(spark, spec, 2), spec)
    assert (sorted(lake.read(spec).collect(), key=str), lake.read(spec).dtypes) == (found, types)
    history = spark.sql(f"DESCRIBE HISTORY delta.`{lake.path(spec)}`").orderBy("version")
    assert [row["operation"] for row in history.collect()] == ["CREATE TABLE", "WRITE", "WRITE", "WRITE"]


def test_rows_added_meanwhile_are_replaced_as_well(spark: Any, lake: Lake) -> None:
    spec = SPECS[0]
    folder = direct_folder(spark, lake.path(spec))
    assert folder is not None
    written = write_files(lake.conformed(full_and_empty(spark, spec, 1), spec), folder, spec)
    lake.append(full_and_empty(spark, spec, 4), spec)
    commit_files(spark, lake.path(spec), written, replaces_all=True)
    assert lake.read(spec).count() == 2


def test_rows_that_are_here_are_added_as_spark_would_add_them(
    spark: Any, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where the table has conditions of its own Spark is asked."""
    of_conditions = TABLES["silver.assignment_timeline"]
    for spec in (TABLES["quality.run_metrics"], of_conditions):
        rows = [row.asDict() for row in full_and_empty(spark, spec, 2).collect()]
        lake.append_known(rows, spec)
        found = sorted(lake.read(spec).collect(), key=str)
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr("ingest.lake.delta.direct_folder", lambda *_: None)
            lake.append_known(rows, spec)
        assert sorted(lake.read(spec).collect(), key=str) == sorted(found * 2, key=str)
    backwards = full_and_empty(spark, of_conditions, 1).withColumn("valid_to", F.expr("valid_from - INTERVAL 1 SECOND"))
    with pytest.raises(Exception, match="interval_order"):
        lake.append_known([row.asDict() for row in backwards.collect()], of_conditions)


def test_rows_of_several_tables_are_written_by_one_query(
    spark: Any, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As each by itself, where tasks write and where Spark does."""
    specs = [TABLES[name] for name in ("silver.assignment_timeline", "gold.leadership_overlaps", "gold.isr_flapping")]
    wide = union([full_and_empty(spark, spec, 2).withColumn("of", F.lit(spec.full_name)) for spec in specs])
    wide = wide.where(F.col("of") != specs[2].full_name)
    lake.append(full_and_empty(spark, specs[2], 3), specs[2])
    found = []
    for folder_of in (delta.direct_folder, lambda *_: None):
        monkeypatch.setattr(delta, "direct_folder", folder_of)
        lake.overwrite_parts(wide, "of", specs)
        found.append([sorted(lake.read(spec).collect(), key=str) for spec in specs])
    assert found[0] == found[1]
    assert list(map(len, found[0])) == [3, 3, 0]


def test_rows_are_added_to_several_tables_by_one_query(spark: Any, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """As to each by itself, though columns of one name are of other types; and of a table nothing may come."""
    lake.ensure(KEPT_TABLES)
    specs = [TABLES["silver.assignment_timeline"], CLOCK_MARKS, TOPIC_NAMINGS]
    # ``first`` is of a mark in one of them, of a record in another
    mark = "NAMED_STRUCT('at_us', 1L, 'evidence_id', 'e')"
    of_marks = spark.sql(
        "SELECT 'c' AS cluster_id, 'f' AS file_id, 'r' AS rule, 'k' AS key, true AS is_earlier, id AS clock,"
        f" 1L AS marks, {mark} AS first, {mark} AS last FROM range(3)"
    )
    none = spark.createDataFrame([], lake.read(TOPIC_NAMINGS).schema)
    given = list(zip(specs, (full_and_empty(spark, specs[0], 2), of_marks, none), strict=True))
    lake.append_all(given)
    found = [sorted(lake.read(spec).collect(), key=str) for spec in specs]
    assert list(map(len, found)) == [3, 3, 0]
    assert [lake.newest_version(spec) for spec in specs] == [1, 1, 0]
    monkeypatch.setattr(delta, "direct_folder", lambda *_: None)
    lake.append_all(given)
    assert [sorted(lake.read(spec).collect(), key=str) for spec in specs] == [
        sorted(rows * 2, key=str) for rows in found
    ]


def test_where_one_of_several_rows_breaks_a_condition_none_is_added(spark: Any, lake: Lake) -> None:
    timeline, metrics = TABLES["silver.assignment_timeline"], TABLES["quality.run_metrics"]
    backwards = full_and_empty(spark, timeline, 1).withColumn("valid_to", F.expr("valid_from - INTERVAL 1 SECOND"))
    with pytest.raises(PythonException, match=r"a row of silver\.assignment_timeline breaks interval_order"):
        lake.append_all([(metrics, full_and_empty(spark, metrics, 1)), (timeline, backwards)])
    assert (lake.newest_version(timeline), lake.newest_version(metrics)) == (0, 0)


def test_a_row_that_breaks_a_condition_of_its_table_is_refused_and_nothing_is_written(spark: Any, lake: Lake) -> None:
    timeline, findings = TABLES["silver.assignment_timeline"], TABLES["gold.divergences"]
    backwards = full_and_empty(spark, timeline, 1).withColumn("valid_to", F.expr("valid_from - INTERVAL 1 SECOND"))
    wide = union(
        [
            each.withColumn("of", F.lit(spec.full_name))
            for spec, each in ((timeline, backwards), (findings, full_and_empty(spark, findings, 1)))
        ]
    )
    with pytest.raises(PythonException, match=r"a row of silver\.assignment_timeline breaks interval_order"):
        lake.overwrite_parts(wide, "of", [timeline, findings])
    assert (lake.newest_version(timeline), lake.newest_version(findings)) == (0, 0)
