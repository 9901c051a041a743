"""Taking a replica out of the ISR when it goes Offline, and when it stays.

The leader epoch rises with the ISR, so that a broker that was cut off cannot take the old state for the new one. If the
replica led, nobody leads from then on. A replica that is not in the ISR changes nothing in ZooKeeper, but the cache
takes what was read. The *last* member is another matter, since with it the partition's last word on its data would go:

* up to 0.8.1 it is taken out, and the ISR is empty;
* 0.8.2 to 1.0 it stays where unclean election is disabled for the topic, and is taken out where it is not;
* since 1.1 it always stays: ISR ``[last]``, leader -1, and the epoch rises all the same.

Sources: KafkaController.removeReplicaFromIsr 0.8.0 to 1.0.2; ReplicaStateMachine.removeReplicasFromIsr 1.1 to 3.9.
"""

from __future__ import annotations

from reconstruct.model.controller.context import ControllerContext
from reconstruct.model.controller.leader_writes import Decision, decide_until_written
from reconstruct.model.controller.values import LeaderAndIsr, LeaderIsrAndControllerEpoch, PartitionAndReplica, without
from reconstruct.model.controller.zookeeper import ZooKeeper
from reconstruct.model.states import NO_LEADER
from reconstruct.model.versions import (
    LAST_ISR_MEMBER_KEPT_IF_CLEAN_SINCE,
    LAST_ISR_MEMBER_KEPT_SINCE,
    TOPIC_DELETION_SINCE,
)


def must_leave_isr(context: ControllerContext, replica: PartitionAndReplica) -> bool:
    """Whether ZooKeeper is asked at all; 0.8.0 trusts its cache to know who is not in the ISR."""
    info = context.leadership.get(replica.partition)
    return context.version >= TOPIC_DELETION_SINCE or (info is not None and replica.replica_id in info.isr)


def remove_from_isr(context: ControllerContext, zookeeper: ZooKeeper, replica: PartitionAndReplica) -> Decision:
    """The decision in force afterwards, or why the ISR could not be shrunk."""

    def decide(current: LeaderIsrAndControllerEpoch) -> LeaderAndIsr | None:
        if replica.replica_id not in current.isr:
            return None
        leader = NO_LEADER if replica.replica_id == current.leader else current.leader
        isr = without(current.isr, (replica.replica_id,))
        if not isr and is_last_member_kept(context, replica.topic):
            isr = current.isr
        return current.leader_and_isr.new_leader_and_isr(leader, isr)

    return decide_until_written(context, zookeeper, replica.partition, decide)


def is_last_member_kept(context: ControllerContext, topic: str) -> bool:
    """Whether the ISR keeps its last member when that goes Offline."""
    if context.version >= LAST_ISR_MEMBER_KEPT_SINCE:
        return True
    if context.version < LAST_ISR_MEMBER_KEPT_IF_CLEAN_SINCE:
        return False
    return not context.settings.is_unclean_allowed(topic)
