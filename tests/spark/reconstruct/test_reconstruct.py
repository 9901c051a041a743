"""Spark steps of the reconstruction, on rows made by hand, and the fold on Spark against the fold as it is."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import functions as F

from ingest.lake.tables.bronze import LOG_RECORDS, ZNODE_SNAPSHOTS, ZNODE_TRANSACTIONS
from ingest.lake.tables.events import METADATA_CHANGES, ZNODE_CHANGES
from reconstruct.clocks.spark.step import as_printed
from reconstruct.cluster.view import ClusterView
from reconstruct.engine.rows import evidence_row, value_of
from reconstruct.events.spark.step import controller_events, state_change_events
from reconstruct.events.spark.znode_transactions import logged_changes
from reconstruct.events.spark.znodes import znode_changes
from reconstruct.kept.folds import rows_of_all_keys
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.spark.evidence import partition_evidence
from reconstruct.partitions.spark.step import PARTITION_FOLD, history_rows
from tests.support.incarnations import logged_incarnations
from tests.support.lakes.rows import row_of

START = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def znode(path: str, second: float, czxid: int, mzxid: int, data: str | None = None, **more: Any) -> dict[str, Any]:
    row = dict.fromkeys(ZNODE_SNAPSHOTS.column_names) | {
        "record_id": f"{path}@{second}",
        "cluster_id": "c",
        "file_id": f"f{second}",
        "source_file": "z",
        "source_line": 1,
        "byte_offset": 0,
        "byte_length": 1,
        "captured_at": at(second),
        "path": path,
        "data": data,
        "czxid": czxid,
        "mzxid": mzxid,
        "ctime": at(czxid),
        "mtime": at(mzxid),
        "version": 0,
        "num_children": 0,
    }
    return row | more


def no_transactions(spark: Any) -> Any:
    return spark.createDataFrame([], ZNODE_TRANSACTIONS.struct)


def changes(spark: Any, *rows: dict[str, Any]) -> list[tuple[Any, ...]]:
    frame = spark.createDataFrame(list(rows), ZNODE_SNAPSHOTS.struct)
    transactions = no_transactions(spark)
    logged = logged_changes(transactions, frame)
    result = znode_changes(frame, transactions, logged).orderBy("mzxid", "path", "change").collect()
    return [(r["path"], r["change"], r["mzxid"], r["changed_at"], r["changed_at_upper"]) for r in result]


def test_each_write_that_snapshots_show_is_one_row(spark: Any) -> None:
    found = changes(
        spark,
        znode("/controller_epoch", 10, 1, 1, "1"),
        znode("/controller_epoch", 11, 1, 1, "1"),
        znode("/controller_epoch", 12, 1, 12, "2"),
    )
    assert [(path, change, mzxid) for path, change, mzxid, _, _ in found] == [
        ("/controller_epoch", "written", 1),
        ("/controller_epoch", "written", 12),
    ]


def test_a_znode_missing_from_a_whole_round_was_deleted_between_the_two(spark: Any) -> None:
    found = changes(
        spark,
        znode("/brokers/ids", 10, 1, 1, num_children=2),
        znode("/brokers/ids/1", 10, 2, 2, "{}"),
        znode("/brokers/ids/2", 10, 3, 3, "{}"),
        znode("/brokers/ids", 11, 1, 1, num_children=1),
        znode("/brokers/ids/1", 11, 2, 2, "{}"),
    )
    deleted = [row for row in found if row[1] == "deleted"]
    naive = [(path, a.replace(tzinfo=None), b.replace(tzinfo=None)) for path, _, _, a, b in deleted]
    assert naive == [("/brokers/ids/2", at(10).replace(tzinfo=None), at(11).replace(tzinfo=None))]


def test_a_round_that_was_cut_proves_no_deletion(spark: Any) -> None:
    found = changes(
        spark,
        znode("/brokers/ids", 10, 1, 1, num_children=2),
        znode("/brokers/ids/1", 10, 2, 2, "{}"),
        znode("/brokers/ids/2", 10, 3, 3, "{}"),
        # the parent still counts two children, the file ends after the first
        znode("/brokers/ids", 11, 1, 1, num_children=2),
        znode("/brokers/ids/1", 11, 2, 2, "{}"),
    )
    assert [row for row in found if row[1] == "deleted"] == []


def record(number: int, kind: str, event_type: str, fields: dict[str, str], **more: Any) -> dict[str, Any]:
    return (
        dict.fromkeys(LOG_RECORDS.column_names)
        | {
            "record_id": f"r{number}",
            "cluster_id": "c",
            "file_id": "f",
            "broker_id": 1,
            "source_kind": kind,
            "source_file": "log",
            "source_line": number,
            "byte_offset": number,
            "byte_length": 1,
            "event_time": at(number),
            "event_time_text": "t",
            "log_level": "TRACE",
            "message": "m",
            "shape_id": "S",
            "event_type": event_type,
            "fields": fields,
        }
        | more
    )


@pytest.fixture(scope="module")
def records(spark: Any) -> Any:
    own = {"topic": "t", "partition_id": "0", "controller_id": "1", "controller_epoch": "1"}
    state = own | {"leader": "1", "leader_epoch": "0"}
    new = own | {"from_state": "NonExistentPartition", "to_state": "NewPartition", "replicas": "1,2"}
    rows = [
        record(1, "state_change_log", "partition_state_change", new),
        record(2, "state_change_log", "leader_and_isr_sent", state | {"isr": "1,2", "to_broker_id": "2"}),
        record(3, "state_change_log", "leader_and_isr_sent", state | {"isr": "", "leader": "-1", "leader_epoch": "1"}),
        record(
            4, "state_change_log", "replicas_marked_offline", {"topic_partitions": "t-0,a-b-7", "to_broker_id": "3"}
        ),
        record(5, "state_change_log", "unrecognised", {}, shape_id=None),
        record(
            6,
            "controller_log",
            "broker_change",
            {"added_broker_ids": "2,3", "deleted_broker_ids": "", "live_broker_ids": "1,2,3"},
        ),
    ]
    return as_printed(spark.createDataFrame(rows, LOG_RECORDS.struct))


@pytest.fixture(scope="module")
def incarnations(records: Any) -> Any:
    return logged_incarnations(records)


def test_events_are_typed_and_every_record_keeps_one(records: Any, incarnations: Any) -> None:
    rows = state_change_events(records, incarnations).orderBy("event_id").collect()
    assert [(r["event_id"], r["event_type"], r["topic"], r["partition_id"]) for r in rows] == [
        ("r1:0", "partition_state_change", "t", 0),
        ("r2:0", "leader_and_isr_sent", "t", 0),
        ("r3:0", "leader_and_isr_sent", "t", 0),
        ("r4:0", "replicas_marked_offline", "t", 0),
        ("r4:1", "replicas_marked_offline", "a-b", 7),
        ("r5:0", "unrecognised", None, None),
    ]
    assert rows[1]["isr"] == [1, 2]
    assert rows[1]["to_broker_ids"] == [2]
    assert rows[2]["isr"] == []
    assert rows[0]["isr"] is None
    assert {r["topic_incarnation"] for r in rows if r["topic"] == "t"} == {"r1"}


def test_brokers_that_changed_are_those_the_event_is_about(records: Any, incarnations: Any) -> None:
    (row,) = controller_events(records, incarnations).collect()
    assert row["broker_ids"] == [2, 3]


def test_a_reassignment_is_done_when_the_next_write_lists_it_no_more(
    spark: Any, records: Any, incarnations: Any
) -> None:
    """A controller writes the rest of its list for each partition that is done, and at last deletes the znode."""

    def write(mzxid: int, *partitions: int, change: str = "written") -> dict[str, Any]:
        listed = [{"topic": "t", "partition": partition, "replicas": [1, 2]} for partition in partitions]
        data = json.dumps({"version": 1, "partitions": listed}) if change == "written" else None
        own = {"path": "/admin/reassign_partitions", "data": data, "change": change, "mzxid": mzxid}
        return made(own | {"first_shown_at": mzxid + 1, "last_shown_at": mzxid + 7})

    def made(own: dict[str, Any]) -> dict[str, Any]:
        shared = {"cluster_id": "c", "changed_at": own["mzxid"], "evidence": [f"z{own['mzxid']}"]}
        return row_of(ZNODE_CHANGES, shared | own)

    again = write(8, 0)
    ends = [write(8, change="deleted"), write(9, change="deleted")]
    topic = {"path": "/brokers/topics/t", "change": "written", "data": '{"partitions":{}}', "mzxid": 2}
    topics = [made(topic | {"last_shown_at": 99, "mzxid": 1}), made(topic | {"last_shown_at": 11})]
    writes = [write(5, 0, 1, 2), write(6, 1, 2), write(7, 2), *ends, again, *topics]
    znodes = spark.createDataFrame([tuple(each.values()) for each in writes], ZNODE_CHANGES.struct)
    none = spark.createDataFrame([], METADATA_CHANGES.struct)
    events = state_change_events(records, incarnations)
    replication = events.where("false").select("*", F.lit(None).cast("array<int>").alias("old_isr"))
    evidence = partition_evidence(
        events.where("false"), replication, controller_events(records, incarnations), znodes, none, incarnations
    )
    told: dict[str, list[tuple[int, int]]] = {}
    stood: dict[int, int] = {}
    for row in (evidence_row(row.asDict()) for row in evidence.collect()):
        told.setdefault(row["kind"], []).append((row["partition_id"], row["offset"]))
        if row["kind"] == "znode_reassignment":
            assert row["replicas"] == [1, 2]
            stood[row["offset"]] = row["stood_us"]
    assert {kind: sorted(of) for kind, of in told.items()} == {
        "znode_reassignment": [(0, 5), (0, 8), (1, 5), (1, 6), (2, 5), (2, 6), (2, 7)],
        "znode_reassignment_done": [(0, 6), (0, 8), (1, 7), (2, 8)],
    }
    # as long as the snapshots of both znodes reach, the newest write of the topic's
    assert stood == {5: 5_000_000, 6: 4_000_000, 7: 3_000_000, 8: 2_000_000}


def test_spark_folds_as_plain_python_does(spark: Any, records: Any, incarnations: Any) -> None:
    no_changes = [spark.createDataFrame([], spec.struct) for spec in (ZNODE_CHANGES, METADATA_CHANGES)]
    events = state_change_events(records, incarnations)
    none_logged = controller_events(records, incarnations)
    replication = events.where("false").select("*", F.lit(None).cast("array<int>").alias("old_isr"))
    evidence = partition_evidence(events, replication, none_logged, *no_changes, incarnations)
    view = {"c": ClusterView("c")}
    on_spark = rows_of_all_keys(PARTITION_FOLD, evidence, view).where("table_name <> 'kept.folded_keys'").collect()
    from reconstruct.partitions.timeline import fold_partition

    by_partition: dict[tuple[Any, ...], list[Any]] = {}
    for row in evidence.collect():
        key = (row["topic"], row["topic_incarnation"], row["partition_id"])
        by_partition.setdefault(key, []).append(value_of(Evidence, evidence_row(row.asDict())))
    plain = [
        (key, row["table_name"], str(row.get("state") or row.get("leader") or row.get("rule")))
        for key, rows in by_partition.items()
        for row in history_rows(fold_partition(key[0], rows, view["c"]))
    ]
    spark_rows = [
        (
            (r["topic"], r["topic_incarnation"], r["partition_id"]),
            r["table_name"],
            str(r["state"] or r["leader"] or r["rule"]),
        )
        for r in on_spark
    ]
    assert sorted(plain, key=str) == sorted(spark_rows, key=str)
    assert len(plain) > 5
