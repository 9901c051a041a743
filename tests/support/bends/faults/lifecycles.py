"""Faults of procedures: creation, deletion, reassignment, shutdown; of brokers that come and go; of controllers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from tests.support.bends.editing import StateRow, partition_of
from tests.support.bends.faults.drafts import ERROR, WARNING, Draft, Fault, Faults, Site, State, dated, number, restated
from tests.support.evidence.lines import Line, Partition, ids

_BATCH_US = 1_000_000


def _moves(site: Site, partition: Partition | None, file: str, replica: int | None = None) -> list[Line]:
    """The transitions of a partition, or of one replica, in one controller's log."""
    event = "partition_state_change" if replica is None else "replica_state_change"
    lines = site.about(partition, event)
    return [line for line in lines if line.file == file and number(line, "replica_id") == replica]


def _moved(line: Line, start: str, end: str) -> bool:
    return (line.fields["from_state"], line.fields["to_state"]) == (start, end)


def replica_online_before_partition(site: Site) -> Iterator[Fault]:
    """A new topic's replica is online before its partition has a leader."""
    for line in site.events("partition_state_change"):
        partition = partition_of(line)
        if not _moved(line, "NewPartition", "OnlinePartition") or partition is None:
            continue
        for replica in sorted(site.ever_assigned(partition)):
            moves = _moves(site, partition, line.file, replica)
            online = [m for m in moves if _moved(m, "NewReplica", "OnlineReplica") and 0 <= m.at - line.at < _BATCH_US]
            for move in online[:1]:
                draft = Draft(site)
                draft.put(move)
                draft.before(line, dated(site.raw(move), line.at))
                yield Fault(
                    "replica online before its partition",
                    partition,
                    frozenset({"R16"}),
                    draft.made(),
                    f"{line.id} replica {replica}",
                )


def deletion_with_dead_replica(site: Site) -> Iterator[Fault]:
    """The replica on a dead broker, which cannot be deleted, is deleted and counted as gone."""
    for line in site.events("replica_state_change", "replica_state_change_failed"):
        partition, replica = partition_of(line), number(line, "replica_id")
        if (
            line.fields.get("to_state") != "ReplicaDeletionIneligible"
            or line.fields.get("from_state") != "OfflineReplica"
        ):
            continue
        if partition is None or replica is None:
            continue
        draft = Draft(site)
        raw = re.sub(r"initiated state change of|Initiated state change of", "changed state of", site.raw(line))
        raw = re.sub(r"\[(\w+ id=\d+ epoch=\d+)\] changed state", r"[\1] Changed state", raw).replace(" failed (", " (")
        raw = raw.replace(" ERROR ", " TRACE ")
        draft.put(
            line,
            raw.replace("ReplicaDeletionIneligible", "ReplicaDeletionStarted"),
            re.sub(
                "from OfflineReplica to .*Ineligible", "from ReplicaDeletionStarted to ReplicaDeletionSuccessful", raw
            ),
        )
        later = [m for m in _moves(site, partition, line.file, replica) if m.number > line.number]
        draft.drop(move for move in later if move.fields["to_state"] != "NonExistentReplica")
        yield Fault(
            "deletion goes on with a dead replica",
            partition,
            frozenset({"R16"}),
            draft.made(),
            f"{line.id} replica {replica}",
        )


# --- reassignment


@dataclass(frozen=True)
class _Reassignment:
    partition: Partition
    file: str
    new: frozenset[int]
    old: frozenset[int]
    created: Line
    offline: Line


def _reassignments(site: Site) -> Iterator[_Reassignment]:
    """A replica that is new after the partition was online, and another that goes offline for good after it."""
    for partition in site.partitions:
        news = [
            line
            for line in site.about(partition, "replica_state_change")
            if _moved(line, "NonExistentReplica", "NewReplica")
        ]
        ends = [
            line
            for line in site.about(partition, "replica_state_change")
            if _moved(line, "ReplicaDeletionSuccessful", "NonExistentReplica")
        ]
        online = [
            line.at
            for line in site.about(partition, "partition_state_change")
            if _moved(line, "NewPartition", "OnlinePartition")
        ]
        late = [line for line in news if online and line.at > online[0] + _BATCH_US]
        if not late:
            continue
        first = late[0]
        gone = [line for line in ends if line.file == first.file and 0 <= line.at - first.at < 60_000_000]
        offline = [
            move
            for line in gone
            for move in _moves(site, partition, first.file, number(line, "replica_id"))
            if move.fields["to_state"] == "OfflineReplica" and first.number < move.number < line.number
        ]
        if gone and offline:
            near = [line for line in late if line.file == first.file and line.at - first.at < _BATCH_US]
            yield _Reassignment(
                partition,
                first.file,
                frozenset(number(line, "replica_id") or 0 for line in near),
                frozenset(number(line, "replica_id") or 0 for line in gone),
                first,
                offline[0],
            )


def reassignment_shrinks_early(site: Site) -> Iterator[Fault]:
    """The old replicas are taken offline while no new one is in the ISR."""
    for moved in _reassignments(site):
        last = _last_write_before(site, moved.partition, moved.offline.at + 20_000)
        draft = Draft(site)

        def without(state: State, moved: _Reassignment = moved, last: StateRow | None = last) -> State:
            is_early = state.at <= moved.offline.at + 20_000
            if state.version is not None and last is not None:
                is_early = state.version <= last.version
            if not is_early or state.isr is None or state.at < moved.created.at - _BATCH_US:
                return state
            return replace(state, isr=tuple(m for m in state.isr if m not in moved.new))

        rows = [r for r in site.writes.get(moved.partition, ()) if last is not None and r.version <= last.version]
        is_led_by_new = any(r.state["leader"] in moved.new for r in rows) or any(
            number(line, "leader") in moved.new and line.at <= moved.offline.at + 20_000
            for line in site.about(moved.partition, "partition_state_change", "leader_and_isr_sent")
        )
        if is_led_by_new:
            continue
        restated(draft, moved.partition, without)
        grown = [
            line
            for line in site.about(
                moved.partition,
                "isr_expand_proposed",
                "isr_expanded",
                "isr_update_committed",
                "reassignment_caught_up",
                "reassignment_isr_change",
            )
            if moved.created.at <= line.at <= moved.offline.at + 20_000
        ]
        draft.drop(grown)
        yield Fault(
            "reassignment shrinks before the new replicas are in the ISR",
            moved.partition,
            frozenset({"R16"}),
            draft.made(),
            f"{moved.offline.id}: new {sorted(moved.new)}, old {sorted(moved.old)}",
        )


def _last_write_before(site: Site, partition: Partition, at: int) -> StateRow | None:
    rows = [row for row in site.writes.get(partition, ()) if site.written_at(row) <= at]
    return rows[-1] if rows else None


def reassignment_removes_first(site: Site) -> Iterator[Fault]:
    """The old replicas are deleted before a new one is created."""
    for moved in _reassignments(site):
        draft, at = Draft(site), moved.created.at
        lines = [
            line
            for replica in sorted(moved.old)
            for line in _moves(site, moved.partition, moved.file, replica)
            if line.number >= moved.offline.number
        ]
        lines += [
            line
            for line in site.about(moved.partition, "stop_replica_sent")
            if line.file == moved.file
            and line.number > moved.created.number
            and number(line, "to_broker_id") in moved.old
        ]
        lines.sort(key=lambda line: line.number)
        draft.drop(lines)
        draft.before(moved.created, *(dated(site.raw(line), at) for line in lines))
        for line in site.about(moved.partition, "stop_replica_received", "stop_replica_handled"):
            if line.broker_id in moved.old and line.at >= moved.offline.at and "controller_id" not in line.fields:
                draft.put(line)
                draft.insert(line.file, at + 2_000, dated(site.raw(line), at + 2_000))
        yield Fault(
            "reassignment removes the old replicas first",
            moved.partition,
            frozenset({"R16"}),
            draft.made(),
            f"{moved.created.id}: new {sorted(moved.new)}, old {sorted(moved.old)}",
        )


# --- controlled shutdown


def controlled_shutdown_leaves_leader(site: Site) -> Iterator[Fault]:
    """Of the leaderships of a broker that asks for its shutdown one is moved only when it is gone."""
    for asked in site.events("controlled_shutdown_requested", source_kind="controller_log"):
        broker, controller = number(asked, "shutting_down_broker_ids"), number(asked, "controller_id")
        gone = _noticed_gone(site, broker, asked.at)
        if broker is None or gone is None:
            continue
        for line in site.events("partition_state_change"):
            partition = partition_of(line)
            is_of_it = number(line, "controller_id") == controller and 0 <= line.at - asked.at < _BATCH_US
            if partition and is_of_it and _moved(line, "OnlinePartition", "OnlinePartition"):
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
        if line.source_kind == "state_change_log" and asked <= line.at <= asked + _BATCH_US
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
        if asked <= line.at <= asked + _BATCH_US:
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
    rows = [json.loads(line) for name in draft.site.text.named("znodes/") for line in files[name] if '"mzxid"' in line]
    zxid = max(row["mzxid"] for row in rows if row["mtime"] * 1000 <= at) + 1
    for name, row_number in after.rows:
        row: dict[str, Any] = json.loads(files[name][row_number - 1])
        if row["captured_at"] * 1000 < at:
            row = {**old, "captured_at": row["captured_at"]}
        else:
            data = {**after.state, "controller_epoch": controller_epoch}
            row |= {"mtime": at // 1000, "mzxid": zxid, "data": json.dumps(data, separators=(",", ":"))}
        draft.edits[name, row_number] = (json.dumps(row),)


# --- brokers that come back


def _returns(
    site: Site,
) -> Iterator[tuple[int, list[tuple[str, int, dict[str, Any]]], list[tuple[str, int, dict[str, Any]]]]]:
    """Successive registrations of a broker: the rows of each."""
    for broker in site.brokers:
        by_session: dict[int, list[tuple[str, int, dict[str, Any]]]] = {}
        for place in site.registrations(broker):
            by_session.setdefault(place[2]["czxid"], []).append(place)
        for before, after in pairwise(by_session.values()):
            yield broker, before, after


def older_broker_epoch(site: Site) -> Iterator[Fault]:
    """A broker registers with a lower czxid, which is its broker epoch since 2.2, than the time before."""
    taken = {json.loads(line)["czxid"] for name in site.text.named("znodes/") for line in site.text.files[name]}
    for broker, before, after in _returns(site):
        was, old = after[0][2]["czxid"], before[0][2]["czxid"]
        now = next(zxid for zxid in range(old - 1, 0, -1) if zxid not in taken)
        draft = Draft(site)
        for name, row_number, row in after:
            mzxid = now + row["mzxid"] - row["czxid"]
            draft.edits[name, row_number] = (json.dumps({**row, "czxid": now, "pzxid": now, "mzxid": mzxid}),)
        for line in site.lines:
            if line.source_kind == "controller_log" and re.search(rf"\b{broker} -> {was}\b", site.raw(line)):
                draft.put(line, re.sub(rf"\b{broker} -> {was}\b", f"{broker} -> {now}", site.raw(line)))
        note = f"broker {broker}: {was} as {now} after {old}"
        # ZooKeeper may have been restored, unless another broker's registration with a higher zxid lasted.
        is_witnessed = any(
            rows[0]["czxid"] > now and any(row["captured_at"] > after[0][2]["captured_at"] for row in rows)
            for other in site.brokers
            if other != broker
            for rows in _registered(site, other, until=after[0][2]["ctime"])
        )
        yield Fault(
            "broker registers with an older epoch",
            None,
            frozenset({"R16"}),
            draft.made(),
            note,
            frozenset({broker}),
            ERROR if is_witnessed else WARNING,
        )


def _registered(site: Site, broker: int, until: int) -> Iterator[list[dict[str, Any]]]:
    """The rows of each registration of a broker that began before ``until``, ms."""
    by_session: dict[int, list[dict[str, Any]]] = {}
    for _, _, row in site.registrations(broker):
        by_session.setdefault(row["czxid"], []).append(row)
    return (rows for rows in by_session.values() if rows[0]["ctime"] < until)


def older_epoch_in_cache(site: Site) -> Iterator[Fault]:
    """The controller's list of broker epochs (since 2.2) has a lower one for a broker than the last that had it."""
    for file in site.text.named("controller.log"):
        last: dict[str, dict[str, str]] = {}
        for row_number, raw in enumerate(site.text.files[file], 1):
            if "Initialized broker epochs cache" in raw:  # another tenure
                last = {}
            if "broker epochs cache" not in raw:
                continue
            listed = dict(re.findall(r"(\d+) -> (\d+)", raw))
            for broker, zxid in listed.items():
                before = last.get(broker, {})
                if broker in before and int(before[broker]) < int(zxid):
                    older = int(before[broker]) - 1
                    text = re.sub(rf"\b{broker} -> {zxid}\b", f"{broker} -> {older}", raw)
                    stayed = [b for b in listed if before.get(b) == listed[b] and int(listed[b]) > older]
                    reason = "no other broker's epoch that stayed shows that ZooKeeper was not wiped or restored"
                    yield Fault(
                        "controller lists an older broker epoch",
                        None,
                        frozenset({"R16"}),
                        {(file, row_number): (text,)},
                        f"{file}:{row_number}: broker {broker}",
                        frozenset({int(broker)}),
                        unprovable="" if stayed else reason,
                    )
            last |= dict.fromkeys(listed, listed)


def older_registration_time(site: Site) -> Iterator[Fault]:
    """A registration with a later zxid and an earlier time: ZooKeeper's clock, so no rule of Kafka's is broken."""
    for broker, before, after in _returns(site):
        earlier = before[0][2]["ctime"] - 5_000
        draft = Draft(site)
        for name, row_number, row in after:
            data = json.loads(row["data"])
            data["timestamp"] = str(earlier - 20)
            changed = {**row, "ctime": earlier, "mtime": earlier, "data": json.dumps(data, separators=(",", ":"))}
            draft.edits[name, row_number] = (json.dumps(changed),)
        note = f"broker {broker}"
        yield Fault(
            "broker registers with an older time",
            None,
            frozenset({"R16", "R50"}),
            draft.made(),
            note,
            frozenset({broker}),
            WARNING,
        )


def bounce_unnoticed(site: Site) -> Iterator[Fault]:
    """A broker registers anew, and its controller, which stays in office, tells of neither end nor beginning.

    Of brokers that led nothing when they went: nothing else then depends on the notice.
    """
    for broker, before, after in _returns(site):
        back = after[0][2]["ctime"] * 1000
        last_seen = before[-1][2]["captured_at"] * 1000
        notices = [
            line
            for line in site.events("broker_change", source_kind="controller_log")
            if broker in (*ids(line.fields["added_broker_ids"]), *ids(line.fields["deleted_broker_ids"]))
            and last_seen - 3_000_000 <= line.at <= back + 5_000_000
        ]
        controllers = {number(line, "controller_id") for line in notices}
        if len(notices) < 2 or len(controllers) != 1 or broker in controllers:
            continue
        gone, file = notices[0].at, notices[0].file.replace("controller.log", "state-change.log")
        led = [
            rows[-1].state["leader"]
            for rows in ([r for r in own if site.written_at(r) < gone - 20_000] for own in site.writes.values())
            if rows
        ]
        if broker in led:
            continue
        draft = Draft(site)
        for line in site.lines:
            if line.file == notices[0].file and gone - 200_000 <= line.at <= back + 2_000_000:
                if _tells_of(line, broker):
                    draft.put(line)
            elif line.file == file and gone - 50_000 <= line.at <= back + 2_000_000 and "broker_id" not in line.fields:
                if number(line, "replica_id") == broker or number(line, "to_broker_id") == broker:
                    draft.put(line)
            elif (
                line.broker_id == broker
                and line.source_kind == "state_change_log"
                and back <= line.at <= back + 2_000_000
            ):
                draft.put(line)
        severity = ERROR if site.minor >= (2, 2) else WARNING
        note = f"broker {broker}: {notices[0].id} to {notices[-1].id}"
        yield Fault(
            "bounce that the controller does not notice",
            None,
            frozenset({"R16"}),
            draft.made(),
            note,
            frozenset({broker}),
            severity,
        )


def _tells_of(line: Line, broker: int) -> bool:
    names = ("added_broker_ids", "deleted_broker_ids", "bounced_broker_ids", "broker_ids", "to_broker_id", "broker_id")
    is_change = line.event_type in ("broker_change", "broker_failed", "broker_started", "broker_change_notified")
    is_named = any(broker in ids(line.fields.get(name, "")) for name in names)
    return (is_change or line.event_type.startswith(("controller_connect", "broker_", "brokers_"))) and (
        is_named or line.event_type == "broker_change_notified"
    )


# --- controllers


_RAISED = re.compile(r"((?:[Ee]poch|[Ii]ncremented)(?: epoch)? to )(\d+)")


def two_controllers(site: Site) -> Iterator[Fault]:
    """A controller's own line of its election has the epoch of the one before it, another broker's."""
    events = ("controller_epoch_incremented", "controller_elected")
    lines = list(site.events(*events, source_kind="controller_log"))
    held = {number(line, "controller_epoch"): line.broker_id for line in lines if number(line, "controller_epoch")}
    for line in lines:
        epoch = number(line, "controller_epoch") or 0
        text = _RAISED.sub(rf"\g<1>{epoch - 1}", site.raw(line))
        if epoch > 2 and text != site.raw(line) and held.get(epoch - 1, line.broker_id) != line.broker_id:
            draft = Draft(site)
            draft.put(line, text)
            yield Fault(
                "two controllers for one epoch", None, frozenset({"R11"}), draft.made(), f"{line.id} epoch {epoch}"
            )


LIFECYCLES: tuple[Faults, ...] = (
    replica_online_before_partition,
    deletion_with_dead_replica,
    reassignment_shrinks_early,
    reassignment_removes_first,
    controlled_shutdown_leaves_leader,
    older_broker_epoch,
    older_epoch_in_cache,
    older_registration_time,
    bounce_unnoticed,
    two_controllers,
)
