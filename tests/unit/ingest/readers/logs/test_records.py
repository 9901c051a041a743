"""Framed records to rows: message, logger, continuation, time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from ingest.readers.logs import records as log_records
from ingest.readers.work import Rejected, WorkItem
from ingest.shapes import match_cause
from tests.support.files.log_samples import LAYOUT_SAMPLES


@dataclass
class FakeMatch:
    shape_id: str = "S1"
    event_type: str = "fake"
    fields: Mapping[str, str] = field(default_factory=lambda: {"a": "1", "b": "2"})


def item_of(data: bytes, layout: str, kind: str = "server_log", zone: str = "UTC", name: str = "l") -> WorkItem:
    return WorkItem("/l", None, name, kind, "c", 1, "f", "f", len(data), layout=layout, time_zone=zone)


def read(
    data: bytes,
    layout: str = "bracketed",
    kind: str = "server_log",
    zone: str = "UTC",
    name: str = "l",
    streams: Mapping[str, int | None] | None = None,
) -> list[dict[str, Any]]:
    item = item_of(data, layout, kind, zone, name)
    if streams is not None:
        object.__setattr__(item, "streams", streams)

    def match(source_kind: str, logger: str | None, message: str) -> FakeMatch | None:
        return FakeMatch() if "known" in message else None

    found = list(log_records.read(item, [data], match))
    rejects = [one for one in found if isinstance(one, Rejected)]
    rows = [row for batch in found if not isinstance(batch, Rejected) for row in batch.to_pylist()]
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


def test_each_record_of_several_processes_is_of_its_own_broker() -> None:
    line = b"[2026-11-21 03:30:16,055] INFO x (kafka.A)\n"
    data = b"".join(name + b"  | " + line for name in (b"kafka-1", b"kafka-2", b"zookeeper"))
    streams = {"kafka-1": 1, "kafka-2": 2, "zookeeper": None}
    rows = read(data, "compose+bracketed", streams=streams)
    assert sorted((row["byte_offset"], row["broker_id"]) for row in rows) == [
        (0, 1),
        (len(b"kafka-1  | " + line), 2),
        (2 * len(b"kafka-1  | " + line), None),
    ]
    assert [row["broker_id"] for row in read(data, "compose+bracketed")] == [1, 1, 1]


def test_a_stack_trace_goes_to_the_record_of_its_own_process() -> None:
    one, two = b"kafka-1  | ", b"kafka-2  | "
    head = b"[2026-11-21 03:30:16,055] ERROR %s (kafka.A)\n"
    rows = read(one + head % b"a" + two + head % b"b" + one + b"\tat one\n" + two + b"\tat two\n", "compose+bracketed")
    assert {row["message"]: row["continuation"] for row in rows} == {"a": "\tat one", "b": "\tat two"}


def test_the_thread_stands_behind_the_logger() -> None:
    (row,) = read(
        b"2026-11-21 03:30:16,055 INFO [KafkaServer id=1] started (kafka.server.KafkaServer) [main]\n",
        "level_thread_at_end",
    )
    assert (row["message"], row["thread"]) == ("[KafkaServer id=1] started", "main")
    assert row["logger"] == "kafka.server.KafkaServer"


def test_a_json_record_with_a_stack_trace() -> None:
    entry = {
        "@timestamp": "2026-11-21T03:30:16.055Z",
        "log.level": "error",
        "message": "[Broker id=1] known\nand more",
        "log.logger": "state.change.logger",
        "error.stack_trace": "java.lang.E: no\n\tat a.B.c(B.scala:1)\n",
    }
    (row,) = read(json.dumps(entry).encode() + b"\n", "json_ecs")
    assert (row["message"], row["logger"]) == ("[Broker id=1] known\nand more", "state.change.logger")
    assert row["continuation"] == "java.lang.E: no\n\tat a.B.c(B.scala:1)"
    assert (row["log_level"], row["thread"], row["source_kind"]) == ("ERROR", None, "state_change_log")
    assert row["event_time"].isoformat() == "2026-11-21T03:30:16.055000+00:00"
    assert (row["event_time_text"], row["event_type"]) == ("2026-11-21T03:30:16.055Z", "fake")


@pytest.mark.parametrize("name", ["json_log4j2", "json_ecs", "json_logstash", "json_gelf", "json"])
def test_every_dialects_stack_trace_reads_as_java_writes_it(name: str) -> None:
    (row,) = read(LAYOUT_SAMPLES[name][1].encode() + b"\n", name)
    assert (row["thread"], row["logger"]) == ("main", "kafka.server.KafkaServer")
    assert row["log_level"] in ("ERROR", "FATAL")
    assert row["continuation"] == "java.lang.IllegalStateException: no\n\tat kafka.Kafka$.main(Kafka.scala:109)"


def test_a_log_without_dates_takes_the_day_from_its_name() -> None:
    data = b"[03:30:16,055] INFO x (kafka.A)\n"
    (row,) = read(data, name="broker-1/server.log.2026-11-21-03")
    assert row["event_time"].isoformat() == "2026-11-21T03:30:16.055000+00:00"
    assert row["event_time_text"] == "03:30:16,055"
    (reject,) = log_records.read(item_of(data, "bracketed", name="broker-1/server.log"), [data], lambda *_: None)
    assert "server.log.2024-03-11" in reject.reason


def test_records_of_the_repeated_hour_keep_their_order() -> None:
    times = ["01:59:59", "02:10:00", "02:50:00", "02:00:01", "02:49:59", "03:00:00"]
    rows = read(
        b"".join(b"[2024-10-27 %s,000] INFO x (kafka.A)\n" % time.encode() for time in times), zone="Europe/Berlin"
    )
    printed = [row["event_time"].strftime("%H:%M:%S") for row in rows]
    assert printed == ["23:59:59", "00:10:00", "00:50:00", "01:00:01", "01:49:59", "02:00:00"]


def test_a_part_that_begins_in_the_second_pass_knows_it_from_what_follows() -> None:
    line = b"[2024-10-27 %s,000] INFO x (kafka.A)\n"
    second = read(line % b"02:10:00" + line % b"02:50:00" + line % b"03:00:00", zone="Europe/Berlin")
    assert [row["event_time"].hour for row in second] == [1, 1, 2]
    first = read(line % b"02:10:00" + line % b"02:50:00" + line % b"02:01:00", zone="Europe/Berlin")
    assert [row["event_time"].hour for row in first] == [0, 0, 1]


def test_each_process_has_an_order_of_its_own() -> None:
    line = b"kafka-%d  | [2024-10-27 %s,000] INFO x (kafka.A)\n"
    rows = read(
        line % (1, b"02:05:00") + line % (2, b"02:05:00") + line % (1, b"02:50:00") + line % (2, b"02:51:00"),
        "compose+bracketed",
        zone="Europe/Berlin",
    )
    assert {row["event_time"].hour for row in rows} == {0}


def test_json_with_damaged_text_is_kept() -> None:
    (row,) = read(b'{"time":1614676364001,"level":"INFO","message":"a\xffb \\ud800"}\n', "json")
    assert row["message"].startswith("a\ufffdb ")
    assert row["event_time_text"] == "1614676364001"


def test_deeply_nested_or_odd_json_is_rejected_and_raises_nothing() -> None:
    odd = [b"[" * 100_000, b'{"a":' * 100_000, b'{"time":[],"level":{},"message":1}', b'{"time":true}', b"{}", b"[]"]
    for line in odd:
        assert read(line + b"\n", "json") == []
        assert read(line + b"\n", "docker_json+bracketed") == []


def test_the_exception_behind_a_message_is_named() -> None:
    data = (
        b"[2014-03-11 10:21:07,123] ERROR Controller 1 epoch 2 initiated state change failed (state.change.logger)\n"
        b"kafka.common.NoReplicaOnlineException: No replica for partition [t,0] is alive. Live brokers are: [Set()],"
        b" Assigned replicas are: [List(1, 2)]\n\tat kafka.controller.A.b(A.scala:1)\n"
        b"[2014-03-11 10:21:08,123] ERROR another (state.change.logger)\njava.lang.Unheard: of\n"
    )
    (batch,) = log_records.read(item_of(data, "bracketed"), [data], lambda *_: None, match_cause)
    assert batch.column("cause_type").to_pylist() == ["no_replica_online", None]
