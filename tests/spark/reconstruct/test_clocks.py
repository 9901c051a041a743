"""Clocks on Spark: the same bounds as the plain way, and corrected times."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import functions as F

from ingest.lake.plans import union
from reconstruct.clocks.spark.evidence import causal_pairs, logged_marks, tied, tightest, written_marks
from reconstruct.clocks.spark.step import SEGMENT_COLUMNS, clock_segments, with_corrected_time
from reconstruct.clocks.timeline import solve_clocks
from reconstruct.cluster.spark.log_spans import log_lines, log_spans
from reconstruct.time.instants import to_datetime
from tests.support.captures.packed import Unpacker
from tests.unit.reconstruct.clocks.test_clocks import capture_facts, log_marks, pair_up, znode_marks

_EVENTS = (
    "cluster_id string, event_id string, record_id string, file_id string, byte_offset bigint, broker_id int,"
    " event_type string, event_time timestamp, fields map<string,string>"
)
_ZNODES = (
    "cluster_id string, path string, change string, data string, czxid bigint, mzxid bigint, version int,"
    " changed_at timestamp, evidence array<string>"
)
START = datetime(2026, 10, 25, 0, 0, tzinfo=UTC)


def tables(spark: Any, capture: Any, bent: Callable[[int | None], timedelta]) -> list[Any]:
    logged, written = capture_facts(capture)
    by_kind: dict[str, list[Any]] = {"state_change_log": [], "controller_log": [], "server_log": []}
    for number, fact in enumerate(logged):
        place = fact.evidence_id.rsplit(":", 1)[0]
        instant = to_datetime(fact.at_us) + bent(fact.broker_id)
        by_kind[fact.source_kind].append(
            (
                "c",
                f"{fact.evidence_id}:0",
                fact.evidence_id,
                place,
                number,
                fact.broker_id,
                fact.event_type,
                instant,
                dict(fact.fields),
            )
        )
    writes = [
        ("c", w.path, "written", w.data, w.czxid, w.mzxid, w.version, to_datetime(w.at_us), [w.evidence_id])
        for w in written
    ]
    return [
        *(spark.createDataFrame(rows, _EVENTS) for rows in by_kind.values()),
        spark.createDataFrame(writes, _ZNODES),
    ]


@pytest.mark.parametrize("name", ["failover-3.9.1", "failover-0.8.2.2"])
def test_spark_bounds_clocks_as_plain_python_does(spark: Any, unpacked: Unpacker, name: str) -> None:
    capture = unpacked(name)
    *logs, znodes = tables(spark, capture, lambda broker_id: timedelta(hours=2 if broker_id == 2 else 0))
    pairs = tightest(causal_pairs(tied(union([logged_marks(*logs), written_marks(znodes)]))))
    brokers = spark.createDataFrame([("c", 1), ("c", 2), ("c", 3), ("c", 9)], "cluster_id string, broker_id int")
    rows = clock_segments(pairs, brokers).orderBy("broker_id", "sequence").collect()
    logged, written = capture_facts(capture)
    plain = solve_clocks(
        pair_up([*(m for f in logged for m in log_marks(f)), *(m for f in written for m in znode_marks(f))]), (9,)
    )
    assert [r["verdict"] for r in rows] == ["agrees", "other_zone", "agrees", "unknown"]
    assert rows[1]["correction_us"] == 2 * 3_600_000_000
    zone = [0, 7_200_000, 0, 0]
    for row, segment, shift in zip(rows, plain, zone, strict=True):
        for name_of, bound in (("lower", segment.offset_lower_ms), ("upper", segment.offset_upper_ms)):
            assert row[f"offset_{name_of}_ms"] == (None if bound is None else bound + shift)
    # the pairs left out are counted with those that stand for them
    assert [r["pairs_count"] for r in rows] == [s.pairs_count for s in plain]


def test_times_are_corrected_and_an_hour_printed_twice_keeps_its_order(spark: Any) -> None:
    hour = timedelta(hours=1)
    printed = {
        ("f", 1): 2.0,
        ("f", 2): 2.5,
        ("f", 3): 2.9,
        ("f", 4): 2.5,  # back an hour, forty minutes later
        ("f", 5): 3.2,
        ("g", 1): 2.5,
        ("h", 1): 3.2,
    }
    of_file = {"f": 1, "g": 2, "h": None}
    frame = spark.createDataFrame(
        [("c", of_file[file], file, offset, START + hours * hour) for (file, offset), hours in printed.items()],
        "cluster_id string, broker_id int, file_id string, byte_offset bigint, event_time timestamp",
    )
    start_us, hour_us = int(START.timestamp()) * 1_000_000, 3_600_000_000
    base = dict.fromkeys(SEGMENT_COLUMNS) | {"cluster_id": "c", "broker_id": 1, "sequence": 0}
    segments = [
        base | {"to_us": start_us + 3 * hour_us, "correction_us": 2 * hour_us},
        base | {"sequence": 1, "from_us": start_us + 2 * hour_us, "correction_us": hour_us},
        base | {"broker_id": 2},
    ]
    table = spark.createDataFrame(segments, ", ".join(f"{name} {type_}" for name, type_ in SEGMENT_COLUMNS.items()))
    result = with_corrected_time(frame, table).orderBy("file_id", "byte_offset")
    assert result.columns == [*frame.columns, "corrected_time"]
    found = result.select(((F.unix_micros("corrected_time") - start_us) / hour_us).alias("hours")).collect()
    assert [round(row["hours"], 2) for row in found] == [0.0, 0.5, 0.9, 1.5, 2.2, 2.5, 3.2]


def test_by_how_much_the_times_of_a_broker_jump_back_at_the_most_is_known(spark: Any) -> None:
    seconds = {("f", 1): 0, ("f", 2): 7_203, ("f", 3): 3, ("g", 1): 4, ("g", 2): 1, ("h", 1): 5, ("h", 2): 4.5}
    of_file = {"f": 1, "g": 1, "h": 2}
    frame = spark.createDataFrame(
        [
            ("c", of_file[file], file, file, offset, START + timedelta(seconds=after), f"{file}{offset}:0", "INFO", {})
            for (file, offset), after in seconds.items()
        ],
        "cluster_id string, broker_id int, file_id string, source_file string, byte_offset bigint,"
        " corrected_time timestamp,"
        " event_id string, log_level string, fields map<string,string>",
    )
    found = log_spans(log_lines(frame, frame)).orderBy("source_kind", "file_id").collect()
    server_logs = [row for row in found if row["source_kind"] == "server_log"]
    assert [(row["broker_id"], row["source_file"], row["most_back_us"]) for row in server_logs] == [
        (1, "f", 7_200_000_000),
        (1, "g", 3_000_000),
    ]
    spans = [row for row in found if row["source_kind"] == "state_change_log"]
    assert [(row["jumps_back"], row["most_back_us"]) for row in spans] == [
        (1, 7_200_000_000),
        (1, 3_000_000),
        (0, 500_000),
    ]
