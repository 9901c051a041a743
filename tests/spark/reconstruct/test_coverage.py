"""``quality.evidence_coverage`` from hand-made rows of ``bronze.ingested_files``, and what the report gathers of it."""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dashboards.sections.coverage.limits import EvidenceLimits, available_evidence, cannot_be_said, evidence_holes
from dashboards.sections.timelines import evidence
from dashboards.source import Limits, Source
from ingest.lake.delta import Lake
from ingest.lake.tables.bronze import CAPTURE_GAPS, INGESTED_FILES, LOG_RECORDS
from ingest.lake.tables.quality import EVIDENCE_COVERAGE, NOT_CAPTURED
from reconstruct.clocks.spark.step import SEGMENT_COLUMNS
from reconstruct.coverage.spark.step import evidence_coverage
from reconstruct.events.spark.line_order import jumps_of_files
from tests.support.lakes.rows import append

DAY = datetime(2026, 11, 21, tzinfo=UTC)


def at(hours: float) -> datetime:
    return DAY + timedelta(minutes=round(hours * 60))


def file(name: str, first: float | None, last: float | None, **values: Any) -> dict[str, Any]:
    """One row of bronze.ingested_files: a server.log of broker 1, in UTC."""
    return {
        "cluster_id": "c",
        "file_id": f"{values.get('broker_id', 1)}-{name}",
        "broker_id": 1,
        "source_kind": "server_log",
        "source_file": f"broker-{values.get('broker_id', 1)}/logs/{name}",
        "compression": "none",
        "status": "ingested",
        "records_read_count": 500,
        "records_kept_count": 500,
        "first_event_time": None if first is None else at(first),
        "last_event_time": None if last is None else at(last),
        "level_floor": "INFO",
        "time_zone": "UTC",
    } | values


STATE = {"source_kind": "state_change_log"}
FILES = (
    # broker 1: hours 8 to 9 and 11 to 12, its controller.log was begun anew in hour 10; the log itself is there
    *(file(f"server.log.2026-11-21-{h:02}", h + 0.1, h + 0.9) for h in (8, 9, 11, 12)),
    file("server.log", 13.1, 13.4),
    file("controller.log.1", 8.0, 10.5, source_kind="controller_log", level_floor="TRACE"),
    file("controller.log", 10.5, 13.0, source_kind="controller_log", level_floor="TRACE"),
    file("state-change.log", 8.0, 13.0, level_floor="TRACE", **STATE),
    # broker 2: numbered, with a hole; state-change.log at INFO in two files; one hour that could not be read
    file("server.log", 12.0, 13.0, broker_id=2),
    file("server.log.2", 9.0, 9.9, broker_id=2),
    file("state-change.log.2026-11-21-08", 8.1, 8.9, broker_id=2, **STATE),
    file("state-change.log.2026-11-21-09", None, None, broker_id=2, source_kind="unrecognised", status="rejected"),
    file("state-change.log", 10.1, 13.0, broker_id=2, **STATE),
    # files of no known broker: their names say nothing of one another
    file("server.log", 12.0, 13.0, broker_id=None, file_id="n1", source_file="x/server.log"),
    file("server.log.2", 9.0, 9.9, broker_id=None, file_id="n2", source_file="x/server.log.2"),
    file("snapshot", 9.0, 9.0, broker_id=None, file_id="z", source_kind="znode_snapshot", level_floor=None),
    # another cluster, in which nothing is missing
    file("server.log", 8.0, 13.0, cluster_id="whole"),
    file("state-change.log", 8.0, 13.0, cluster_id="whole", level_floor="TRACE", **STATE),
)


def missed(
    source: str, first: float, last: float | None, broker_id: int | None = 2, whose: str = "broker 2"
) -> dict[str, Any]:
    """A line of a capture's missed.jsonl."""
    return {
        "cluster_id": "c",
        "record_id": f"{source}-{first}-{last}",
        "broker_id": broker_id,
        "missed_source": source,
        "missed_of": whose,
        "source_file": "missed.jsonl",
        "missed_from": at(first),
        "missed_to": None if last is None else at(last),
        "source_kind": "capture_gap",
    }


MISSED = (
    # an outage that ended, told when it began too; one whose end nothing tells; what is not recorded at all
    missed("probes", 9.0, None),
    missed("probes", 9.0, 9.5),
    missed("probes", 11.0, None),
    missed("znodes", 10.0, 10.1, None, "ZooKeeper"),
    missed("probes", 12.0, 12.1, None, "the brokers"),
    missed("probes", 8.0, 13.0, None, "topics without permission"),
    missed("log dirs", 8.0, 8.0),
    missed("logs", 8.0, 8.5),
)


@pytest.fixture(scope="module")
def lake(spark, empty_lake_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("coverage") / "lake"
    shutil.copytree(empty_lake_dir, folder)
    made = Lake(spark, str(folder))
    append(made, INGESTED_FILES, FILES)
    append(
        made,
        LOG_RECORDS,
        [
            {
                "cluster_id": "c",
                "record_id": f"{broker}{kind}{level}",
                "broker_id": broker,
                "source_kind": kind,
                "event_time": at(hours),
                "log_level": level,
            }
            for broker, kind, level, hours in (
                (1, "server_log", "INFO", 8),
                (1, "controller_log", "TRACE", 8),
                (1, "state_change_log", "TRACE", 9),
                (2, "server_log", "WARN", 9),
                (2, "server_log", "INFO", 13),
                (2, "state_change_log", "INFO", 8.1),
                (2, "state_change_log", "ERROR", 13),
            )
        ],
    )
    clocks = spark.createDataFrame([], ", ".join(f"{name} {kind}" for name, kind in SEGMENT_COLUMNS.items()))
    append(made, CAPTURE_GAPS, MISSED)
    covered = evidence_coverage(made.read(INGESTED_FILES), clocks, jumps(made), made.read(CAPTURE_GAPS))
    made.overwrite(covered, EVIDENCE_COVERAGE)
    return made


def us(hours):
    return round(at(hours).timestamp() * 1_000_000)


def jumps(lake):
    """Broker 1's controller.log jumps back as a clock that was set does, broker 2's state-change.log as none does."""
    return lake.spark.createDataFrame(
        [("c", "1-controller.log", 1, 1, [us(8.5), us(9)]), ("c", "2-state-change.log", 40, 20, [us(10), us(11)])],
        "cluster_id string, file_id string, jumps_back bigint, far_jumps_back bigint, set_back array<bigint>",
    )


@pytest.fixture(scope="module")
def rows(lake):
    return lake.read(EVIDENCE_COVERAGE).collect()


def test_every_file_with_instants_is_covered_once(rows):
    covered = Counter((row["cluster_id"], row["broker_id"]) for row in rows if row["coverage"] == "covered")
    assert covered == {("c", 1): 8, ("c", 2): 4, ("c", -1): 3, ("whole", 1): 2}


def test_gaps_are_found_with_their_reasons(rows):
    gaps = [
        (row["broker_id"], row["source_kind"], row["gap_reason"], row["valid_from"], row["valid_to"])
        for row in rows
        if row["coverage"] == "gap" and row["gap_reason"] != NOT_CAPTURED
    ]
    naive = {hours: at(hours).replace(tzinfo=None) for hours in (9, 9.9, 10, 11, 12)}
    assert sorted(gaps) == [
        (1, "server_log", "missing_period", naive[10], naive[11]),
        (2, "server_log", "missing_number", naive[9.9], naive[12]),
        (2, "state_change_log", "unread_file", naive[9], naive[10]),
    ]


def test_spans_that_are_too_coarse_are_joined(rows):
    coarse = [
        (row["cluster_id"], row["broker_id"], row["source_kind"], row["level_floor"], row["records_count"])
        for row in rows
        if row["coverage"] == "too_coarse"
    ]
    assert coarse == [("c", 2, "state_change_log", "INFO", 1000)]


def test_a_file_whose_times_jump_back_more_often_than_a_clock_is_set_is_out_of_order(rows):
    out_of_order = [
        (row["cluster_id"], row["broker_id"], row["source_file"], row["valid_from"], row["records_count"])
        for row in rows
        if row["coverage"] == "out_of_order"
    ]
    assert out_of_order == [("c", 2, "broker-2/logs/state-change.log", at(10.1).replace(tzinfo=None), 500)]


def test_a_time_that_a_file_tells_twice_is_recorded(rows):
    naive = {hours: at(hours).replace(tzinfo=None) for hours in (8.5, 9)}
    assert [
        (row["broker_id"], row["source_file"], row["valid_from"], row["valid_to"])
        for row in rows
        if row["coverage"] == "clock_set_back"
    ] == [(1, "broker-1/logs/controller.log", naive[8.5], naive[9])]


def test_the_jumps_of_a_file_are_counted_in_the_order_of_its_bytes(spark):
    times = {"a": (0, 5, 3, 3.5, 200, 100, 101), "b": (0, 1, 0.5, 2), "of no broker": (9, 0)}
    rows = [
        ("c", None if name == "of no broker" else 1, name, "server_log", offset, DAY + timedelta(seconds=second))
        for name, seconds in times.items()
        for offset, second in enumerate(seconds)
    ]
    names = (
        "cluster_id string, broker_id int, file_id string, source_kind string, byte_offset long,"
        " corrected_time timestamp"
    )
    found = jumps_of_files(spark.createDataFrame(rows[::-1], names)).collect()
    assert [row.asDict() for row in found] == [
        {
            "cluster_id": "c",
            "file_id": "a",
            "jumps_back": 2,
            "far_jumps_back": 1,
            "set_back": [round((DAY + timedelta(seconds=s)).timestamp() * 1_000_000) for s in (100, 200)],
        }
    ]


def test_an_outage_of_a_capture_is_a_gap_where_it_tells_its_end(rows):
    found = sorted(
        (row["source_kind"], row["broker_id"], row["valid_from"].astimezone(UTC), row["valid_to"].astimezone(UTC))
        for row in rows
        if row["gap_reason"] == NOT_CAPTURED
    )
    assert found == [
        ("offset_probe", -1, at(12.0), at(12.1)),
        ("offset_probe", 2, at(9.0), at(9.5)),
        ("znode_snapshot", -1, at(10.0), at(10.1)),
    ]


def test_rows_keep_the_spec(rows):
    keys = Counter(tuple(row[name] for name in EVIDENCE_COVERAGE.key) for row in rows)
    assert max(keys.values()) == 1
    assert all(row["valid_from"] <= row["valid_to"] for row in rows)
    assert all((row["gap_reason"] is not None) == (row["coverage"] == "gap") for row in rows)


def test_the_order_of_the_files_does_not_matter(lake, rows):
    files = lake.read(INGESTED_FILES).repartition(7, "file_id").orderBy("file_id", ascending=False)
    clocks = lake.spark.createDataFrame([], ", ".join(f"{name} {kind}" for name, kind in SEGMENT_COLUMNS.items()))
    again = evidence_coverage(files, clocks, jumps(lake), lake.read(CAPTURE_GAPS)).collect()
    assert sorted(map(repr, again)) == sorted(map(repr, rows))


def test_the_report_gathers_it_and_says_it(lake):
    source = Source(lake, Limits(), ("c", "whole"))
    drawn = evidence.gather(source)["c"]
    assert {row.gap_reason for row in drawn if row.coverage == "gap"} == {
        "missing_period",
        "missing_number",
        "unread_file",
        NOT_CAPTURED,
    }
    held, holes = available_evidence(source), evidence_holes(source)
    floors = {(row.broker_id, row.source_kind): row.level_floor for row in held["c"]}
    assert floors[2, "state_change_log"] == "INFO"
    assert floors[-1, "znode_snapshot"] is None
    assert {row.cause for row in holes["c"]} == {
        "gap",
        "out_of_order",
        "clock_set_back",
        "too_coarse",
        "silence",
        NOT_CAPTURED,
    }
    assert "whole" not in holes
    found = cannot_be_said(EvidenceLimits(held["c"], holes["c"]), [1, 2, 3], ["3.9.1"])
    told = [sentence.text for sentence in found.sentences]
    assert told[0].startswith("No log of broker 3 was given:")
    assert any("server.log of broker 1 are most likely missing from 2026-11-21 10:00" in text for text in told)
    assert any("state-change.log of broker 2 holds nothing below INFO:" in text for text in told)
    assert any("No controller.log of broker 2 was given" in text for text in told)
    assert any("could not record the log ends and high watermarks of broker 2 from" in text for text in told)
    assert any("controller.log of broker 1 tells the time from 2026-11-21 08:30:00.000 to 09:00" in t for t in told)
    assert any("lines of the state-change.log of broker 2 from 2026-11-21 10:06" in text for text in told)
    assert not any(text.startswith("No file of the server.log of broker 2") for text in told)
