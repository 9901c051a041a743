"""The parts of a reassignment: writing the assignment, raising the epoch, moving the leader, taking replicas away.

Where Kafka throws, the rest of the reassignment is not done (``Result.is_aborted``).

Sources: kafka.controller.KafkaController 0.8.2.2, 1.1.1, 2.3.1, 2.4.1, 3.9.0.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from reconstruct.model.controller.leader_election import Election
from reconstruct.model.controller.leader_writes import checked_epoch_version, decide_until_written
from reconstruct.model.controller.outputs import (
    Failure,
    Reason,
    ZnodeWrite,
)
from reconstruct.model.controller.request_batch import RequestBatch
from reconstruct.model.controller.values import (
    LeaderIsrAndControllerEpoch,
    PartitionAndReplica,
    ReplicaAssignment,
    TopicPartition,
)
from reconstruct.model.controller.zookeeper import Code, TopicAssignment, topic_path
from reconstruct.model.elections import ElectionKind
from reconstruct.model.states import PartitionState, ReplicaState
from reconstruct.model.versions import EPOCH_BUMP_CACHED_SINCE, REASSIGNMENT_IN_TOPIC_ZNODE_SINCE, TOPIC_DELETION_SINCE
from reconstruct.model.znode_paths import REASSIGN_PARTITIONS_PATH
from tests.oracles.controller import partition_state_machine, replica_state_machine, topic_deletion
from tests.oracles.controller.context import ControllerContext
from tests.oracles.controller.context_changes import new_epoch, with_leadership, without_keys
from tests.oracles.controller.metadata import send_update_metadata
from tests.oracles.controller.outcomes import (
    Result,
)
from tests.oracles.controller.znodes import reassignments
from tests.oracles.controller.zookeeper import ZooKeeper

REASSIGNMENT_ELECTION = Election(ElectionKind.REASSIGNED_PARTITION)


def write_assignment(
    context: ControllerContext, zookeeper: ZooKeeper, partition: TopicPartition, assignment: ReplicaAssignment
) -> Result:
    """The topic's znode first, then the cache, so that a new controller can go on."""
    known = {p.partition_id: a for p, a in context.assignments.items() if p.topic == partition.topic}
    known[partition.partition_id] = assignment
    content = TopicAssignment(known, context.topic_ids.get(partition.topic))
    path = topic_path(partition.topic)
    after, code, version = zookeeper.set(path, content, epoch_zk_version=checked_epoch_version(context))
    if code is Code.CONTROLLER_MOVED:
        failure = refusal(partition, Reason.CONTROLLER_MOVED, "was not reassigned: a newer controller serves")
        return _aborted(context, zookeeper, failure, has_moved=True)
    if code is not Code.OK:
        reason = Reason.ILLEGAL_STATE if code is Code.NONODE else Reason.CONNECTION_LOSS
        return _aborted(context, zookeeper, refusal(partition, reason, f"was not reassigned: {code}"))
    return Result(context.with_assignments({partition: assignment}), after, (ZnodeWrite(path, content, version),))


def raise_epoch(
    context: ControllerContext,
    zookeeper: ZooKeeper,
    partition: TopicPartition,
    assignment: ReplicaAssignment,
    brokers: tuple[int, ...],
) -> Result:
    """``updateLeaderEpochAndSendRequest``: nothing decided anew, so that brokers take the assignment."""
    decision = decide_until_written(context, zookeeper, partition, lambda known: new_epoch(known.leader_and_isr))
    if decision.refusal is not None or decision.info is None:
        why = decision.refusal
        reason = Reason.STATE_CHANGE_FAILED if why is None else why.reason
        failure = refusal(partition, reason, "kept its leader epoch" + ("" if why is None else f": {why.message}"))
        return _aborted(context, decision.zookeeper, failure, decision.has_moved)
    told = with_leadership(context, {partition: decision.info})
    batch = RequestBatch()
    # Up to 2.3 UpdateMetadata goes on telling what the cache holds.
    known = told if context.version >= EPOCH_BUMP_CACHED_SINCE else context
    for broker in brokers:
        batch.add_leader_and_isr(
            known, (broker,), partition, decision.info, assignment, broker in assignment.adding_replicas
        )
    outputs = (*decision.outputs, *batch.requests(known))
    return Result(known, decision.zookeeper, outputs)


def move_leader_if_required(
    context: ControllerContext,
    zookeeper: ZooKeeper,
    partition: TopicPartition,
    completed: ReplicaAssignment,
    told: tuple[int, ...],
) -> Result:
    known: LeaderIsrAndControllerEpoch | None = context.leadership.get(partition)
    if known is None:
        return _aborted(
            context, zookeeper, refusal(partition, Reason.STATE_CHANGE_FAILED, "has no leader that could be moved")
        )
    if known.leader in completed.replicas and context.is_replica_online(known.leader, partition):
        return raise_epoch(context, zookeeper, partition, completed, told)
    return partition_state_machine.handle_state_changes(
        context, zookeeper, (partition,), PartitionState.ONLINE, REASSIGNMENT_ELECTION
    )


def stop_removed_replicas(
    context: ControllerContext, zookeeper: ZooKeeper, partition: TopicPartition, removed: Collection[int]
) -> Result:
    """Through all states of a deletion at once, whatever the brokers answer."""
    replicas = tuple(PartitionAndReplica(partition, replica) for replica in removed)
    states = (
        (ReplicaState.OFFLINE, ReplicaState.NON_EXISTENT)
        if context.version < TOPIC_DELETION_SINCE
        else (
            ReplicaState.OFFLINE,
            ReplicaState.DELETION_STARTED,
            ReplicaState.DELETION_SUCCESSFUL,
            ReplicaState.NON_EXISTENT,
        )
    )
    result = Result(context, zookeeper)
    for state in states:
        result = result.then(replica_state_machine.handle_state_changes, replicas, state)
    return result


def finish(
    context: ControllerContext, zookeeper: ZooKeeper, partition: TopicPartition, target: tuple[int, ...]
) -> Result:
    """Strike the request off, tell everybody, let a deletion that waited go on."""
    brokers = context.live_or_shutting_down_broker_ids
    done = replace(context, partitions_being_reassigned=without_keys(context.partitions_being_reassigned, (partition,)))
    return (
        Result(done, zookeeper)
        .then(strike_off, partition, target)
        .then(send_update_metadata, brokers, (partition,))
        .then(topic_deletion.resume_deletion_for_topics, (partition.topic,))
    )


def strike_off(
    context: ControllerContext, zookeeper: ZooKeeper, partition: TopicPartition, target: tuple[int, ...] | None = None
) -> Result:
    """Take the partition out of ``/admin/reassign_partitions``; the znode goes with the last one. Since 2.4 a request
    for another ``target`` stays."""
    wanted = reassignments(zookeeper)
    kept = context
    if context.version < REASSIGNMENT_IN_TOPIC_ZNODE_SINCE:
        known = without_keys(context.partitions_being_reassigned, (partition,))
        kept = replace(context, partitions_being_reassigned=known)
    is_another = target is not None and context.version >= REASSIGNMENT_IN_TOPIC_ZNODE_SINCE
    if partition not in wanted or (is_another and wanted[partition] != target):
        return Result(kept, zookeeper)
    left = without_keys(wanted, (partition,))
    if not left:
        return topic_deletion.delete_znode(kept, zookeeper, REASSIGN_PARTITIONS_PATH)
    after, code, version = zookeeper.set(
        REASSIGN_PARTITIONS_PATH, left, epoch_zk_version=checked_epoch_version(context)
    )
    if code is not Code.OK:
        return Result(kept, zookeeper, has_moved=code is Code.CONTROLLER_MOVED)
    return Result(kept, after, (ZnodeWrite(REASSIGN_PARTITIONS_PATH, left, version),))


def refusal(partition: TopicPartition, reason: Reason, text: str) -> Failure:
    """Why a partition is not, or no further, reassigned."""
    return Failure(reason, f"{partition} {text}", partition)


def _aborted(context: ControllerContext, zookeeper: ZooKeeper, failure: Failure, has_moved: bool = False) -> Result:
    return Result(context, zookeeper, failures=(failure,), is_aborted=True, has_moved=has_moved)
