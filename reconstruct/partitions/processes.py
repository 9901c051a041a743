"""What a broker's process held at each line of its log: epochs that it accepted, until it starts again."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ingest.lake.tables.bronze import SourceKind
from ingest.shapes.event_types import EventType
from reconstruct.cluster.view import ClusterView
from reconstruct.model.states import LEADER_DURING_DELETE
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import Evidence, came_before
from reconstruct.partitions.roles import RoleChange

_STOPS: Final = (EventType.STOP_REPLICA_HANDLED, EventType.STOP_REPLICA_RECEIVED)
_STAGES: Final[Mapping[str, str]] = {
    EventType.LEADER_AND_ISR_RECEIVED: "received",
    EventType.LEADER_AND_ISR_IGNORED: "ignored",
    EventType.BECOME_LEADER_STARTED: "started",
    EventType.BECOME_FOLLOWER_STARTED: "started",
    EventType.BECOME_LEADER_COMPLETED: "completed",
    EventType.BECOME_FOLLOWER_COMPLETED: "completed",
}
_WHOLE_TRANSITION: Final = frozenset({"received", "started", "completed"})
_REFUSED: Final = frozenset({"received", "ignored"})
_REQUESTS: Final = (
    (EventType.LEADER_AND_ISR_SENT, EventType.LEADER_AND_ISR_RECEIVED),
    (EventType.UPDATE_METADATA_SENT, EventType.METADATA_CACHED),
)


@dataclass(frozen=True, slots=True)
class AcceptedEpoch:
    """The leader epoch that a broker had accepted last, the highest but where it took a lower one (R21), and the
    transition that accepted it."""

    leader_epoch: int
    change: RoleChange


def walk(
    cluster: ClusterView, broker_id: int, facts: Sequence[Evidence], changes: Sequence[RoleChange]
) -> Iterator[tuple[Evidence, AcceptedEpoch | None]]:
    """Each line of one broker with what it held just before; None where its log does not prove it.

    ``facts`` and ``changes`` are that broker's, in order. Nothing is proven by a log whose lines are not in order, nor
    before a start of its process that the evidence shows, nor by lines that may be of a cluster before this one; a
    replica that was deleted (StopReplica with delete) begins again.
    """
    accepted = {change.fact.order: change for change in changes if is_in_order(change)}
    starts = sorted(at for at, _ in cluster.process_starts.get(broker_id, ()))
    started = 0
    last: AcceptedEpoch | None = None
    for fact in facts:
        while started < len(starts) and starts[started] <= fact.at:
            started += 1
            last = None
        if last is not None and not cluster.is_one_cluster(broker_id, last.change.at, fact.at):
            last = None
        yield fact, last if last is not None and came_before(last.change.fact, fact, cluster) else None
        change = accepted.get(fact.order)
        epoch = change.role.leader_epoch if change is not None and started else None
        if is_deletion(fact):
            last = None
        elif change is not None and epoch is not None and (last is None or epoch != last.leader_epoch):
            last = AcceptedEpoch(epoch, change)


def is_in_order(change: RoleChange) -> bool:
    """Whether the change stands in the log of state changes: between two logs of a broker a millisecond is no order."""
    return change.fact.source_kind == SourceKind.STATE_CHANGE_LOG


def is_one_process(cluster: ClusterView, broker_id: int, start: int, end: int) -> bool:
    """Whether the broker's own log shows that one process wrote at both instants."""
    starts = [at for at, _ in cluster.process_starts.get(broker_id, ())]
    is_started_before = any(at <= start for at in starts) and not any(start < at <= end for at in starts)
    return is_started_before and cluster.is_one_cluster(broker_id, start, end)


def is_deletion(fact: Evidence) -> bool:
    """Whether the line may tell of the replica's removal (0.8.0 does not say whether StopReplica deletes)."""
    return fact.kind in _STOPS and fact.is_delete is not False


def is_between(instants: Sequence[int], one: int, other: int) -> bool:
    """Whether one of the sorted instants lies between two others, in whatever order."""
    start, end = min(one, other), max(one, other)
    return bisect_right(instants, start) < bisect_left(instants, end)


def shows_no_loss(case: Case, broker_id: int, but: Evidence | None = None) -> bool:
    """Whether nothing shows that a line of the partition is missing in the broker's log: each request that it received
    has its outcome, each outcome its request, and what controllers sent to it is what it received.

    ``but`` is a line in doubt: it and what should stand in its place are left out.
    """
    facts = [fact for fact in case.facts_of_brokers.get(broker_id, ()) if fact is not but]
    stages: dict[tuple[int | None, int | None], set[str]] = {}
    for fact in facts:
        stage = _STAGES.get(fact.kind)
        if stage is not None:
            stages.setdefault((fact.controller_id, fact.correlation_id), set()).add(stage)
    if not all(stages_of_one >= _WHOLE_TRANSITION or stages_of_one == _REFUSED for stages_of_one in stages.values()):
        return False
    for sent_kind, received_kind in _REQUESTS:
        sent, received = _request_states(case.facts, sent_kind, broker_id), _request_states(facts, received_kind, None)
        if any(fact.kind == sent_kind for fact in case.facts) and not (sent == received or (but and received <= sent)):
            return False
    return True


_RequestState = tuple[int | None, int | None, int | None, int | None]


def _request_states(facts: Sequence[Evidence], kind: str, to_broker_id: int | None) -> set[_RequestState]:
    """The states of requests of one kind, sent to ``to_broker_id`` or, if it is None, received."""
    return {
        (fact.controller_epoch, fact.leader, fact.leader_epoch, fact.partition_epoch)
        for fact in facts
        if fact.kind == kind
        and fact.leader != LEADER_DURING_DELETE
        and (to_broker_id is None or to_broker_id in (fact.to_broker_ids or ()))
    }
