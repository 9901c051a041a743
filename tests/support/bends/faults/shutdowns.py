"""Faults of controlled shutdown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.support.bends.editing import StateRow, partition_of
from tests.support.bends.faults.drafts import Draft, Fault, Faults, Site, dated, number
from tests.support.bends.faults.procedures import BATCH_US, moved
from tests.support.bends.faults.restating import State, restated
from tests.support.evidence.lines import Line, Partition, ids
from tests.support.evidence.znodes import rows_of


def controlled_shutdown_leaves_leader(site: Site) -> Iterator[Fault]:
    """Of the leaderships of a broker that asks for its shutdown one is moved only when it is gone."""
    for asked in site.events("controlled_shutdown_requested", source_kind="controller_log"):
        broker, controller = number(asked, "shutting_down_broker_ids"), number(asked, "controller_id")
        gone = _noticed_gone(site, broker, asked.at)
        if broker is None or gone is None:
            continue
        for line in site.events("partition_state_change"):
            partition = partition_of(line)
            is_of_it = number(line, "controller_id") == controller and 0 <= line.at - asked.at < BATCH_US
            if partition and is_of_it and moved(line, "OnlinePartition", "OnlinePartition"):
                edits = _postponed(site, partition, line, broker, asked.at, gone)
                if edits is not None:
                    note = f"{line.id}: broker {broker}"
                    yield Fault("controlled shutdown leaves a leadership", partition, frozenset({"R16"}), edits, note)


def _noticed_gone(site: Site, broker: int | None, after: int) -> Line | None:
    """The first line of a controller's log in which a broker that asked for its shutdown is no longer listed."""
    lists = [
        line
        for line in site.events("broker_change", "brokers_active", source_kind="controller_log")
        if "live_broker_ids" in line.fields and line.at > after
    ]
    first = min(lists, key=lambda line: line.at, default=None)
    is_gone = first is not None and broker not in ids(first.fields["live_broker_ids"])
    return first if is_gone else None


def _postponed(
    site: Site, partition: Partition, election: Line, broker: int, asked: int, gone: Line
) -> dict[tuple[str, int], tuple[str, ...]] | None:
    pairs = [
        (before, after)
        for before, after in site.successive()
        if after.partition == partition
        and abs(site.written_at(after) - election.at) < 500_000
        and before.state["leader"] == broker != after.state["leader"]
    ]
    if not pairs or len(pairs[0][0].state["isr"]) < 2:
        return None
    before, after = pairs[0]
    draft, at = Draft(site), gone.at + 50_000
    was, now = number(election, "controller_id"), number(gone, "controller_id")
    epochs = [
        number(line, "controller_epoch")
        for line in site.events("partition_state_change", "replica_state_change", "leader_and_isr_sent")
        if number(line, "controller_id") == now and line.at >= gone.at
    ]
    if was is None or now is None or not epochs or epochs[0] is None:
        return None
    epoch, target = epochs[0], gone.file.replace("controller.log", "state-change.log")

    def before_it(state: State) -> State:
        """A new controller restates what there is when it begins."""
        if state.at >= at or (state.leader_epoch, state.leader) != (after.state["leader_epoch"], after.state["leader"]):
            return state
        version = None if state.version is None else before.version
        isr = None if state.isr is None else tuple(before.state["isr"])
        return State(before.state["leader"], before.state["leader_epoch"], isr, version, state.at)

    restated(draft, partition, before_it)
    for line in site.by_name[partition]:
        shown = line.fields.get("partition_epoch"), line.fields.get("leader_epoch")
        if line.at < at and shown == (str(after.version), str(after.state["leader_epoch"])):
            pattern = rf"((?:partitionEpoch=|zkVersion=|ZkVersion:)){after.version}\b"
            draft.put(line, re.sub(pattern, rf"\g<1>{before.version}", draft.text(line)))
    batch = [
        line
        for line in site.by_name[partition]
        if line.source_kind == "state_change_log" and asked <= line.at <= asked + BATCH_US
    ]
    for line in batch:
        draft.put(line)
        is_controllers = "broker_id" not in line.fields
        if (line.broker_id == broker and not is_controllers) or number(line, "to_broker_id") == broker:
            continue
        text = _by_controller(site.raw(line), was, now, number(election, "controller_epoch") or 0, epoch)
        file, when = (target, at) if is_controllers else (line.file, at + line.at - election.at)
        if line is election:
            text = text.replace("from OnlinePartition", "from OfflinePartition")
            if was == now:
                draft.insert(file, when, dated(_went_offline(site, text, partition), when))
        draft.insert(file, when, dated(text, when))
    for line in site.about(partition, "leader_selected", "isr_shrunk_by_controller"):
        if asked <= line.at <= asked + BATCH_US:
            draft.put(line)
    _written_later(draft, before, after, at, epoch)
    return draft.made()


def _by_controller(text: str, was: int, now: int, old_epoch: int, epoch: int) -> str:
    text = re.sub(
        rf"(Controller |controller |Controller id=){was}( epoch[ =]){old_epoch}\b", rf"\g<1>{now}\g<2>{epoch}", text
    )
    return re.sub(rf"([cC]ontrollerEpoch[:=]){old_epoch}\b", rf"\g<1>{epoch}", text)


def _went_offline(site: Site, election: str, partition: Partition) -> str:
    """As the version words it."""
    head = election[: election.index("hanged partition")]
    name = f"[{partition[0]},{partition[1]}]" if site.minor < (1, 0) else f"{partition[0]}-{partition[1]}"
    return f"{head}hanged partition {name} state from OnlinePartition to OfflinePartition (state.change.logger)"


def _written_later(draft: Draft, before: StateRow, after: StateRow, at: int, controller_epoch: int) -> None:
    """The znode shows the state before the election until ``at``, and then that of a later write."""
    files = draft.site.text.files
    old = json.loads(files[before.rows[-1][0]][before.rows[-1][1] - 1])
    rows = (row for _, lines in draft.site.text.snapshots() for row in rows_of(lines))
    zxid = max(row["mzxid"] for row in rows if row["mtime"] * 1000 <= at) + 1
    for name, row_number in after.rows:
        row: dict[str, Any] = json.loads(files[name][row_number - 1])
        if row["captured_at"] * 1000 < at:
            row = {**old, "captured_at": row["captured_at"]}
        else:
            data = {**after.state, "controller_epoch": controller_epoch}
            row |= {"mtime": at // 1000, "mzxid": zxid, "data": json.dumps(data, separators=(",", ":"))}
        draft.edits[name, row_number] = (json.dumps(row),)


SHUTDOWNS: tuple[Faults, ...] = (controlled_shutdown_leaves_leader,)
