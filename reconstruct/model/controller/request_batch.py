"""The requests that one batch of transitions sends: gathered per broker, then sent in a fixed order.

A batch holds at most one word per broker and partition: what is added later replaces what was added before, but *new*
and *delete* stick. What LeaderAndIsr carries also goes to every broker's metadata cache. Sent are first all
LeaderAndIsr requests, then UpdateMetadata, then StopReplica, and only to brokers that are registered.

The batch is the one value here that changes: it lives inside one transition function and never leaves it.

Sources: kafka.controller.ControllerBrokerRequestBatch 0.8.2, 1.1, 2.2, 2.6, 3.9.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reconstruct.model.controller.context import ControllerContext
from reconstruct.model.controller.outputs import (
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    Request,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from reconstruct.model.controller.values import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
    TopicPartition,
)
from reconstruct.model.states import LEADER_DURING_DELETE
from reconstruct.model.versions import (
    BROKER_CHANGE_SENT_TO_ALL_SINCE,
    DELETED_PARTITIONS_RESTATED_UNTIL,
    EMPTY_UPDATE_METADATA_IS_EMPTY_SINCE,
    OFFLINE_LOG_DIRS_SINCE,
    STOP_REPLICA_PER_PARTITION_SINCE,
    TOPIC_DELETION_SINCE,
)


class RequestBatch:
    """What is to be sent, not yet sent."""

    def __init__(self) -> None:
        self._leader_and_isr: dict[int, dict[TopicPartition, LeaderAndIsrPartition]] = {}
        self._stop_replica: dict[int, dict[tuple[TopicPartition, bool], StopReplicaPartition]] = {}
        self._metadata_brokers: set[int] = set()
        self._metadata: dict[TopicPartition, LeaderAndIsrPartition] = {}

    def add_leader_and_isr(
        self,
        context: ControllerContext,
        broker_ids: Iterable[int],
        partition: TopicPartition,
        info: LeaderIsrAndControllerEpoch,
        assignment: ReplicaAssignment,
        is_new: bool = False,
    ) -> None:
        """Tell these brokers of a decision, and every broker's metadata cache."""
        for broker_id in broker_ids:
            if broker_id < 0:
                continue
            pending = self._leader_and_isr.setdefault(broker_id, {})
            was_new = partition in pending and pending[partition].is_new
            is_marked_new = (is_new or was_new) and context.version >= OFFLINE_LOG_DIRS_SINCE
            pending[partition] = LeaderAndIsrPartition(partition, info, assignment, is_marked_new)
        self.add_update_metadata(context, context.live_or_shutting_down_broker_ids, (partition,))

    def add_stop_replica(
        self, context: ControllerContext, broker_id: int, partition: TopicPartition, delete_partition: bool
    ) -> None:
        if broker_id < 0:
            return
        pending = self._stop_replica.setdefault(broker_id, {})
        is_per_partition = context.version >= STOP_REPLICA_PER_PARTITION_SINCE
        key = (partition, False if is_per_partition else delete_partition)
        is_delete = delete_partition or (key in pending and pending[key].delete_partition)
        pending[key] = StopReplicaPartition(partition, is_delete, context.stop_replica_leader_epoch(partition))

    def add_update_metadata(
        self, context: ControllerContext, broker_ids: Iterable[int], partitions: Iterable[TopicPartition]
    ) -> None:
        """Tell metadata caches; a partition without a leader is left out, one being deleted has the leader -2."""
        self._metadata_brokers.update(broker_id for broker_id in broker_ids if broker_id >= 0)
        asked = tuple(partitions)
        if not asked and context.version < EMPTY_UPDATE_METADATA_IS_EMPTY_SINCE:
            asked = tuple(sorted(context.leadership))
        if TOPIC_DELETION_SINCE <= context.version < DELETED_PARTITIONS_RESTATED_UNTIL:
            deleted = (p for p in sorted(context.leadership) if context.is_queued_for_deletion(p.topic))
            asked = (*asked, *deleted)
        for partition in asked:
            state = _metadata(context, partition)
            if state is not None:
                self._metadata[partition] = state

    def requests(self, context: ControllerContext) -> tuple[Request, ...]:
        """What is sent, in order; brokers by number, partitions sorted."""
        controller, epoch = context.settings.broker_id, context.epoch
        brokers = context.live_or_shutting_down_broker_ids
        leader_and_isr = (
            LeaderAndIsrRequest(broker, controller, epoch, _sorted(self._leader_and_isr[broker]))
            for broker in brokers
            if broker in self._leader_and_isr
        )
        metadata = _sorted(self._metadata)
        is_anything_to_tell = metadata or context.version >= BROKER_CHANGE_SENT_TO_ALL_SINCE
        update_metadata = (
            UpdateMetadataRequest(broker, controller, epoch, metadata, brokers)
            for broker in brokers
            if broker in self._metadata_brokers and is_anything_to_tell
        )
        stop_replica = (
            StopReplicaRequest(broker, controller, epoch, partitions)
            for broker in brokers
            for partitions in self._stops_of(context, broker)
        )
        return (*leader_and_isr, *update_metadata, *stop_replica)

    def _stops_of(self, context: ControllerContext, broker_id: int) -> tuple[tuple[StopReplicaPartition, ...], ...]:
        stops = tuple(stop for _, stop in sorted(self._stop_replica.get(broker_id, {}).items()))
        if context.version >= STOP_REPLICA_PER_PARTITION_SINCE:
            return (stops,) if stops else ()
        kinds = (tuple(stop for stop in stops if stop.delete_partition is delete) for delete in (True, False))
        return tuple(kind for kind in kinds if kind)


def _metadata(context: ControllerContext, partition: TopicPartition) -> LeaderAndIsrPartition | None:
    info = context.leadership.get(partition)
    if info is None:
        return None
    replicas = context.replicas(partition)
    if context.is_queued_for_deletion(partition.topic):
        info = replace(info, leader_and_isr=LeaderAndIsr(LEADER_DURING_DELETE, info.isr))
    offline: tuple[int, ...] = ()
    if context.version >= OFFLINE_LOG_DIRS_SINCE:
        offline = tuple(replica for replica in replicas if not context.is_replica_online(replica, partition))
    return LeaderAndIsrPartition(partition, info, ReplicaAssignment(replicas), offline_replicas=offline)


def _sorted(pending: dict[TopicPartition, LeaderAndIsrPartition]) -> tuple[LeaderAndIsrPartition, ...]:
    return tuple(pending[partition] for partition in sorted(pending))
