"""One job at a time writes a lake: whoever comes second waits or is told, and nobody waits for the dead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ingest.lake import lease as leases
from ingest.lake.delta import Lake, LakeError
from ingest.lake.lease import Holder, LakeBusy, Lease, only_writer


def silent(_: str) -> None:
    pass


@pytest.fixture
def new_lake(spark, tmp_path: Path) -> Lake:
    return Lake(spark, str(tmp_path / "lake"))


def write_holder(lake: Lake, number: int, holder: Holder) -> None:
    folder = Path(lake.root) / leases.FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    members = {name: getattr(holder, name) for name in Holder.__dataclass_fields__}
    (folder / f"{number:012}.json").write_text(json.dumps(members))


def elsewhere(process_id: int = 1) -> Holder:
    return Holder("reconstruct", "other-host", process_id, "other-host boot pid", "7", "2026-11-23 01:00:00+00:00")


def test_a_second_writer_is_told_who_writes(new_lake):
    with (
        only_writer(new_lake, "ingest", 0, silent),
        pytest.raises(LakeBusy, match=rf"written by `ingest` \(process {os.getpid()} on .*--wait SECONDS"),
        only_writer(new_lake, "reconstruct", 0, silent),
    ):
        raise AssertionError("two writers at once")


def test_the_next_one_gets_it_whether_the_first_failed_or_not(new_lake):
    with pytest.raises(ZeroDivisionError), only_writer(new_lake, "ingest", 0, silent):
        _ = 1 // 0
    for _ in range(3):
        with only_writer(new_lake, "reconstruct", 0, silent):
            pass
    names = sorted(path.name for path in (Path(new_lake.root) / leases.FOLDER).iterdir() if path.name[0] != ".")
    assert names == ["000000000004.beat", "000000000004.done", "000000000004.json"]


def test_who_waits_gets_it_when_the_other_has_ended(new_lake, monkeypatch):
    monkeypatch.setattr(leases, "_LOOK_S", 0.05)
    order, told = [], []
    held, may_end = threading.Event(), threading.Event()

    def first() -> None:
        with only_writer(new_lake, "ingest", 0, silent):
            held.set()
            may_end.wait(30)
            order.append("first")

    thread = threading.Thread(target=first)
    thread.start()
    assert held.wait(30)

    def waiting(sentence: str) -> None:
        told.append(sentence)
        may_end.set()

    with only_writer(new_lake, "reconstruct", 60, waiting):
        order.append("second")
    thread.join()
    assert order == ["first", "second"]
    assert len(told) == 1
    assert told[0].startswith("waiting for `ingest` (process ")


def test_of_many_at_once_one_at_a_time_writes(new_lake, monkeypatch):
    monkeypatch.setattr(leases, "_LOOK_S", 0.02)
    inside, most, done = 0, 0, []
    lock = threading.Lock()

    def writer(number: int) -> None:
        nonlocal inside, most
        with only_writer(new_lake, f"job {number}", 120, silent):
            with lock:
                inside += 1
                most = max(most, inside)
            time.sleep(0.02)
            with lock:
                inside -= 1
            done.append(number)

    threads = [threading.Thread(target=writer, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert sorted(done) == list(range(6))


def test_a_process_of_this_machine_that_is_gone_holds_nothing(new_lake):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        alive = Holder("run", os.uname().nodename, child.pid, leases._machine(), leases._started(child.pid), "then")
        write_holder(new_lake, 1, alive)
        with pytest.raises(LakeBusy, match="`run`"), only_writer(new_lake, "ingest", 0, silent):
            raise AssertionError("it runs still")
    finally:
        child.kill()
        child.wait()
    with only_writer(new_lake, "ingest", 0, silent):
        pass


def test_a_process_id_that_another_process_has_now_holds_nothing(new_lake):
    write_holder(
        new_lake, 1, Holder("run", os.uname().nodename, os.getpid(), leases._machine(), "an earlier start", "then")
    )
    with only_writer(new_lake, "ingest", 0, silent):
        pass


def test_one_of_another_machine_is_believed_while_it_counts_on(new_lake, monkeypatch):
    monkeypatch.setattr(leases, "_LOOK_S", 0.05)
    monkeypatch.setattr(leases, "SILENT_S", 0.5)
    write_holder(new_lake, 1, elsewhere())
    beat = Path(new_lake.root) / leases.FOLDER / "000000000001.beat"
    stop = threading.Event()

    def count() -> None:
        number = 0
        while not stop.wait(0.1):
            number += 1
            # by another name first: who reads finds the old count or the new one
            (beat.parent / "new").write_text(str(number))
            (beat.parent / "new").rename(beat)
            (beat.parent / f".{beat.name}.crc").unlink(missing_ok=True)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        with pytest.raises(LakeBusy), only_writer(new_lake, "ingest", 2, silent):
            raise AssertionError("it counts on")
    finally:
        stop.set()
        thread.join()
    with only_writer(new_lake, "ingest", 60, silent):
        pass


def test_one_that_was_silent_for_half_an_hour_need_not_be_waited_for(new_lake):
    write_holder(new_lake, 1, elsewhere())
    path = Path(new_lake.root) / leases.FOLDER / "000000000001.json"
    long_ago = time.time() - leases.LONG_SILENT_S - 60
    os.utime(path, (long_ago, long_ago))
    with only_writer(new_lake, "ingest", 0, silent):
        pass


def test_who_was_taken_for_dead_is_stopped(spark, new_lake, monkeypatch):
    monkeypatch.setattr(leases, "BEAT_S", 0.05)
    endless = spark.range(10**12).selectExpr("sum(id % 7)")

    def write() -> None:
        with only_writer(new_lake, "reconstruct", 0, silent):
            write_holder(new_lake, 2, elsewhere())
            endless.collect()

    with pytest.raises(LakeError, match="was taken over by another job"):
        write()


def test_a_lease_that_is_held_is_counted_on(new_lake, monkeypatch):
    monkeypatch.setattr(leases, "BEAT_S", 0.05)
    lease = Lease(new_lake, "run")
    lease.take(0, silent)
    beat = Path(new_lake.root) / leases.FOLDER / "000000000001.beat"
    seen = set()
    until = time.monotonic() + 30
    while len(seen) < 3 and time.monotonic() < until:
        seen.add(beat.read_text() if beat.exists() else "")
        time.sleep(0.01)
    lease.give_back()
    assert len(seen) >= 3
