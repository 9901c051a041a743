"""Brokers that start, die, come back unseen, lose a log directory, or ask to leave.

**A broker starts**: all brokers are told of each other, it is told of every partition; its replicas go Online; every
partition waiting for a leader is elected; reassignments towards it and deletions that waited for it go on.

**A broker dies** (or a log directory fails): the partitions whose leader is gone go Offline and are at once elected,
those and any other that waits; its replicas go Offline, which takes them out of the ISRs they are still in; replicas of
topics being deleted become Ineligible instead. For one dead broker each partition's epoch thus rises once: by the
election where it led and another could follow, by the shrink elsewhere.

**A broker bounces**: it was gone and is back between two looks. Since 2.2 its registration's epoch tells, and it is
handled as dead, then as started, between those that are new and those that are dead. Before, nothing is noticed, and
the broker waits for requests that do not come (KAFKA-7235).

**A controlled shutdown**: the broker counts as shutting down, so that no election takes it; what it leads moves to
another member of the ISR where there is one; where it follows it is told to stop, and leaves the ISR. What it still
leads is the answer. Up to 0.8.1 a partition without other replicas is tried as well, in vain.

Sources: kafka.controller.KafkaController 0.8.0, 0.8.2.2, 0.9.0.1, 1.1.1, 2.2.2, 2.7.2, 3.1.2, 3.9.0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from reconstruct.model.controller.leader_election import Election
from reconstruct.model.controller.outputs import (
    Failure,
    Reason,
)
from reconstruct.model.controller.request_batch import RequestBatch
from reconstruct.model.controller.values import LeaderAndIsr, PartitionAndReplica, TopicPartition
from reconstruct.model.elections import ElectionKind
from reconstruct.model.states import PartitionState, ReplicaState
from reconstruct.model.versions import (
    ASYNC_CONTROLLER_SINCE,
    BROKER_CHANGE_SENT_TO_ALL_SINCE,
    BROKER_EPOCHS_SINCE,
    EMPTY_UPDATE_METADATA_IS_EMPTY_SINCE,
    OFFLINE_LOG_DIRS_SINCE,
    SHRUNK_ISR_SENT_TO_ALL_SINCE,
    TOPIC_DELETION_SINCE,
)
from tests.oracles.controller import machines, partition_state_machine, replica_state_machine, topic_deletion
from tests.oracles.controller.context import ControllerContext
from tests.oracles.controller.context_changes import (
    add_live_brokers,
    remove_live_brokers,
    with_live_brokers,
    without_keys,
)
from tests.oracles.controller.metadata import send_update_metadata
from tests.oracles.controller.outcomes import (
    RequestError,
    Result,
)
from tests.oracles.controller.questions import (
    partition_leaders_on_broker,
    partitions_on_broker,
    partitions_with_leaders,
    replicas_on_brokers,
)
from tests.oracles.controller.reassignment import resume_reassignments
from tests.oracles.controller.znodes import broker_epochs
from tests.oracles.controller.zookeeper import ZooKeeper
from tests.oracles.versions import (
    DEATH_SENT_IF_NOTHING_ELSE_SINCE,
    SHUTDOWN_SKIPS_DELETED_SINCE,
    STARTING_BROKERS_NOT_SENT_DELETED_SINCE,
)


def process_broker_change(context: ControllerContext, zookeeper: ZooKeeper) -> Result:
    """``BrokerChangeListener``: compare those registered with those known; new ones first, then bounced, then dead."""
    if not context.is_active:
        return Result(context, zookeeper)
    now, known = broker_epochs(zookeeper), context.live_broker_epochs
    new = tuple(sorted(now.keys() - known.keys()))
    dead = tuple(sorted(known.keys() - now.keys()))
    bounced: tuple[int, ...] = ()
    if context.version >= BROKER_EPOCHS_SINCE:
        bounced = tuple(sorted(broker for broker in now.keys() & known.keys() if now[broker] > known[broker]))
    else:
        context = with_live_brokers(context, now)
    result = Result(context, zookeeper).note(
        f"Newly added brokers: {_ids(new)}, deleted brokers: {_ids(dead)}, bounced brokers: {_ids(bounced)}, "
        f"all live brokers: {_ids(now)}"
    )
    if new:
        result = _started(result, {broker: now[broker] for broker in new})
    if bounced:
        result = _died(result, bounced)
        result = _started(result, {broker: now[broker] for broker in bounced})
    return _died(result, dead) if dead else result


def _started(result: Result, brokers: dict[int, int]) -> Result:
    return result.change(lambda context: add_live_brokers(context, brokers)).then(on_broker_startup, tuple(brokers))


def _died(result: Result, brokers: tuple[int, ...]) -> Result:
    return result.change(lambda context: remove_live_brokers(context, brokers)).then(on_broker_failure, brokers)


def on_broker_startup(context: ControllerContext, zookeeper: ZooKeeper, broker_ids: Collection[int]) -> Result:
    """Brokers that the context counts as live by now."""
    directories = without_keys(context.replicas_on_offline_dirs, broker_ids)
    start = Result(replace(context, replicas_on_offline_dirs=directories), zookeeper)
    result = _tell_of_new_brokers(start.note(f"New broker startup callback for {_ids(broker_ids)}"), broker_ids)
    replicas = replicas_on_brokers(context, broker_ids)
    result = (
        result.then(replica_state_machine.handle_state_changes, replicas, ReplicaState.ONLINE)
        .then(machines.trigger_online_partition_state_change)
        .then(resume_reassignments, broker_ids)
    )
    topics = {replica.topic for replica in replicas if result.context.is_queued_for_deletion(replica.topic)}
    return result.then(topic_deletion.resume_deletion_for_topics, topics)


def _tell_of_new_brokers(result: Result, broker_ids: Collection[int]) -> Result:
    context = result.context
    every = context.live_or_shutting_down_broker_ids
    if context.version < BROKER_CHANGE_SENT_TO_ALL_SINCE:
        return result.then(send_update_metadata, broker_ids, ())
    if context.version < EMPTY_UPDATE_METADATA_IS_EMPTY_SINCE:
        return result.then(send_update_metadata, every, ())
    partitions: Iterable[TopicPartition] = sorted(context.leadership)
    if context.version >= STARTING_BROKERS_NOT_SENT_DELETED_SINCE:
        partitions = partitions_with_leaders(context)
    others = tuple(broker for broker in every if broker not in broker_ids)
    return result.then(send_update_metadata, others, ()).then(send_update_metadata, broker_ids, partitions)


def on_broker_failure(context: ControllerContext, zookeeper: ZooKeeper, broker_ids: Collection[int]) -> Result:
    """Brokers that the context no longer counts as live."""
    gone = replace(
        context,
        replicas_on_offline_dirs=without_keys(context.replicas_on_offline_dirs, broker_ids),
        shutting_down_broker_ids=context.shutting_down_broker_ids - frozenset(broker_ids),
    )
    start = Result(gone, zookeeper).note(f"Broker failure callback for {_ids(broker_ids)}")
    return start.then(on_replicas_become_offline, replicas_on_brokers(gone, broker_ids))


def on_replicas_become_offline(
    context: ControllerContext, zookeeper: ZooKeeper, replicas: Collection[PartitionAndReplica]
) -> Result:
    """These replicas' brokers or log directories are gone."""
    kept = [replica for replica in replicas if not context.is_queued_for_deletion(replica.topic)]
    deleted = [replica for replica in replicas if context.is_queued_for_deletion(replica.topic)]
    leaderless = _partitions_that_lost_their_leader(context, replicas)
    move = partition_state_machine.handle_state_changes
    result = move(context, zookeeper, leaderless, PartitionState.OFFLINE).then(
        machines.trigger_online_partition_state_change
    )
    elections = result.elected
    result = result.then(replica_state_machine.handle_state_changes, kept, ReplicaState.OFFLINE)
    if context.version >= TOPIC_DELETION_SINCE:
        result = result.then(topic_deletion.fail_replica_deletion, deleted)
    is_anyone_elected = any(isinstance(outcome, LeaderAndIsr) for outcome in elections.values())
    if context.version >= DEATH_SENT_IF_NOTHING_ELSE_SINCE:
        is_told = not kept and not is_anyone_elected
    else:
        is_told = context.version >= BROKER_CHANGE_SENT_TO_ALL_SINCE and not leaderless
    brokers = context.live_or_shutting_down_broker_ids
    return result.then(send_update_metadata, brokers, ()) if is_told else result


def _partitions_that_lost_their_leader(
    context: ControllerContext, replicas: Collection[PartitionAndReplica]
) -> tuple[TopicPartition, ...]:
    """Up to 0.11 those led by the dead brokers; since 1.0 all whose leader is not online, whatever happened."""
    known = partitions_with_leaders(context)
    if context.version < OFFLINE_LOG_DIRS_SINCE:
        brokers = {replica.replica_id for replica in replicas}
        return tuple(partition for partition in known if context.leadership[partition].leader in brokers)
    return tuple(p for p in known if not context.is_replica_online(context.leadership[p].leader, p))


def on_broker_log_dir_failure(context: ControllerContext, zookeeper: ZooKeeper, broker_ids: Collection[int]) -> Result:
    """A broker announced a failed directory: it is asked of each of its replicas by LeaderAndIsr (1.0)."""
    replicas = replicas_on_brokers(context, broker_ids)
    return replica_state_machine.handle_state_changes(context, zookeeper, replicas, ReplicaState.ONLINE)


def process_leader_and_isr_response(
    context: ControllerContext,
    zookeeper: ZooKeeper,
    broker_id: int,
    online: Iterable[TopicPartition],
    on_failed_directory: Iterable[TopicPartition],
) -> Result:
    """A broker's answer: replicas it accepted, and replicas it answered KAFKA_STORAGE_ERROR for (1.0)."""
    if not context.is_active:
        return Result(context, zookeeper)
    before = context.replicas_on_offline_dirs.get(broker_id, frozenset())
    now = (before - frozenset(online)) | frozenset(on_failed_directory)
    changed = replace(context, replicas_on_offline_dirs={**context.replicas_on_offline_dirs, broker_id: now})
    newly = tuple(PartitionAndReplica(partition, broker_id) for partition in sorted(now - before))
    result = Result(changed, zookeeper)
    return result.then(on_replicas_become_offline, newly) if newly else result


def controlled_shutdown(
    context: ControllerContext, zookeeper: ZooKeeper, broker_id: int, broker_epoch: int | None = None
) -> Result:
    """The broker wants to leave. What it still leads afterwards: :func:`remaining_leaders` of the result's context."""
    if not context.is_active:
        return _refused(context, zookeeper, Reason.CONTROLLER_MOVED, "this broker is not the controller")
    known = context.live_broker_epochs.get(broker_id)
    if known is None:
        return _refused(context, zookeeper, RequestError.BROKER_NOT_AVAILABLE, f"broker {broker_id} does not exist")
    if broker_epoch is not None and broker_epoch < known and context.version >= BROKER_EPOCHS_SINCE:
        message = f"broker {broker_id} asked with the old epoch {broker_epoch}; its epoch is {known}"
        return _refused(context, zookeeper, RequestError.STALE_BROKER_EPOCH, message)
    leaving = replace(context, shutting_down_broker_ids=context.shutting_down_broker_ids | {broker_id})
    result = Result(leaving, zookeeper).note(f"Shutting down broker {broker_id}")
    partitions = _partitions_to_move(leaving, broker_id)
    if context.version >= ASYNC_CONTROLLER_SINCE:
        return _move_away(result, broker_id, partitions)
    for partition in partitions:
        result = _move_away(result, broker_id, (partition,))
    return result


def remaining_leaders(context: ControllerContext, broker_id: int) -> tuple[TopicPartition, ...]:
    """The answer to a controlled shutdown: what the broker leads still."""
    return partition_leaders_on_broker(context, broker_id)


def _partitions_to_move(context: ControllerContext, broker_id: int) -> tuple[TopicPartition, ...]:
    skips_single = context.version >= SHRUNK_ISR_SENT_TO_ALL_SINCE
    skips_deleted = context.version >= SHUTDOWN_SKIPS_DELETED_SINCE
    return tuple(
        partition
        for partition in partitions_on_broker(context, broker_id)
        if partition in context.leadership
        and not (skips_single and len(context.replicas(partition)) < 2)
        and not (skips_deleted and context.is_queued_for_deletion(partition.topic))
    )


def _move_away(result: Result, broker_id: int, partitions: tuple[TopicPartition, ...]) -> Result:
    leadership = result.context.leadership
    led = tuple(partition for partition in partitions if leadership[partition].leader == broker_id)
    followed = tuple(partition for partition in partitions if partition not in led)
    election = Election(ElectionKind.CONTROLLED_SHUTDOWN)
    replicas = tuple(PartitionAndReplica(partition, broker_id) for partition in followed)
    return (
        result.then(partition_state_machine.handle_state_changes, led, PartitionState.ONLINE, election)
        .then(_stop_replicas, broker_id, followed)
        .then(replica_state_machine.handle_state_changes, replicas, ReplicaState.OFFLINE)
    )


def _stop_replicas(
    context: ControllerContext, zookeeper: ZooKeeper, broker_id: int, partitions: Iterable[TopicPartition]
) -> Result:
    batch = RequestBatch()
    for partition in partitions:
        batch.add_stop_replica(context, broker_id, partition, delete_partition=False)
    return Result(context, zookeeper, batch.requests(context))


def _refused(context: ControllerContext, zookeeper: ZooKeeper, reason: Reason, message: str) -> Result:
    return Result(context, zookeeper, failures=(Failure(reason, message),))


def _ids(broker_ids: Iterable[int]) -> str:
    return ",".join(map(str, sorted(broker_ids)))
