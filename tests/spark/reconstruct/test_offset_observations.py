"""Sightings of offsets from partition directories and from answers of brokers, on rows made by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ingest.lake.tables.bronze import LEADER_EPOCH_CHECKPOINTS, LOG_SEGMENTS, OFFSET_CHECKPOINTS, OFFSET_PROBES
from reconstruct.offsets.spark.observations import offset_observations

START = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
BEGINNING, END = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def file(name: str, kind: str = "log_segment", directory: str = "t-0", **more: Any) -> dict[str, Any]:
    row = dict.fromkeys(LOG_SEGMENTS.column_names) | {
        "record_id": f"{directory}/{name}",
        "cluster_id": "c",
        "file_id": name,
        "broker_id": 1,
        "source_kind": kind,
        "source_file": name,
        "source_line": 1,
        "byte_offset": 0,
        "byte_length": 1,
        "captured_at": at(10),
        "topic": "t",
        "partition_id": 0,
        "directory": directory,
        "file_name": name,
        "file_kind": kind,
        "is_read": True,
    }
    if kind == "log_segment":
        row |= {"base_offset": int(name.split(".")[0]), "next_offset": int(name.split(".")[0])}
    return row | more


def answer(asked: float, answered: float, offset: int | None, **more: Any) -> dict[str, Any]:
    row = dict.fromkeys(OFFSET_PROBES.column_names) | {
        "record_id": f"{asked} {offset}",
        "cluster_id": "c",
        "file_id": "f",
        "broker_id": 1,
        "source_kind": "offset_probe",
        "source_file": "f",
        "source_line": 1,
        "byte_offset": 0,
        "byte_length": 1,
        "sent_at": at(asked),
        "received_at": at(answered),
        "replica_id": -2,
        "target_timestamp": -1,
        "isolation_level": 0,
        "topic": "t",
        "partition_id": 0,
        "offset": offset,
        "error_code": 0,
    }
    return row | more


def segment(base: int, suffix: str = "") -> str:
    return f"{base:020}.log{suffix}"


@pytest.fixture
def observed(spark: Any) -> Any:
    def of(*rows: dict[str, Any]) -> list[tuple[Any, ...]]:
        incarnations = spark.createDataFrame(
            [("c", "t", "older", BEGINNING, at(5), False), ("c", "t", "newer", at(5), END, True)],
            "cluster_id string, topic string, topic_incarnation string, starts_at timestamp, ends_at timestamp,"
            " is_last boolean",
        )
        found = offset_observations(
            spark.createDataFrame([], OFFSET_CHECKPOINTS.struct),
            spark.createDataFrame([], LEADER_EPOCH_CHECKPOINTS.struct),
            spark.createDataFrame([row for row in rows if "file_kind" in row], LOG_SEGMENTS.struct),
            incarnations,
            probes=spark.createDataFrame([row for row in rows if "sent_at" in row], OFFSET_PROBES.struct),
        ).orderBy("observed_at", "offset")
        names = ("replica_id", "offset_kind", "offset", "topic_incarnation", "evidence")
        return [tuple(row[name] for name in names) for row in found.collect()]

    return of


def test_the_log_ends_where_its_last_segment_does(observed: Any) -> None:
    found = observed(file(segment(0), next_offset=100), file(segment(100), next_offset=130))
    assert found == [(1, "log_end_offset", 130, "newer", [f"t-0/{segment(100)}"])]


def test_a_last_segment_that_was_only_listed_says_no_end(observed: Any) -> None:
    assert observed(file(segment(0), next_offset=100), file(segment(100), is_read=False, next_offset=None)) == []


def test_segments_that_are_none_of_the_log_do_not_count(observed: Any) -> None:
    found = observed(
        file(segment(0), next_offset=100),
        file(segment(500, ".deleted"), next_offset=700),
        file(segment(0), directory="t-0.0123456789abcdef0123456789abcdef-delete", next_offset=900),
    )
    assert [row[2] for row in found] == [100]


def test_the_topic_id_beside_a_segment_names_the_incarnation(observed: Any) -> None:
    stale = file("partition.metadata", "partition_metadata", topic_id="older")
    assert [row[3] for row in observed(file(segment(0), next_offset=7), stale)] == ["older"]
    unheard = file("partition.metadata", "partition_metadata", topic_id="of another cluster")
    assert [row[3] for row in observed(file(segment(0), next_offset=7), unheard)] == ["newer"]


def test_an_answer_is_of_what_was_asked_for(observed: Any) -> None:
    found = observed(
        answer(10, 11, 1),
        answer(11, 12, 2, replica_id=-1),
        answer(12, 13, 3, replica_id=-1, isolation_level=1),
        answer(13, 14, 4, target_timestamp=-2),
        answer(14, 15, 5, target_timestamp=1795232322495),
        answer(15, 16, None, error_code=6),
    )
    assert [row[1:3] for row in found] == [("log_end_offset", 1), ("high_watermark", 2), ("log_start_offset", 4)]


def test_an_answer_that_may_be_of_either_of_two_topics_is_of_none(observed: Any) -> None:
    found = observed(answer(3, 4, 1), answer(4, 6, 2), answer(6, 7, 3))
    assert [row[3] for row in found] == ["older", "unknown", "newer"]
