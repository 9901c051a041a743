"""Changes of a controller's cache, of a decision and of an assignment that only whole procedures make.

Sources: kafka.controller.ControllerContext and ReplicaAssignment, kafka.api.LeaderAndIsr, 0.8.2 to 3.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from reconstruct.model.controller.values import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
    TopicPartition,
    without,
)
from tests.oracles.controller.context import ControllerContext

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def with_live_brokers(context: ControllerContext, broker_epochs: Mapping[int, int]) -> ControllerContext:
    """Exactly these brokers are registered."""
    return replace(context, live_broker_epochs=dict(broker_epochs))


def add_live_brokers(context: ControllerContext, broker_epochs: Mapping[int, int]) -> ControllerContext:
    return replace(context, live_broker_epochs={**context.live_broker_epochs, **broker_epochs})


def remove_live_brokers(context: ControllerContext, broker_ids: Iterable[int]) -> ControllerContext:
    return replace(context, live_broker_epochs=without_keys(context.live_broker_epochs, broker_ids))


def with_leadership(
    context: ControllerContext, leadership: Mapping[TopicPartition, LeaderIsrAndControllerEpoch]
) -> ControllerContext:
    return replace(context, leadership={**context.leadership, **leadership}) if leadership else context


def queue_topic_deletion(context: ControllerContext, topics: Iterable[str]) -> ControllerContext:
    return replace(context, topics_to_be_deleted=context.topics_to_be_deleted | frozenset(topics))


def begin_topic_deletion(context: ControllerContext, topics: Iterable[str]) -> ControllerContext:
    return replace(context, topics_with_deletion_started=context.topics_with_deletion_started | frozenset(topics))


def remove_topics(context: ControllerContext, topics: Iterable[str]) -> ControllerContext:
    """Forget topics, as after their deletion: all but the ineligibility, which Kafka leaves behind as well."""
    gone = frozenset(topics)
    if not gone:
        return context
    return replace(
        context,
        topics_to_be_deleted=context.topics_to_be_deleted - gone,
        topics_with_deletion_started=context.topics_with_deletion_started - gone,
        all_topics=context.all_topics - gone,
        topic_ids=without_keys(context.topic_ids, gone),
        assignments={p: a for p, a in context.assignments.items() if p.topic not in gone},
        leadership={p: info for p, info in context.leadership.items() if p.topic not in gone},
    )


def reset(context: ControllerContext) -> ControllerContext:
    """What a broker that resigned remembers: its settings."""
    return ControllerContext(settings=context.settings, is_active=False, machines_started=False)


def new_epoch(decided: LeaderAndIsr) -> LeaderAndIsr:
    """Only the leader epoch rises: brokers take a changed assignment only with a higher one."""
    return replace(decided, leader_epoch=decided.leader_epoch + 1)


def equals_but_for_an_older_partition_epoch(one: LeaderAndIsr, other: LeaderAndIsr) -> bool:
    """``equalsAllowStalePartitionEpoch``: the same request sent again."""
    return (
        one.leader == other.leader
        and one.leader_epoch == other.leader_epoch
        and frozenset(one.isr) == frozenset(other.isr)
        and one.leader_recovery_state == other.leader_recovery_state
        and one.partition_epoch <= other.partition_epoch
    )


def is_being_reassigned(assignment: ReplicaAssignment) -> bool:
    return bool(assignment.adding_replicas or assignment.removing_replicas)


def origin_replicas(assignment: ReplicaAssignment) -> tuple[int, ...]:
    return without(assignment.replicas, assignment.adding_replicas)


def reassign_to(assignment: ReplicaAssignment, target: Sequence[int]) -> ReplicaAssignment:
    """The assignment while it moves to ``target``, which comes first; one already moving forgets its old target."""
    origin = origin_replicas(assignment)
    replicas = tuple(dict.fromkeys((*target, *origin)))
    return ReplicaAssignment(replicas, without(replicas, origin), without(replicas, target))


def without_keys(mapping: Mapping[_Key, _Value], keys: Iterable[_Key]) -> dict[_Key, _Value]:
    """A copy of the mapping without those keys."""
    gone = frozenset(keys)
    return {key: value for key, value in mapping.items() if key not in gone}
