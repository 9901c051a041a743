"""Of which topics evidence is looked at: those of which a row that it follows from is another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from ingest.lake.delta import Lake
from reconstruct.engine import staging as staging_
from reconstruct.engine.staging import staging
from reconstruct.kept.topics import ALL_TOPICS, Topics, changed_topics, topic_hashes

EVENTS = "cluster_id string, topic string, event_id string, at bigint, broker_id int"
ZNODES = "cluster_id string, topic string, says string"


def hashes(spark: Any, events: list[tuple[Any, ...]], znodes: list[tuple[Any, ...]]) -> DataFrame:
    return topic_hashes([spark.createDataFrame(events, EVENTS), spark.createDataFrame(znodes, ZNODES)])


def test_a_topic_is_another_where_a_row_of_it_is(spark: Any) -> None:
    events = [
        ("c", "same", "e1", 1, 1),
        ("c", "same", "e2", 2, None),
        ("c", "later", "e3", 3, 1),
        ("c", "twice", "e4", 4, 1),
        ("c", "moved", "e5", 5, None),
        ("c", "gone", "e6", 6, 1),
        ("d", "later", "e7", 3, 1),
        ("c", None, "e8", 8, 1),
    ]
    znodes = [("c", "same", "state"), ("c", "written", "state")]
    before = hashes(spark, events, znodes)
    assert changed_topics(hashes(spark, events[::-1], znodes[::-1]), before).collect() == []
    after = [
        *events[:2],
        ("c", "later", "e3", 4, 1),
        *[events[3]] * 2,
        ("c", "moved", "e5", None, 5),
        events[6],
        ("c", None, "e9", 9, 1),
        ("c", "new", "e10", 10, 1),
    ]
    found = changed_topics(hashes(spark, after, [znodes[0], ("c", "written", "other")]), before)
    assert {tuple(row) for row in found.collect()} == {
        ("c", name) for name in ("later", "twice", "moved", "gone", "new", "written")
    }
    # a row that goes from one source to another
    swapped = hashes(spark, [], [("c", "t", "x")]), hashes(spark, [("c", "t", "x", None, None)], [])
    assert [tuple(row) for row in changed_topics(*swapped).collect()] == [("c", "t")]


def test_rows_are_those_of_the_topics_alone(spark: Any) -> None:
    rows = spark.createDataFrame([("c", "a", "1"), ("d", "a", "2"), ("c", None, "3")], ZNODES)
    some = Topics(spark.createDataFrame([("d", "a")], "cluster_id string, topic string"))
    assert [row["says"] for row in some.of(rows).collect()] == ["2"]
    assert ALL_TOPICS.of(rows).count() == 3


def test_few_topics_are_named_and_what_is_read_again_is_made_once(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = spark.createDataFrame([("c", "a", "1"), ("d", "a", "2"), ("d", "b", "3"), ("c", None, "4")], ZNODES)
    keys = spark.createDataFrame([("d", "a"), ("d", "a"), ("d", "b")], "cluster_id string, topic string")
    with staging(Lake(spark, str(tmp_path / "lake")), "run") as stage:
        few = Topics.some(keys, stage, "few")
        monkeypatch.setattr(staging_, "MOST_NAMED", 1)
        many = Topics.some(keys, stage, "many")
        assert sorted(few.names or ()) == ["a", "b"]
        assert many.names is None
        for some in (few, many):
            assert sorted(row["says"] for row in some.of(rows).collect()) == ["2", "3"]
        few.once(rows, "evidence")
        assert ALL_TOPICS.once(rows, "evidence of all") is rows
        assert [stage.rows_count(name) for name in ("many_changed_topics", "few_evidence")] == [2, 4]
