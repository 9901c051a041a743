"""Framed records to rows: message, logger, continuation, time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from ingest.logs import records as log_records
from ingest.logs.times import LogClock, prints_zone
from ingest.work import WorkItem


@dataclass
class FakeMatch:
    shape_id: str = "S1"
    event_type: str = "fake"
    fields: Mapping[str, str] = field(default_factory=lambda: {"a": "1", "b": "2"})


def read(data: bytes, layout: str = "bracketed", kind: str = "server_log", zone: str = "UTC") -> list[dict[str, Any]]:
    item = WorkItem("/l", None, "l", kind, "c", 1, "f", "f", len(data), layout=layout, time_zone=zone)
    counted: list[tuple[int, int]] = []

    def match(source_kind: str, logger: str | None, message: str) -> FakeMatch | None:
        return FakeMatch() if "known" in message else None

    rows = [
        row
        for batch in log_records.kept(item, [data], match, lambda *counts: counted.append(counts))
        for row in batch.to_pylist()
    ]
    rejects = list(log_records.rejected(item, [data]))
    assert counted == [(len(rows) + len(rejects), len(rejects))]
    assert sum(row["byte_length"] for row in rows) + sum(r.place.length for r in rejects) == len(data)
    return rows


def test_a_record_with_a_stack_trace() -> None:
    (row,) = read(
        b"[2026-11-21 03:30:16,055] ERROR [KafkaApi-1] known (id: 1) bad (kafka.server.KafkaApis)\r\n"
        b"java.lang.Exception: why (x)\r\n\tat a.B.c(B.scala:1)\r\n"
    )
    assert row["message"] == "[KafkaApi-1] known (id: 1) bad"
    assert row["logger"] == "kafka.server.KafkaApis"
    assert row["continuation"] == "java.lang.Exception: why (x)\n\tat a.B.c(B.scala:1)"
    assert (row["log_level"], row["thread"], row["broker_id"]) == ("ERROR", None, 1)
    assert (row["shape_id"], row["event_type"], row["fields"]) == ("S1", "fake", [("a", "1"), ("b", "2")])
    assert row["event_time"].isoformat() == "2026-11-21T03:30:16.055000+00:00"
    assert row["event_time_text"] == "2026-11-21 03:30:16,055"


def test_the_logger_stands_at_the_end_of_the_last_line_of_the_message() -> None:
    (row,) = read(
        b"[2026-11-21 03:30:16,055] INFO KafkaConfig values: \n\tbroker.id = 1\n\tport = 2\n"
        b" (kafka.server.KafkaConfig)\nrest\n"
    )
    assert row["logger"] == "kafka.server.KafkaConfig"
    assert row["message"] == "KafkaConfig values: \n\tbroker.id = 1\n\tport = 2\n"
    assert row["continuation"] == "rest"
    assert (row["event_type"], row["shape_id"], row["fields"]) == ("unrecognised", None, [])


def test_an_exception_line_that_ends_like_a_logger_is_no_logger() -> None:
    (row,) = read(b"[2026-11-21 03:30:16,055] ERROR failed\njava.io.IOException: no (kafka.x)\n\tat a.b(C.java:1)\n")
    assert row["logger"] is None
    assert row["message"] == "failed"


def test_each_record_of_a_mixed_file_has_the_kind_of_its_logger() -> None:
    rows = read(
        b"[2026-11-21 03:30:16,055] TRACE [Broker id=1] x (state.change.logger)\n"
        b"[2026-11-21 03:30:16,055] INFO [Controller id=1] x (kafka.controller.KafkaController:66)\n"
        b"[2026-11-21 03:30:16,055] INFO x (org.apache.zookeeper.ZooKeeper)\n"
    )
    assert [row["source_kind"] for row in rows] == ["state_change_log", "controller_log", "server_log"]
    assert rows[1]["logger"] == "kafka.controller.KafkaController"


def test_without_loggers_the_message_tells_the_kind() -> None:
    rows = read(
        b"2026-11-21 03:30:16,055 TRACE Controller 1 epoch 2 changed x\n"
        b"2026-11-21 03:30:16,055 INFO Registered broker\n",
        layout="level",
    )
    assert [row["source_kind"] for row in rows] == ["state_change_log", "server_log"]


def test_a_time_that_no_calendar_has_is_rejected() -> None:
    assert read(b"[2026-02-30 03:30:16,055] INFO x (kafka.A)\n") == []


def test_record_ids_depend_on_place_and_bytes_only() -> None:
    line = b"[2026-11-21 03:30:16,055] INFO same (kafka.A)\n"
    once, twice = read(line), read(line + line)
    assert once[0]["record_id"] == twice[0]["record_id"] != twice[1]["record_id"]


@pytest.mark.parametrize(
    ("text", "zone", "utc_micros"),
    [
        ("1970-01-01 00:00:01,002", "UTC", 1_002_000),
        ("1970-01-01T00:00:01.000002Z", "Europe/Berlin", 1_000_002),
        ("1970-01-01 01:00:01,500", "+01:00", 1_500_000),
        ("1970-01-01 00:00:01+0100", "UTC", -3_599_000_000),
        ("2026-07-01 02:00:00,000", "Europe/Berlin", 1_782_864_000_000_000),
        ("1970-01-01 00:00:01,123456789", "UTC", 1_123_456),
        ("1970-13-01 00:00:01,002", "UTC", None),
    ],
)
def test_times_become_instants(text: str, zone: str, utc_micros: int | None) -> None:
    clock = LogClock(zone)
    assert [clock.micros(text), clock.micros(text)] == [utc_micros, utc_micros]


def test_a_zone_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match="Mars/Base is no time zone"):
        LogClock("Mars/Base")
    assert prints_zone("2024-01-01T00:00:00Z")
    assert not prints_zone("2024-01-01 00:00:00,000")
