"""Stretches of a capture in which nothing happened to a partition, by what only tests may read.

A stretch lies between two snapshots that show one and the same write of the partition's state, so its leader and its
ISR did not change; no broker was started, stopped or paused in it, nor shortly before. In it every replica keeps its
role, and no offset of a replica in the ISR falls.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

Partition = tuple[str, int]
_STATE: Final = re.compile(r"^/brokers/topics/([^/]+)/partitions/(\d+)/state$")
#: After a disturbance a stretch begins this much later, and it ends this much before the next one.
_SETTLED_MS: Final = 3_000
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"


@dataclass(frozen=True, slots=True)
class Calm:
    """One stretch, in milliseconds."""

    partition: Partition
    leader: int
    isr: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Written:
    """What snapshots show of one write of a partition's state: from when to when, in milliseconds."""

    partition: Partition
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    start: int
    end: int


class CalmCapture:
    """A capture's folder, its writes and stretches, and its raw files by what they are of."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.version = folder.name.split("-")[1]
        self.brokers = sorted(int(path.name.removeprefix("broker-")) for path in folder.glob("broker-*"))
        self._lines: dict[str, list[str]] = {}

    @cached_property
    def disturbances(self) -> list[tuple[int, int]]:
        """(when, broker) of each thing that the scenario did to a broker."""
        events = [json.loads(line) for line in (self.folder / "events.jsonl").read_text().splitlines()]
        return sorted((int(event["ts"] * 1000), event["broker"]) for event in events if "broker" in event)

    def is_disturbed(self, broker: int, start: float, end: float) -> bool:
        """Whether anything was done to the broker between, or in the second before."""
        return any(who == broker and start - 1_000 <= at <= end for at, who in self.disturbances)

    @cached_property
    def writes(self) -> list[Written]:
        """Every write that a snapshot shows, by partition and time."""
        seen: dict[tuple[Partition, int], list[dict[str, Any]]] = {}
        for snapshot in sorted(self.folder.glob("znodes/*.jsonl")):
            for line in snapshot.read_text().splitlines():
                row = json.loads(line) if "/state" in line else {"path": ""}
                state = _STATE.match(row["path"])
                if state is not None:
                    seen.setdefault(((state[1], int(state[2])), row["mzxid"]), []).append(row)
        result = []
        for (partition, _), rows in seen.items():
            decided, instants = json.loads(rows[0]["data"]), [row["captured_at"] for row in rows]
            result.append(
                Written(
                    partition,
                    decided["leader"],
                    decided["leader_epoch"],
                    tuple(decided["isr"]),
                    min(instants),
                    max(instants),
                )
            )
        return sorted(result, key=lambda write: (write.partition, write.start))

    @cached_property
    def stretches(self) -> list[Calm]:
        """Of every partition, those that last at least six seconds and in which somebody leads."""
        return [
            Calm(write.partition, write.leader, write.isr, start, end)
            for write in self.writes
            if write.leader >= 0
            for start, end in self._undisturbed(write.start, write.end)
            if end - start >= 6_000
        ]

    def lines(self, path: str) -> list[str]:
        """A log's lines, unbent."""
        if path not in self._lines:
            self._lines[path] = (self.folder / path).read_text().splitlines()
        return self._lines[path]

    def _undisturbed(self, start: int, end: int) -> list[tuple[int, int]]:
        inside = [at for at, _ in self.disturbances if start - _SETTLED_MS < at < end + _SETTLED_MS]
        begins = [start + _SETTLED_MS, *(at + _SETTLED_MS for at in inside)]
        ends = [*(at - _SETTLED_MS for at in inside), end - _SETTLED_MS]
        return [(max(begin, start), min(until, end)) for begin, until in zip(begins, ends, strict=True)]

    def copies(self, broker: int, file: str, partition: Partition) -> list[tuple[int, int]]:
        """(when its round began, offset) of each copy of a checkpoint that has an entry of the partition."""
        found = []
        for path in (self.folder / f"broker-{broker}" / "checkpoints" / file).glob("*"):
            for line in path.read_text(errors="replace").splitlines()[2:]:
                parts = line.split()
                if len(parts) == 3 and parts[:2] == [partition[0], str(partition[1])] and parts[2].isdigit():
                    found.append((int(path.name), int(parts[2])))
        return sorted(found)

    def copies_in(self, calm: Calm, broker: int) -> list[tuple[int, int]]:
        """The high watermark's copies of one stretch."""
        return [
            copy for copy in self.copies(broker, HIGH_WATERMARKS, calm.partition) if calm.start <= copy[0] <= calm.end
        ]

    def probes(self, broker: int) -> list[dict[str, Any]]:
        """A broker's answers in order, each with its line's ``number``."""
        path = self.folder / f"probes-{broker}.jsonl"
        return [json.loads(line) | {"number": n} for n, line in enumerate(path.read_text().splitlines(), 1)]
