"""Paths to bronze on a local session: what is new is taken once, every byte is accounted for."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ingest.lake.delta import Lake, PinnedLake
from ingest.lake.tables import TableSpec
from ingest.lake.tables.bronze import (
    BROKER_CONFIGS,
    BRONZE_TABLES,
    INGESTED_FILES,
    LEADER_EPOCH_CHECKPOINTS,
    LOG_RECORDS,
    OFFSET_CHECKPOINTS,
    REJECTED_RECORDS,
    ZNODE_SNAPSHOTS,
)
from ingest.run import reading
from ingest.run.pipeline import IngestError, IngestOptions, IngestReport, ingest_paths

CLUSTER = "zrP1uFLhTm-NHrAcRqvwIw"
TRACE = "java.lang.IllegalStateException: no\n\tat kafka.Foo.bar(Foo.scala:1)\n"


def record(second: int, text: str, logger: str = "kafka.server.KafkaServer", level: str = "INFO") -> str:
    return f"[2026-11-21 03:{second // 60:02d}:{second % 60:02d},123] {level} {text} ({logger})\n"


def server_log(seconds: int = 20) -> str:
    lines = [record(0, "[KafkaServer id=1] starting"), record(1, f"Cluster ID = {CLUSTER}")]
    lines += [record(second, "[Partition t-0 broker=1] Shrinking ISR") for second in range(2, seconds)]
    return "".join(lines) + record(seconds, "[KafkaServer id=1] failed", level="ERROR") + TRACE


def state_change_log(broker: int, seconds: int = 10) -> str:
    return "".join(
        record(second, f"[Broker id={broker}] Handling request {second}", "state.change.logger", "TRACE")
        for second in range(seconds)
    )


def write_capture(root: Path) -> Path:
    """A small capture of a made-up cluster, in the layout of real ones."""
    files = {
        "broker-1/logs/server.log": server_log(),
        "broker-1/logs/state-change.log": state_change_log(1),
        "broker-2/logs/state-change.log": state_change_log(2),
        "broker-1/server.properties": "broker.id=1\nssl.key.password=geheim\n",
        "broker-1/leader-epoch-checkpoint/a-b.c-0": "0\n1\n3 17\n",
        "broker-2/checkpoints/replication-offset-checkpoint/1795231841294": "0\n2\nt 0 5\nt 1 x\n",
        "broker-2/checkpoints/replication-offset-checkpoint/1795231842294": "0\n1\nt 0 6\n",
        "broker-2/checkpoints/log-start-offset-checkpoint/1795231841294": "",
        "znodes/1795231841294.jsonl": json.dumps({"captured_at": 1795231841294, "path": "/controller", "mzxid": 7})
        + "\n",
        "events.jsonl": '{"ts": 1, "what": "kill"}\n',
        "notes.txt": "nothing of Kafka's\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def ingest(lake: Lake, *paths: Path, **options: Any) -> IngestReport:
    report = ingest_paths(lake, [str(path) for path in paths], IngestOptions(**options), lambda message: None)
    assert report.records_read == report.records_kept + report.records_rejected
    return report


def rows(lake: Lake, spec: TableSpec) -> list[dict[str, Any]]:
    """The table's rows without our clock, in a fixed order."""
    found = [row.asDict(recursive=True) for row in PinnedLake(lake).read(spec).drop("ingested_at").collect()]
    return sorted(found, key=lambda row: json.dumps(row, default=str, sort_keys=True))


def bronze(lake: Lake, specs: Sequence[TableSpec] = BRONZE_TABLES) -> dict[str, list[dict[str, Any]]]:
    return {spec.name: rows(lake, spec) for spec in specs}


def new_lake(spark: Any, empty: Path, where: Path) -> Lake:
    shutil.copytree(empty, where)
    return Lake(spark, str(where))


def assert_accounted(lake: Lake) -> None:
    """Every byte of a log that was ingested belongs to one record, kept or rejected, without a gap."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for spec in (LOG_RECORDS, REJECTED_RECORDS):
        for row in rows(lake, spec):
            spans.setdefault(row["file_id"], []).append((row["byte_offset"], row["byte_length"]))
    for file in rows(lake, INGESTED_FILES):
        if file["layout"] and file["status"] == "ingested":
            end = 0
            for offset, length in sorted(spans[file["file_id"]]):
                assert offset == end
                end += length
            assert end == file["ingested_bytes"]
    ids = Counter(row["record_id"] for spec in BRONZE_TABLES[1:] for row in rows(lake, spec))
    assert not [record_id for record_id, count in ids.items() if count > 1]


def test_a_capture(lake: Lake, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "capture")
    report = ingest(lake, capture)
    assert (report.files_new, report.files_not_read, report.files_rejected) == (9, 1, 1)
    assert report.clusters == (CLUSTER,)
    assert not report.nothing_recognised
    assert_accounted(lake)
    logs = rows(lake, LOG_RECORDS)
    assert Counter((row["broker_id"], row["source_kind"]) for row in logs) == {
        (1, "server_log"): 21,
        (1, "state_change_log"): 10,
        (2, "state_change_log"): 10,
    }
    assert {row["cluster_id"] for row in logs} == {CLUSTER}
    failed = next(row for row in logs if row["continuation"])
    assert failed["source_line"] == 21
    (epoch,) = rows(lake, LEADER_EPOCH_CHECKPOINTS)
    assert (epoch["topic"], epoch["partition_id"], epoch["leader_epoch"], epoch["start_offset"]) == ("a-b.c", 0, 3, 17)
    assert epoch["broker_id"] == 1
    offsets = sorted(rows(lake, OFFSET_CHECKPOINTS), key=lambda row: row["offset"])
    assert [(row["offset"], row["broker_id"]) for row in offsets] == [(5, 2), (6, 2)]
    assert (offsets[0]["captured_at_upper"] - offsets[0]["captured_at"]).total_seconds() == 1
    assert offsets[1]["captured_at_upper"] is None
    assert [row["path"] for row in rows(lake, ZNODE_SNAPSHOTS)] == ["/controller"]
    assert {row["config_value"] for row in rows(lake, BROKER_CONFIGS)} == {"1", "[hidden]"}
    assert {(row["source_file"], row["source_line"]) for row in rows(lake, REJECTED_RECORDS)} == {
        ("broker-2/checkpoints/replication-offset-checkpoint/1795231841294", 4),
        ("notes.txt", 1),
    }
    server = next(row for row in rows(lake, INGESTED_FILES) if row["source_kind"] == "server_log")
    assert (server["layout"], server["level_floor"], server["time_zone"]) == ("bracketed", "INFO", "UTC")
    assert str(server["last_event_time"]) == "2026-11-21 03:00:20.123000"

    before = bronze(lake)
    again = ingest(lake, capture)
    assert (again.files_new, again.files_known, again.records_read) == (0, 9, 0)
    assert bronze(lake) == before


def test_the_order_of_paths_and_the_packing_change_no_row(
    spark: Any, lake: Lake, empty_lake_dir: Path, tmp_path: Path
) -> None:
    capture = write_capture(tmp_path / "capture")
    (capture / "copy-of-it.log").write_text(state_change_log(1, seconds=7))
    ingest(lake, capture / "broker-1", capture / "broker-2", capture / "znodes", capture / "copy-of-it.log")
    other = new_lake(spark, empty_lake_dir, tmp_path / "other")
    ingest(
        other,
        capture / "copy-of-it.log",
        capture / "znodes",
        capture / "broker-2",
        capture / "broker-1",
        split_bytes=300,
    )
    assert bronze(other) == bronze(lake)

    packed = tmp_path / "capture.tgz"
    with tarfile.open(packed, "w:gz") as archive:
        for name in ("znodes", "broker-2", "broker-1"):
            archive.add(capture / name, name)
    third = new_lake(spark, empty_lake_dir, tmp_path / "third")
    ingest(third, packed)
    assert {row["record_id"] for row in rows(third, LOG_RECORDS)} == {
        row["record_id"] for row in rows(lake, LOG_RECORDS)
    }
    assert {row["source_file"] for row in rows(third, LOG_RECORDS)} == {
        f"capture.tgz!broker-{broker}/logs/{name}.log"
        for broker, name in ((1, "server"), (1, "state-change"), (2, "state-change"))
    }
    known = ingest(lake, packed)
    assert (known.files_new, known.files_grown) == (0, 0)


def test_growth_rotation_and_compression(lake: Lake, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "server.log"
    log.parent.mkdir()
    whole = server_log(30)
    cut = whole.index("\tat kafka") + 5
    log.write_text(whole[:cut])
    first = ingest(lake, log.parent)
    assert (first.files_new, len(first.warnings)) == (1, 1)
    assert rows(lake, INGESTED_FILES)[0]["ingested_bytes"] == whole[:cut].rindex("\n") + 1
    assert_accounted(lake)

    log.write_text(whole + record(40, "later"))
    grown = ingest(lake, log.parent)
    assert (grown.files_new, grown.files_grown) == (0, 1)
    assert_accounted(lake)
    logs = sorted(rows(lake, LOG_RECORDS), key=lambda row: row["byte_offset"])
    assert logs[-2]["continuation"] == TRACE.rstrip("\n")
    assert (logs[-1]["message"], logs[-1]["source_line"], len(logs)) == ("later", 34, 32)

    before = bronze(lake)
    log.rename(log.with_name("server.log.2026-11-21-03"))
    assert ingest(lake, log.parent).files_known == 1
    (tmp_path / "logs" / "x.gz").write_bytes(gzip.compress((whole + record(40, "later")).encode()))
    (tmp_path / "logs" / "prefix.log").write_text(whole[: len(whole) // 2])
    assert ingest(lake, log.parent).files_known == 3
    (tmp_path / "short").mkdir()
    (tmp_path / "short" / "prefix.log").write_text(whole[: whole.index("\tat kafka")])
    assert ingest(lake, tmp_path / "short").files_known == 1
    assert bronze(lake) == before


def test_a_log_that_forks_from_another_gives_only_what_is_not_there(lake: Lake, tmp_path: Path) -> None:
    common = server_log(10)
    (tmp_path / "a.log").write_text(common + record(20, "a") + record(21, "a"))
    (tmp_path / "b.log").write_text(common + record(20, "b"))
    report = ingest(lake, tmp_path)
    assert (report.files_new, report.records_read) == (2, 14)
    assert Counter(row["message"] for row in rows(lake, LOG_RECORDS) if len(row["message"]) == 1) == {"a": 2, "b": 1}
    before = bronze(lake)
    assert ingest(lake, tmp_path).files_known == 2
    assert bronze(lake) == before


def test_odd_bytes_are_accounted_for(lake: Lake, tmp_path: Path) -> None:
    data = (
        b"orphan\n\tat a.B\n"
        + record(0, "[KafkaServer id=4] crlf").replace("\n", "\r\n").encode()
        + record(1, "nul \0 here").encode()
        + b"[2026-11-21 03:00:02,123] INFO damaged \xff\xfe text (kafka.server.KafkaServer)\n"
        + b"[2026-02-30 03:00:02,123] INFO no such day (kafka.server.KafkaServer)\n"
        + b"x" * (9 << 20)
        + b"\n"
        + record(3, "last").encode()
    )
    (tmp_path / "server.log").write_bytes(data)
    report = ingest(lake, tmp_path, time_zone="Europe/Berlin", kafka_version="1.1.1")
    assert (report.records_kept, report.records_rejected) == (4, 3)
    assert_accounted(lake)
    messages = {row["message"]: row for row in rows(lake, LOG_RECORDS)}
    assert set(messages) == {"[KafkaServer id=4] crlf", "nul \0 here", "damaged \ufffd\ufffd text", "last"}
    assert str(messages["last"]["event_time"]) == "2026-11-21 02:00:03.123000"
    assert {row["broker_id"] for row in messages.values()} == {4}
    assert messages["last"]["cluster_id"] == "unknown"
    assert max(len(row["raw"]) for row in rows(lake, REJECTED_RECORDS)) == 64 << 10
    (file,) = rows(lake, INGESTED_FILES)
    assert (file["kafka_version"], file["time_zone"]) == ("1.1.1", "Europe/Berlin")


def test_many_rejected_records_are_read_again_and_are_the_same(
    spark: Any, lake: Lake, empty_lake_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = write_capture(tmp_path / "capture")
    bad = "".join(record(second, "x").replace("11-21", "02-31") for second in range(50))
    (capture / "broker-1/logs/server.log").write_text(server_log() + bad + server_log())
    (capture / "broker-2/logs/server.log.gz").write_bytes(gzip.compress((server_log() + bad).encode())[:-4])
    ingest(lake, capture)
    monkeypatch.setattr(reading, "REJECTED_BYTES", 0)
    again = new_lake(spark, empty_lake_dir, tmp_path / "again")
    ingest(again, capture)
    assert len(rows(lake, REJECTED_RECORDS)) > 50
    assert bronze(again) == bronze(lake)
    assert_accounted(again)


def test_a_damaged_gzip_and_an_entry_that_points_outside(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "cut.log.gz").write_bytes(gzip.compress((server_log(600)).encode())[:-200])
    with tarfile.open(tmp_path / "evil.tar.gz", "w:gz") as archive:
        entry = tarfile.TarInfo("../../evil.log")
        entry.size = 1
        archive.addfile(entry, io.BytesIO(b"x"))
    report = ingest(lake, tmp_path, brokers={str(tmp_path): 9})
    assert (report.files_new, report.files_rejected) == (1, 1)
    assert_accounted(lake)
    reasons = [row["reason"] for row in rows(lake, REJECTED_RECORDS)]
    assert any("cut off" in reason for reason in reasons)
    assert any("points outside" in reason for reason in reasons)
    assert {row["broker_id"] for row in rows(lake, LOG_RECORDS)} == {9}


def test_what_a_killed_run_left_behind_is_replaced(spark: Any, lake: Lake, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "capture")
    ingest(lake, capture)
    before = bronze(lake)
    lake.overwrite(lake.read(INGESTED_FILES).where("1 = 0"), INGESTED_FILES)
    ingest(lake, capture)
    assert bronze(lake) == before


def test_bad_input_gives_one_sentence(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for paths, options, sentence in (
        ([tmp_path / "empty"], {}, "holds no files"),
        ([tmp_path / "nothing"], {}, "does not exist"),
        ([], {}, "no path was given"),
        ([tmp_path], {"time_zone": "Mars/Base"}, "is no time zone"),
    ):
        with pytest.raises(IngestError, match=sentence):
            ingest(lake, *paths, **options)
    (tmp_path / "notes.txt").write_text("hello\n")
    report = ingest(lake, tmp_path)
    assert report.nothing_recognised
    assert report.files_rejected == 1
