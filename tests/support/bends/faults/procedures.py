"""Faults of creation, deletion and reassignment."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.support.bends.editing import StateRow, partition_of
from tests.support.bends.faults.drafts import Draft, Fault, Faults, Site, dated, number
from tests.support.bends.faults.restating import State, restated
from tests.support.evidence.lines import Line, Partition

#: What a controller does at once it does within this time, µs.
BATCH_US = 1_000_000


def _moves(site: Site, partition: Partition | None, file: str, replica: int | None = None) -> list[Line]:
    """The transitions of a partition, or of one replica, in one controller's log."""
    event = "partition_state_change" if replica is None else "replica_state_change"
    lines = site.about(partition, event)
    return [line for line in lines if line.file == file and number(line, "replica_id") == replica]


def moved(line: Line, start: str, end: str) -> bool:
    return (line.fields["from_state"], line.fields["to_state"]) == (start, end)


def replica_online_before_partition(site: Site) -> Iterator[Fault]:
    """A new topic's replica is online before its partition has a leader."""
    for line in site.events("partition_state_change"):
        partition = partition_of(line)
        if not moved(line, "NewPartition", "OnlinePartition") or partition is None:
            continue
        for replica in sorted(site.ever_assigned(partition)):
            moves = _moves(site, partition, line.file, replica)
            online = [m for m in moves if moved(m, "NewReplica", "OnlineReplica") and 0 <= m.at - line.at < BATCH_US]
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
        since_1_0 = r"(\[\w+ id=\d+ epoch=\d+\]) (?:Controller \d+ epoch \d+ )?changed state"
        raw = re.sub(since_1_0, r"\1 Changed state", raw)
        raw = raw.replace(" failed (", " (")
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
    #: its lines stand before the next one's.
    until: float


def _reassignments(site: Site) -> Iterator[_Reassignment]:
    """A replica that is new after the partition was online, and another that goes offline for good after it."""
    for partition in site.partitions:
        news = [
            line
            for line in site.about(partition, "replica_state_change")
            if moved(line, "NonExistentReplica", "NewReplica")
        ]
        ends = [
            line
            for line in site.about(partition, "replica_state_change")
            if moved(line, "ReplicaDeletionSuccessful", "NonExistentReplica")
        ]
        online = [
            line.at
            for line in site.about(partition, "partition_state_change")
            if moved(line, "NewPartition", "OnlinePartition")
        ]
        late = [line for line in news if online and line.at > online[0] + BATCH_US]
        if not late:
            continue
        first = late[0]
        following = (line for line in late if line.file == first.file and line.at - first.at >= BATCH_US)
        until = min((line.number for line in following), default=math.inf)
        gone = [
            line
            for line in ends
            if line.file == first.file and 0 <= line.at - first.at < 60_000_000 and line.number < until
        ]
        offline = [
            move
            for line in gone
            for move in _moves(site, partition, first.file, number(line, "replica_id"))
            if move.fields["to_state"] == "OfflineReplica" and first.number < move.number < line.number
        ]
        if gone and offline:
            near = [line for line in late if line.file == first.file and line.at - first.at < BATCH_US]
            yield _Reassignment(
                partition,
                first.file,
                frozenset(number(line, "replica_id") or 0 for line in near),
                frozenset(number(line, "replica_id") or 0 for line in gone),
                first,
                offline[0],
                until,
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
            if not is_early or state.isr is None or state.at < moved.created.at - BATCH_US:
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
            if moved.offline.number <= line.number < moved.until
        ]
        lines += [
            line
            for line in site.about(moved.partition, "stop_replica_sent")
            if line.file == moved.file
            and moved.created.number < line.number < moved.until
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


PROCEDURES: tuple[Faults, ...] = (
    replica_online_before_partition,
    deletion_with_dead_replica,
    reassignment_shrinks_early,
    reassignment_removes_first,
)
