"""Where a controller's log of transitions has a hole: a line starts from a state that no line left (R13, R14).

A controller logs each transition, so within its tenure and one file each ``from`` is the ``to`` of the line before, or
what the machine began with. It makes two without a line: a new controller starts its machines, and up to 1.0 a replica
of a partition without a leader goes Online in silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.view import ClusterView
from reconstruct.model.states import PartitionState, ReplicaState
from reconstruct.model.versions import ASYNC_CONTROLLER_SINCE, TOPIC_DELETION_SINCE, VersionRange
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.reexecution.controller_log import (
    LEADER_AND_ISR,
    REQUESTS,
    STOP_REPLICA,
    TRANSITIONS,
    UPDATE_METADATA,
    ControllerLog,
    logs_every_transition,
)

#: After a line to one of these the file is known to hold the partition's creation.
_BEGINS: Final = (PartitionState.NEW, ReplicaState.NEW)


@dataclass(frozen=True, slots=True)
class Gap:
    """``line`` does not start from what the line ``before`` left, or, where that is None, from an initial state."""

    line: Evidence
    before: Evidence | None
    expected: str


def gaps(log: ControllerLog, cluster: ClusterView) -> list[Gap]:
    """The holes that the transitions of one controller's log show by themselves."""
    if not logs_every_transition(cluster, log.controller_epoch):
        return []
    found: list[Gap] = []
    last: dict[int | None, Evidence] = {}
    is_created = _covers_begin(log, cluster)
    has_leader = False
    for line in log.lines:
        has_leader = has_leader or line.kind in REQUESTS
        if line.kind not in TRANSITIONS:
            continue
        before = last.get(line.replica_id)
        last[line.replica_id] = line
        if line.from_state is None or line.from_state == (before.to_state if before else None):
            is_created = is_created or line.to_state in _BEGINS
            continue
        is_silent = line.from_state == ReplicaState.ONLINE and not has_leader
        if before is None:
            if is_created and not _is_initial(line, cluster.version, last):
                found.append(Gap(line, None, "a state that a new controller gives, or none"))
        elif not (is_silent and cluster.version.may_be_before(ASYNC_CONTROLLER_SINCE)):
            found.append(Gap(line, before, str(before.to_state)))
        is_created = is_created or line.to_state in _BEGINS
    return found


def _covers_begin(log: ControllerLog, cluster: ClusterView) -> bool:
    """Whether the file that the log stands in was begun before the tenure."""
    tenure = cluster.tenure_of(log.controller_epoch)
    return tenure is not None and cluster.is_in_one_file(log.controller_id, tenure.start, log.end)


def _is_initial(line: Evidence, version: VersionRange, before: Mapping[int | None, Evidence]) -> bool:
    """Whether a machine may be in that state without a line; a partition may be New, unless its replicas were made."""
    if line.replica_id is None:
        return line.from_state != PartitionState.NEW or not any(
            other.from_state == ReplicaState.NON_EXISTENT for other in before.values()
        )
    initial = {ReplicaState.ONLINE, ReplicaState.DELETION_INELIGIBLE, ReplicaState.NON_EXISTENT}
    if version.may_be_before(TOPIC_DELETION_SINCE):
        initial.add(ReplicaState.OFFLINE)
    return line.from_state in initial


#: A broker's line: the request that it received.
_RECEIPTS: Final[Mapping[str, str]] = {
    EventType.LEADER_AND_ISR_RECEIVED: LEADER_AND_ISR,
    EventType.LEADER_AND_ISR_IGNORED: LEADER_AND_ISR,
    EventType.METADATA_CACHED: UPDATE_METADATA,
    EventType.STOP_REPLICA_RECEIVED: STOP_REPLICA,
}


def has_holes(logs: Sequence[ControllerLog], cluster: ClusterView, facts: Sequence[Evidence]) -> frozenset[int]:
    """The controller epochs whose log is proven to lack lines of this partition: by a transition's ``from``, or by a
    broker that received what the log does not say was sent."""
    holes = {log.controller_epoch for log in logs if gaps(log, cluster)}
    senders = {log.controller_epoch: log.controller_id for log in logs}
    sent = _Sent(logs)
    # every controller logs each LeaderAndIsr at TRACE, not so the others
    logged = sent.kinds | {(epoch, LEADER_AND_ISR) for epoch in senders}
    for fact in facts:
        kind, epoch = _RECEIPTS.get(fact.kind), fact.controller_epoch
        if kind is None or epoch is None or (epoch, kind) not in logged or fact.broker_id is None:
            continue
        if not sent.may_be(fact, kind) and cluster.logs_all(senders[epoch], fact.at, fact.at):
            holes.add(epoch)
    return frozenset(holes)


class _Sent:
    """The requests of controllers' logs, by what a broker's line says of the one that it received.

    Where the line of either does not print the leader epoch or the correlation id (the controller's does up to 0.8.2),
    any may be meant.
    """

    def __init__(self, logs: Sequence[ControllerLog]) -> None:
        #: (controller epoch, kind) of all.
        self.kinds: set[tuple[int | None, str]] = set()
        self._known: set[tuple[object, ...]] = set()
        for log in logs:
            for line in log.lines:
                if not line.to_broker_ids:
                    continue
                self.kinds.add((log.controller_epoch, line.kind))
                ids = (_ANY_ID,) if line.correlation_id is None else (line.correlation_id, None)
                self._known.update(
                    (log.controller_epoch, line.kind, broker_id, leader_epoch, correlation_id)
                    for broker_id in line.to_broker_ids
                    for leader_epoch in (line.leader_epoch, None)
                    for correlation_id in ids
                )

    def may_be(self, receipt: Evidence, kind: str) -> bool:
        """Whether one of them may be what a broker received."""
        asked = (receipt.controller_epoch, kind, receipt.broker_id, receipt.leader_epoch)
        return any((*asked, correlation_id) in self._known for correlation_id in (receipt.correlation_id, _ANY_ID))


_ANY_ID: Final = "any"
