"""Which incarnation an event is of stays as long as none that began by then is another."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from reconstruct.cluster.spark.incarnations import are_placed_alike, incarnation_rows, topic_namings
from tests.support.lakes.rows import at

FIRST, NEXT, LAST = at(0), at(100), at(200)
BEGINNING, END = at(-1e9), at(1e9)
SPANS = "cluster_id string, topic string, topic_incarnation string, evidence_id string, starts_at timestamp,"
SPANS += " ends_at timestamp, created_at timestamp, is_last boolean"
EVENTS = "cluster_id string, topic string, topic_incarnation string, corrected_time timestamp"


@pytest.fixture(autouse=True)
def _bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconstruct.cluster.spark.incarnations._BEGINNING", BEGINNING)
    monkeypatch.setattr("reconstruct.cluster.spark.incarnations._END", END)


def alike(spark: SparkSession, then: list[Any], now: list[Any], events: list[Any]) -> bool:
    """Of topic ``t``: incarnations are (name, begin), the first from the beginning of time; events (name, time)."""

    def spans(known: list[Any]) -> Any:
        starts = [start for _, start in known]
        ends = [*starts[1:], END]
        rows = [
            ("c", "t", name, name, start if place else BEGINNING, end, FIRST, end == END)
            for place, ((name, start), end) in enumerate(zip(known, ends, strict=True))
        ]
        return spark.createDataFrame(rows, SPANS)

    placed = spark.createDataFrame([("c", "t", *event) for event in events], EVENTS)
    given = [placed], spans(now), incarnation_rows(spans(then))
    found = [are_placed_alike(*given, lambda rows, held=held: (rows, held(rows))) for held in (few, many)]
    assert found[0] is found[1]
    return found[0]


def few(rows: DataFrame) -> list[Row]:
    return rows.collect()


def many(_: DataFrame) -> None:
    return None


@pytest.mark.parametrize(
    ("then", "now", "events", "expected"),
    [
        # another incarnation since: what was before its begin is where it was
        (["a"], ["a", "b"], [("a", FIRST), ("a", NEXT - timedelta(seconds=1))], True),
        (["a"], ["a", "b"], [("a", FIRST), ("a", NEXT)], False),
        (["a", "b"], ["a", "b", "c"], [("a", FIRST), ("b", NEXT), ("c", LAST)], True),
        (["a", "b"], ["a", "b", "c"], [("a", FIRST), ("b", NEXT), ("b", LAST)], False),
        # the first is another: of what was before it was created, by a clock behind, too
        (["a", "b"], ["x", "b"], [("a", FIRST - timedelta(hours=1))], False),
        (["a", "b"], ["x", "b"], [("b", NEXT)], True),
        # two are others
        (["a", "b"], ["a", "x", "c"], [("a", FIRST), ("b", NEXT)], False),
        # the last is none any more
        (["a", "b"], ["a"], [("a", FIRST), ("b", NEXT)], False),
        (["a", "b"], ["a", "b"], [("a", FIRST), ("b", NEXT)], True),
    ],
)
def test_events_are_placed_alike(
    spark: SparkSession, then: list[str], now: list[str], events: list[Any], expected: bool
) -> None:
    starts = (FIRST, NEXT, LAST)
    known = (list(zip(names, starts, strict=False)) for names in (then, now))
    assert alike(spark, *known, events) is expected


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ((1, FIRST, "state_change_log"), True),
        ((9, FIRST, "state_change_log"), False),  # below, of a clock that was set back
        ((1, LAST, "state_change_log"), False),  # lines of several brokers in the order in which they were collected
        ((1, FIRST, "controller_log"), False),  # a controller tells there of what it is about to create
    ],
)
def test_a_line_above_that_of_a_new_partition_tells_of_one_before(
    spark: SparkSession, other: tuple[int, Any, str], expected: bool
) -> None:
    columns = "cluster_id string, file_id string, corrected_time timestamp, byte_offset bigint, record_id string,"
    columns += " source_kind string, event_type string, shape_id string, fields map<string,string>"
    of_partition = {"topic": "t", "partition_id": "0"}

    def record(offset: int, when: Any, kind: str, event_type: str, **fields: str) -> Any:
        return ("c", "f", when, offset, f"r{offset}", kind, event_type, "shape", of_partition | fields)

    records = [
        record(5, NEXT, "state_change_log", "partition_state_change", to_state="NewPartition"),
        record(*other, "other"),
    ]
    generations = spark.createDataFrame([("c", -(2**62), 2**62)], "cluster_id string, begins_us bigint, ends_us bigint")
    (row,) = topic_namings(spark.createDataFrame(records, columns), generations).collect()
    assert [bool(new["is_behind"]) for new in row["new"]] == [expected]
