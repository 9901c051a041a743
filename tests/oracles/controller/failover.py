"""Becoming controller, and ceasing to be.

**Election**: whoever creates ``/controller`` is it, and raises ``/controller_epoch`` by one; from 2.1 on both are one
transaction. From then on a higher epoch exists, which is what makes a predecessor that does not know yet a *zombie*:
brokers refuse its requests, and ZooKeeper (2.1) its writes.

**Failover** reads everything anew, in this order: live brokers; topics, assignments and ids; leaders; reassignments,
preferred elections and deletions under way. Then it tells brokers of each other (before 0.10.2 only at the end), starts
the replica machine, starts the partition machine, and takes up reassignments, deletions and preferred elections (up to
0.10 the elections first). Listeners are set before anything is read, so that nothing is missed between.

**Resignation** stops both machines and forgets everything. It follows from losing ``/controller``, or from any write
that meets a newer epoch.

Sources: KafkaController.onControllerFailover, onControllerResignation, elect and maybeResign, 0.8.0, 0.8.2.2, 0.10.2.2,
0.11.0.2, 1.1.1, 2.1.1, 2.4.1, 3.9.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reconstruct.model.controller.outputs import (
    Failure,
    Output,
    Reason,
    ZnodeWrite,
)
from reconstruct.model.controller.values import TopicPartition
from reconstruct.model.controller.zookeeper import Code
from reconstruct.model.versions import (
    ASYNC_CONTROLLER_SINCE,
    REASSIGNMENT_IN_TOPIC_ZNODE_SINCE,
    TOPIC_DELETION_SINCE,
)
from reconstruct.model.znode_paths import CONTROLLER_EPOCH_PATH, CONTROLLER_PATH, DELETE_TOPICS_PATH, TOPICS_PATH
from tests.oracles.controller import machines, topic_deletion
from tests.oracles.controller.context import ControllerContext
from tests.oracles.controller.context_changes import is_being_reassigned, reset
from tests.oracles.controller.listeners import read_topics, topics_with_changes_under_way
from tests.oracles.controller.metadata import send_update_metadata
from tests.oracles.controller.outcomes import (
    Result,
)
from tests.oracles.controller.questions import all_partitions
from tests.oracles.controller.reassignment import process_partition_reassignment, resume_reassignments
from tests.oracles.controller.replica_election import on_replica_election
from tests.oracles.controller.znodes import (
    ISR_CHANGE_NOTIFICATION_PATH,
    LOG_DIR_EVENT_NOTIFICATION_PATH,
    broker_epochs,
    children,
    controller_id,
    preferred_elections,
    reassignments,
)
from tests.oracles.controller.zookeeper import ZooKeeper
from tests.oracles.versions import METADATA_SENT_BEFORE_MACHINES_SINCE, SINGLE_THREADED_CONTROLLER_SINCE

#: The epoch of the first controller.
INITIAL_CONTROLLER_EPOCH = 1


def elect(context: ControllerContext, zookeeper: ZooKeeper, new_topic_ids: Mapping[str, str] | None = None) -> Result:
    """Try to become controller; nothing happens where somebody is."""
    serving = controller_id(zookeeper)
    if serving is not None:
        return Result(context, zookeeper).note(f"Broker {serving} has been elected as the controller")
    broker_id = context.settings.broker_id
    zookeeper, code, version = zookeeper.create(CONTROLLER_PATH, broker_id)
    if code is not Code.OK:
        return Result(context, zookeeper, failures=(Failure(Reason.CONNECTION_LOSS, f"{CONTROLLER_PATH}: {code}"),))
    outputs: tuple[Output, ...] = (ZnodeWrite(CONTROLLER_PATH, broker_id, version),)
    zookeeper, epoch, epoch_version = _raise_controller_epoch(zookeeper)
    fresh = replace(
        ControllerContext(settings=context.settings, machines_started=False),
        epoch=epoch,
        epoch_zk_version=epoch_version,
    )
    raised = (*outputs, ZnodeWrite(CONTROLLER_EPOCH_PATH, epoch, epoch_version))
    result = Result(fresh, zookeeper, raised).note(f"{broker_id} elected as the controller with epoch {epoch}")
    return maybe_resign(result.then(on_controller_failover, new_topic_ids))


def _raise_controller_epoch(zookeeper: ZooKeeper) -> tuple[ZooKeeper, int, int]:
    known = zookeeper.controller_epoch()
    if known is None:
        after, _, version = zookeeper.create(CONTROLLER_EPOCH_PATH, INITIAL_CONTROLLER_EPOCH)
        return after, INITIAL_CONTROLLER_EPOCH, version
    after, _, version = zookeeper.set(CONTROLLER_EPOCH_PATH, known[0] + 1, known[1])
    return after, known[0] + 1, version


def on_controller_failover(
    context: ControllerContext, zookeeper: ZooKeeper, new_topic_ids: Mapping[str, str] | None = None
) -> Result:
    """From the election to serving."""
    is_told_first = context.version >= METADATA_SENT_BEFORE_MACHINES_SINCE
    result = Result(context, zookeeper)
    for path in (LOG_DIR_EVENT_NOTIFICATION_PATH, ISR_CHANGE_NOTIFICATION_PATH):
        for name in children(zookeeper, path):
            result = result.then(topic_deletion.delete_znode, f"{path}/{name}")
    result = (
        result.note("Initializing controller context")
        .then(initialize_controller_context, new_topic_ids)
        .note("Fetching topic deletions in progress")
        .then(_initialize_topic_deletion)
    )
    if is_told_first:
        result = result.note("Sending update metadata request").then(_tell_brokers)
    result = result.then(machines.start_replica_state_machine).then(machines.start_partition_state_machine)
    result = result.note(f"Ready to serve as the new controller with epoch {context.epoch}")
    result = result.then(_resume_reassignments)
    if context.version >= SINGLE_THREADED_CONTROLLER_SINCE:
        return result.then(topic_deletion.try_topic_deletion).then(_resume_preferred_elections)
    result = result.then(_resume_preferred_elections)
    if not is_told_first:
        result = result.note("Sending update metadata request").then(_tell_brokers)
    return result.then(topic_deletion.try_topic_deletion)


def initialize_controller_context(
    context: ControllerContext, zookeeper: ZooKeeper, new_topic_ids: Mapping[str, str] | None = None
) -> Result:
    """The caches, from ZooKeeper alone."""
    topics = frozenset(children(zookeeper, TOPICS_PATH))
    fresh = replace(
        context,
        live_broker_epochs=broker_epochs(zookeeper),
        shutting_down_broker_ids=frozenset(),
        all_topics=topics,
    )
    return read_topics(fresh, zookeeper, topics, new_topic_ids).then(_read_leaders_and_reassignments)


def _read_leaders_and_reassignments(context: ControllerContext, zookeeper: ZooKeeper) -> Result:
    found = {partition: zookeeper.partition_state(partition)[0] for partition in all_partitions(context)}
    leadership = {partition: info for partition, info in found.items() if info is not None}
    moving: dict[TopicPartition, tuple[int, ...]]
    if context.version >= REASSIGNMENT_IN_TOPIC_ZNODE_SINCE:
        moving = {p: a.target_replicas for p, a in context.assignments.items() if is_being_reassigned(a)}
    elif context.version >= ASYNC_CONTROLLER_SINCE:
        moving = reassignments(zookeeper)
    else:
        wanted = reassignments(zookeeper)
        moving = {p: target for p, target in wanted.items() if context.replicas(p) not in ((), target)}
    return Result(replace(context, leadership=leadership, partitions_being_reassigned=moving), zookeeper)


def _initialize_topic_deletion(context: ControllerContext, zookeeper: ZooKeeper) -> Result:
    """Those queued; ineligible are topics with a replica that is not online, and those with changes under way."""
    if context.version < TOPIC_DELETION_SINCE:
        return Result(context, zookeeper)
    queued = frozenset(children(zookeeper, DELETE_TOPICS_PATH))
    with_offline_replicas = {
        partition.topic
        for partition, assignment in context.assignments.items()
        if not all(context.is_replica_online(replica, partition) for replica in assignment.replicas)
    }
    ineligible = with_offline_replicas | topics_with_changes_under_way(context)
    return topic_deletion.init(context, zookeeper, queued, ineligible)


def _tell_brokers(context: ControllerContext, zookeeper: ZooKeeper) -> Result:
    return send_update_metadata(context, zookeeper, context.live_or_shutting_down_broker_ids, ())


def _resume_reassignments(context: ControllerContext, zookeeper: ZooKeeper) -> Result:
    """Since 2.4 requests by znode come first, and replace what is under way."""
    if context.version < REASSIGNMENT_IN_TOPIC_ZNODE_SINCE:
        forgotten = replace(context, partitions_being_reassigned={})
        return process_partition_reassignment(forgotten, zookeeper)
    by_znode = process_partition_reassignment(context, zookeeper)
    return by_znode.then(resume_reassignments, None, frozenset(reassignments(zookeeper)))


def _resume_preferred_elections(context: ControllerContext, zookeeper: ZooKeeper) -> Result:
    """Those asked for that are not done, and whose topic is not being deleted."""
    pending = [
        partition
        for partition in sorted(preferred_elections(zookeeper))
        if context.replicas(partition)
        and not context.is_queued_for_deletion(partition.topic)
        and partition in context.leadership
        and context.leadership[partition].leader != context.replicas(partition)[0]
    ]
    return on_replica_election(context, zookeeper, pending)


def on_controller_resignation(context: ControllerContext, zookeeper: ZooKeeper) -> Result:
    """Forget everything but the settings."""
    return Result(reset(context), zookeeper).note("Resigned")


def maybe_resign(result: Result) -> Result:
    """What follows an event in which a newer controller was met, or after which ``/controller`` is another broker's."""
    serving = controller_id(result.zookeeper)
    is_deposed = result.context.is_active and serving is not None and serving != result.context.settings.broker_id
    if not (result.has_moved or is_deposed):
        return result
    resigned = on_controller_resignation(result.context, result.zookeeper)
    outputs = (*result.outputs, *resigned.outputs)
    return replace(result, context=resigned.context, outputs=outputs, has_moved=False, is_aborted=False)
