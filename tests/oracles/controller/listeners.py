"""What the controller does when topics, their partitions, or requests to delete them change in ZooKeeper.

* **TopicChange** (``/brokers/topics``): topics it did not know get their partitions created; topics that are gone are
  forgotten. A topic it knows is ignored, whatever its znode says by now.
* **AddPartitions** (``/brokers/topics/T``): partitions it did not know are created, unless the topic is being deleted;
  since 2.0 they are then taken out of the znode again. Changed replicas of a partition it knows are ignored.
* **DeleteTopics** (``/admin/delete_topics``): requests for topics it does not know are taken away; where deletion is
  disabled all are, though only since 0.10.2; the others are queued. One of which a partition moves, or up to 0.10 is
  elected anew, is meant to wait, but see :func:`process_topic_deletion`.

**Creation** is four transitions: partitions New, replicas New, partitions Online, replicas Online.

Sources: PartitionStateMachine 0.8.2.2 (the three listeners); KafkaController 1.1.1, 2.0.1, 2.8.2, 3.9.0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from reconstruct.model.controller.leader_writes import checked_epoch_version
from reconstruct.model.controller.outputs import (
    Failure,
    Reason,
    ZnodeWrite,
)
from reconstruct.model.controller.values import ReplicaAssignment, TopicPartition
from reconstruct.model.controller.zookeeper import Code, TopicAssignment, topic_path
from reconstruct.model.states import PartitionState, ReplicaState
from reconstruct.model.versions import REASSIGNMENT_IN_TOPIC_ZNODE_SINCE
from reconstruct.model.znode_paths import DELETE_TOPICS_PATH, TOPICS_PATH
from tests.oracles.controller import partition_state_machine, replica_state_machine, topic_deletion
from tests.oracles.controller.context import ControllerContext
from tests.oracles.controller.context_changes import remove_topics
from tests.oracles.controller.outcomes import (
    RequestError,
    Result,
)
from tests.oracles.controller.questions import replicas_for_partitions
from tests.oracles.controller.znodes import children
from tests.oracles.controller.zookeeper import ZooKeeper
from tests.oracles.versions import (
    ADDED_PARTITIONS_RESTORED_SINCE,
    DISABLED_DELETIONS_REMOVED_SINCE,
    TOPIC_IDS_SINCE,
)


def process_topic_change(
    context: ControllerContext, zookeeper: ZooKeeper, new_topic_ids: Mapping[str, str] | None = None
) -> Result:
    """``TopicChangeListener``; ``new_topic_ids`` are the ids to give to topics that have none yet (2.8)."""
    if not context.is_active:
        return Result(context, zookeeper)
    topics = frozenset(children(zookeeper, TOPICS_PATH))
    new, gone = topics - context.all_topics, context.all_topics - topics
    known = replace(remove_topics(context, gone), all_topics=topics)
    result = read_topics(known, zookeeper, new, new_topic_ids)
    added = tuple(sorted(p for p in result.context.assignments if p.topic in new))
    text = f"New topics: {sorted(new)}, deleted topics: {sorted(gone)}"
    result = result.note(text)
    return result.then(on_new_partition_creation, added) if added else result


def read_topics(
    context: ControllerContext,
    zookeeper: ZooKeeper,
    topics: Collection[str],
    new_topic_ids: Mapping[str, str] | None = None,
) -> Result:
    """The assignments and ids of these topics into the cache; ids are given to those without, where there are ids."""
    result = Result(context, zookeeper)
    for topic in sorted(topics):
        found = zookeeper.topic_assignment(topic)
        if found is not None:
            result = result.then(_read_topic, topic, found, (new_topic_ids or {}).get(topic))
    return result


def _read_topic(
    context: ControllerContext, zookeeper: ZooKeeper, topic: str, found: TopicAssignment, new_topic_id: str | None
) -> Result:
    assignments = {TopicPartition(topic, number): _of_era(context, a) for number, a in found.partitions.items()}
    result = Result(context.with_assignments(assignments), zookeeper)
    uses_ids = context.version >= TOPIC_IDS_SINCE and context.settings.protocol >= TOPIC_IDS_SINCE
    topic_id = found.topic_id
    if topic_id is None and uses_ids and new_topic_id is not None:
        topic_id = new_topic_id
        result = result.then(_write_topic, topic, replace(found, topic_id=topic_id))
    if topic_id is None or context.version < TOPIC_IDS_SINCE:
        return result
    known = topic_id
    return result.change(lambda now: replace(now, topic_ids={**now.topic_ids, topic: known}))


def _of_era(context: ControllerContext, assignment: ReplicaAssignment) -> ReplicaAssignment:
    """Up to 2.3 nobody reads what is being added and removed."""
    if context.version >= REASSIGNMENT_IN_TOPIC_ZNODE_SINCE:
        return assignment
    return ReplicaAssignment(assignment.replicas)


def _write_topic(context: ControllerContext, zookeeper: ZooKeeper, topic: str, content: TopicAssignment) -> Result:
    after, code, version = zookeeper.set(topic_path(topic), content, epoch_zk_version=checked_epoch_version(context))
    if code is Code.OK:
        return Result(context, after, (ZnodeWrite(topic_path(topic), content, version),))
    is_moved = code is Code.CONTROLLER_MOVED
    reason = Reason.CONTROLLER_MOVED if is_moved else Reason.CONNECTION_LOSS
    failure = Failure(reason, f"the assignment of topic {topic} was not written: {code}")
    return Result(context, zookeeper, failures=(failure,), has_moved=is_moved)


def process_partition_modifications(context: ControllerContext, zookeeper: ZooKeeper, topic: str) -> Result:
    """``AddPartitionsListener``."""
    found = zookeeper.topic_assignment(topic)
    if not context.is_active or found is None:
        return Result(context, zookeeper)
    added = {
        TopicPartition(topic, number): _of_era(context, assignment)
        for number, assignment in found.partitions.items()
        if not context.replicas(TopicPartition(topic, number))
    }
    if context.is_queued_for_deletion(topic):
        return _refuse_added(context, zookeeper, topic, found, added)
    result = Result(context.with_assignments(added), zookeeper)
    return result.then(on_new_partition_creation, tuple(sorted(added))) if added else result


def _refuse_added(
    context: ControllerContext,
    zookeeper: ZooKeeper,
    topic: str,
    found: TopicAssignment,
    added: Collection[TopicPartition],
) -> Result:
    if not added:
        return Result(context, zookeeper)
    failures = tuple(
        Failure(RequestError.INVALID_TOPIC, f"{partition} was not added: its topic is being deleted", partition)
        for partition in sorted(added)
    )
    result = Result(context, zookeeper, failures=failures)
    if context.version < ADDED_PARTITIONS_RESTORED_SINCE:
        return result
    kept = {
        number: context.assignment(TopicPartition(topic, number))
        for number in found.partitions
        if TopicPartition(topic, number) not in added
    }
    return result.then(_write_topic, topic, replace(found, partitions=kept))


def on_new_partition_creation(
    context: ControllerContext, zookeeper: ZooKeeper, partitions: Collection[TopicPartition]
) -> Result:
    """The four transitions of creation; the replicas are those of the cache at each."""
    move = partition_state_machine.handle_state_changes
    result = (
        Result(context, zookeeper)
        .note(f"New partition creation callback for {','.join(map(str, sorted(partitions)))}")
        .then(move, partitions, PartitionState.NEW)
    )
    result = result.then(_move_replicas, partitions, ReplicaState.NEW)
    result = result.then(move, partitions, PartitionState.ONLINE, partition_state_machine.OFFLINE_ELECTION)
    return result.then(_move_replicas, partitions, ReplicaState.ONLINE)


def _move_replicas(
    context: ControllerContext, zookeeper: ZooKeeper, partitions: Collection[TopicPartition], target: ReplicaState
) -> Result:
    replicas = replicas_for_partitions(context, sorted(partitions))
    return replica_state_machine.handle_state_changes(context, zookeeper, replicas, target)


def process_topic_deletion(context: ControllerContext, zookeeper: ZooKeeper) -> Result:
    """``DeleteTopicsListener``.

    Kafka marks topics ineligible before it queues them, and marks only what is queued: a topic that moves is therefore
    not held up by the first look, only by a later one or by the next step of its reassignment.
    """
    is_heard = context.settings.delete_topic_enable or context.version >= DISABLED_DELETIONS_REMOVED_SINCE
    if not context.is_active or not is_heard:
        return Result(context, zookeeper)
    asked = frozenset(children(zookeeper, DELETE_TOPICS_PATH))
    unknown = asked - context.all_topics
    result = topic_deletion.delete_topic_deletions(context, zookeeper, unknown)
    topics = asked - unknown
    if not context.settings.delete_topic_enable:
        return result.then(topic_deletion.delete_topic_deletions, topics)
    if not topics:
        return result
    halted = topics & topics_with_changes_under_way(context)
    queued = result.note(f"Starting topic deletion for topics {','.join(sorted(topics))}")
    marked = queued.change(lambda now: topic_deletion.mark_topics_ineligible_for_deletion(now, halted))
    return marked.then(topic_deletion.enqueue_topics_for_deletion, topics)


def topics_with_changes_under_way(context: ControllerContext) -> frozenset[str]:
    """Topics with a partition that moves or, up to 0.10, is elected anew."""
    moving = (*context.partitions_being_reassigned, *context.partitions_undergoing_preferred_election)
    return frozenset(partition.topic for partition in moving)
