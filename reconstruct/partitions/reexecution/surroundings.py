"""What surrounds one controller's log: its lists of live brokers, and whether the topic is being deleted."""

from __future__ import annotations

from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.view import ClusterView, LiveView
from reconstruct.model.states import EPOCH_DURING_DELETE, LEADER_DURING_DELETE, PartitionState, ReplicaState
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import ZNODE_DELETION_REQUESTED, Evidence
from reconstruct.partitions.reexecution.controller_log import (
    PARTITION,
    REPLICA,
    STOP_REPLICA,
    UPDATE_METADATA,
    ControllerLog,
)

#: A live list that changed within this time of a block does not say who was live in it.
_VIEW_SLACK_US: Final = 2_000_000


def own_views(cluster: ClusterView, log: ControllerLog) -> list[LiveView]:
    """The lists of live brokers of the controller's tenure, in their order; none where it is not known."""
    tenure = next((t for t in cluster.tenures if t.controller_epoch == log.controller_epoch), None)
    if tenure is None:
        return []
    return [
        view
        for view in cluster.live_views
        if view.controller_id == log.controller_id
        and tenure.start <= view.at
        and (tenure.end is None or view.at < tenure.end)
    ]


def steady_brokers(cluster: ClusterView, log: ControllerLog, at: int) -> frozenset[int]:
    """The brokers that are in each list of live ones that the controller logged about then."""
    views = own_views(cluster, log)
    last = [view.live for view in views if view.at <= at - _VIEW_SLACK_US][-1:]
    around = [view.live for view in views if abs(view.at - at) <= _VIEW_SLACK_US]
    lists = [*last, *around]
    return frozenset.intersection(*lists) if lists and any(view.at <= at for view in views) else frozenset()


def deletion_hint(case: Case) -> int | None:
    """The first instant at which something tells that the topic is being deleted; None where nothing does."""
    is_moving = bool(case.reassigning) or any(f.kind.startswith("reassignment_") for f in case.facts)
    found = [fact.at for fact in case.facts if _tells_of_deletion(fact, is_moving)]
    if case.deleted_at is not None:
        found.append(case.deleted_at)
    return min(found, default=None)


def _tells_of_deletion(fact: Evidence, is_moving: bool) -> bool:
    if fact.kind in (ZNODE_DELETION_REQUESTED, EventType.TOPIC_DELETION_RESPONSE, EventType.METADATA_DELETED):
        return True
    if fact.kind == STOP_REPLICA and fact.leader_epoch == EPOCH_DURING_DELETE:
        return True
    if fact.kind == UPDATE_METADATA and fact.leader == LEADER_DURING_DELETE:
        return True
    if fact.kind == REPLICA and fact.to_state == ReplicaState.DELETION_STARTED:
        return not is_moving
    is_end = fact.to_state in (ReplicaState.DELETION_INELIGIBLE, PartitionState.NON_EXISTENT)
    return fact.kind in (PARTITION, REPLICA) and is_end
