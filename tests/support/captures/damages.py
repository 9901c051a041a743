"""Captures damaged on purpose: what is done to a capture's files, one kind of damage at a time.

Each kind is a function that changes the files of one unpacked capture, and no other; the same folder always gives the
same. A kind names the capture it is done to (:data:`tests.support.captures.bases.BASES`) and the files that it may
touch. What the program must say of each is in ``tests/spark/reconstruct/test_damaged_captures.py``.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from tests.support.captures.bases import CHECKPOINTS, FAILOVER, NUMBERED, QUIET, ROTATED, ZOOKEEPER
from tests.support.captures.edits import (
    HIGH_WATERMARKS,
    SERVER_LOG,
    STATE_CHANGES,
    TRANSACTIONS,
    Change,
    drop_lines,
    edit_bytes,
    edit_copy,
    edit_last_snapshot,
    edit_lines,
    edit_states,
    in_order,
    last_of,
    read_lines,
    remove_files,
    set_later,
)


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
    lines = read_lines(path)
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
    return edit_copy(lambda lines: [*lines[:-1], f"{lines[-1].rsplit(' ', 1)[0]} {offset}"])


def _replace(old: bytes, new: bytes, where: bytes = b"") -> Callable[[list[bytes]], list[bytes]]:
    return lambda lines: [line.replace(old, new) if where in line else line for line in lines]


def _isr(*members: int) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda row, state: state.update(isr=list(members))


#: No column holds it, and no broker means it.
_ABSURD: Final = b"99999999999999999999"
_MESSAGE: Final = re.compile(rb"(?<=\] [A-Z]{4} )|(?<=\] [A-Z]{5} )")


def _beside_absurd_lines(lines: list[bytes]) -> list[bytes]:
    """Beside each line that is one of a log's own: the same with all numbers absurd, and with all but the speaker's."""
    made = []
    for line in lines:
        made.append(line)
        begin = _MESSAGE.search(line)
        if begin is not None:
            head, message = line[: begin.end()], line[begin.end() :]
            speaker, bracket, rest = message.rpartition(b"] ")
            made += [
                head + re.sub(rb"\d+", _ABSURD, message),
                head + speaker + bracket + re.sub(rb"\d+", _ABSURD, rest),
            ]
    return made


def _beside_absurd_znodes(lines: list[bytes]) -> list[bytes]:
    """Beside the znodes those of a partition and a broker that no column holds; in each assignment such a partition."""
    own = [re.sub(rb'(partitions\\":\{)', rb"\g<1>\\" + b'"' + _ABSURD + rb'\\":[1],', line) for line in lines]
    absurd = (re.sub(rb'(/partitions/|/brokers/ids/)\d+(?=[/"])', rb"\g<1>" + _ABSURD, line) for line in lines)
    return [*own, *(line for line in absurd if line not in lines)]


def _lines_of_another(capture: Path) -> None:
    shutil.copyfile(capture / STATE_CHANGES.format(2), capture / STATE_CHANGES.format(3))


_COPIES: Final = (HIGH_WATERMARKS.format(1) + "/*",)
_SNAPSHOTS: Final = ("znodes/*.jsonl",)
_EVERY_STATE_CHANGE: Final = tuple(STATE_CHANGES.format(broker) for broker in (1, 2, 3))


def _kind(name: str, base: str, touches: str | tuple[str, ...], change: Change) -> Damage:
    return Damage(name, base, (touches,) if isinstance(touches, str) else touches, change)


def _log(name: str, base: str, log: str, change: Callable[[list[bytes]], list[bytes]]) -> Damage:
    """A damage of the lines of one log."""
    return Damage(name, base, (log,), edit_lines(log, change))


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
    _kind("hour missing", ROTATED, "broker-2/logs/server.log.*-07", remove_files("broker-2/logs/server.log.*-07")),
    _kind(
        "latest hours missing",
        ROTATED,
        "broker-2/logs/server.log*",
        remove_files("broker-2/logs/server.log", *(f"broker-2/logs/server.log.*-{hour:02}" for hour in (7, 8, 9))),
    ),
    _kind(
        "hour unreadable",
        ROTATED,
        "broker-2/logs/server.log.*-07",
        edit_bytes("broker-2/logs/server.log.2026-11-21-07", lambda _: _GARBAGE),
    ),
    _kind("numbered file missing", NUMBERED, "broker-2/logs/server.log.1", remove_files("broker-2/logs/server.log.1")),
    _kind("log given twice, lines missing in one", QUIET, "broker-2/logs/server.log.old", _twice_but_for_some_lines),
    _kind("logs of one broker missing", QUIET, "broker-3/logs/*", remove_files("broker-3/logs/*")),
    _kind("all state-change logs missing", QUIET, _EVERY_STATE_CHANGE, remove_files(*_EVERY_STATE_CHANGE)),
    _kind(
        "TRACE lines removed",
        QUIET,
        _EVERY_STATE_CHANGE,
        in_order(*(drop_lines(log, "] TRACE ") for log in _EVERY_STATE_CHANGE)),
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
    _kind(
        "numbers that no column holds",
        QUIET,
        (STATE_CHANGES.format(1), STATE_CHANGES.format(2), SERVER_LOG.format(2), *_SNAPSHOTS),
        in_order(
            *(
                edit_lines(log, _beside_absurd_lines)
                for log in (STATE_CHANGES.format(1), STATE_CHANGES.format(2), SERVER_LOG.format(2))
            ),
            edit_last_snapshot(_beside_absurd_znodes),
        ),
    ),
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
        in_order(
            _in_tar,
            remove_files("broker-2/logs/*.log"),
            edit_bytes("broker-2/logs.tar", lambda content: content[: len(content) // 2]),
        ),
    ),
    # clocks
    _kind("wrong time zone", QUIET, "broker-2/logs/*.log", set_later(2, timedelta(hours=2))),
    _kind("clock 100 seconds ahead", QUIET, "broker-2/logs/*.log", set_later(2, timedelta(seconds=100))),
    # znodes
    _kind(
        "last snapshot names another leader",
        QUIET,
        _SNAPSHOTS,
        edit_states("orders", 0, lambda row, state: state.update(leader=3), last_of),
    ),
    _kind(
        "last snapshot with a lower leader epoch",
        FAILOVER,
        _SNAPSHOTS,
        edit_states("orders", 0, lambda row, state: state.update(leader_epoch=0), last_of),
    ),
    _kind("snapshots with a stranger in the ISR", QUIET, _SNAPSHOTS, edit_states("payments", 0, _isr(2, 1, 3))),
    _kind("snapshots with the leader outside the ISR", QUIET, _SNAPSHOTS, edit_states("orders", 1, _isr(3, 1))),
    _kind(
        "snapshots with a falling partition epoch",
        FAILOVER,
        _SNAPSHOTS,
        edit_states("orders", 0, lambda row, state: row.update(version=0 if row["version"] > 2 else row["version"])),
    ),
    _kind("last snapshot cut in a line", QUIET, _SNAPSHOTS, edit_last_snapshot(_cut_in_a_line)),
    _kind(
        "last snapshot without zxids",
        QUIET,
        _SNAPSHOTS,
        edit_last_snapshot(_replace(b'"mzxid"', b'"xid"', where=b"/state")),
    ),
    _kind("snapshots missing", QUIET, _SNAPSHOTS, remove_files(*_SNAPSHOTS)),
    _kind("transaction with a flipped bit", ZOOKEEPER, TRANSACTIONS, edit_bytes(TRANSACTIONS, _flipped)),
    _kind("transaction log cut", ZOOKEEPER, TRANSACTIONS, edit_bytes(TRANSACTIONS, _cut_in_a_transaction)),
    # checkpoints and configuration
    _kind("checkpoint with a negative offset", CHECKPOINTS, _COPIES, _last_entry(-5)),
    _kind("checkpoint with an entry of zero", CHECKPOINTS, _COPIES, _last_entry(0)),
    _kind("checkpoint with a wrong count", CHECKPOINTS, _COPIES, edit_copy(lambda lines: [lines[0], "7", *lines[2:]])),
    _kind("checkpoint of another version", CHECKPOINTS, _COPIES, edit_copy(lambda lines: ["9", *lines[1:]])),
    _kind(
        "checkpoint with an entry twice",
        CHECKPOINTS,
        _COPIES,
        edit_copy(lambda lines: ["0", "5", *lines[2:], lines[-1]]),
    ),
    _kind("checkpoint empty", CHECKPOINTS, _COPIES, edit_copy(lambda _: [])),
    _kind(
        "leader epochs malformed",
        CHECKPOINTS,
        "broker-2/leader-epoch-checkpoint/orders-0",
        edit_bytes("broker-2/leader-epoch-checkpoint/orders-0", lambda _: b"0\n1\n0 x\n"),
    ),
    _log(
        "configuration of another broker", QUIET, "broker-2/server.properties", _replace(b"broker.id=2", b"broker.id=1")
    ),
)
