"""Writes to znodes as the JSONL snapshots of a capture show them, without Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from reconstruct.partitions import evidence as kinds
from reconstruct.partitions.evidence import Evidence
from tests.support.captures.text import CaptureText, Lines
from tests.support.evidence.lines import Partition

_STATE: Final = re.compile(r"^/brokers/topics/([^/]+)/partitions/(\d+)/state$")
_TOPIC: Final = re.compile(r"^/brokers/topics/([^/]+)$")
_DELETION: Final = re.compile(r"^/admin/delete_topics/([^/]+)$")
_REASSIGNMENTS: Final = "/admin/reassign_partitions"


@dataclass(frozen=True, slots=True)
class Write:
    """A znode as a write left it, or (``data`` None) that it was found gone; times in µs. ``shown``: the begins of the
    first and of the last round that show it."""

    id: str
    path: str
    at: int
    at_upper: int | None
    czxid: int
    mzxid: int
    version: int
    data: str | None
    shown: tuple[int, int] | None = None


def read_writes(capture: CaptureText) -> list[Write]:
    """Each write the first time that a round shows it, each deletion between the rounds around it."""
    return list(_writes(capture.snapshots()))


@lru_cache(maxsize=32)
def _writes(snapshots: tuple[tuple[str, Lines], ...]) -> Sequence[Write]:
    found: list[Write] = []
    before: dict[str, dict[str, Any]] = {}
    shown: dict[tuple[str, int], tuple[int, int]] = {}
    last_round = 0
    for name, lines in snapshots:
        rows = rows_of(lines)
        now: dict[str, dict[str, Any]] = {row["path"]: row for row in rows}
        for number, row in enumerate(rows, 1):
            at, write = row["captured_at"] * 1000, (row["path"], row["mzxid"])
            shown[write] = shown.get(write, (at, at))[0], at
            old = before.get(row["path"])
            if old is None or old["mzxid"] != row["mzxid"]:
                found.append(_write(f"{name}:{number}", row))
        begun = int(name.removeprefix("znodes/").removesuffix(".jsonl")) * 1000
        for path, row in before.items():
            if path not in now or now[path]["czxid"] != row["czxid"]:
                gone = (max(last_round, row["mtime"] * 1000), begun + 1_000_000)
                found.append(Write(f"{name}:{path}", path, *gone, row["czxid"], row["mzxid"], row["version"], None))
        before, last_round = now, begun
    return [one if one.data is None else replace(one, shown=shown[one.path, one.mzxid]) for one in found]


@lru_cache(maxsize=8192)
def rows_of(lines: Lines) -> Sequence[dict[str, Any]]:
    """The rows of one snapshot; whoever reads them shares them."""
    return [json.loads(line) for line in lines]


def _write(id_: str, row: dict[str, Any]) -> Write:
    return Write(
        id_, row["path"], row["mtime"] * 1000, None, row["czxid"], row["mzxid"], row["version"], row["data"] or ""
    )


def partition_facts(writes: Sequence[Write], partitions: Sequence[Partition]) -> Iterator[tuple[Partition, Evidence]]:
    """States, assignments, deletions and requests to delete, by partition."""
    known = {*partitions, *((name[1], int(name[2])) for name in map(_STATE.match, (w.path for w in writes)) if name)}
    for write in writes:
        state, topic, asked = (pattern.match(write.path) for pattern in (_STATE, _TOPIC, _DELETION))
        if state and write.data:
            yield (state[1], int(state[2])), _state(write)
        elif topic and write.data:
            yield from _assignments(topic[1], write)
        elif (topic and write.data is None) or (asked and write.data is not None):
            kind = kinds.ZNODE_TOPIC_DELETED if topic else kinds.ZNODE_DELETION_REQUESTED
            name = (topic or asked or [""] * 2)[1]
            yield from ((key, _fact(write, kind)) for key in sorted(known) if key[0] == name)
    yield from _reassignments(writes)


def _reassignments(writes: Sequence[Write]) -> Iterator[tuple[Partition, Evidence]]:
    """What each write of the znode of reassignments lists, and what it lists no more."""
    topics = (write for write in writes if _TOPIC.match(write.path) and write.data is not None)
    newest = {write.path: write.shown for write in sorted(topics, key=lambda write: write.mzxid)}
    before: set[Partition] = set()
    own = [write for write in writes if write.path == _REASSIGNMENTS]
    for write in sorted(own, key=lambda write: (write.mzxid, write.data is None)):
        listed = json.loads(write.data)["partitions"] if write.data else []
        targets = {(one["topic"], one["partition"]): tuple(one["replicas"]) for one in listed}
        for partition, replicas in targets.items():
            topic_shown, shown = newest.get(f"/brokers/topics/{partition[0]}"), write.shown
            stood = None if topic_shown is None or shown is None else min(topic_shown[1], shown[1]) - shown[0]
            yield partition, _fact(write, kinds.ZNODE_REASSIGNMENT, replicas=replicas, stood_us=stood)
        for partition in sorted(before - set(targets)):
            yield partition, _fact(write, kinds.ZNODE_REASSIGNMENT_DONE)
        before = set(targets)


def _state(write: Write) -> Evidence:
    state = json.loads(write.data or "{}")
    return _fact(
        write,
        kinds.ZNODE_STATE,
        leader=state["leader"],
        leader_epoch=state["leader_epoch"],
        isr=tuple(state["isr"]),
        state_controller_epoch=state["controller_epoch"],
        partition_epoch=write.version,
        leader_recovery_state=state.get("leader_recovery_state"),
    )


def _assignments(topic: str, write: Write) -> Iterator[tuple[Partition, Evidence]]:
    data = json.loads(write.data or "{}")
    for number, replicas in data["partitions"].items():
        own = {
            name: tuple(data[name].get(number, ())) for name in ("adding_replicas", "removing_replicas") if name in data
        }
        assigned = _fact(write, kinds.ZNODE_ASSIGNMENT, partition_epoch=write.version, replicas=tuple(replicas), **own)
        yield (topic, int(number)), assigned


def _fact(write: Write, kind: str, **values: Any) -> Evidence:
    return Evidence(
        write.id, kind, write.at, write.at_upper, file="znode", offset=write.mzxid, source_kind="znode", **values
    )
