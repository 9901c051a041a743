"""One block of a controller's log beside what the controller's cache held: the assignment, the leader, leader epoch and
ISR that it last decided or sent, and the live brokers.

Live brokers are those that the block's own UpdateMetadata went to, else (since 2.6, where it is not logged) those of
the controller's last list of live brokers, where that did not change around the block.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from reconstruct.cluster.view import ClusterView
from reconstruct.model.controller.values import without
from reconstruct.model.states import LEADER_DURING_DELETE, NO_LEADER, PartitionState, ReplicaState
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.reexecution.controller_log import (
    LEADER_AND_ISR,
    UPDATE_METADATA,
    Block,
    ControllerLog,
    own_views,
    steady_brokers,
)
from reconstruct.partitions.reexecution.model_runs import Leadership, SentRequest
from reconstruct.time.intervals import as_of

#: From these a replica goes Online when its broker starts.
_AWAY: Final = (ReplicaState.OFFLINE, ReplicaState.DELETION_INELIGIBLE)


@dataclass(frozen=True, slots=True)
class Reexecuted:
    """One transition done again: what it must send; None where the evidence does not fix it."""

    line: Evidence
    required: frozenset[SentRequest] | None


@dataclass(slots=True)
class Step:
    """One block with what the cache held before it, and each of its transitions done again."""

    log: ControllerLog
    block: Block
    cached: Leadership | None
    replicas: tuple[int, ...] | None
    reexecuted: list[Reexecuted] = field(default_factory=list)


def leadership_of(line: Evidence) -> Leadership | None:
    if line.leader is None or line.leader_epoch is None or line.isr is None or line.leader == LEADER_DURING_DELETE:
        return None
    return Leadership(line.leader, line.leader_epoch, line.isr)


def shrunk(cached: Leadership | None, replica_id: int | None) -> Leadership | None:
    """What a member of the ISR that goes Offline leaves; None where nothing changes."""
    if cached is None or replica_id not in cached.isr:
        return None
    leader = NO_LEADER if cached.leader == replica_id else cached.leader
    return Leadership(leader, cached.leader_epoch + 1, without(cached.isr, (replica_id,)) or cached.isr)


def live_at(cluster: ClusterView, step: Step, line: Evidence) -> frozenset[int] | None:
    """The brokers live at a transition: those that the batch's UpdateMetadata went to, else as the controller listed
    them last; None where nothing says."""
    requested = _metadata_recipients(step)
    if requested is not None:
        return requested
    views = own_views(cluster, step.log)
    return next((view.live for view in reversed(views) if view.at <= line.at), None)


def is_surely_live(cluster: ClusterView, step: Step, line: Evidence, broker: int) -> bool:
    """Whether the controller beyond doubt held the broker for live: by its UpdateMetadata, by whom it elected, or by
    every list that it logged about then."""
    requested = _metadata_recipients(step)
    if requested is not None:
        return broker in requested
    if line.replica_id == broker and line.to_state == ReplicaState.ONLINE and line.from_state in _AWAY:
        return True
    decided = decided_by(line, step.block)
    if decided is not None and (
        broker == decided.leader or (line.from_state == PartitionState.NEW and broker in decided.isr)
    ):
        return True
    return broker in steady_brokers(cluster, step.log, line.at)


def _metadata_recipients(step: Step) -> frozenset[int] | None:
    requested = [request for request in step.block.batch() if request.kind == UPDATE_METADATA]
    return frozenset(broker for request in requested for broker in request.to_broker_ids or ()) if requested else None


def assigned_before(
    case: Case, log: ControllerLog, block: Block, known: tuple[int, ...] | None
) -> tuple[int, ...] | None:
    """As the blocks before show it; else (requests do not say up to 0.11) as it is known from elsewhere."""
    if not block.transitions or (known is not None and log.shows_assignments):
        return known
    requested = next((line.replicas for line in (*block.transitions, *block.requests) if line.replicas), None)
    if requested:
        return requested
    assigned = as_of(case.assignments, block.transitions[-1].at)
    if assigned is None or assigned.inferred_from is not None:
        return known
    return without(assigned.value.replicas, log.forgotten_before(block))


def assigned_after(block: Block, known: tuple[int, ...] | None) -> tuple[int, ...] | None:
    return next((line.replicas for line in (*reversed(block.requests), *block.transitions) if line.replicas), known)


def cached_after(block: Block, cached: Leadership | None) -> Leadership | None:
    """UpdateMetadata shows the cache itself, LeaderAndIsr may carry a raised epoch that the cache does not hold."""
    decided = [leadership_of(line) for line in (*block.transitions, *block.others) if line.kind != LEADER_AND_ISR]
    requested = [leadership_of(line) for line in block.sent(UPDATE_METADATA)] or [
        leadership_of(line) for line in block.sent(LEADER_AND_ISR)
    ]
    known = [found for found in (cached, *decided, *requested) if found is not None]
    if not known:
        return None
    return max(reversed(known), key=lambda found: found.leader_epoch)


def decided_by(line: Evidence, block: Block) -> Leadership | None:
    """What a partition's transition to Online decided: as the line says, and up to 1.0,
    where it names less, as the requests behind it do."""
    if line.to_state != PartitionState.ONLINE:
        return None
    whole = leadership_of(line)
    if whole is not None:
        return whole
    requested = [leadership_of(request) for request in block.batch()]
    fitting = Counter(found for found in requested if found is not None and found.leader == line.leader)
    return min(fitting, key=lambda found: (-fitting[found], found.leader_epoch), default=None)
