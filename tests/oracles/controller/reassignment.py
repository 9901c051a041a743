"""Moving a partition to other brokers: first in, then out, with a wait between that may take days.

ORS is the original set of replicas, TRS the target.

**Up to 2.3** the target stands under ``/admin/reassign_partitions`` until it is reached. While TRS is not within the
ISR: the znode's assignment becomes TRS + ORS (a set there, in no order); the leader epoch is raised so that brokers
take it; the new replicas go New. When the ISR holds them all: TRS goes Online; the cache's assignment becomes TRS; the
leader moves if it is not among them or is dead, and else hears of the smaller assignment with another raise; ORS - TRS
goes Offline, DeletionStarted, DeletionSuccessful, NonExistent, at once and whatever the brokers answer; the znode's
assignment becomes TRS; the request is struck off; everybody is told. The raise reaches ZooKeeper and the brokers, but
not the controller's own cache.

**Since 2.4** (KIP-455) the topic's znode itself says what is being added and removed, so that one reassignment can
replace another or be cancelled. *U*: the znode, then the cache; replicas that only the old target wanted are stopped at
once. *A*, while TRS is not within the ISR: raise the epoch, tell ORS and TRS, new replicas go New. *B*: as above, with
what is added and removed.

A topic that moves is ineligible for deletion. A topic queued for deletion does not move.

Sources: kafka.controller.KafkaController 0.8.2.2, 1.1.1, 2.3.1 (numbered steps) and 2.4.1, 3.9.0 (phases U, A, B).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from reconstruct.model.controller.outputs import (
    Failure,
)
from reconstruct.model.controller.values import (
    PartitionAndReplica,
    ReplicaAssignment,
    TopicPartition,
    without,
)
from reconstruct.model.states import ReplicaState
from reconstruct.model.versions import ASYNC_CONTROLLER_SINCE, REASSIGNMENT_IN_TOPIC_ZNODE_SINCE, TOPIC_DELETION_SINCE
from tests.oracles.controller import replica_state_machine, topic_deletion
from tests.oracles.controller.context import ControllerContext
from tests.oracles.controller.context_changes import is_being_reassigned, origin_replicas, reassign_to
from tests.oracles.controller.outcomes import (
    RequestError,
    Result,
)
from tests.oracles.controller.reassignment_steps import (
    finish,
    move_leader_if_required,
    raise_epoch,
    refusal,
    stop_removed_replicas,
    strike_off,
    write_assignment,
)
from tests.oracles.controller.znodes import reassignments
from tests.oracles.controller.zookeeper import ZooKeeper


def process_partition_reassignment(context: ControllerContext, zookeeper: ZooKeeper) -> Result:
    """``/admin/reassign_partitions`` changed: begin what is new in it, strike off what cannot be done."""
    if not context.is_active:
        return Result(context, zookeeper)
    wanted = reassignments(zookeeper)
    begins_anew = context.version >= ASYNC_CONTROLLER_SINCE
    result = Result(context, zookeeper)
    for partition, target in sorted(wanted.items()):
        if begins_anew or partition not in context.partitions_being_reassigned:
            result = result.then(initiate_reassignment, partition, target)
    return result


def alter_partition_reassignments(
    context: ControllerContext, zookeeper: ZooKeeper, targets: Mapping[TopicPartition, tuple[int, ...] | None]
) -> Result:
    """The AlterPartitionReassignments request (2.4); None cancels what is under way."""
    result = Result(context, zookeeper)
    if not context.is_active:
        return result.fail(Failure(RequestError.NOT_CONTROLLER, "this broker is not the controller"))
    for partition, target in sorted(targets.items()):
        current = result.context.assignment(partition)
        invalid = None if target is None else _invalid_target(result.context, partition, target)
        if target is None and not is_being_reassigned(current):
            invalid = refusal(partition, RequestError.NO_REASSIGNMENT_IN_PROGRESS, "is not being reassigned")
        if invalid is not None:
            result = result.fail(invalid)
            continue
        goal = origin_replicas(current) if target is None else target
        result = result.then(strike_off, partition).then(initiate_reassignment, partition, goal)
    return result


def _invalid_target(context: ControllerContext, partition: TopicPartition, target: tuple[int, ...]) -> Failure | None:
    adding = reassign_to(context.assignment(partition), target).adding_replicas
    dead = tuple(replica for replica in adding if not context.is_live_broker(replica))
    if not target or len(set(target)) != len(target) or min(target) < 0:
        message = f"cannot be reassigned to {list(target)}: brokers must be given, each once"
    elif dead:
        message = f"cannot be reassigned to {list(target)}: brokers {list(dead)} are not alive"
    else:
        return None
    return refusal(partition, RequestError.INVALID_REPLICA_ASSIGNMENT, message)


def initiate_reassignment(
    context: ControllerContext, zookeeper: ZooKeeper, partition: TopicPartition, target: tuple[int, ...]
) -> Result:
    """Begin, or refuse and strike the request off."""
    why_not = _why_not(context, partition, target)
    if why_not is not None:
        return Result(context, zookeeper).then(strike_off, partition).fail(why_not)
    if context.version >= REASSIGNMENT_IN_TOPIC_ZNODE_SINCE:
        reassigned = reassign_to(context.assignment(partition), target)
        return on_partition_reassignment(context, zookeeper, partition, reassigned).caught()
    begun = replace(context, partitions_being_reassigned={**context.partitions_being_reassigned, partition: target})
    halted = topic_deletion.mark_topics_ineligible_for_deletion(begun, (partition.topic,))
    result = _step_until_2_3(halted, zookeeper, partition, target)
    return result.caught().then(strike_off, partition) if result.is_aborted else result


def _why_not(context: ControllerContext, partition: TopicPartition, target: tuple[int, ...]) -> Failure | None:
    if context.version >= TOPIC_DELETION_SINCE and context.is_queued_for_deletion(partition.topic):
        return refusal(partition, RequestError.UNKNOWN_TOPIC_OR_PARTITION, "belongs to a topic being deleted")
    assigned = context.replicas(partition)
    if not assigned:
        return refusal(partition, RequestError.UNKNOWN_TOPIC_OR_PARTITION, "does not exist")
    if context.version >= REASSIGNMENT_IN_TOPIC_ZNODE_SINCE:
        return None
    if assigned == target:
        return refusal(partition, RequestError.REQUEST_IGNORED, f"is assigned to {list(target)} already")
    if context.version < ASYNC_CONTROLLER_SINCE and not all(context.is_live_broker(broker) for broker in target):
        return refusal(
            partition, RequestError.REQUEST_IGNORED, f"cannot move to {list(target)}: not all of them are alive"
        )
    return None


def resume_reassignments(
    context: ControllerContext,
    zookeeper: ZooKeeper,
    new_brokers: Collection[int] | None = None,
    but: Collection[TopicPartition] = (),
) -> Result:
    """Look again at each reassignment that is to reach one of these brokers; at all where None, ``but`` some."""
    result = Result(context, zookeeper)
    for partition in without_partitions(context.partitions_being_reassigned, but):
        target = _target(result.context, partition)
        if new_brokers is None or any(broker in new_brokers for broker in target):
            result = result.then(_step, partition)
    return result


def without_partitions(
    partitions: Collection[TopicPartition], but: Collection[TopicPartition]
) -> tuple[TopicPartition, ...]:
    return tuple(sorted(partition for partition in partitions if partition not in but))


def process_isr_change(context: ControllerContext, zookeeper: ZooKeeper, partition: TopicPartition) -> Result:
    """The ISR of a partition that moves has changed: go on if it holds the whole target."""
    if partition not in context.partitions_being_reassigned:
        return Result(context, zookeeper)
    if not _is_within_isr(zookeeper, partition, _target(context, partition)):
        return Result(context, zookeeper)
    return _step(context, zookeeper, partition)


def _target(context: ControllerContext, partition: TopicPartition) -> tuple[int, ...]:
    if context.version >= REASSIGNMENT_IN_TOPIC_ZNODE_SINCE:
        return context.assignment(partition).target_replicas
    return context.partitions_being_reassigned.get(partition, ())


def _step(context: ControllerContext, zookeeper: ZooKeeper, partition: TopicPartition) -> Result:
    if context.version >= REASSIGNMENT_IN_TOPIC_ZNODE_SINCE:
        return on_partition_reassignment(context, zookeeper, partition, context.assignment(partition)).caught()
    return _step_until_2_3(context, zookeeper, partition, _target(context, partition)).caught()


def _is_within_isr(zookeeper: ZooKeeper, partition: TopicPartition, target: Collection[int]) -> bool:
    current, _ = zookeeper.partition_state(partition)
    return current is not None and frozenset(target) <= frozenset(current.isr)


# --- up to 2.3 --------------------------------------------------------------------------------------------------------


def _step_until_2_3(
    context: ControllerContext, zookeeper: ZooKeeper, partition: TopicPartition, target: tuple[int, ...]
) -> Result:
    assigned = context.replicas(partition)
    move = replica_state_machine.handle_state_changes
    if not _is_within_isr(zookeeper, partition, target):
        every = tuple(dict.fromkeys((*target, *assigned)))
        result = write_assignment(context, zookeeper, partition, ReplicaAssignment(every))
        result = result.then(raise_epoch, partition, ReplicaAssignment(every), every)
        for replica in without(target, assigned):
            result = result.then(move, (PartitionAndReplica(partition, replica),), ReplicaState.NEW)
        return result
    result = Result(context, zookeeper)
    for replica in target:
        result = result.then(move, (PartitionAndReplica(partition, replica),), ReplicaState.ONLINE)
    completed = ReplicaAssignment(target)
    return (
        result.change(lambda now: now.with_assignments({partition: completed}))
        .then(move_leader_if_required, partition, completed, assigned)
        .then(stop_removed_replicas, partition, without(assigned, target))
        .then(write_assignment, partition, completed)
        .then(finish, partition, completed.replicas)
    )


# --- since 2.4 --------------------------------------------------------------------------------------------------------


def on_partition_reassignment(
    context: ControllerContext, zookeeper: ZooKeeper, partition: TopicPartition, reassignment: ReplicaAssignment
) -> Result:
    """Phases U and then A or B."""
    halted = topic_deletion.mark_topics_ineligible_for_deletion(context, (partition.topic,))
    result = _update_current_reassignment(halted, zookeeper, partition, reassignment)
    if is_being_reassigned(reassignment) and not _is_within_isr(
        result.zookeeper, partition, reassignment.target_replicas
    ):
        told = (*origin_replicas(reassignment), *reassignment.adding_replicas)
        result = result.then(raise_epoch, partition, reassignment, told)
        for replica in reassignment.adding_replicas:
            new = (PartitionAndReplica(partition, replica),)
            result = result.then(replica_state_machine.handle_state_changes, new, ReplicaState.NEW)
        return result
    adding = tuple(PartitionAndReplica(partition, replica) for replica in reassignment.adding_replicas)
    completed = ReplicaAssignment(reassignment.target_replicas)
    return (
        result.then(replica_state_machine.handle_state_changes, adding, ReplicaState.ONLINE)
        .change(lambda now: now.with_assignments({partition: completed}))
        .then(move_leader_if_required, partition, completed, completed.replicas)
        .then(stop_removed_replicas, partition, reassignment.removing_replicas)
        .then(write_assignment, partition, completed)
        .then(finish, partition, completed.replicas)
    )


def _update_current_reassignment(
    context: ControllerContext, zookeeper: ZooKeeper, partition: TopicPartition, reassignment: ReplicaAssignment
) -> Result:
    current = context.assignment(partition)
    result = Result(context, zookeeper)
    if current != reassignment:
        result = result.then(write_assignment, partition, reassignment).then(
            stop_removed_replicas, partition, without(current.replicas, reassignment.replicas)
        )
    target = reassignment.target_replicas
    return result.change(
        lambda now: replace(now, partitions_being_reassigned={**now.partitions_being_reassigned, partition: target})
    )
