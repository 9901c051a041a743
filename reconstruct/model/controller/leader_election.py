"""From an occasion to a decision: which election is held, what it is told of the cluster, what it makes of the znode.

The elections themselves are in :mod:`reconstruct.model.elections`; here they meet the controller's cache (assignment,
live brokers, failed log directories, settings) and the decision in force. What an election sees of a partition is the
cache's assignment and the znode's leader and ISR: the two may be of different times.

Sources: kafka.controller.Election 2.4 to 3.9; PartitionStateMachine 1.1; PartitionLeaderSelector 0.8.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconstruct.model.controller.context import ControllerContext
from reconstruct.model.controller.leader_writes import Refusal
from reconstruct.model.controller.outputs import Reason
from reconstruct.model.controller.values import LeaderAndIsr, LeaderIsrAndControllerEpoch, TopicPartition
from reconstruct.model.elections import (
    Brokers,
    Elected,
    ElectionFailure,
    ElectionKind,
    PartitionView,
    select_leader,
    select_no_op,
)
from reconstruct.model.value_class import value_class
from reconstruct.model.versions import (
    ASYNC_CONTROLLER_SINCE,
    LEADER_RECOVERY_STATE_SINCE,
    OFFLINE_LOG_DIRS_SINCE,
    REASSIGNMENT_IN_TOPIC_ZNODE_SINCE,
)


@value_class
class Election:
    """Which election, None for the selector that elects nobody; ``allow_unclean`` is an administrator's word (2.4)."""

    kind: ElectionKind | None
    allow_unclean: bool = False


@dataclass(slots=True)
class Choice:
    """An election bound to a partition; :meth:`decide` may run more than once, and leaves the last run's recipients."""

    context: ControllerContext
    partition: TopicPartition
    election: Election
    recipients: tuple[int, ...] = ()

    def decide(self, current: LeaderIsrAndControllerEpoch) -> LeaderAndIsr | Refusal | None:
        """The next decision, or why there is none."""
        view = partition_view(self.context, self.partition, current)
        outcome = _outcome(self.context, self.partition, view, self.election)
        if isinstance(outcome, ElectionFailure):
            return Refusal(_reason(outcome, self.context), _message(self.partition, self.election, view, outcome))
        self.recipients = outcome.recipients
        if self.election.kind is None:
            return current.leader_and_isr
        is_recovering = outcome.is_unclean and self.context.settings.protocol >= LEADER_RECOVERY_STATE_SINCE
        if is_recovering:
            return current.leader_and_isr.new_recovering_leader_and_isr(outcome.leader, outcome.isr)
        return current.leader_and_isr.new_leader_and_isr(outcome.leader, outcome.isr)


def partition_view(
    context: ControllerContext, partition: TopicPartition, current: LeaderIsrAndControllerEpoch
) -> PartitionView:
    """What the controller knows of the partition; up to 1.0 a preferred election asks the cache who leads."""
    assignment = context.assignment(partition)
    if context.version >= REASSIGNMENT_IN_TOPIC_ZNODE_SINCE:
        target = assignment.target_replicas
    else:
        target = context.partitions_being_reassigned.get(partition, ())
    leader = current.leader
    cached = context.leadership.get(partition)
    if context.version < ASYNC_CONTROLLER_SINCE and cached is not None:
        leader = cached.leader
    return PartitionView(assignment.replicas, current.isr, leader, current.leader_and_isr.leader_epoch, target)


def eligible_brokers(context: ControllerContext, partition: TopicPartition, view: PartitionView) -> Brokers:
    """The brokers that matter to the partition, those with its failed log directory left out."""
    asked = {*view.assignment, *view.isr, *(view.target or ())}
    sees_log_dirs = context.version >= OFFLINE_LOG_DIRS_SINCE
    live = (
        broker
        for broker in asked
        if broker in context.live_broker_epochs
        and not (sees_log_dirs and partition in context.replicas_on_offline_dirs.get(broker, ()))
    )
    return Brokers(frozenset(live), context.shutting_down_broker_ids)


def _outcome(
    context: ControllerContext, partition: TopicPartition, view: PartitionView, election: Election
) -> Elected | ElectionFailure:
    if election.kind is None:
        return select_no_op(view)
    is_unclean_allowed = election.allow_unclean or context.settings.is_unclean_allowed(partition.topic)
    brokers = eligible_brokers(context, partition, view)
    return select_leader(election.kind, view, brokers, is_unclean_allowed, context.version)


def _reason(failure: ElectionFailure, context: ControllerContext) -> Reason:
    if failure is ElectionFailure.NOT_NEEDED:
        return Reason.ELECTION_NOT_NEEDED
    if failure is ElectionFailure.NO_REPLICA_ONLINE and context.version < ASYNC_CONTROLLER_SINCE:
        return Reason.NO_REPLICA_ONLINE
    return Reason.STATE_CHANGE_FAILED


def _message(partition: TopicPartition, election: Election, view: PartitionView, failure: ElectionFailure) -> str:
    if failure is ElectionFailure.NOT_NEEDED:
        return f"replica {view.leader} is preferred and leads {partition} already"
    state = f"assigned {list(view.assignment)}, ISR {list(view.isr)}, leader {view.leader}"
    return f"no leader can be elected for {partition} by {election.kind}: {state}"
