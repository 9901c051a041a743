"""What one controller holds in memory: a value, copied on write.

Everything here is read from ZooKeeper when a broker becomes controller and lost when it resigns; between, the
controller believes it, even where ZooKeeper has moved on. A partition or replica without an entry in
``partition_states`` or ``replica_states`` is *NonExistent*: Kafka stores that state on first sight, which no later step
can tell apart.

Live brokers are those registered, with the epoch of their registration (the znode's czxid since 2.2); those shutting
down are among them until they are gone, and do not count as live where a leader is looked for.

Source: kafka.controller.ControllerContext 0.8.2 to 3.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from reconstruct.model.controller.values import (
    LeaderIsrAndControllerEpoch,
    PartitionAndReplica,
    ReplicaAssignment,
    TopicPartition,
)
from reconstruct.model.states import EPOCH_DURING_DELETE, NO_EPOCH, PartitionState, ReplicaState
from reconstruct.model.versions import (
    LAST_WITH_ZOOKEEPER,
    UNCLEAN_ELECTION_CONFIGURABLE_SINCE,
    UNCLEAN_ELECTION_OFF_BY_DEFAULT_SINCE,
    KafkaVersion,
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The broker that is controller, its version, and the settings its decisions depend on.

    ``inter_broker_protocol`` is the version's own where it is not given. ``unclean_leader_election_enable`` is the
    broker's setting (None: the version's default), which ``topic_unclean`` overrides topic by topic.
    """

    version: KafkaVersion = LAST_WITH_ZOOKEEPER
    broker_id: int = 0
    unclean_leader_election_enable: bool | None = None
    topic_unclean: Mapping[str, bool] = field(default_factory=dict)
    inter_broker_protocol: KafkaVersion | None = None

    @property
    def protocol(self) -> KafkaVersion:
        return self.version if self.inter_broker_protocol is None else self.inter_broker_protocol

    def is_unclean_allowed(self, topic: str) -> bool:
        """Whether an election may leave the ISR; up to 0.8.1 always."""
        if self.version < UNCLEAN_ELECTION_CONFIGURABLE_SINCE:
            return True
        broker = self.unclean_leader_election_enable
        if broker is None:
            broker = self.version < UNCLEAN_ELECTION_OFF_BY_DEFAULT_SINCE
        return self.topic_unclean.get(topic, broker)


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """The cache of one controller. Methods return a new one; none raises on what it does not know."""

    settings: Settings = field(default_factory=Settings)
    epoch: int = 0
    #: The version of /controller_epoch when this controller was elected.
    epoch_zk_version: int = 0
    #: Registered brokers and the epoch of each one's registration.
    live_broker_epochs: Mapping[int, int] = field(default_factory=dict)
    shutting_down_broker_ids: frozenset[int] = frozenset()
    all_topics: frozenset[str] = frozenset()
    assignments: Mapping[TopicPartition, ReplicaAssignment] = field(default_factory=dict)
    leadership: Mapping[TopicPartition, LeaderIsrAndControllerEpoch] = field(default_factory=dict)
    partition_states: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    replica_states: Mapping[PartitionAndReplica, ReplicaState] = field(default_factory=dict)
    #: Partition: the replicas it is to have.
    partitions_being_reassigned: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    #: Broker: its replicas on failed log directories.
    replicas_on_offline_dirs: Mapping[int, frozenset[TopicPartition]] = field(default_factory=dict)
    topics_to_be_deleted: frozenset[str] = frozenset()

    @property
    def version(self) -> KafkaVersion:
        return self.settings.version

    # --- brokers ----------------------------------------------------------------------------------------------------

    @property
    def live_or_shutting_down_broker_ids(self) -> tuple[int, ...]:
        return tuple(sorted(self.live_broker_epochs))

    @property
    def live_broker_ids(self) -> tuple[int, ...]:
        return tuple(sorted(broker for broker in self.live_broker_epochs if self.is_live_broker(broker)))

    def is_live_broker(self, broker_id: int) -> bool:
        return broker_id in self.live_broker_epochs and broker_id not in self.shutting_down_broker_ids

    def is_replica_online(
        self, broker_id: int, partition: TopicPartition, include_shutting_down_brokers: bool = False
    ) -> bool:
        """Whether the broker lives and the replica's log directory has not failed."""
        if include_shutting_down_brokers:
            is_broker_online = broker_id in self.live_broker_epochs
        else:
            is_broker_online = self.is_live_broker(broker_id)
        return is_broker_online and partition not in self.replicas_on_offline_dirs.get(broker_id, ())

    # --- assignments and leadership ---------------------------------------------------------------------------------

    def assignment(self, partition: TopicPartition) -> ReplicaAssignment:
        """The full assignment; an empty one where the partition is unknown."""
        return self.assignments.get(partition, ReplicaAssignment())

    def replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        return self.assignment(partition).replicas

    def with_assignments(self, assignments: Mapping[TopicPartition, ReplicaAssignment]) -> ControllerContext:
        return replace(self, assignments={**self.assignments, **assignments}) if assignments else self

    def stop_replica_leader_epoch(self, partition: TopicPartition) -> int:
        """The epoch a StopReplica carries: a sentinel where the topic is being deleted or the partition has none."""
        if self.is_queued_for_deletion(partition.topic):
            return EPOCH_DURING_DELETE
        info = self.leadership.get(partition)
        return NO_EPOCH if info is None else info.leader_and_isr.leader_epoch

    # --- states -----------------------------------------------------------------------------------------------------

    def partition_state(self, partition: TopicPartition) -> PartitionState:
        return self.partition_states.get(partition, PartitionState.NON_EXISTENT)

    def replica_state(self, replica: PartitionAndReplica) -> ReplicaState:
        return self.replica_states.get(replica, ReplicaState.NON_EXISTENT)

    def with_partition_states(self, states: Mapping[TopicPartition, PartitionState]) -> ControllerContext:
        merged = {**self.partition_states, **states}
        kept = {key: state for key, state in merged.items() if state is not PartitionState.NON_EXISTENT}
        return replace(self, partition_states=kept) if states else self

    def with_replica_states(self, states: Mapping[PartitionAndReplica, ReplicaState]) -> ControllerContext:
        merged = {**self.replica_states, **states}
        kept = {key: state for key, state in merged.items() if state is not ReplicaState.NON_EXISTENT}
        return replace(self, replica_states=kept) if states else self

    # --- topics and their deletion ----------------------------------------------------------------------------------

    def is_queued_for_deletion(self, topic: str) -> bool:
        return topic in self.topics_to_be_deleted
