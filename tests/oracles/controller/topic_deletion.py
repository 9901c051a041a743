"""Deleting topics: every replica must say that it is gone, and nobody may be disturbed while it is busy.

A topic is *queued* when its name appears under ``/admin/delete_topics``. It is *ineligible* while one of its replicas
is on a dead broker or failed directory, or a partition of it is being reassigned (up to 0.10 also: elected anew). A
queued and eligible topic of which nothing is under way is *started*: brokers' caches are told (leader -2), its dead
replicas become Ineligible, the others Offline and DeletionStarted, which sends StopReplica with deletion. Each answer
moves a replica to Successful or to Ineligible, and the whole is looked at again:

* all Successful: the replicas become NonExistent, the topic leaves ZooKeeper and the cache;
* none Started, some Ineligible: those go back to Offline, to be tried again;
* eligible and none Started: (re)started, but for the replicas that succeeded.

A broker that starts makes its topics eligible again; so does the end of a reassignment. Partitions become Offline and
NonExistent at the end up to 2.0, at the start from 2.1 on. Up to 0.10 a thread of its own does this a moment later;
here it follows at once.

Sources: kafka.controller.TopicDeletionManager 0.8.1.1, 0.8.2.2, 1.1.1, 2.1.1, 2.5.1, 3.9.0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from reconstruct.model.controller.leader_writes import checked_epoch_version
from reconstruct.model.controller.outputs import (
    Failure,
    Reason,
    ZnodeWrite,
)
from reconstruct.model.controller.values import PartitionAndReplica
from reconstruct.model.controller.zookeeper import Code, topic_path
from reconstruct.model.states import PartitionState, ReplicaState
from reconstruct.model.versions import DELETED_PARTITIONS_LEAVE_FIRST_SINCE
from reconstruct.model.znode_paths import DELETE_TOPICS_PATH
from tests.oracles.controller import partition_state_machine, replica_state_machine
from tests.oracles.controller.context import ControllerContext
from tests.oracles.controller.context_changes import begin_topic_deletion, queue_topic_deletion, remove_topics
from tests.oracles.controller.metadata import send_update_metadata
from tests.oracles.controller.outcomes import (
    Result,
)
from tests.oracles.controller.questions import (
    are_all_replicas_for_topic_deleted,
    is_any_replica_in_state,
    is_at_least_one_replica_in_deletion_started_state,
    partitions_for_topics,
    replicas_for_topics,
    replicas_in_state,
)
from tests.oracles.controller.znodes import delete
from tests.oracles.controller.zookeeper import ZooKeeper
from tests.oracles.versions import DELETIONS_START_TOGETHER_SINCE


def init(
    context: ControllerContext, zookeeper: ZooKeeper, to_be_deleted: Collection[str], ineligible: Collection[str]
) -> Result:
    """What a new controller finds queued; where deletion is disabled the requests are taken away."""
    if not context.settings.delete_topic_enable:
        return delete_topic_deletions(context, zookeeper, to_be_deleted)
    queued = queue_topic_deletion(context, to_be_deleted)
    halted = queued.topics_ineligible_for_deletion | (frozenset(ineligible) & queued.topics_to_be_deleted)
    return Result(replace(queued, topics_ineligible_for_deletion=halted), zookeeper)


def enqueue_topics_for_deletion(context: ControllerContext, zookeeper: ZooKeeper, topics: Collection[str]) -> Result:
    if not context.settings.delete_topic_enable:
        return Result(context, zookeeper)
    return resume_deletions(queue_topic_deletion(context, topics), zookeeper)


def try_topic_deletion(context: ControllerContext, zookeeper: ZooKeeper) -> Result:
    """What a new controller does once it serves."""
    if not context.settings.delete_topic_enable:
        return Result(context, zookeeper)
    return resume_deletions(context, zookeeper)


def resume_deletion_for_topics(context: ControllerContext, zookeeper: ZooKeeper, topics: Collection[str]) -> Result:
    """A broker started or a reassignment ended: those of the topics that are queued are eligible again."""
    resumed = context.topics_to_be_deleted & frozenset(topics)
    if not context.settings.delete_topic_enable or not resumed:
        return Result(context, zookeeper)
    eligible = replace(context, topics_ineligible_for_deletion=context.topics_ineligible_for_deletion - resumed)
    return resume_deletions(eligible, zookeeper)


def mark_topics_ineligible_for_deletion(context: ControllerContext, topics: Iterable[str]) -> ControllerContext:
    """Halt those of the topics that are queued."""
    if not context.settings.delete_topic_enable:
        return context
    halted = context.topics_to_be_deleted & frozenset(topics)
    return replace(context, topics_ineligible_for_deletion=context.topics_ineligible_for_deletion | halted)


def fail_replica_deletion(
    context: ControllerContext, zookeeper: ZooKeeper, replicas: Iterable[PartitionAndReplica]
) -> Result:
    """A broker died or answered with an error: its replicas of queued topics become Ineligible, the topics halt."""
    failed = _queued(context, replicas)
    if not context.settings.delete_topic_enable or not failed:
        return Result(context, zookeeper)
    topics = {replica.topic for replica in failed}
    return (
        replica_state_machine.handle_state_changes(context, zookeeper, failed, ReplicaState.DELETION_INELIGIBLE)
        .change(lambda now: mark_topics_ineligible_for_deletion(now, topics))
        .then(resume_deletions)
    )


def complete_replica_deletion(
    context: ControllerContext, zookeeper: ZooKeeper, replicas: Iterable[PartitionAndReplica]
) -> Result:
    """A broker answered that these replicas are gone."""
    deleted = _queued(context, replicas)
    return replica_state_machine.handle_state_changes(
        context, zookeeper, deleted, ReplicaState.DELETION_SUCCESSFUL
    ).then(resume_deletions)


def process_stop_replica_response(
    context: ControllerContext,
    zookeeper: ZooKeeper,
    deleted: Collection[PartitionAndReplica],
    in_error: Collection[PartitionAndReplica],
) -> Result:
    """A broker's answer to StopReplica with deletion: those in error first."""
    result = fail_replica_deletion(context, zookeeper, in_error)
    return result.then(complete_replica_deletion, deleted) if deleted else result


def resume_deletions(context: ControllerContext, zookeeper: ZooKeeper) -> Result:
    """Look at every queued topic: finish it, try its failed replicas again, (re)start it."""
    result = Result(context, zookeeper)
    topics = sorted(context.topics_to_be_deleted)
    if context.version < DELETIONS_START_TOGETHER_SINCE:
        for topic in topics:
            result = _finish(result, topic)
            result = _retry(result, (topic,))
            result = _start(result, (topic,))
        return result
    to_retry: list[str] = []
    to_start: list[str] = []
    for topic in topics:
        result = _finish(result, topic)
        to_retry.extend(_with_something_to_retry(result.context, topic))
        to_start.extend([topic] if _is_eligible(result.context, topic) else [])
    return _start(_retry(result, to_retry), to_start)


def _finish(result: Result, topic: str) -> Result:
    if are_all_replicas_for_topic_deleted(result.context, topic):
        return result.then(complete_delete_topic, topic)
    return result


def _with_something_to_retry(context: ControllerContext, topic: str) -> tuple[str, ...]:
    is_retried = (
        context.is_queued_for_deletion(topic)
        and not is_at_least_one_replica_in_deletion_started_state(context, topic)
        and is_any_replica_in_state(context, topic, ReplicaState.DELETION_INELIGIBLE)
    )
    return (topic,) if is_retried else ()


def _retry(result: Result, topics: Iterable[str]) -> Result:
    """Ineligible replicas go back to Offline; they start anew only once their topic is eligible."""
    retried = [topic for asked in topics for topic in _with_something_to_retry(result.context, asked)]
    failed = [r for t in retried for r in replicas_in_state(result.context, t, ReplicaState.DELETION_INELIGIBLE)]
    return result.then(replica_state_machine.handle_state_changes, failed, ReplicaState.OFFLINE)


def _start(result: Result, topics: Iterable[str]) -> Result:
    eligible = [topic for topic in topics if _is_eligible(result.context, topic)]
    return result.then(on_topic_deletion, eligible) if eligible else result


def _is_eligible(context: ControllerContext, topic: str) -> bool:
    return (
        context.is_queued_for_deletion(topic)
        and topic not in context.topics_ineligible_for_deletion
        and not is_at_least_one_replica_in_deletion_started_state(context, topic)
    )


def on_topic_deletion(context: ControllerContext, zookeeper: ZooKeeper, topics: Collection[str]) -> Result:
    """Start: the partitions end (2.1), brokers' caches are told, replicas are deleted where they live."""
    result = Result(context, zookeeper)
    unseen = frozenset(topics) - context.topics_with_deletion_started
    if context.version >= DELETED_PARTITIONS_LEAVE_FIRST_SINCE:
        result = _end_partitions(result, unseen)
    result = result.change(lambda now: begin_topic_deletion(now, unseen))
    brokers = context.live_or_shutting_down_broker_ids
    return result.then(send_update_metadata, brokers, partitions_for_topics(context, topics)).then(
        _on_partition_deletion, topics
    )


def _end_partitions(result: Result, topics: Collection[str]) -> Result:
    partitions = partitions_for_topics(result.context, topics)
    move = partition_state_machine.handle_state_changes
    return result.then(move, partitions, PartitionState.OFFLINE).then(move, partitions, PartitionState.NON_EXISTENT)


def _on_partition_deletion(context: ControllerContext, zookeeper: ZooKeeper, topics: Collection[str]) -> Result:
    replicas = replicas_for_topics(context, topics)
    alive = [r for r in replicas if context.is_replica_online(r.replica_id, r.partition)]
    dead = [r for r in replicas if not context.is_replica_online(r.replica_id, r.partition)]
    to_delete = [r for r in alive if context.replica_state(r) is not ReplicaState.DELETION_SUCCESSFUL]
    move = replica_state_machine.handle_state_changes
    return (
        move(context, zookeeper, dead, ReplicaState.DELETION_INELIGIBLE)
        .then(move, to_delete, ReplicaState.OFFLINE)
        .then(move, to_delete, ReplicaState.DELETION_STARTED)
        .change(lambda now: mark_topics_ineligible_for_deletion(now, {replica.topic for replica in dead}))
    )


def complete_delete_topic(context: ControllerContext, zookeeper: ZooKeeper, topic: str) -> Result:
    """Every replica is gone: forget them, the partitions, the znodes, the topic."""
    deleted = replicas_in_state(context, topic, ReplicaState.DELETION_SUCCESSFUL)
    result = replica_state_machine.handle_state_changes(context, zookeeper, deleted, ReplicaState.NON_EXISTENT)
    if context.version < DELETED_PARTITIONS_LEAVE_FIRST_SINCE:
        result = _end_partitions(result, (topic,))
    for path in (topic_path(topic), f"{DELETE_TOPICS_PATH}/{topic}"):
        result = result.then(delete_znode, path)
    return result.change(lambda now: remove_topics(now, (topic,)))


def delete_topic_deletions(context: ControllerContext, zookeeper: ZooKeeper, topics: Iterable[str]) -> Result:
    """Take requests for deletion away."""
    result = Result(context, zookeeper)
    for topic in sorted(topics):
        result = result.then(delete_znode, f"{DELETE_TOPICS_PATH}/{topic}")
    return result


def delete_znode(context: ControllerContext, zookeeper: ZooKeeper, path: str) -> Result:
    """Delete a znode with all below it, unless a newer controller serves."""
    after, code = delete(zookeeper, path, checked_epoch_version(context))
    if code is Code.CONTROLLER_MOVED:
        failure = Failure(Reason.CONTROLLER_MOVED, f"{path} was not deleted: a newer controller serves")
        return Result(context, zookeeper, failures=(failure,), has_moved=True)
    if code is not Code.OK:
        return Result(context, zookeeper, failures=(Failure(Reason.CONNECTION_LOSS, f"{path} was not deleted"),))
    return Result(context, after, (ZnodeWrite(path, None, None),) if after != zookeeper else ())


def _queued(context: ControllerContext, replicas: Iterable[PartitionAndReplica]) -> tuple[PartitionAndReplica, ...]:
    return tuple(sorted(replica for replica in replicas if context.is_queued_for_deletion(replica.topic)))
