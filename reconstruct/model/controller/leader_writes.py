"""Reading and writing the ``state`` znode of a partition: what both machines and a reassignment do alike.

The controller never decides from its cache. It reads the znode; stops if a controller with a higher epoch wrote it
(this controller is then a zombie); computes the next decision; and writes it on condition that the znode still has the
version it read. If a leader changed its ISR in between, the write is refused and the whole is done again with what is
there now. ZooKeeper's order of writes is thus the order of decisions.

A replica that goes Offline leaves the ISR. The leader epoch rises with it, so that a broker that was cut off cannot
take the old state for the new one. If the replica led, nobody leads from then on. A replica that is not in the ISR
changes nothing in ZooKeeper, but the cache takes what was read. The *last* member is another matter, since with it the
partition's last word on its data would go:

* up to 0.8.1 it is taken out, and the ISR is empty;
* 0.8.2 to 1.0 it stays where unclean election is disabled for the topic, and is taken out where it is not;
* since 1.1 it always stays: ISR ``[last]``, leader -1, and the epoch rises all the same.

Sources: electLeaderForPartition, removeReplicaFromIsr and updateLeaderEpoch of 0.8.2; updateLeaderAndIsr and
ReplicaStateMachine.removeReplicasFromIsr of 1.1 to 3.9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reconstruct.model.controller.context import ControllerContext
from reconstruct.model.controller.outputs import Output, Reason, ZnodeWrite
from reconstruct.model.controller.values import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    PartitionAndReplica,
    TopicPartition,
    without,
)
from reconstruct.model.controller.zookeeper import Code, Content, ZooKeeper, partition_state_path
from reconstruct.model.states import NO_LEADER
from reconstruct.model.versions import (
    CONTROLLER_EPOCH_CHECKED_SINCE,
    LAST_ISR_MEMBER_KEPT_IF_CLEAN_SINCE,
    LAST_ISR_MEMBER_KEPT_SINCE,
    TOPIC_DELETION_SINCE,
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing was decided."""

    reason: Reason
    message: str


#: From the decision in force to the next one; None where it stays.
Decide = Callable[[LeaderIsrAndControllerEpoch], LeaderAndIsr | Refusal | None]


@dataclass(frozen=True, slots=True)
class Decision:
    """What came of one attempt to decide; ``info`` is the decision now in force, with this controller's epoch."""

    zookeeper: ZooKeeper
    info: LeaderIsrAndControllerEpoch | None = None
    refusal: Refusal | None = None
    outputs: tuple[Output, ...] = ()
    must_retry: bool = False

    @property
    def has_moved(self) -> bool:
        return self.refusal is not None and self.refusal.reason is Reason.CONTROLLER_MOVED


REASONS = {
    Code.NODEEXISTS: Reason.NODE_EXISTS,
    Code.NONODE: Reason.NO_NODE,
    Code.CONNECTIONLOSS: Reason.CONNECTION_LOSS,
    Code.CONTROLLER_MOVED: Reason.CONTROLLER_MOVED,
}


def checked_epoch_version(context: ControllerContext) -> int | None:
    """The version of /controller_epoch that this controller's writes depend on; None up to 2.0, where they do not."""
    return context.epoch_zk_version if context.version >= CONTROLLER_EPOCH_CHECKED_SINCE else None


def decide_once(
    context: ControllerContext, zookeeper: ZooKeeper, partition: TopicPartition, decide: Decide
) -> Decision:
    """One read, one decision, one conditional write; ``must_retry`` where somebody wrote in between."""
    current, code = zookeeper.partition_state(partition)
    if current is None:
        if code is Code.NONODE:
            message = f"LeaderAndIsr information doesn't exist for partition {partition}"
            return Decision(zookeeper, refusal=Refusal(Reason.NO_NODE, message))
        return Decision(zookeeper, refusal=Refusal(REASONS[code], f"the state of {partition} could not be read"))
    if current.controller_epoch > context.epoch:
        message = (
            f"the state of {partition} was written by a controller of epoch {current.controller_epoch}; "
            f"this controller's epoch is {context.epoch}"
        )
        return Decision(zookeeper, refusal=Refusal(Reason.STATE_CHANGE_FAILED, message))
    decided = decide(current)
    if isinstance(decided, Refusal):
        return Decision(zookeeper, refusal=decided)
    if decided is None:
        return Decision(zookeeper, LeaderIsrAndControllerEpoch(current.leader_and_isr, context.epoch))
    return _write(context, zookeeper, partition, decided)


def decide_until_written(
    context: ControllerContext, zookeeper: ZooKeeper, partition: TopicPartition, decide: Decide
) -> Decision:
    """The same until the write is accepted or refused for good."""
    decision = decide_once(context, zookeeper, partition, decide)
    while decision.must_retry:
        decision = decide_once(context, decision.zookeeper, partition, decide)
    return decision


def create_state(
    context: ControllerContext, zookeeper: ZooKeeper, partition: TopicPartition, info: LeaderIsrAndControllerEpoch
) -> Decision:
    """The first decision about a partition; refused where one exists."""
    path = partition_state_path(partition)
    zookeeper, code, version = zookeeper.create(path, info, checked_epoch_version(context))
    if code is Code.OK:
        return Decision(zookeeper, info, outputs=(ZnodeWrite(path, info, version),))
    message = f"the state of {partition} could not be created: {code}"
    if code is Code.NODEEXISTS:
        known, _ = zookeeper.partition_state(partition)
        message = f"LeaderAndIsr path of {partition} exists already" + (f": {known}" if known else "")
    return Decision(zookeeper, refusal=Refusal(REASONS.get(code, Reason.STATE_CHANGE_FAILED), message))


def _write(
    context: ControllerContext, zookeeper: ZooKeeper, partition: TopicPartition, decided: LeaderAndIsr
) -> Decision:
    path = partition_state_path(partition)
    content: Content = LeaderIsrAndControllerEpoch(decided, context.epoch)
    zookeeper, code, version = zookeeper.set(path, content, decided.partition_epoch, checked_epoch_version(context))
    if code is Code.BADVERSION:
        return Decision(zookeeper, must_retry=True)
    if code is not Code.OK:
        return Decision(zookeeper, refusal=Refusal(REASONS[code], f"the state of {partition} was not written: {code}"))
    written = LeaderIsrAndControllerEpoch(decided.with_partition_epoch(version), context.epoch)
    return Decision(zookeeper, written, outputs=(ZnodeWrite(path, written, version),))


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
        if not isr and _is_last_member_kept(context, replica.topic):
            isr = current.isr
        return current.leader_and_isr.new_leader_and_isr(leader, isr)

    return decide_until_written(context, zookeeper, replica.partition, decide)


def _is_last_member_kept(context: ControllerContext, topic: str) -> bool:
    """Whether the ISR keeps its last member when that goes Offline."""
    if context.version >= LAST_ISR_MEMBER_KEPT_SINCE:
        return True
    if context.version < LAST_ISR_MEMBER_KEPT_IF_CLEAN_SINCE:
        return False
    return not context.settings.is_unclean_allowed(topic)
