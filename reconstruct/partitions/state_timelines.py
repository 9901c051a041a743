"""Timelines of the two state machines, from the transitions their controllers logged.

The machines live in one controller's memory. At each new tenure they start again from ZooKeeper, silently; a line's
``from`` state tells afterwards how they started. A deposed controller goes on logging until it notices: its lines are
no states of the cluster. What a version, or a log level, does not log is inferred and marked as inferred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.spans import SHOWN_OF_TENURE, Tenure
from reconstruct.cluster.view import ClusterView
from reconstruct.model.states import (
    NO_LEADER,
    PartitionState,
    ReplicaState,
    initial_partition_state,
    initial_replica_state,
)
from reconstruct.model.versions import TRANSITIONS_NOT_LOGGED_AT_INFO_SINCE
from reconstruct.partitions.evidence import Evidence, in_order
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from reconstruct.time.intervals import Change, Interval, as_of, close_intervals

CONTROLLER_FAILOVER: Final = "controller_failover"
UNLOGGED: Final = "unlogged_transition"
LOG_GAP: Final = "log_gap"
RETENTION: Final = "retention_boundary"


@dataclass(frozen=True, slots=True)
class MachineState:
    """A state of one machine, and whose machine it is."""

    state: str
    controller_id: int | None
    controller_epoch: int | None


def partition_state_timeline(
    evidence: Iterable[Evidence],
    decided: Sequence[Interval[LeaderAndIsrState]],
    cluster: ClusterView,
    exists_from: int | None,
    deleted_at: int | None,
) -> list[Interval[MachineState]]:
    """Intervals of the partition state machine for one partition incarnation.

    ``exists_from`` and ``deleted_at`` bound the incarnation where something says so (znodes); None where nothing does.
    """
    lines = [fact for fact in in_order(evidence) if fact.kind == EventType.PARTITION_STATE_CHANGE and fact.to_state]

    def initial(tenure: Tenure) -> str:
        interval = as_of(decided, tenure.start)
        leader = interval.value.leader if interval else NO_LEADER
        is_live = leader != NO_LEADER and cluster.is_live(leader, tenure.start) is not False
        return initial_partition_state(interval is not None, is_live).value

    def unlogged_at(line: Evidence, since: int) -> int:
        """When a step to Offline that nobody logged took effect: when the leader was decided away."""
        for interval in reversed(decided):
            if interval.value.leader == NO_LEADER and since <= interval.start <= line.at:
                return interval.start
        return line.at

    changes = _walk(lines, cluster, initial, unlogged_at, exists_from, deleted_at)
    if not lines:
        changes = _from_decided(decided, cluster)
    return close_intervals(_with_end(changes, PartitionState.NON_EXISTENT.value, deleted_at))


def replica_state_timeline(
    replica_id: int,
    evidence: Iterable[Evidence],
    assigned: Sequence[tuple[int, int | None]],
    cluster: ClusterView,
    deleted_at: int | None,
) -> list[Interval[MachineState]]:
    """Intervals of the replica state machine for one replica; ``assigned``: the intervals in which it was assigned."""
    lines = [
        fact
        for fact in in_order(evidence)
        if fact.kind == EventType.REPLICA_STATE_CHANGE and fact.replica_id == replica_id and fact.to_state
    ]
    exists_from = assigned[0][0] if assigned else None
    gone_at = assigned[-1][1] if assigned else None
    ends = [at for at in (gone_at, deleted_at) if at is not None]

    def initial(tenure: Tenure) -> str:
        is_live = cluster.is_live(replica_id, tenure.start) is not False
        return initial_replica_state(is_live, cluster.version).value

    changes = _walk(lines, cluster, initial, lambda line, _since: line.at, exists_from, min(ends, default=None))
    if not lines and exists_from is not None:
        changes = _from_liveness(replica_id, exists_from, min(ends, default=None), cluster)
    return close_intervals(_with_end(changes, ReplicaState.NON_EXISTENT.value, min(ends, default=None)))


def _walk(
    lines: Sequence[Evidence],
    cluster: ClusterView,
    initial: Callable[[Tenure], str],
    unlogged_at: Callable[[Evidence, int], int],
    exists_from: int | None,
    deleted_at: int | None,
) -> list[Change[MachineState]]:
    """Changes by tenure: how the machine started, then what its controller logged."""
    by_epoch: dict[int, list[Evidence]] = {}
    for line in lines:
        superseded = cluster.successor_start(line.controller_epoch or 0)
        if superseded is None or line.at < superseded:
            by_epoch.setdefault(line.controller_epoch or 0, []).append(line)
    tenures = {tenure.controller_epoch: tenure for tenure in cluster.tenures}
    first_observed = min((line.at for line in lines), default=None)
    known_from = min((at for at in (first_observed, exists_from) if at is not None), default=None)
    changes: list[Change[MachineState]] = []
    if known_from is None:
        return changes
    for epoch in sorted({*tenures, *by_epoch}):
        tenure = tenures.get(epoch)
        gone = deleted_at is not None and tenure is not None and tenure.start >= deleted_at
        has_ended = (
            bool(changes) and changes[-1].value is not None and changes[-1].value.state.startswith("NonExistent")
        )
        if tenure is not None and tenure.start > known_from and not gone and not has_ended:
            value = MachineState(initial(tenure), tenure.controller_id, epoch)
            changes.append(Change(tenure.start, value, tenure.evidence[:SHOWN_OF_TENURE], CONTROLLER_FAILOVER))
        for line in by_epoch.get(epoch, ()):
            _apply(changes, line, tenure, cluster, unlogged_at, known_from)
    return changes


def _apply(
    changes: list[Change[MachineState]],
    line: Evidence,
    tenure: Tenure | None,
    cluster: ClusterView,
    unlogged_at: Callable[[Evidence, int], int],
    known_from: int,
) -> None:
    """One logged transition; a ``from`` that is not where we were is a step nobody logged."""
    assert line.to_state is not None
    owner = MachineState(line.to_state, line.controller_id, line.controller_epoch)
    previous = changes[-1] if changes else None
    came_from = line.from_state
    if came_from is not None and not came_from.startswith("NonExistent"):
        if previous is None or previous.value is None:
            start = min(known_from, line.at)
            changes.append(Change(start, replace(owner, state=came_from), (line.evidence_id,), RETENTION))
        elif previous.value.state != came_from:
            before = replace(owner, state=came_from)
            if previous.inferred_from == CONTROLLER_FAILOVER:
                changes[-1] = Change(previous.at, before, (*previous.evidence, line.evidence_id), CONTROLLER_FAILOVER)
            else:
                reason = _why_unlogged(line, tenure, cluster)
                changes.append(Change(unlogged_at(line, previous.at), before, (line.evidence_id,), reason))
    changes.append(Change(line.at, owner, (line.evidence_id,)))


def _why_unlogged(line: Evidence, tenure: Tenure | None, cluster: ClusterView) -> str:
    floor_hides = tenure is None or not tenure.logs_transitions
    may_hide = cluster.version.may_be_since(TRANSITIONS_NOT_LOGGED_AT_INFO_SINCE)
    return UNLOGGED if floor_hides and may_hide else LOG_GAP


def _from_decided(decided: Sequence[Interval[LeaderAndIsrState]], cluster: ClusterView) -> list[Change[MachineState]]:
    """No transition was logged, or none of that log was given: Online while a leader was decided."""
    led = ((i, PartitionState.OFFLINE if i.value.leader == NO_LEADER else PartitionState.ONLINE) for i in decided)
    return _inferred(((interval.start, state, interval.evidence[:1]) for interval, state in led), cluster)


def _from_liveness(
    replica_id: int, exists_from: int, gone_at: int | None, cluster: ClusterView
) -> list[Change[MachineState]]:
    """No transition of the replica was logged: Online while its broker was registered."""
    registrations = cluster.liveness.get(replica_id, ())
    evidence = {exists_from: registrations[0].evidence[:1] if registrations else ()}
    for interval in registrations:
        for at in (interval.start, interval.end):
            if at is not None and at > exists_from and (gone_at is None or at < gone_at):
                evidence[at] = interval.evidence[:1]
    registered = ((at, cluster.is_live(replica_id, at)) for at in sorted(evidence))
    return _inferred(
        (
            (at, ReplicaState.ONLINE if is_live else ReplicaState.OFFLINE, evidence[at])
            for at, is_live in registered
            if is_live is not None
        ),
        cluster,
    )


def _inferred(states: Iterable[tuple[int, str, tuple[str, ...]]], cluster: ClusterView) -> list[Change[MachineState]]:
    """From the state at each instant, and what shows it, the changes, by the controller in office then."""
    changes: list[Change[MachineState]] = []
    for at, state, evidence in states:
        if not changes or changes[-1].value is None or changes[-1].value.state != state:
            tenure = cluster.tenure_at(at)
            owner = (tenure.controller_id, tenure.controller_epoch) if tenure else (None, None)
            changes.append(Change(at, MachineState(str(state), *owner), evidence, _hidden(tenure, cluster)))
    return changes


def _hidden(tenure: Tenure | None, cluster: ClusterView) -> str:
    has_log = tenure is not None and tenure.level_floor is not None
    return UNLOGGED if has_log and cluster.version.may_be_since(TRANSITIONS_NOT_LOGGED_AT_INFO_SINCE) else LOG_GAP


def _with_end(
    changes: list[Change[MachineState]], non_existent: str, ended_at: int | None
) -> list[Change[MachineState]]:
    """The end of the incarnation, where its znode tells of one that no line did."""
    last = changes[-1] if changes else None
    if ended_at is None or last is None or last.value is None or last.value.state == non_existent:
        return changes
    value = replace(last.value, state=non_existent)
    return [*changes, Change(max(ended_at, last.at), value, last.evidence[:1], UNLOGGED)]
