"""Records that list partitions: a row for each, with what the record says of that one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import functions as F

from ingest.lake.tables.bronze import LOG_RECORDS
from reconstruct.events.spark.step import controller_events, named_partitions
from tests.support.incarnations import logged_incarnations

START = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


def record(number: int, event_type: str, fields: dict[str, str]) -> dict[str, Any]:
    return dict.fromkeys(LOG_RECORDS.column_names) | {
        "record_id": f"r{number}",
        "cluster_id": "c",
        "file_id": "f",
        "source_kind": "controller_log",
        "source_file": "controller.log",
        "source_line": number,
        "byte_offset": number,
        "byte_length": 1,
        "event_time": START,
        "event_time_text": "t",
        "log_level": "INFO",
        "message": "m",
        "shape_id": "S",
        "event_type": event_type,
        "fields": fields,
    }


@pytest.fixture(scope="module")
def rows(spark: Any) -> list[Any]:
    cache = {
        "controller_id": "1",
        "topic_partitions": "t-0,a-b-7",
        "leaders": "2,-1",
        "isrs": "2;3|",
        "partition_epochs": "5,",
    }
    skipped = {"topic": "t", "topic_partitions": "t-1", "assignments": "1;2"}
    records = spark.createDataFrame(
        [record(1, "leader_cache_listed", cache), record(2, "partition_addition_skipped", skipped)],
        LOG_RECORDS.struct,
    ).withColumn("corrected_time", F.col("event_time"))
    return controller_events(records, logged_incarnations(records)).orderBy("event_id").collect()


def test_each_row_has_the_values_of_its_partition_and_no_list(rows: list[Any]) -> None:
    assert [(row["event_id"], row["topic"], row["partition_id"], row["fields"]) for row in rows] == [
        ("r1:0", "t", 0, {"controller_id": "1", "leader": "2", "isr": "2,3", "partition_epoch": "5"}),
        ("r1:1", "a-b", 7, {"controller_id": "1", "leader": "-1", "isr": ""}),
        ("r2:0", "t", 1, {"topic": "t", "replicas": "1,2"}),
    ]


def test_a_partition_has_the_topic_id_of_its_own_place_in_the_list_else_the_records(spark: Any) -> None:
    records = spark.createDataFrame(
        [
            record(1, "e", {"topic_partitions": "t-0,u-1", "topic_ids": "of-t,", "topic_id": "all", "to_state": "s"}),
            record(2, "e", {"topic": "t", "partition_id": "2", "topic_id": "own"}),
            record(3, "e", {"topic_partitions": "t-3"}),
            record(4, "e", {"topic": "__cluster_metadata", "partition_id": "0"}),
            record(5, "e", {"broker_id": "1"}),
        ],
        LOG_RECORDS.struct,
    )
    asked = ("record_id", "topic", "partition_id", "topic_id", "to_state")
    assert sorted(tuple(row) for row in named_partitions(records).select(*asked).collect()) == [
        ("r1", "t", 0, "of-t", "s"),
        ("r1", "u", 1, "all", "s"),
        ("r2", "t", 2, "own", None),
        ("r3", "t", 3, None, None),
    ]
