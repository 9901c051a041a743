"""The partition state machine: from an assignment to a leader, and to the next one.

A partition is **New** when the controller has read its assignment: nobody leads it and ZooKeeper knows nothing of its
leadership. It goes **Online** once, by *initialisation*: the first live replica of the assignment leads, all live ones
are the ISR, and the ``state`` znode is created, which fails if it exists. From then on every way to Online is an
*election*, also from Online: the decision in force is read, the election of that occasion chooses, the result is
written on condition that nobody wrote in between. **Offline** only records that the leader is gone: nothing is sent,
nothing written; the electing that usually follows at once is a transition of its own. **NonExistent** is the end, and
the beginning.

What a target does besides setting the state:

* New: the assignment is in the cache (0.8 reads it from ZooKeeper here);
* Online from New: create the znode; LeaderAndIsr (new) to the live replicas; UpdateMetadata to every broker;
* Online from Online or Offline: elect and write; LeaderAndIsr to those the election names; UpdateMetadata to every
  broker;
* Offline, NonExistent: nothing.

A transition from a state that is not in the target's set is refused and changes nothing (the sets are in
:mod:`reconstruct.model.states`). An election that finds nobody, or is stopped by a newer controller, leaves the state
as it was, but one: up to 1.0 a preferred election that was not needed counts as done.

Sources: kafka.controller.PartitionStateMachine 0.8.0, 0.8.2.2, 1.0.2, 1.1.1, 2.4.1, 3.9.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from reconstruct.model.controller.context import ControllerContext
from reconstruct.model.controller.leader_election import Choice, Election
from reconstruct.model.controller.leader_writes import Decision, create_state, decide_once
from reconstruct.model.controller.outputs import Failure, Output, PartitionTransition, Reason, Result
from reconstruct.model.controller.request_batch import RequestBatch
from reconstruct.model.controller.values import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
    TopicPartition,
)
from reconstruct.model.controller.zookeeper import ZooKeeper
from reconstruct.model.elections import ElectionKind
from reconstruct.model.states import PartitionState, is_legal_partition_transition
from reconstruct.model.versions import (
    ASYNC_CONTROLLER_SINCE,
    WHOLE_BATCH_RETRIED_UNTIL,
    VersionRange,
)

#: The election of partitions that are new or whose leader is gone.
OFFLINE_ELECTION: Final = Election(ElectionKind.OFFLINE_PARTITION)


def handle_state_changes(
    context: ControllerContext,
    zookeeper: ZooKeeper,
    partitions: Iterable[TopicPartition],
    target: PartitionState,
    election: Election | None = None,
) -> Result:
    """Move partitions to a state, each from a legal one; ``election`` is needed where a leader is to be elected.

    ``Result.elected`` holds, for each partition that was to be elected, the new leader and ISR or the failure. Where a
    newer controller is met the whole batch is void: no request is sent, and the context is the one given.
    """
    asked = tuple(dict.fromkeys(partitions))
    if not asked:
        return Result(context, zookeeper)
    work = _Work(context, zookeeper)
    for partition in asked:
        current = context.partition_state(partition)
        if not is_legal_partition_transition(current, target, VersionRange.exactly(context.version)):
            work.fail(_illegal(partition, current, target))
        elif target is not PartitionState.ONLINE:
            work.move(partition, target)
        elif current is PartitionState.NEW:
            work.initialise(partition)
        else:
            work.to_elect.append(partition)
    work.elect_all(election)
    return work.result()


class _Work:
    """One batch under way: the leadership cache is copied once, not once for each partition."""

    def __init__(self, context: ControllerContext, zookeeper: ZooKeeper) -> None:
        self.before = context
        self.zookeeper = zookeeper
        self.leadership = dict(context.leadership)
        self.context = replace(context, leadership=self.leadership)
        self.batch = RequestBatch()
        self.states: dict[TopicPartition, PartitionState] = {}
        self.to_elect: list[TopicPartition] = []
        self.outputs: list[Output] = []
        self.failures: list[Failure] = []
        self.elected: dict[TopicPartition, LeaderAndIsr | Failure] = {}
        self.has_moved = False

    def fail(self, failure: Failure) -> None:
        self.failures.append(failure)

    def move(self, partition: TopicPartition, target: PartitionState) -> None:
        current = self.states.get(partition, self.before.partition_state(partition))
        info = self.context.leadership.get(partition) if target is PartitionState.ONLINE else None
        decided = None if info is None else info.leader_and_isr
        self.outputs.append(PartitionTransition(partition, current, target, decided))
        self.states[partition] = target
        if target is PartitionState.NEW and self.context.version < ASYNC_CONTROLLER_SINCE:
            self._read_assignment(partition)

    def _read_assignment(self, partition: TopicPartition) -> None:
        """Up to 1.0 the assignment is read from ZooKeeper here, once more."""
        found = self.zookeeper.topic_assignment(partition.topic)
        if found is not None and partition.partition_id in found.partitions:
            replicas = found.partitions[partition.partition_id].replicas
            self.context = self.context.with_assignments({partition: ReplicaAssignment(replicas)})

    def initialise(self, partition: TopicPartition) -> None:
        """``initializeLeaderAndIsrForPartition``."""
        if self.has_moved:
            return
        replicas = self.context.replicas(partition)
        live = tuple(replica for replica in replicas if self.context.is_replica_online(replica, partition))
        if not live:
            message = (
                f"no assigned replica of {partition} is alive: assigned are {list(replicas)}, live brokers are "
                f"{list(self.context.live_broker_ids)}"
            )
            return self.fail(_failed(partition, PartitionState.NEW, Reason.STATE_CHANGE_FAILED, message))
        info = LeaderIsrAndControllerEpoch(LeaderAndIsr(live[0], live), self.context.epoch)
        decision = create_state(self.context, self.zookeeper, partition, info)
        if not self._took(partition, PartitionState.NEW, decision):
            return None
        self._add_leader_and_isr(partition, decision, live, is_new=True)
        return self.move(partition, PartitionState.ONLINE)

    def elect_all(self, election: Election | None) -> None:
        """``electLeaderForPartitions``: until no write is refused for its version."""
        if election is None and self.to_elect and self.context.version >= ASYNC_CONTROLLER_SINCE:
            message = "an election is required where a leader is to be elected"
            for partition in self.to_elect:
                current = self.before.partition_state(partition)
                self._not_elected(_failed(partition, current, Reason.ILLEGAL_ARGUMENT, message))
            return
        version = self.context.version
        is_whole_batch_retried = ASYNC_CONTROLLER_SINCE <= version < WHOLE_BATCH_RETRIED_UNTIL
        remaining = list(self.to_elect)
        while remaining and not self.has_moved:
            refused = [partition for partition in remaining if not self._elect(partition, election)]
            remaining = remaining if is_whole_batch_retried and refused else refused

    def _elect(self, partition: TopicPartition, election: Election | None) -> bool:
        """False where it is to be tried again."""
        if self.has_moved:
            return True
        chosen = Choice(self.context, partition, election or Election(None))
        current = self.states.get(partition, self.before.partition_state(partition))
        decision = decide_once(self.context, self.zookeeper, partition, chosen.decide)
        self.zookeeper = decision.zookeeper
        if decision.must_retry:
            return False
        if decision.refusal is not None and decision.refusal.reason is Reason.ELECTION_NOT_NEEDED:
            # Up to 1.0 the selector's refusal is swallowed, and the partition counts as moved.
            self.move(partition, PartitionState.ONLINE)
        elif self._took(partition, current, decision) and decision.info is not None:
            self._add_leader_and_isr(partition, decision, chosen.recipients, is_new=False)
            self.move(partition, PartitionState.ONLINE)
            self.elected[partition] = decision.info.leader_and_isr
        return True

    def _took(self, partition: TopicPartition, current: PartitionState, decision: Decision) -> bool:
        self.zookeeper = decision.zookeeper
        self.outputs.extend(decision.outputs)
        if decision.refusal is None:
            return True
        self.has_moved = self.has_moved or decision.has_moved
        reason = decision.refusal.reason
        failure = _failed(partition, current, reason, decision.refusal.message)
        if current is PartitionState.NEW:
            is_misnamed = reason is Reason.CONNECTION_LOSS and self.context.version >= ASYNC_CONTROLLER_SINCE
            self.fail(replace(failure, logged_to_state=PartitionState.NEW) if is_misnamed else failure)
        else:
            if reason is Reason.NO_NODE:
                failure = replace(failure, reason=Reason.STATE_CHANGE_FAILED)
            self._not_elected(failure)
        return False

    def _not_elected(self, failure: Failure) -> None:
        self.fail(failure)
        if failure.partition is not None:
            self.elected[failure.partition] = failure

    def _add_leader_and_isr(
        self, partition: TopicPartition, decision: Decision, brokers: Iterable[int], is_new: bool
    ) -> None:
        if decision.info is None:
            return
        self.leadership[partition] = decision.info
        assignment = self.context.assignment(partition)
        self.batch.add_leader_and_isr(self.context, brokers, partition, decision.info, assignment, is_new)

    def result(self) -> Result:
        failures = tuple(self.failures)
        if self.has_moved:
            return Result(
                self.before, self.zookeeper, tuple(self.outputs), failures, elected=self.elected, has_moved=True
            )
        context = self.context.with_partition_states(self.states)
        outputs = (*self.outputs, *self.batch.requests(context))
        return Result(context, self.zookeeper, outputs, failures, elected=self.elected)


def _failed(partition: TopicPartition, current: PartitionState, reason: Reason, message: str) -> Failure:
    target = PartitionState.ONLINE
    return Failure(reason, message, partition, None, current, target, logged_to_state=target)


def _illegal(partition: TopicPartition, current: PartitionState, target: PartitionState) -> Failure:
    message = f"{partition} cannot move to {target} from {current}"
    return Failure(Reason.ILLEGAL_STATE, message, partition, None, current, target, logged_to_state=target)
