"""The state of a partition with other values, wherever znodes and logs show it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from tests.support.bends.editing import StateRow
from tests.support.bends.faults.drafts import Draft
from tests.support.evidence.lines import Line, Partition, by_partition, ids, integer


@dataclass(frozen=True)
class State:
    """What a sighting shows of a partition's state: None is what it does not show."""

    leader: int | None
    leader_epoch: int | None
    isr: tuple[int, ...] | None
    version: int | None
    at: int


_EPOCH: Final = re.compile(r"(?i)(leader_?\s?epoch(?:\"?[:=]|\s(?:is\s|was\s)?))(-?\d+)")
_LEADER: Final = re.compile(
    r"(\bLeader:|\bleader=|\"leader\":|Current leader is |with leader |elected leader |new leader = )(-?\d+)"
)
_ISR: Final = re.compile(
    r"(\bISR:)([\d,]*)(?=,Leader|,InSync)|(\bisr=List\()([\d, ]*)(?=\))|(\bisr=\[)([\d, ]*)(?=\])"
    r"|(\bisr=)([\d,]*)(?=, zk)|(\"isr\":\[)([\d,]*)(?=\])|(\bISR \[)([\d,]*)(?=\])|(\bISR updated to \[?)([\d,]*)"
)
_BROKER_STATES: Final = re.compile(r"(isrWithBrokerEpoch=List\()(.*?)(\)(?=, leaderRecovery|\)))")

Change = Callable[[State], State]


def _shown(line: Line, fields: Mapping[str, str]) -> State:
    isr = fields.get("new_isr", fields.get("isr"))
    epoch = fields.get("leader_epoch", fields.get("request_leader_epoch", ""))
    return State(
        integer(fields.get("leader", "")),
        integer(epoch),
        None if isr is None else ids(isr),
        integer(fields.get("partition_epoch", "")),
        line.at,
    )


def restated(draft: Draft, partition: Partition, change: Change) -> None:
    """Every sighting of a partition's state, in znodes and logs, with what ``change`` makes of it."""
    site = draft.site
    for written in site.writes.get(partition, ()):
        _restate_row(draft, written, change)
    for line in site.by_name.get(partition, ()):
        for named, fields in by_partition(line.fields):
            if named != partition:
                continue
            was = _shown(line, fields)
            now = change(was)
            if now != was and (text := draft.text(line)):
                is_listed = "topic_partitions" in line.fields
                draft.put(line, _in_list(text, partition, was, now) if is_listed else _in_line(text, was, now))


def _restate_row(draft: Draft, written: StateRow, change: Change) -> None:
    state = written.state
    for name, row_number in written.rows:
        row = json.loads(draft.site.text.files[name][row_number - 1])
        was = State(state["leader"], state["leader_epoch"], tuple(state["isr"]), written.version, row["mtime"] * 1000)
        now = change(was)
        if now != was:
            data = {**state, "leader": now.leader, "leader_epoch": now.leader_epoch, "isr": list(now.isr or ())}
            row["data"] = json.dumps(data, separators=(",", ":"))
            row["version"] = now.version
            draft.edits[name, row_number] = (json.dumps(row),)


def _in_line(text: str, was: State, now: State) -> str:
    if now.leader_epoch != was.leader_epoch:
        text = _EPOCH.sub(lambda f: f"{f[1]}{now.leader_epoch}" if f[2] == str(was.leader_epoch) else f[0], text)
    if now.leader != was.leader:
        text = _LEADER.sub(lambda f: f"{f[1]}{now.leader}", text, count=1)
    if now.isr != was.isr and now.isr is not None:
        text = put_isr(text, now.isr)
    return text


def put_isr(text: str, isr: Iterable[int]) -> str:
    """The line with another ISR, however its era prints it."""
    members = list(isr)

    def states(found: re.Match[str]) -> str:
        inner = ", ".join(f"BrokerState(brokerId={member}, brokerEpoch=-1)" for member in members)
        return f"{found[1]}{inner}{found[3]}"

    def listed(found: re.Match[str]) -> str:
        groups = found.groups()
        prefix, old = next((groups[i], groups[i + 1]) for i in range(0, len(groups), 2) if groups[i] is not None)
        separator = ", " if ", " in old or prefix.endswith(("List(", "isr=[")) else ","
        return prefix + separator.join(map(str, members))

    if "isrWithBrokerEpoch" in text:
        return _BROKER_STATES.sub(states, text, count=1)
    return _ISR.sub(listed, text, count=1)


def _in_list(text: str, partition: Partition, was: State, now: State) -> str:
    """In a controller's list of the states of many partitions."""
    name = rf"(?:\[{re.escape(partition[0])},{partition[1]}\]|\b{re.escape(partition[0])}-{partition[1]}) -> \("
    found = re.search(name + r"[^()]*\)", text)
    return text if found is None else text[: found.start()] + _in_line(found[0], was, now) + text[found.end() :]
