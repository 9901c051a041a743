"""What one partition costs that has most of the lines: ``lifecycle-1.1.1``, in which behind its end a follower of one
partition leaves the ISR and comes back again and again, at two lengths."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from tests.benchmark.processor_time import Cost
from tests.benchmark.test_increments import program, show
from tests.support.captures.packed import TRUTH, unpack

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

CAPTURE: Final = "lifecycle-1.1.1"
FLAPS: Final = tuple(int(flaps) for flaps in os.environ.get("BENCHMARK_FLAPS", "400,1600").split(","))
_BEGIN: Final = datetime(2026, 11, 21, 3, 33)
#: Of each broker: the file, and a line of it.
Line = tuple[str, str]


def flapping(folder: Path, flaps: int) -> Path:
    """The capture's files with the lines of so many departures of broker 3, a third of a minute each."""
    cluster = unpack(CAPTURE, folder, without=TRUTH)
    lines: dict[str, list[str]] = {}
    for name, line in _lines(flaps):
        lines.setdefault(name, []).append(line)
    for name, added in lines.items():
        with (cluster / name).open("a", encoding="utf-8") as file:
            file.writelines(added)
    return cluster


def _lines(flaps: int) -> Iterator[Line]:
    versions, correlation_ids = count(10), count(100)
    for flap in range(flaps):
        for seconds, change, isr in (
            (0, "Shrinking ISR from 1,2,3 to 1,2", (1, 2)),
            (10, "Expanding ISR from 1,2 to 1,2,3", (1, 2, 3)),
        ):
            at = _BEGIN + timedelta(seconds=20 * flap + seconds)
            yield (
                "broker-1/logs/server.log",
                f"{_text(at)} INFO [Partition orders-0 broker=1] {change} (kafka.cluster.Partition)\n",
            )
            yield from _published(at + timedelta(seconds=1), isr, next(versions), next(correlation_ids))


def _published(at: datetime, isr: tuple[int, ...], version: int, correlation_id: int) -> Iterator[Line]:
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
            " for partition orders-0 (state.change.logger)\n"
        ),
    )
    for broker in (1, 2, 3):
        yield (
            log(broker),
            (
                f"{_text(at + timedelta(milliseconds=2))} TRACE [Broker id={broker}] Cached leader info {state}for"
                f" partition orders-0 in response to UpdateMetadata request sent by controller 1 epoch 3 with"
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
