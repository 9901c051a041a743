"""What the controller asks of its own cache: whole topics, brokers, states.

Answers are sorted, because Kafka's are sets: the order in one batch is not Kafka's, and nothing may depend on it.

Sources: kafka.controller.ControllerContext 3.9 and the questions of ReplicaStateMachine and PartitionStateMachine up to
2.2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from reconstruct.model.controller.values import (
    LeaderIsrAndControllerEpoch,
    PartitionAndReplica,
    ReplicaAssignment,
    TopicPartition,
)
from reconstruct.model.states import PartitionState, ReplicaState
from tests.oracles.controller.context import ControllerContext

#: The states of a replica whose topic is being deleted (``replicasInDeletionStates``).
DELETION_STATES = frozenset(
    {ReplicaState.DELETION_STARTED, ReplicaState.DELETION_SUCCESSFUL, ReplicaState.DELETION_INELIGIBLE}
)


def all_partitions(context: ControllerContext) -> tuple[TopicPartition, ...]:
    return tuple(sorted(context.assignments))


def partitions_for_topics(context: ControllerContext, topics: Collection[str]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(partition for partition in context.assignments if partition.topic in topics))


def replicas_for_partitions(
    context: ControllerContext, partitions: Iterable[TopicPartition]
) -> tuple[PartitionAndReplica, ...]:
    """Each partition's replicas, in the order of the assignment."""
    return tuple(
        PartitionAndReplica(partition, replica) for partition in partitions for replica in context.replicas(partition)
    )


def replicas_for_topics(context: ControllerContext, topics: Collection[str]) -> tuple[PartitionAndReplica, ...]:
    return replicas_for_partitions(context, partitions_for_topics(context, topics))


def partitions_on_broker(context: ControllerContext, broker_id: int) -> tuple[TopicPartition, ...]:
    """``partitionsAssignedToBroker``."""
    return tuple(sorted(p for p, assignment in context.assignments.items() if broker_id in assignment.replicas))


def replicas_on_brokers(context: ControllerContext, broker_ids: Collection[int]) -> tuple[PartitionAndReplica, ...]:
    return tuple(
        PartitionAndReplica(partition, replica)
        for partition in all_partitions(context)
        for replica in context.replicas(partition)
        if replica in broker_ids
    )


def online_and_offline_replicas(
    context: ControllerContext,
) -> tuple[tuple[PartitionAndReplica, ...], tuple[PartitionAndReplica, ...]]:
    """Every assigned replica, those online first."""
    every = replicas_for_partitions(context, all_partitions(context))
    online = tuple(r for r in every if context.is_replica_online(r.replica_id, r.partition))
    offline = tuple(r for r in every if not context.is_replica_online(r.replica_id, r.partition))
    return online, offline


# --- states -----------------------------------------------------------------------------------------------------------


def partitions_in_state(
    context: ControllerContext, state: PartitionState, topic: str | None = None
) -> tuple[TopicPartition, ...]:
    """Partitions in the state; of one topic, the assigned ones, since one without an entry is in a state as well."""
    if topic is None and state is not PartitionState.NON_EXISTENT:
        return tuple(sorted(p for p, found in context.partition_states.items() if found is state))
    asked = all_partitions(context) if topic is None else partitions_for_topics(context, (topic,))
    return tuple(partition for partition in asked if context.partition_state(partition) is state)


def replicas_in_state(context: ControllerContext, topic: str, state: ReplicaState) -> tuple[PartitionAndReplica, ...]:
    return tuple(r for r in replicas_for_topics(context, (topic,)) if context.replica_state(r) is state)


def replicas_in_deletion_states(context: ControllerContext, topic: str) -> tuple[PartitionAndReplica, ...]:
    return tuple(r for r in replicas_for_topics(context, (topic,)) if context.replica_state(r) in DELETION_STATES)


def is_any_replica_in_state(context: ControllerContext, topic: str, state: ReplicaState) -> bool:
    return any(context.replica_state(r) is state for r in replicas_for_topics(context, (topic,)))


def are_all_replicas_in_state(context: ControllerContext, topic: str, state: ReplicaState) -> bool:
    """True of a topic without replicas, as Kafka's is."""
    return all(context.replica_state(r) is state for r in replicas_for_topics(context, (topic,)))


def are_all_replicas_for_topic_deleted(context: ControllerContext, topic: str) -> bool:
    return are_all_replicas_in_state(context, topic, ReplicaState.DELETION_SUCCESSFUL)


def is_at_least_one_replica_in_deletion_started_state(context: ControllerContext, topic: str) -> bool:
    return is_any_replica_in_state(context, topic, ReplicaState.DELETION_STARTED)


# --- leaders ----------------------------------------------------------------------------------------------------------


def partitions_with_leaders(context: ControllerContext) -> tuple[TopicPartition, ...]:
    """Partitions whose leadership is known, but for those of topics being deleted."""
    return tuple(sorted(p for p in context.leadership if not context.is_queued_for_deletion(p.topic)))


def partitions_with_offline_leader(context: ControllerContext) -> tuple[TopicPartition, ...]:
    """Those among them whose leader is none or not online."""
    return tuple(
        partition
        for partition in partitions_with_leaders(context)
        if not context.is_replica_online(context.leadership[partition].leader, partition)
    )


def partition_leaders_on_broker(context: ControllerContext, broker_id: int) -> tuple[TopicPartition, ...]:
    """Partitions with other replicas that the broker leads: what a controlled shutdown has not moved yet."""
    return tuple(
        partition
        for partition in partitions_with_leaders(context)
        if context.leadership[partition].leader == broker_id and len(context.replicas(partition)) > 1
    )


def offline_partition_count(context: ControllerContext) -> int:
    """Partitions offline, but for topics whose deletion has started (``OfflinePartitionsCount``)."""
    return sum(
        partition.topic not in context.topics_with_deletion_started
        for partition in partitions_in_state(context, PartitionState.OFFLINE)
    )


def preferred_replica_imbalance_count(context: ControllerContext) -> int:
    """Partitions not led by their preferred replica, but for topics being deleted."""
    return sum(
        not has_preferred_leader(context.assignment(partition), context.leadership[partition])
        for partition in partitions_with_leaders(context)
        if partition in context.assignments
    )


def has_preferred_leader(assignment: ReplicaAssignment, info: LeaderIsrAndControllerEpoch) -> bool:
    """A preferred replica that is being added is not expected to lead before it is in the ISR."""
    if not assignment.replicas:
        return True
    preferred = assignment.replicas[0]
    if preferred in assignment.adding_replicas:
        return preferred not in info.isr
    return info.leader == preferred
