"""Elections of a KRaft quorum's controller: records tell their occasion, and who was there when they were written.

What one event changes is one batch, of one time: a broker that is fenced, or that asks to be shut down, stands in it
with the partitions that it led.

Source: org.apache.kafka.controller.ReplicationControlManager, PartitionChangeBuilder since 3.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconstruct.cluster.view import ClusterView
from reconstruct.model.elections import ElectionKind
from reconstruct.model.states import NO_LEADER
from reconstruct.partitions.elections.controller_view import BrokerStatus
from reconstruct.partitions.elections.inputs import NEW_PARTITION
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState


def statuses_at(replicas: Iterable[int], at: int, cluster: ClusterView) -> dict[int, frozenset[BrokerStatus]]:
    """What each broker was to the controller when it wrote the records of that time."""
    return {replica: frozenset({_status(replica, at, cluster)}) for replica in replicas if replica >= 0}


def _status(broker_id: int, at: int, cluster: ClusterView) -> BrokerStatus:
    since = next((span.start for span in cluster.liveness.get(broker_id, ()) if span.holds_at(at)), None)
    if since is None:
        return BrokerStatus.GONE
    is_leaving = any(since <= asked <= at for asked, _ in cluster.shutdown_requests.get(broker_id, ()))
    return BrokerStatus.LEAVING if is_leaving else BrokerStatus.LIVE


def occasion(
    old: LeaderAndIsrState | None,
    new: LeaderAndIsrState,
    records: Mapping[int, Evidence],
    statuses: Mapping[int, frozenset[BrokerStatus]],
) -> str:
    """The kind of election; ``records`` are those of the partition, by the partition epoch that each made.

    A leader that goes though its broker stays, and is to stay, has lost its log directory: its replica is offline.
    """
    if old is None:
        return NEW_PARTITION
    if old.leader == NO_LEADER:
        return ElectionKind.OFFLINE_PARTITION
    version = new.partition_epoch or 0
    record, before = records.get(version), records.get(version - 1)
    was_moving = before is not None and bool(before.adding_replicas or before.removing_replicas)
    is_moving = record is not None and bool(record.adding_replicas or record.removing_replicas)
    is_assigned = record is None or record.replicas is None or old.leader in record.replicas
    if (was_moving and not is_moving) or not is_assigned:
        return ElectionKind.REASSIGNED_PARTITION
    if old.leader in new.isr:
        return ElectionKind.PREFERRED_REPLICA
    if statuses.get(old.leader) == frozenset({BrokerStatus.LEAVING}):
        return ElectionKind.CONTROLLED_SHUTDOWN
    return ElectionKind.OFFLINE_PARTITION
