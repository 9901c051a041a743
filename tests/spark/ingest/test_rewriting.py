"""Some rows of a table are replaced by others: in its files on one machine, by Delta elsewhere and of many files."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake.delta import Lake
from ingest.lake.direct import RowError
from ingest.lake.tables.gold import DIVERGENCES
from tests.support.lakes.rows import append, at, frame_of, row_of

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
