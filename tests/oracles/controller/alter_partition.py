"""The leader asks, the controller writes: AlterIsr (2.7) and AlterPartition (3.2), KIP-497 and KIP-704.

Up to 2.6 a leader writes its ISR into the ``state`` znode itself, and the controller hears of it later or, up to 0.8,
never. From 2.7 on, with the protocol of it, the leader sends its wish and the controller writes it: with the leader and
leader epoch that are, its own controller epoch, and on condition of the partition epoch that the leader named. What it
refuses tells the leader what it did not know: that it is deposed (FENCED_LEADER_EPOCH), that its state is old
(INVALID_UPDATE_VERSION), or that it knows more than this controller (NOT_CONTROLLER).

Sources: KafkaController.processAlterIsr 2.7.2, 3.1.2; processAlterPartition 3.2.3, 3.3.2, 3.9.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reconstruct.model.controller.leader_writes import checked_epoch_version
from reconstruct.model.controller.outputs import (
    Failure,
    Reason,
    ZnodeWrite,
)
from reconstruct.model.controller.values import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    LeaderRecoveryState,
    TopicPartition,
)
from reconstruct.model.controller.zookeeper import Code, partition_state_path
from reconstruct.model.versions import LEADER_RECOVERY_STATE_SINCE
from tests.oracles.controller.context import ControllerContext
from tests.oracles.controller.context_changes import equals_but_for_an_older_partition_epoch, with_leadership
from tests.oracles.controller.metadata import send_update_metadata
from tests.oracles.controller.outcomes import (
    RequestError,
    Result,
)
from tests.oracles.controller.reassignment import process_isr_change
from tests.oracles.controller.zookeeper import ZooKeeper
from tests.oracles.versions import INELIGIBLE_REPLICAS_REFUSED_SINCE, LEADER_AHEAD_REFUSED_SINCE


@dataclass(frozen=True, slots=True)
class AlterPartitionRequest:
    """A leader's wishes: partition to the leader and ISR it wants, with the epochs it knows."""

    broker_id: int
    broker_epoch: int
    partitions: Mapping[TopicPartition, LeaderAndIsr]


def process_alter_partition(context: ControllerContext, zookeeper: ZooKeeper, request: AlterPartitionRequest) -> Result:
    """``Result.elected`` holds the answer for each partition: the state in force or the error."""
    if not context.is_active:
        return _refused(context, zookeeper, RequestError.NOT_CONTROLLER, "this broker is not the controller")
    if context.live_broker_epochs.get(request.broker_id) != request.broker_epoch:
        message = f"broker {request.broker_id} asks with epoch {request.broker_epoch}"
        return _refused(context, zookeeper, RequestError.STALE_BROKER_EPOCH, message)
    result = Result(context, zookeeper)
    answers: dict[TopicPartition, LeaderAndIsr | Failure] = {}
    for partition, wanted in sorted(request.partitions.items(), key=lambda item: item[0]):
        result = result.then(_alter, partition, wanted)
        answers.update(result.elected)
    brokers = context.live_or_shutting_down_broker_ids
    result = result.then(send_update_metadata, brokers, sorted(request.partitions))
    for partition, answer in answers.items():
        if isinstance(answer, LeaderAndIsr):
            result = result.then(process_isr_change, partition)
    return replace(result, elected=answers)


def _alter(context: ControllerContext, zookeeper: ZooKeeper, partition: TopicPartition, wanted: LeaderAndIsr) -> Result:
    answer = judge(context, partition, wanted)
    if answer is None:
        return _write(context, zookeeper, partition, wanted)
    failures = (answer,) if isinstance(answer, Failure) else ()
    return Result(context, zookeeper, failures=failures, elected={partition: answer})


def judge(context: ControllerContext, partition: TopicPartition, wanted: LeaderAndIsr) -> LeaderAndIsr | Failure | None:
    """The answer that needs no write: a refusal, or the state in force where that is what is wanted; None to write."""
    info = context.leadership.get(partition)
    if info is None:
        return Failure(RequestError.UNKNOWN_TOPIC_OR_PARTITION, f"{partition} has no leader", partition)
    current = info.leader_and_isr
    version = context.version
    reason: Reason | None = None
    is_ahead = wanted.partition_epoch > current.partition_epoch or wanted.leader_epoch > current.leader_epoch
    if is_ahead and version >= LEADER_AHEAD_REFUSED_SINCE:
        reason = RequestError.NOT_CONTROLLER
    elif wanted.leader_epoch < current.leader_epoch:
        reason = RequestError.FENCED_LEADER_EPOCH
    elif equals_but_for_an_older_partition_epoch(wanted, current):
        return current
    elif version >= LEADER_AHEAD_REFUSED_SINCE and wanted.partition_epoch < current.partition_epoch:
        reason = RequestError.INVALID_UPDATE_VERSION
    elif version >= LEADER_RECOVERY_STATE_SINCE and _is_impossible_recovery(current, wanted):
        reason = RequestError.INVALID_REQUEST
    elif version >= INELIGIBLE_REPLICAS_REFUSED_SINCE and not all(map(context.is_live_broker, wanted.isr)):
        reason = RequestError.INELIGIBLE_REPLICA
    if reason is None:
        return None
    return Failure(reason, f"{partition} stays as it is: wanted {wanted}, in force {current}", partition)


def _is_impossible_recovery(current: LeaderAndIsr, wanted: LeaderAndIsr) -> bool:
    """A leader that recovers is alone, and one that has recovered does not go back."""
    if wanted.leader_recovery_state is not LeaderRecoveryState.RECOVERING:
        return False
    return len(wanted.isr) > 1 or current.leader_recovery_state is LeaderRecoveryState.RECOVERED


def _write(context: ControllerContext, zookeeper: ZooKeeper, partition: TopicPartition, wanted: LeaderAndIsr) -> Result:
    path = partition_state_path(partition)
    content = LeaderIsrAndControllerEpoch(wanted, context.epoch)
    after, code, version = zookeeper.set(path, content, wanted.partition_epoch, checked_epoch_version(context))
    if code is Code.OK:
        written = LeaderIsrAndControllerEpoch(wanted.with_partition_epoch(version), context.epoch)
        outputs = (ZnodeWrite(path, written, version),)
        known = with_leadership(context, {partition: written})
        return Result(known, after, outputs, elected={partition: written.leader_and_isr})
    reasons = {Code.BADVERSION: RequestError.INVALID_UPDATE_VERSION, Code.CONTROLLER_MOVED: Reason.CONTROLLER_MOVED}
    failure = Failure(reasons.get(code, Reason.CONNECTION_LOSS), f"{partition} was not written: {code}", partition)
    is_moved = code is Code.CONTROLLER_MOVED
    return Result(context, after, failures=(failure,), elected={partition: failure}, has_moved=is_moved)


def _refused(context: ControllerContext, zookeeper: ZooKeeper, reason: Reason, message: str) -> Result:
    return Result(context, zookeeper, failures=(Failure(reason, message),))
