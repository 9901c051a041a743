"""Some rows of a table are replaced by others: in its files on one machine, by Delta elsewhere and of many files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake import delta, rewriting
from ingest.lake.delta import Lake
from ingest.lake.direct import RowError
from ingest.lake.plans import union
from ingest.lake.tables import TableSpec
from ingest.lake.tables.gold import AVAILABILITY_INTERVALS, DIVERGENCES, LEADER_ELECTIONS
from ingest.lake.tables.silver import LEADER_AND_ISR_TIMELINE
from tests.support.lakes.rows import append, at, frame_of, full_and_empty, row_of

Key = tuple[str, int | None]
FILES = ("a", "b", "c")


def rows(lake: Lake, *keys: Key) -> DataFrame:
    """Findings of these topics and partitions."""
    return frame_of(lake, DIVERGENCES, [row_of(DIVERGENCES, finding(*key)) for key in keys])


def finding(topic: str, partition_id: int | None) -> dict[str, Any]:
    told = {"divergence_id": f"{topic}{partition_id}", "rule_id": "R01", "severity": "error", "detected_at": at(0)}
    return told | {"cluster_id": "c", "topic": topic, "partition_id": partition_id, "evidence": ["r"]}


def held(lake: Lake) -> list[Key]:
    found = [(row["topic"], row["partition_id"]) for row in lake.read(DIVERGENCES).collect()]
    return sorted(found, key=str)


def names(lake: Lake, topics: str) -> set[str]:
    """Of the files that hold the topics."""
    rows = lake.read(DIVERGENCES).where(F.col("topic").isin(*topics))
    return {row["file_name"] for row in rows.select("_metadata.file_name").distinct().collect()}


@pytest.fixture(params=["in its files", "of many files", "elsewhere"])
def table(request: pytest.FixtureRequest, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake with three files of findings, a topic each."""
    monkeypatch.setattr(Lake, "REWRITTEN_BYTES", -1)
    monkeypatch.setattr("ingest.lake.rewriting.TINY_FILE_BYTES", 0)
    for topic in FILES:
        append(lake, DIVERGENCES, [finding(topic, partition_id) for partition_id in (1, 2, None)])
    if request.param == "of many files":
        monkeypatch.setattr("ingest.lake.rewriting.pinned_table", lambda *_: None)
    elif request.param == "elsewhere":
        monkeypatch.setattr("ingest.lake.rewriting.direct_folder", lambda *_: None)
    return lake


def test_what_is_replaced_goes_in_one_commit_and_files_without_any_of_it_stay(table: Lake) -> None:
    before, version = names(table, "bc"), table.newest_version(DIVERGENCES)
    table.delete(DIVERGENCES, "topic <= 'a' AND partition_id = 1")  # of no partition it is not known
    assert held(table) == [(topic, n) for topic in FILES for n in (1, 2, None) if (topic, n) != ("a", 1)]
    assert names(table, "bc") == before
    table.replace_where(rows(table, ("a", 7), ("a", 8)), DIVERGENCES, "topic = 'a'")
    assert held(table)[:3] == [("a", 7), ("a", 8), ("b", 1)]
    assert names(table, "bc") == before
    gone = rows(table, ("b", None), ("a", 7), ("a", 7), ("c", 9)).select("topic", "partition_id")
    table.replace_keys(rows(table, ("b", None), ("d", 1)), gone, DIVERGENCES)
    assert held(table) == [("a", 8), *[(topic, n) for topic in "bc" for n in (1, 2, None)], ("d", 1)]
    assert before - names(table, "bc") == before - names(table, "c"), "that of b is another"
    assert table.newest_version(DIVERGENCES) == version + 3


def test_where_no_row_has_to_go_rows_come_and_no_file_is_another(table: Lake) -> None:
    before = names(table, "abc")
    table.replace_where(rows(table, ("d", 1)), DIVERGENCES, "topic = 'd'")
    assert (held(table)[-1], names(table, "abc")) == (("d", 1), before)
    table.delete(DIVERGENCES, "true")
    assert held(table) == []
    table.replace_where(rows(table, ("e", 1)), DIVERGENCES, "topic = 'e'")
    assert held(table) == [("e", 1)]


def test_nothing_is_replaced_by_rows_that_the_table_must_not_hold(lake: Lake) -> None:
    append(lake, DIVERGENCES, [finding("a", 1)])
    bad = rows(lake, ("b", 1)).selectExpr("* EXCEPT (severity)", "'odd' AS severity")
    with pytest.raises(Exception, match=f"{RowError.__name__}|severity cannot be 'odd'"):
        lake.replace_where(bad, DIVERGENCES, "topic = 'a'")
    assert held(lake) == [("a", 1)]


def test_keys_of_several_tables_are_replaced_by_one_query(
    spark: Any, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are those that Spark leaves: of rows that Spark wrote, with values of every type, NULL in a key too."""
    topics: Sequence[str | None] = ("a", "b")
    told = [(LEADER_AND_ISR_TIMELINE, topics), (DIVERGENCES, (*topics, None)), (LEADER_ELECTIONS, topics)]
    told.append((AVAILABILITY_INTERVALS, ()))
    specs = [spec for spec, _ in told]
    gone = spark.createDataFrame([("c", "b"), ("c", None), ("c", "d")], "cluster_id string, topic string")
    come = [rows_of_topics(spark, spec, "a").withColumn("of", F.lit(spec.full_name)) for spec in specs]
    come[-1] = come[-1].where("false")
    found = []
    for queries in (1, 4):
        with monkeypatch.context() as patched:
            patched.setattr(delta, "direct_folder", lambda *_: None)
            for spec, named in told:
                lake.overwrite(full_and_empty(spark, spec, 1).where("false"), spec)
                for topic in named:
                    lake.append(rows_of_topics(spark, spec, topic), spec)
            if queries > 1:
                patched.setattr(rewriting, "direct_folder", lambda *_: None)
            before = [lake.newest_version(spec) for spec in specs]
            query = Mock(wraps=rewriting.map_in_arrow)
            patched.setattr(rewriting, "map_in_arrow", query)
            lake.replace_keys_of_parts(union(come).coalesce(1), "of", gone, specs)
        assert query.call_count == (1 if queries == 1 else 0)
        found.append([sorted(lake.read(spec).collect(), key=str) for spec in specs])
        if queries == 1:
            after = [lake.newest_version(spec) for spec in specs]
            assert [now - then for now, then in zip(after, before, strict=True)] == [1, 1, 1, 0], "a commit, if any"
            files = [len(lake.read(spec).inputFiles()) for spec in specs]
            assert files[:3] == [2, 2, 2], "tiny ones become one, beside that of what comes"
    assert found[0] == found[1]
    assert [len(rows) for rows in found[0]] == [4, 4, 4, 0]


def rows_of_topics(spark: Any, spec: TableSpec, topic: str | None) -> DataFrame:
    """Of the topic two rows: with a value in every column, and with NULL wherever one may be."""
    key = {"cluster_id": F.lit("c"), "topic": F.lit(topic).cast("string")}
    return full_and_empty(spark, spec, 1).withColumns(key)


@pytest.mark.parametrize("earlier", ["a column fewer", "a row that it would not let in"])
def test_rows_that_stay_stay_as_they_are(spark: Any, lake: Lake, earlier: str) -> None:
    """Of a file of an earlier version of the table, which lacks a column or holds what none may hold any more."""
    folder, spec = Path(lake.path(DIVERGENCES)), DIVERGENCES
    append(lake, spec, [finding("a", 1), finding("b", 2)])
    (path,) = folder.glob("*.parquet")
    table = pq.read_table(path)
    if earlier == "a column fewer":
        table = table.drop_columns(["observed"])
    else:
        table = table.set_column(table.column_names.index("severity"), "severity", pa.array(["odd", "odd"]))
    (folder / f".{path.name}.crc").unlink(missing_ok=True)
    pq.write_table(table, path)
    lake.replace_keys(rows(lake, ("d", 1)), rows(lake, ("b", 2)).select("topic"), spec)
    left = {row["topic"]: (row["observed"], row["severity"]) for row in lake.read(spec).collect()}
    assert left.pop("a") == ((None, "error") if earlier == "a column fewer" else ("", "odd"))
    assert left == {"d": ("", "error")}


def test_a_file_that_is_cut_is_named_and_the_systems_own_reason_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = tmp_path / "part-0.parquet"
    pq.write_table(pa.table({"topic": ["a"] * 1000}), cut)
    cut.write_bytes(cut.read_bytes()[:-20])
    with pytest.raises(OSError, match=f"{rewriting.UNREADABLE}: {cut}: "):
        list(rewriting.rows_of_files([str(cut)]))
    with pytest.raises(FileNotFoundError, match="part-1"):
        list(rewriting.rows_of_files([str(tmp_path / "part-1.parquet")]))
    monkeypatch.setattr(pq, "ParquetFile", Mock(side_effect=PermissionError(13, "Permission denied", str(cut))))
    with pytest.raises(PermissionError):
        list(rewriting.rows_of_files([str(cut)]))
