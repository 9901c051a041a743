"""The ``capture`` command as a process that can be killed at any moment, and what its rounds say of when it ran."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from jobs.lab.machines.with_zookeeper import ZooKeeperCluster
from jobs.lab.waiting import PATIENCE_S

INTERVAL_S: Final = 0.5


@dataclass
class Run:
    """One process; when it was started and when it ended, seconds since the epoch."""

    started: float
    ended: float = 0.0


class Capturer:
    """Captures all of a cluster into ``folder``, in one process after the other."""

    def __init__(self, cluster: ZooKeeperCluster, folder: Path) -> None:
        self.folder = folder
        self.runs: list[Run] = []
        self.printed: list[str] = []
        self._command = [
            sys.executable,
            "-m",
            "jobs.cli",
            "capture",
            "--out",
            str(folder),
            "--wait",
            "--interval",
            f"{INTERVAL_S}s",
            "--zookeeper",
            cluster.zookeeper.address,
            "--bootstrap-server",
            cluster.bootstrap,
        ]
        for broker in cluster.brokers.values():
            self._command += [
                "--logs",
                f"{broker.broker_id}={broker.logs}",
                "--log-dirs",
                f"{broker.broker_id}={broker.data}",
                "--config",
                f"{broker.broker_id}={broker.properties}",
            ]
        self._process: subprocess.Popen[str] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        self.runs.append(Run(time.time()))
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PYTHONPATH": os.getcwd()},
        )

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def end(self, number: signal.Signals) -> int:
        """Send the signal and wait for the end; gives the exit code."""
        self.send(number)
        assert self._process is not None
        printed, _ = self._process.communicate(timeout=PATIENCE_S)
        self.runs[-1].ended = time.time()
        self.printed.append(printed)
        return self._process.returncode

    def rounds(self) -> list[float]:
        """The instants of the snapshots of znodes, seconds since the epoch."""
        return sorted(int(path.stem) / 1000 for path in (self.folder / "znodes").glob("*.jsonl"))

    def answers(self, broker_id: int) -> list[float]:
        """When a broker answered for offsets, seconds since the epoch."""
        path = self.folder / f"probes-{broker_id}.jsonl"
        lines = path.read_bytes().splitlines() if path.exists() else []
        return sorted({json.loads(line)["received_at"] / 1000 for line in lines})


@dataclass(frozen=True)
class Gap:
    """Two instants between which nothing was recorded, and the seconds of it that nothing excuses."""

    begin: float
    end: float
    unexcused: float


def gaps(instants: Sequence[float], excused: Iterable[tuple[float, float]]) -> list[Gap]:
    """What lies between the instants, less what lies in any of the spans ``excused``."""
    spans = merged(excused)
    return [
        Gap(begin, end, end - begin - sum(max(0.0, min(end, b) - max(begin, a)) for a, b in spans))
        for begin, end in pairwise(instants)
    ]


def merged(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same instants as spans that do not overlap."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found
