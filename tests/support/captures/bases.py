"""The captures that are damaged on purpose, each as small as the damage allows."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.captures.edits import (
    RECORD,
    SERVER_LOG,
    read_lines,
)
from tests.support.captures.packed import TRUTH, unpack


@dataclass(frozen=True)
class Base:
    """A capture to be damaged: ``lay`` unpacks it below a folder, as small as the damage allows, and returns it."""

    name: str
    lay: Callable[[Path], Path]


def _slim(name: str, every: int, *, with_copies: bool = False) -> Callable[[Path], Path]:
    """Logs, configuration, and every so many-th round of znode snapshots; of checkpoints none, or those of leader
    epochs and the same rounds of high watermarks."""

    def lay(folder: Path) -> Path:
        capture = unpack(name, folder, without=TRUTH)
        for broker in sorted(capture.glob("broker-*")):
            if not with_copies:
                shutil.rmtree(broker / "leader-epoch-checkpoint")
            for kind in sorted((broker / "checkpoints").iterdir()):
                if not with_copies or kind.name != "replication-offset-checkpoint":
                    shutil.rmtree(kind)
        rounds = sorted(path.stem for path in capture.glob("znodes/*.jsonl") if path.stat().st_size)
        kept = {*rounds[::every], rounds[-1]}
        for path in [*capture.glob("znodes/*.jsonl"), *capture.glob("broker-*/checkpoints/*/*")]:
            if path.stem not in kept:
                path.unlink()
        return capture

    return lay


def _rotated(folder: Path) -> Path:
    """Broker 2's server.log rolled by the hour, busy until ten o'clock, its controller.log until seven."""
    capture = _slim("quiet-3.9.1", 12)(folder)
    logs = capture / "broker-2/logs"
    (logs / "server.log").rename(logs / "server.log.2026-11-21-04")
    for hour in range(5, 11):
        text = "".join(_chatter(hour, count) for count in range(75))
        (logs / ("server.log" if hour == 10 else f"server.log.2026-11-21-{hour:02}")).write_text(text)
    with (logs / "controller.log").open("a") as file:
        file.write(
            "[2026-11-21 07:10:00,000] DEBUG [Controller id=2] Broker 1 has been elected as the controller, so stopping"
            " the election process. (kafka.controller.KafkaController)\n"
        )
    return capture


def _chatter(hour: int, count: int) -> str:
    return (
        f"[2026-11-21 {hour:02}:{count // 2 + 5:02}:{count % 2 * 30:02},000] INFO [GroupCoordinator 2]: Preparing to"
        f" rebalance group billing in state PreparingRebalance with old generation {hour * 75 + count}"
        " (__consumer_offsets-0) (reason: Removing member) (kafka.coordinator.group.GroupCoordinator)\n"
    )


def _numbered(folder: Path) -> Path:
    """Broker 2's server.log rolled by size, twice."""
    capture = _slim("quiet-3.9.1", 12)(folder)
    log = capture / SERVER_LOG.format(2)
    starts = [number for number, line in enumerate(read_lines(log)) if RECORD.match(line)]
    lines, first, second = read_lines(log), starts[len(starts) // 3], starts[len(starts) * 2 // 3]
    for name, part in (("server.log.2", lines[:first]), ("server.log.1", lines[first:second])):
        (log.parent / name).write_bytes(b"".join(part))
    log.write_bytes(b"".join(lines[second:]))
    return capture


def _zookeeper(folder: Path) -> Path:
    return unpack("quiet-3.9.1", folder, without=("broker-*", "znodes", "probes-*.jsonl", "events.jsonl"))


QUIET, CHECKPOINTS, FAILOVER = "quiet", "checkpoints", "failover"
ROTATED, NUMBERED, ZOOKEEPER = "rotated", "numbered", "zookeeper"
BASES: Final = {
    base.name: base
    for base in (
        Base(QUIET, _slim("quiet-3.9.1", 6)),
        Base(CHECKPOINTS, _slim("quiet-3.9.1", 5, with_copies=True)),
        Base(FAILOVER, _slim("failover-3.9.1", 4)),
        Base(ROTATED, _rotated),
        Base(NUMBERED, _numbered),
        Base(ZOOKEEPER, _zookeeper),
    )
}
