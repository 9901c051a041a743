"""What a capture costs: fake brokers on loopback, in a process of their own, polled as fast as they answer.

Nothing sleeps: work is bounded by its count, and the load of one round a second follows from the processor's time that
a round takes.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import shutil
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace

import pytest

from ingest.capture import CaptureParams, run_capture
from ingest.capture.output import CaptureFolder
from ingest.capture.zookeeper.tree import ZnodeTree
from ingest.capture.zookeeper.znodes import line_tail, snapshot_lines
from tests.unit.ingest.capture.fake_broker import FakeBroker, FakeCluster

pytestmark = pytest.mark.benchmark

BROKERS = 3
PARTITIONS = 1000
#: 3600 is the work of an hour at a round a second.
ROUNDS = int(os.environ.get("BENCHMARK_ROUNDS", "600"))
#: A round a second of 1,000 partitions may take so much of one core per broker.
MOST_OF_A_CORE = 0.05
STAT = SimpleNamespace(
    czxid=1,
    mzxid=2,
    pzxid=3,
    ctime=1795231548594,
    mtime=1795231548594,
    version=6,
    cversion=7,
    ephemeralOwner=0,
    numChildren=0,
)


def partitions() -> dict[tuple[str, int], tuple[list[int], int, int]]:
    """A hundred topics of ten partitions, three replicas each."""
    return {
        (f"topic-{number // 10}", number % 10): ([1 + (number + k) % BROKERS for k in range(3)], 10**6, 10**6 - 5)
        for number in range(PARTITIONS)
    }


def serve(connection: Connection) -> None:
    cluster = FakeCluster(partitions())
    for broker_id in range(1, BROKERS + 1):
        FakeBroker(cluster, broker_id).is_static = True
    connection.send(cluster.brokers[1].address)
    connection.recv()


@pytest.fixture
def bootstrap_server() -> Iterator[str]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    yield ours.recv()
    ours.send("end")
    process.join(10)
    process.kill()


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_probing_a_thousand_partitions_takes_little_of_a_core_and_no_memory(bootstrap_server, tmp_path, capsys):
    stop = threading.Event()
    out = tmp_path / "capture"

    def capture(rounds: int) -> tuple[float, float, int]:
        """Processor's time, seconds and answers of so many rounds; each begins when the one before has its answers."""
        params = CaptureParams(
            str(out), bootstrap_servers=bootstrap_server, rounds=rounds, interval_s=0.1, max_requests_per_second=10_000
        )
        began, spent = time.monotonic(), time.process_time()
        answers = run_capture(params, stop).answers
        return time.process_time() - spent, time.monotonic() - began, answers

    capture(20)
    gc.collect()
    before = resident_bytes()
    cpu, lasted, answers = capture(ROUNDS)
    gc.collect()
    grown = resident_bytes() - before
    shutil.rmtree(out)
    per_round = cpu / answers * (PARTITIONS * 4)
    with capsys.disabled():
        print(
            f"\nprobes: {answers:,} answers in {ROUNDS} rounds, {answers / cpu:,.0f} answers and"
            f" {answers / 4 / cpu:,.0f} partitions per second of one core; a round of {PARTITIONS:,} partitions on"
            f" {BROKERS} brokers takes {1000 * per_round:.1f} ms: {100 * per_round / BROKERS:.2f} % of a core per"
            f" broker at a round a second; memory grew by {grown / 2**20:.1f} MiB in {lasted:.0f} s"
        )
    assert answers > ROUNDS * PARTITIONS  # a round may begin while a broker still answers that before: it is skipped
    assert per_round / BROKERS < MOST_OF_A_CORE
    assert grown < 16 << 20


def test_a_snapshot_of_an_unchanged_tree_costs_its_writing(tmp_path, capsys):
    tree = ZnodeTree("")
    paths: dict[str, list[str]] = {"/": ["brokers"], "/brokers": ["topics"], "/brokers/topics": []}
    for topic, partition in partitions():
        at = f"/brokers/topics/{topic}"
        if at not in paths:
            paths["/brokers/topics"].append(topic)
            paths[at] = ["partitions"]
            paths[f"{at}/partitions"] = []
        paths[f"{at}/partitions"].append(str(partition))
        paths[f"{at}/partitions/{partition}"] = ["state"]
        paths[f"{at}/partitions/{partition}/state"] = []
    state = b'{"controller_epoch":3,"leader":1,"version":1,"leader_epoch":3,"isr":[1,2,3]}'
    began = time.process_time()
    for path, children in paths.items():
        tree.read(path, line_tail(path, state if path.endswith("state") else None, STAT), children)
    first = time.process_time() - began
    folder = CaptureFolder(str(tmp_path / "capture"))
    rounds = 50
    began = time.process_time()
    for number in range(rounds):
        tree.take_stale(1 + len(tree) // 300)
        folder.write(f"znodes/{1795231548594 + number}.jsonl", snapshot_lines(1795231548594 + number, tree.tails()))
    per_round = (time.process_time() - began) / rounds
    size = next((tmp_path / "capture/znodes").iterdir()).stat().st_size
    folder.close()
    with capsys.disabled():
        print(
            f"\nznodes: {len(tree):,} znodes, {size / 2**20:.2f} MiB a snapshot; first {1000 * first:.1f} ms, then"
            f" {1000 * per_round:.1f} ms: {100 * per_round:.2f} % of a core at a round a second"
        )
    assert per_round < MOST_OF_A_CORE
