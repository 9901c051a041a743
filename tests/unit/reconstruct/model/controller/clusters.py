"""Small clusters to hold against the model: the controller's cache and the ZooKeeper it reads and writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from reconstruct.model.controller.values import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    PartitionAndReplica,
    ReplicaAssignment,
    TopicPartition,
)
from reconstruct.model.controller.zookeeper import TopicAssignment, partition_state_path, topic_path
from reconstruct.model.states import PartitionState, ReplicaState
from reconstruct.model.versions import LAST_WITH_ZOOKEEPER, KafkaVersion, v
from reconstruct.model.znode_paths import CONTROLLER_EPOCH_PATH
from tests.oracles.controller.context import ControllerContext, Settings
from tests.oracles.controller.zookeeper import ZooKeeper

#: The values of Kafka's own two tests.
BROKER, CONTROLLER_EPOCH = 5, 50
PARTITION = TopicPartition("t", 0)
REPLICA = PartitionAndReplica(PARTITION, BROKER)
#: One version of each era that the model tells apart.
ERAS = tuple(
    v(*parts)
    for parts in (
        (0, 8, 0),
        (0, 8, 1),
        (0, 8, 2),
        (0, 9, 0, 1),
        (0, 10, 2),
        (0, 11),
        (1, 0),
        (1, 1),
        (2, 0),
        (2, 1),
        (2, 2),
        (2, 3),
        (2, 4),
        (2, 5),
        (2, 6),
        (2, 7),
        (2, 8),
        (3, 1),
        (3, 2),
        (3, 3),
        (3, 9),
    )
)


def decided(
    leader: int, isr: Iterable[int], leader_epoch: int = 0, controller_epoch: int = CONTROLLER_EPOCH
) -> LeaderIsrAndControllerEpoch:
    return LeaderIsrAndControllerEpoch(LeaderAndIsr(leader, tuple(isr), leader_epoch), controller_epoch)


def controller(
    live: Iterable[int] = (),
    version: KafkaVersion = LAST_WITH_ZOOKEEPER,
    assigned: Mapping[TopicPartition, Iterable[int]] | None = None,
    led: Mapping[TopicPartition, LeaderIsrAndControllerEpoch] | None = None,
    partition_states: Mapping[TopicPartition, PartitionState] | None = None,
    replica_states: Mapping[PartitionAndReplica, ReplicaState] | None = None,
    shutting_down: Iterable[int] = (),
    **settings: object,
) -> ControllerContext:
    """A controller of epoch 50 with this in its cache."""
    assignments = {p: ReplicaAssignment(tuple(replicas)) for p, replicas in (assigned or {}).items()}
    return ControllerContext(
        settings=replace(Settings(version=version, broker_id=BROKER), **settings),  # type: ignore[arg-type]
        epoch=CONTROLLER_EPOCH,
        live_broker_epochs=dict.fromkeys(live, 1),
        shutting_down_broker_ids=frozenset(shutting_down),
        all_topics=frozenset(partition.topic for partition in assignments),
        assignments=assignments,
        leadership=dict(led or {}),
        partition_states=dict(partition_states or {}),
        replica_states=dict(replica_states or {}),
    )


def zookeeper(context: ControllerContext, **fields: object) -> ZooKeeper:
    """The ZooKeeper that this controller has read: its epoch, the assignments and the leaders it knows."""
    topics: dict[str, dict[int, ReplicaAssignment]] = {}
    for partition, assignment in context.assignments.items():
        topics.setdefault(partition.topic, {})[partition.partition_id] = assignment
    contents = {
        CONTROLLER_EPOCH_PATH: context.epoch,
        **{topic_path(topic): TopicAssignment(partitions) for topic, partitions in topics.items()},
        **{partition_state_path(partition): info for partition, info in context.leadership.items()},
    }
    return replace(ZooKeeper().with_znodes(contents), **fields)  # type: ignore[arg-type]
