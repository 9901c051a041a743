"""The agent beside a broker: what is lost of one folder costs nothing of the others."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import pytest

from ingest.capture import BrokerFiles, CaptureError, CaptureParams, run_capture

META = "version=0\nbroker.id=1\ncluster.id=x\n"
CHECKPOINT = "replication-offset-checkpoint"


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """Two log directories, a folder of logs and a configuration."""
    for name in ("data1", "data2"):
        (tmp_path / name / f"{name}-0").mkdir(parents=True)
        (tmp_path / name / CHECKPOINT).write_text(f"0\n1\n{name} 0 5\n")
        (tmp_path / name / "meta.properties").write_text(META)
        (tmp_path / name / f"{name}-0/leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/server.log").write_text("one\n")
    (tmp_path / "server.properties").write_text("broker.id=1\nssl.key.password=hunter2\n")
    return tmp_path


def params(broker: Path, **more) -> CaptureParams:
    files = BrokerFiles(
        1, (f"{broker}/logs",), (f"{broker}/data1", f"{broker}/data2"), (f"{broker}/server.properties",)
    )
    return CaptureParams(f"{broker}/c", brokers=(files,), interval_s=0.05, **more)


def test_everything_of_a_broker_is_taken(broker):
    summary = run_capture(params(broker, rounds=3), threading.Event())
    found = sorted(
        path.relative_to(broker / "c/broker-1").as_posix()
        for path in (broker / "c/broker-1").rglob("*")
        if path.is_file() and "checkpoints/" not in path.as_posix()
    )
    assert found == [
        "leader-epoch-checkpoint/data1-0",
        "leader-epoch-checkpoint/data2-0",
        "logs/server.log",
        "meta.properties",
        "server.properties",
    ]
    for name in ("data1", "data2"):
        copies = list((broker / f"c/broker-1/checkpoints/{name}/{CHECKPOINT}").iterdir())
        assert [copy.read_text() for copy in copies] == [f"0\n1\n{name} 0 5\n"] * 2
    assert "hunter2" not in (broker / "c/broker-1/server.properties").read_text()
    assert (summary.rounds, summary.copies, summary.log_bytes, summary.missed) == (3, 6, 4, ())


def test_a_disk_that_is_lost_costs_only_what_is_on_it(broker):
    stop, said = threading.Event(), []

    def report(sentence: str) -> None:
        said.append(sentence)
        if "data1" in sentence:
            (broker / "data2" / CHECKPOINT).write_text("0\n1\ndata2 0 77\n")

    timer = threading.Timer(0.3, lambda: shutil.rmtree(broker / "data1"))
    timer.start()
    threading.Timer(1.0, stop.set).start()
    run_capture(params(broker), stop, report)
    assert [sentence for sentence in said if "data1" in sentence]
    copies = (broker / f"c/broker-1/checkpoints/data2/{CHECKPOINT}").iterdir()
    assert "0\n1\ndata2 0 77\n" in [copy.read_text() for copy in copies]
    missed = [json.loads(line) for line in (broker / "c/broker-1/missed.jsonl").read_text().splitlines()]
    assert {entry["of"] for entry in missed} == {f"broker 1: {broker}/data1"}


def test_instants_of_copies_go_on_behind_those_of_an_earlier_capture(broker):
    run_capture(params(broker, rounds=1), threading.Event())
    run_capture(params(broker, rounds=1), threading.Event())
    copies = list((broker / f"c/broker-1/checkpoints/data1/{CHECKPOINT}").iterdir())
    assert len(copies) == 2


def test_a_folder_that_is_not_there_is_one_sentence(broker):
    shutil.rmtree(broker / "logs")
    with pytest.raises(CaptureError, match=r"^there is no folder .*/logs$"):
        run_capture(params(broker, rounds=1), threading.Event())


def test_with_waits_a_folder_may_come_later(broker):
    (broker / "data1").rename(broker / "later")
    stop = threading.Event()

    def report(sentence: str) -> None:
        if "not recorded" in sentence and (broker / "later").exists():
            (broker / "later").rename(broker / "data1")
        if "recorded again" in sentence:
            stop.set()

    run_capture(params(broker, waits=True, duration_s=20), stop, report)
    assert list((broker / f"c/broker-1/checkpoints/data1/{CHECKPOINT}").iterdir())


def test_nothing_to_capture_is_one_sentence(tmp_path):
    with pytest.raises(CaptureError, match=r"^nothing to capture: name ZooKeeper, bootstrap servers"):
        run_capture(CaptureParams(str(tmp_path / "c")), threading.Event())
