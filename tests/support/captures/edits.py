"""Ways to change the files of an unpacked capture: lines, bytes, copies of checkpoints, snapshots."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from tests.support.captures.lake import set_clock

Change = Callable[[Path], None]

RECORD: Final = re.compile(rb"^\[\d{4}-\d\d-\d\d ")
STATE_CHANGES: Final = "broker-{}/logs/state-change.log"
CONTROLLER_LOG: Final = "broker-{}/logs/controller.log"
SERVER_LOG: Final = "broker-{}/logs/server.log"
HIGH_WATERMARKS: Final = "broker-{}/checkpoints/replication-offset-checkpoint"
TRANSACTIONS: Final = "zk-version-2/log.1"


def read_lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def edit_lines(name: str, change: Callable[[list[bytes]], list[bytes]]) -> Change:
    """Other lines in one file."""

    def apply(capture: Path) -> None:
        path = capture / name
        path.write_bytes(b"".join(change(read_lines(path))))

    return apply


def edit_bytes(name: str, change: Callable[[bytes], bytes]) -> Change:
    """Other bytes in one file."""

    def apply(capture: Path) -> None:
        path = capture / name
        path.write_bytes(change(path.read_bytes()))

    return apply


def drop_lines(name: str, *parts: str) -> Change:
    """One log without the lines that hold one of the parts."""
    return edit_lines(name, lambda lines: [line for line in lines if not any(part.encode() in line for part in parts)])


def remove_files(*patterns: str) -> Change:
    def apply(capture: Path) -> None:
        for path in [path for pattern in patterns for path in sorted(capture.glob(pattern))]:
            path.unlink()

    return apply


def set_later(broker: int, shift: timedelta) -> Change:
    def apply(capture: Path) -> None:
        for log in sorted(capture.glob(f"broker-{broker}/logs/*.log")):
            set_clock(log, shift)

    return apply


def copies_of(capture: Path, broker: int) -> list[Path]:
    """A broker's copies of its high watermarks, in order of time."""
    return sorted((capture / HIGH_WATERMARKS.format(broker)).iterdir())


def edit_copy(change: Callable[[list[str]], list[str]]) -> Change:
    """Another content of a copy of broker 1's high watermarks, one in the middle."""

    def apply(capture: Path) -> None:
        copies = copies_of(capture, 1)
        path = copies[len(copies) // 2]
        path.write_text("".join(f"{line}\n" for line in change(path.read_text().splitlines())))

    return apply


def edit_states(
    topic: str,
    partition: int,
    changed: Callable[[dict[str, Any], dict[str, Any]], None],
    of: Callable[[Sequence[Path]], Sequence[Path]] = list,
) -> Change:
    """``changed`` alters a znode and the state it holds wherever the snapshots ``of`` the capture show a partition."""
    path_of = f"/brokers/topics/{topic}/partitions/{partition}/state"

    def altered(line: bytes) -> bytes:
        row = json.loads(line)
        if row["path"] != path_of:
            return line
        state = json.loads(row["data"])
        changed(row, state)
        row["data"] = json.dumps(state, separators=(",", ":"))
        return json.dumps(row, separators=(",", ":")).encode() + b"\n"

    def apply(capture: Path) -> None:
        for path in of(sorted(capture.glob("znodes/*.jsonl"))):
            path.write_bytes(b"".join(map(altered, read_lines(path))))

    return apply


def last_of(paths: Sequence[Path]) -> Sequence[Path]:
    return paths[-1:]


def edit_last_snapshot(change: Callable[[list[bytes]], list[bytes]]) -> Change:
    """Other lines in the last snapshot of the znodes."""

    def apply(capture: Path) -> None:
        last = max(capture.glob("znodes/*.jsonl"))
        last.write_bytes(b"".join(change(read_lines(last))))

    return apply


def in_order(*changes: Change) -> Change:
    def apply(capture: Path) -> None:
        for change in changes:
            change(capture)

    return apply
