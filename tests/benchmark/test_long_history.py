"""What one partition costs that has most of the lines: ``lifecycle-1.1.1``, in which behind its end a follower of one
partition leaves the ISR and comes back again and again, at two lengths; and four such among many small ones."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from jobs import ingest_job, reconstruct_job
from jobs.command.job import lake_of
from jobs.session.session import build_session
from tests.benchmark.growing_cluster import first_day
from tests.benchmark.processor_time import Cost
from tests.benchmark.test_increments import program, show
from tests.support.captures.packed import TRUTH, unpack

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

CAPTURE: Final = "lifecycle-1.1.1"
FLAPS: Final = tuple(int(flaps) for flaps in os.environ.get("BENCHMARK_FLAPS", "400,1600").split(","))
#: Of four partitions, and how many copies of the topics of the capture, 13 partitions each, there are.
FLAPS_OF_FOUR: Final = int(os.environ.get("BENCHMARK_FLAPS_OF_FOUR", "6400"))
COPIES: Final = int(os.environ.get("BENCHMARK_COPIES", "160"))
#: Into so many parts shuffles go; of two, as on two processors, none can take three times the median.
PARTS: Final = int(os.environ.get("BENCHMARK_PARTS", "8"))
_BEGIN: Final = datetime(2026, 11, 21, 3, 33)
#: Of each broker: the file, and a line of it.
Line = tuple[str, str]


def flapping(folder: Path, flaps: int) -> Path:
    """The capture's files with the lines of so many departures of broker 3, a third of a minute each."""
    cluster = unpack(CAPTURE, folder, without=TRUTH)
    _add(cluster, _lines(flaps, ["orders-0"]))
    return cluster


def _add(cluster: Path, given: Iterator[Line]) -> None:
    lines: dict[str, list[str]] = {}
    for name, line in given:
        lines.setdefault(name, []).append(line)
    for name, added in lines.items():
        with (cluster / name).open("a", encoding="utf-8") as file:
            file.writelines(added)


def _lines(flaps: int, partitions: Sequence[str]) -> Iterator[Line]:
    versions, correlation_ids = count(10), count(100)
    for flap in range(flaps):
        for seconds, change, isr in (
            (0, "Shrinking ISR from 1,2,3 to 1,2", (1, 2)),
            (10, "Expanding ISR from 1,2 to 1,2,3", (1, 2, 3)),
        ):
            at = _BEGIN + timedelta(seconds=20 * flap + seconds)
            version, correlation_id = next(versions), next(correlation_ids)
            for partition in partitions:
                yield (
                    "broker-1/logs/server.log",
                    f"{_text(at)} INFO [Partition {partition} broker=1] {change} (kafka.cluster.Partition)\n",
                )
                yield from _published(partition, at + timedelta(seconds=1), isr, version, correlation_id)


def _published(partition: str, at: datetime, isr: tuple[int, ...], version: int, correlation_id: int) -> Iterator[Line]:
    """What the controller, broker 1, sends of it, and that each broker has received it."""
    state = (
        f"PartitionState(controllerEpoch=3, leader=1, leaderEpoch=4, isr=[{', '.join(map(str, isr))}],"
        f" zkVersion={version}, replicas=[1, 2, 3], offlineReplicas=[]) "
    )
    log = "broker-{}/logs/state-change.log".format
    yield (
        log(1),
        (
            f"{_text(at)} TRACE [Controller id=1 epoch=3] Sending UpdateMetadata request {state}to brokers Set(1, 2, 3)"
            f" for partition {partition} (state.change.logger)\n"
        ),
    )
    for broker in (1, 2, 3):
        yield (
            log(broker),
            (
                f"{_text(at + timedelta(milliseconds=2))} TRACE [Broker id={broker}] Cached leader info {state}for"
                f" partition {partition} in response to UpdateMetadata request sent by controller 1 epoch 3 with"
                f" correlation id {correlation_id} (state.change.logger)\n"
            ),
        )


def _text(at: datetime) -> str:
    return f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03}]"


def test_one_partition_has_most_of_the_lines(tmp_path: Path, capsys: Any) -> None:
    costs: dict[str, tuple[Cost, dict[str, Any]]] = {}
    for flaps in FLAPS:
        folder = flapping(tmp_path / str(flaps), flaps)
        lake = tmp_path / f"{flaps}.lake"
        costs[f"ingest {flaps}"] = program(lake, "ingest", str(folder))
        costs[f"reconstruct {flaps}"] = program(lake, "reconstruct")
    show(capsys, f"{' and '.join(map(str, FLAPS))} departures of one replica", costs)
    told = [
        costs[f"reconstruct {flaps}"][1]["reconstruct"]["rows"]["silver.leader_and_isr_timeline"] for flaps in FLAPS
    ]
    assert told[1] - told[0] == 2 * (FLAPS[1] - FLAPS[0])


class StageTasks(NamedTuple):
    """How long the tasks of one of Spark's stages took, s, and in which step of the run."""

    step: str
    tasks: int
    longest_s: float
    median_s: float


def test_four_partitions_have_most_of_the_lines(tmp_path: Path, capsys: Any) -> None:
    """By how much the longest task of a stage exceeds the median one."""
    folder = first_day(tmp_path, COPIES)
    _add(folder, _lines(FLAPS_OF_FOUR, [f"orders.{copy}-0" for copy in range(4)]))
    events = tmp_path / "events"
    events.mkdir()
    settings = {
        "spark.sql.shuffle.partitions": str(PARTS),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    begun: list[tuple[float, str]] = []
    spark = build_session("skew", config=settings, writes=True)
    try:
        lake = lake_of(spark, f"{tmp_path}/lake")
        ingest_job.ingest(lake, ingest_job.Params(lake.root, (str(folder),)), lambda _: None)
        report = reconstruct_job.reconstruct(lake, lambda step: begun.append((time.time(), step)))
    finally:
        spark.stop()
    (log,) = events.iterdir()
    long = [stage for stage in _stages(log, begun) if stage.tasks >= PARTS and stage.longest_s >= 1]
    with capsys.disabled():
        print(f"\n{FLAPS_OF_FOUR} departures of a replica of four partitions among {13 * COPIES}")
        for stage in sorted(long, key=lambda stage: stage.longest_s / stage.median_s, reverse=True):
            print(
                f"{stage.longest_s / stage.median_s:6.1f} times: {stage.longest_s:6.1f} s and {stage.median_s:6.1f} s"
                f" of {stage.tasks} tasks  {stage.step}"
            )
    assert report.rows["silver.leader_and_isr_timeline"] > 8 * FLAPS_OF_FOUR
    assert long


def _stages(log: Path, begun: Sequence[tuple[float, str]]) -> Iterator[StageTasks]:
    """Of Spark's event log."""
    submitted: dict[int, float] = {}
    taken: dict[int, list[float]] = {}
    with log.open(encoding="utf-8") as lines:
        for event in map(json.loads, lines):
            match event["Event"]:
                case "SparkListenerStageSubmitted":
                    submitted[event["Stage Info"]["Stage ID"]] = event["Stage Info"]["Submission Time"] / 1000
                case "SparkListenerTaskEnd":
                    taken.setdefault(event["Stage ID"], []).append(event["Task Metrics"]["Executor Run Time"] / 1000)
    for stage, at in submitted.items():
        steps = [name for begin, name in begun if begin <= at]
        if steps and stage in taken:
            yield StageTasks(steps[-1], len(taken[stage]), max(taken[stage]), statistics.median(taken[stage]))
