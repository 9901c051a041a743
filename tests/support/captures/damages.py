"""Captures damaged on purpose: what is done to a capture's files, one kind of damage at a time.

Each kind is a function that changes the files of one unpacked capture, and no other; the same folder always gives the
same. A kind names the capture it is done to (:data:`BASES`) and the files that it may touch. What the program must say
of each is in ``tests/spark/reconstruct/test_damaged_captures.py``.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from tests.support.captures.lake import set_clock
from tests.support.captures.packed import TRUTH, unpack

Change = Callable[[Path], None]

_RECORD: Final = re.compile(rb"^\[\d{4}-\d\d-\d\d ")
STATE_CHANGES: Final = "broker-{}/logs/state-change.log"
CONTROLLER_LOG: Final = "broker-{}/logs/controller.log"
SERVER_LOG: Final = "broker-{}/logs/server.log"
HIGH_WATERMARKS: Final = "broker-{}/checkpoints/replication-offset-checkpoint"
TRANSACTIONS: Final = "zk-version-2/log.1"


@dataclass(frozen=True)
class Base:
    """A capture to be damaged: ``lay`` unpacks it below a folder, as small as the damage allows, and returns it."""

    name: str
    lay: Callable[[Path], Path]


@dataclass(frozen=True)
class Damage:
    """One kind of damage. ``touches`` are patterns of the files below the capture that it changes, makes or removes."""

    name: str
    base: str
    touches: tuple[str, ...]
    change: Change

    @property
    def cluster_id(self) -> str:
        """The cluster that the damaged copy is in the lake."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower())


# --- the captures


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
    starts = [number for number, line in enumerate(_lines(log)) if _RECORD.match(line)]
    lines, first, second = _lines(log), starts[len(starts) // 3], starts[len(starts) * 2 // 3]
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


# --- tools


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def _edit(name: str, change: Callable[[list[bytes]], list[bytes]]) -> Change:
    """Other lines in one file."""

    def apply(capture: Path) -> None:
        path = capture / name
        path.write_bytes(b"".join(change(_lines(path))))

    return apply


def _bytes(name: str, change: Callable[[bytes], bytes]) -> Change:
    """Other bytes in one file."""

    def apply(capture: Path) -> None:
        path = capture / name
        path.write_bytes(change(path.read_bytes()))

    return apply


def _drop(name: str, *parts: str) -> Change:
    """One log without the lines that hold one of the parts."""
    return _edit(name, lambda lines: [line for line in lines if not any(part.encode() in line for part in parts)])


def _remove(*patterns: str) -> Change:
    def apply(capture: Path) -> None:
        for path in [path for pattern in patterns for path in sorted(capture.glob(pattern))]:
            path.unlink()

    return apply


def _later(broker: int, shift: timedelta) -> Change:
    def apply(capture: Path) -> None:
        for log in sorted(capture.glob(f"broker-{broker}/logs/*.log")):
            set_clock(log, shift)

    return apply


def _copies(capture: Path, broker: int) -> list[Path]:
    """A broker's copies of its high watermarks, in order of time."""
    return sorted((capture / HIGH_WATERMARKS.format(broker)).iterdir())


def _copy(change: Callable[[list[str]], list[str]]) -> Change:
    """Another content of a copy of broker 1's high watermarks, one in the middle."""

    def apply(capture: Path) -> None:
        copies = _copies(capture, 1)
        path = copies[len(copies) // 2]
        path.write_text("".join(f"{line}\n" for line in change(path.read_text().splitlines())))

    return apply


def _states(
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
            path.write_bytes(b"".join(map(altered, _lines(path))))

    return apply


def _last(paths: Sequence[Path]) -> Sequence[Path]:
    return paths[-1:]


def _last_snapshot(change: Callable[[list[bytes]], list[bytes]]) -> Change:
    """Other lines in the last snapshot of the znodes."""

    def apply(capture: Path) -> None:
        last = max(capture.glob("znodes/*.jsonl"))
        last.write_bytes(b"".join(change(_lines(last))))

    return apply


def _in_order(*changes: Change) -> Change:
    def apply(capture: Path) -> None:
        for change in changes:
            change(capture)

    return apply


# --- the damages


def _cut_in_a_line(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-1], lines[-1][: len(lines[-1]) // 2]]


def _half(lines: list[bytes]) -> list[bytes]:
    return lines[: len(lines) // 2]


def _without_middle(lines: list[bytes]) -> list[bytes]:
    third = len(lines) // 3
    return [*lines[:third], *lines[2 * third :]]


def _shuffled(lines: list[bytes]) -> list[bytes]:
    return sorted(lines, key=lambda line: hashlib.sha256(line).digest())


def _twice_but_for_some_lines(capture: Path) -> None:
    path = capture / SERVER_LOG.format(2)
    lines = _lines(path)
    late = len(lines) * 3 // 4
    (path.parent / "server.log.old").write_bytes(b"".join([*lines[:late], *lines[late + 5 :]]))


def _twice(capture: Path) -> None:
    for name in ("server.log", "state-change.log"):
        path = capture / f"broker-2/logs/{name}"
        shutil.copyfile(path, path.with_name(f"copy-of-{name}"))


def _in_tar(capture: Path) -> None:
    folder = capture / "broker-2"
    with tarfile.open(folder / "logs.tar", "w") as archive:
        for path in sorted((folder / "logs").glob("*.log")):
            archive.add(path, f"logs/{path.name}")


def _packed(name: str, damage: Callable[[bytes], bytes]) -> Change:
    """One log as a gzip file, which is then damaged."""

    def apply(capture: Path) -> None:
        path = capture / name
        packed = damage(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()
        path.with_name(f"{path.name}.gz").write_bytes(packed)

    return apply


def _without_a_part(content: bytes) -> bytes:
    half = len(content) // 2
    return content[:half] + content[half + 64 :]


_GARBAGE: Final = bytes(range(256)) * 64
_OF_ANOTHER_PROGRAM: Final = b"[2026-11-21 04:47:10,%03d] INFO GET /health 200 in %d ms (com.example.http.AccessLog)\n"
_UNKNOWN: Final = (
    b"[2026-11-21 04:47:10,%03d] INFO [Controller id=1 epoch=1] Widget %d of partition orders-0 turned"
    b" (state.change.logger)\n"
)


def _with_unknown(lines: list[bytes]) -> list[bytes]:
    return [*lines, *(_UNKNOWN % (number + 200, number) for number in range(3 * len(lines)))]


def _mixed(lines: list[bytes]) -> list[bytes]:
    return [
        part for number, line in enumerate(lines) for part in (line, _OF_ANOTHER_PROGRAM % (number % 900 + 100, number))
    ]


def _flipped(content: bytes) -> bytes:
    at = content.index(b"orders") + 2
    return content[:at] + bytes([content[at] ^ 0x20]) + content[at + 1 :]


def _cut_in_a_transaction(content: bytes) -> bytes:
    return content[: content.rindex(b"payments") + 3]


def _on_no_calendar(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b"[2026-11-21", b"[2026-13-45") if 10 <= n < 15 else line for n, line in enumerate(lines)]


def _last_entry(offset: int) -> Change:
    """The last entry of a copy, with another offset."""
    return _copy(lambda lines: [*lines[:-1], f"{lines[-1].rsplit(' ', 1)[0]} {offset}"])


def _replace(old: bytes, new: bytes, where: bytes = b"") -> Callable[[list[bytes]], list[bytes]]:
    return lambda lines: [line.replace(old, new) if where in line else line for line in lines]


def _isr(*members: int) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda row, state: state.update(isr=list(members))


def _lines_of_another(capture: Path) -> None:
    shutil.copyfile(capture / STATE_CHANGES.format(2), capture / STATE_CHANGES.format(3))


_COPIES: Final = (HIGH_WATERMARKS.format(1) + "/*",)
_SNAPSHOTS: Final = ("znodes/*.jsonl",)
_EVERY_STATE_CHANGE: Final = tuple(STATE_CHANGES.format(broker) for broker in (1, 2, 3))


def _kind(name: str, base: str, touches: str | tuple[str, ...], change: Change) -> Damage:
    return Damage(name, base, (touches,) if isinstance(touches, str) else touches, change)


def _log(name: str, base: str, log: str, change: Callable[[list[bytes]], list[bytes]]) -> Damage:
    """A damage of the lines of one log."""
    return Damage(name, base, (log,), _edit(log, change))


#: What may be given twice, and is to be counted once: no damage, and nothing may be said of it.
COPIES: Final = (
    _kind("logs given twice", QUIET, "broker-2/logs/copy-of-*", _twice),
    _kind("logs beside their tar", QUIET, "broker-2/logs.tar", _in_tar),
)

KINDS: Final = (
    # logs: cut, with holes, twice
    _log("log cut in a line", QUIET, STATE_CHANGES.format(2), _cut_in_a_line),
    _log("lines missing", QUIET, STATE_CHANGES.format(1), _without_middle),
    _log("server log cut in the middle", FAILOVER, SERVER_LOG.format(3), _half),
    _kind("hour missing", ROTATED, "broker-2/logs/server.log.*-07", _remove("broker-2/logs/server.log.*-07")),
    _kind(
        "latest hours missing",
        ROTATED,
        "broker-2/logs/server.log*",
        _remove("broker-2/logs/server.log", *(f"broker-2/logs/server.log.*-{hour:02}" for hour in (7, 8, 9))),
    ),
    _kind(
        "hour unreadable",
        ROTATED,
        "broker-2/logs/server.log.*-07",
        _bytes("broker-2/logs/server.log.2026-11-21-07", lambda _: _GARBAGE),
    ),
    _kind("numbered file missing", NUMBERED, "broker-2/logs/server.log.1", _remove("broker-2/logs/server.log.1")),
    _kind("log given twice, lines missing in one", QUIET, "broker-2/logs/server.log.old", _twice_but_for_some_lines),
    _kind("logs of one broker missing", QUIET, "broker-3/logs/*", _remove("broker-3/logs/*")),
    _kind("all state-change logs missing", QUIET, _EVERY_STATE_CHANGE, _remove(*_EVERY_STATE_CHANGE)),
    _kind(
        "TRACE lines removed",
        QUIET,
        _EVERY_STATE_CHANGE,
        _in_order(*(_drop(log, "] TRACE ") for log in _EVERY_STATE_CHANGE)),
    ),
    # logs: other content
    _log("garbage before a log", QUIET, STATE_CHANGES.format(2), lambda lines: [_GARBAGE[:300], b"\n", *lines]),
    _log(
        "garbage in place of lines",
        QUIET,
        STATE_CHANGES.format(1),
        lambda lines: [*lines[:50], _GARBAGE[128:], b"\n", *lines[58:]],
    ),
    _log("garbage in place of a log", QUIET, STATE_CHANGES.format(2), lambda _: [_GARBAGE]),
    _log("times on no calendar", QUIET, STATE_CHANGES.format(2), _on_no_calendar),
    _log("lines of another program mixed in", QUIET, SERVER_LOG.format(2), _mixed),
    _log("state changes that no shape knows", QUIET, STATE_CHANGES.format(1), _with_unknown),
    _log(
        "requests edited",
        QUIET,
        STATE_CHANGES.format(1),
        _replace(b"leader=1, leaderEpoch=0", b"leader=2, leaderEpoch=0", where=b"Sending become"),
    ),
    _log(
        "what a broker received edited",
        QUIET,
        STATE_CHANGES.format(2),
        _replace(b"leader=1, leaderEpoch=0", b"leader=3, leaderEpoch=0"),
    ),
    _log("lines shuffled", FAILOVER, STATE_CHANGES.format(1), _shuffled),
    _kind("log of another broker in its place", QUIET, STATE_CHANGES.format(3), _lines_of_another),
    # logs: packed
    _kind(
        "gzip with bytes missing", QUIET, "broker-2/logs/server.log*", _packed(SERVER_LOG.format(2), _without_a_part)
    ),
    _kind(
        "gzip cut",
        QUIET,
        "broker-2/logs/server.log*",
        _packed(SERVER_LOG.format(2), lambda content: content[: len(content) // 2]),
    ),
    _kind(
        "tar cut",
        QUIET,
        "broker-2/logs*",
        _in_order(
            _in_tar,
            _remove("broker-2/logs/*.log"),
            _bytes("broker-2/logs.tar", lambda content: content[: len(content) // 2]),
        ),
    ),
    # clocks
    _kind("wrong time zone", QUIET, "broker-2/logs/*.log", _later(2, timedelta(hours=2))),
    _kind("clock 100 seconds ahead", QUIET, "broker-2/logs/*.log", _later(2, timedelta(seconds=100))),
    # znodes
    _kind(
        "last snapshot names another leader",
        QUIET,
        _SNAPSHOTS,
        _states("orders", 0, lambda row, state: state.update(leader=3), _last),
    ),
    _kind(
        "last snapshot with a lower leader epoch",
        FAILOVER,
        _SNAPSHOTS,
        _states("orders", 0, lambda row, state: state.update(leader_epoch=0), _last),
    ),
    _kind("snapshots with a stranger in the ISR", QUIET, _SNAPSHOTS, _states("payments", 0, _isr(2, 1, 3))),
    _kind("snapshots with the leader outside the ISR", QUIET, _SNAPSHOTS, _states("orders", 1, _isr(3, 1))),
    _kind(
        "snapshots with a falling partition epoch",
        FAILOVER,
        _SNAPSHOTS,
        _states("orders", 0, lambda row, state: row.update(version=0 if row["version"] > 2 else row["version"])),
    ),
    _kind("last snapshot cut in a line", QUIET, _SNAPSHOTS, _last_snapshot(_cut_in_a_line)),
    _kind(
        "last snapshot without zxids",
        QUIET,
        _SNAPSHOTS,
        _last_snapshot(_replace(b'"mzxid"', b'"xid"', where=b"/state")),
    ),
    _kind("snapshots missing", QUIET, _SNAPSHOTS, _remove(*_SNAPSHOTS)),
    _kind("transaction with a flipped bit", ZOOKEEPER, TRANSACTIONS, _bytes(TRANSACTIONS, _flipped)),
    _kind("transaction log cut", ZOOKEEPER, TRANSACTIONS, _bytes(TRANSACTIONS, _cut_in_a_transaction)),
    # checkpoints and configuration
    _kind("checkpoint with a negative offset", CHECKPOINTS, _COPIES, _last_entry(-5)),
    _kind("checkpoint with an entry of zero", CHECKPOINTS, _COPIES, _last_entry(0)),
    _kind("checkpoint with a wrong count", CHECKPOINTS, _COPIES, _copy(lambda lines: [lines[0], "7", *lines[2:]])),
    _kind("checkpoint of another version", CHECKPOINTS, _COPIES, _copy(lambda lines: ["9", *lines[1:]])),
    _kind(
        "checkpoint with an entry twice", CHECKPOINTS, _COPIES, _copy(lambda lines: ["0", "5", *lines[2:], lines[-1]])
    ),
    _kind("checkpoint empty", CHECKPOINTS, _COPIES, _copy(lambda _: [])),
    _kind(
        "leader epochs malformed",
        CHECKPOINTS,
        "broker-2/leader-epoch-checkpoint/orders-0",
        _bytes("broker-2/leader-epoch-checkpoint/orders-0", lambda _: b"0\n1\n0 x\n"),
    ),
    _log(
        "configuration of another broker", QUIET, "broker-2/server.properties", _replace(b"broker.id=2", b"broker.id=1")
    ),
)
