"""Evidence of a capture without Spark: the plain way to the same fold, for tests that fold many times."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ingest.shapes import match
from reconstruct.history.evidence import ZNODE_STATE, Evidence
from reconstruct.history.instants import to_micros

Partition = tuple[str, int]
_HEADER: Final = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] (\w+) (.*) \(([\w.$]+)\)$")
_STATE: Final = re.compile(r"^/brokers/topics/([^/]+)/partitions/(\d+)/state$")


def plain_evidence(folder: Path, *, znodes: bool = True) -> dict[Partition, list[Evidence]]:
    """By partition: what its capture's logs, and its snapshots' states, say."""
    found: dict[Partition, list[Evidence]] = {}
    for log in sorted(folder.glob("broker-*/logs/*.log")):
        for partition, fact in _logged(folder, log):
            found.setdefault(partition, []).append(fact)
    seen: set[tuple[str, int]] = set()
    for snapshot in sorted(folder.glob("znodes/*.jsonl")) if znodes else ():
        for partition, fact in _written(folder, snapshot, seen):
            found.setdefault(partition, []).append(fact)
    return found


def _logged(folder: Path, log: Path) -> Iterator[tuple[Partition, Evidence]]:
    broker = int(log.parts[-3].removeprefix("broker-"))
    kind = re.sub(r"\W", "_", log.name)
    lines = log.read_text(errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        header = _HEADER.match(line)
        matched = match(kind, header[4], header[3]) if header else None
        if header is None or matched is None:
            continue
        fields = matched.fields
        is_for_leader = (kind, matched.event_type) == ("controller_log", "isr_update_committed")
        fact = Evidence(
            evidence_id=f"{log.relative_to(folder)}:{number}",
            kind="isr_update_committed_for_leader" if is_for_leader else matched.event_type,
            at=to_micros(datetime.strptime(f"{header[1]}000", "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)),
            file=str(log),
            offset=number,
            source_kind=kind,
            log_level=header[2],
            shape_id=matched.shape_id,
            broker_id=broker,
            cause=lines[number] if number < len(lines) and not lines[number].startswith("[") else None,
            **_typed(fields),
        )
        for partition in _named(fields):
            yield partition, fact


def _typed(fields: Mapping[str, str]) -> dict[str, Any]:
    numbers = ("controller_id", "controller_epoch", "state_controller_epoch", "replica_id", "leader", "leader_epoch",
               "partition_epoch", "correlation_id")  # fmt: skip
    lists = ("old_isr", "replicas", "adding_replicas", "removing_replicas")
    typed: dict[str, Any] = {name: int(fields[name]) for name in numbers if name in fields}
    typed |= {name: _ids(fields[name]) for name in lists if name in fields}
    typed |= {name: fields[name] for name in ("from_state", "to_state", "role") if name in fields}
    isr = fields.get("new_isr", fields.get("isr"))
    return typed if isr is None else typed | {"isr": _ids(isr)}


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())


def _named(fields: Mapping[str, str]) -> list[Partition]:
    if "topic" in fields and "partition_id" in fields:
        return [(fields["topic"], int(fields["partition_id"]))]
    names = [name.rsplit("-", 1) for name in fields.get("topic_partitions", "").split(",") if name]
    return [(topic, int(number)) for topic, number in names]


def _written(folder: Path, snapshot: Path, seen: set[tuple[str, int]]) -> Iterator[tuple[Partition, Evidence]]:
    for number, line in enumerate(snapshot.read_text().splitlines(), 1):
        row = json.loads(line)
        name = _STATE.match(row["path"])
        if name is None or (row["path"], row["mzxid"]) in seen:
            continue
        seen.add((row["path"], row["mzxid"]))
        state = json.loads(row["data"])
        yield (name[1], int(name[2])), Evidence(
            f"{snapshot.relative_to(folder)}:{number}", ZNODE_STATE, row["mtime"] * 1000, file="znode",
            offset=row["mzxid"],
            source_kind="znode", leader=state["leader"], leader_epoch=state["leader_epoch"], isr=tuple(state["isr"]),
            state_controller_epoch=state["controller_epoch"], partition_epoch=row["version"],
        )  # fmt: skip
