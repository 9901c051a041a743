"""The replica state machine: what each broker is told to do with its copy.

A replica is **New** when its broker is first told to follow; **Online** while its broker lives and takes part;
**Offline** when its broker, or its log directory, is gone or about to be, or when the replica is to be taken away. Only
from Offline may it be deleted: **ReplicaDeletionStarted** when the broker is told to, **ReplicaDeletionSuccessful**
when it answered, **ReplicaDeletionIneligible** when it could not, from where it goes back to Offline to be tried again.
Then it is **NonExistent**, and the cache forgets it.

What a target does besides setting the state:

* New: LeaderAndIsr (new) to the replica, if a leader is known; refused if that leader is the replica itself;
* Online from New: the replica joins the cached assignment, if it is not there;
* Online from elsewhere: LeaderAndIsr to the replica, if a leader is known;
* Offline: StopReplica without deletion; the replica leaves the ISR (:mod:`.leader_writes`), and the others hear of it;
* ReplicaDeletionStarted: StopReplica with deletion;
* NonExistent: the replica leaves the cached assignment;
* ReplicaDeletionSuccessful, ReplicaDeletionIneligible: nothing.

A transition from a state that is not in the target's set is refused and changes nothing (the sets are in
:mod:`reconstruct.model.states`).

Sources: kafka.controller.ReplicaStateMachine 0.8.0, 0.8.1.1, 0.8.2.2, 1.0.2, 1.1.1, 2.0.1, 2.3.1, 3.9.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reconstruct.model.controller.context import ControllerContext
from reconstruct.model.controller.leader_writes import must_leave_isr, remove_from_isr
from reconstruct.model.controller.outputs import Failure, Output, Reason, ReplicaTransition, Result
from reconstruct.model.controller.request_batch import RequestBatch
from reconstruct.model.controller.values import LeaderIsrAndControllerEpoch, PartitionAndReplica, without
from reconstruct.model.controller.zookeeper import ZooKeeper
from reconstruct.model.states import ReplicaState, is_legal_replica_transition
from reconstruct.model.versions import (
    ASYNC_CONTROLLER_SINCE,
    NO_LEADER_IS_NO_FAILURE_WHEN_DELETED_SINCE,
    OFFLINE_WITHOUT_LEADER_SENT_SINCE,
    OFFLINE_WITHOUT_LEADER_SINCE,
    SHRUNK_ISR_SENT_TO_ALL_SINCE,
    TOPIC_DELETION_SINCE,
    VersionRange,
)


def handle_state_changes(
    context: ControllerContext, zookeeper: ZooKeeper, replicas: Iterable[PartitionAndReplica], target: ReplicaState
) -> Result:
    """Move replicas to a state, each from a legal one, in one batch of requests.

    Where a newer controller is met the whole batch is void: no request is sent, and the context is the one given.
    """
    asked = tuple(dict.fromkeys(replicas))
    if not asked:
        return Result(context, zookeeper)
    work = _Work(context, zookeeper, target)
    for replica in asked:
        current = context.replica_state(replica)
        if is_legal_replica_transition(current, target, VersionRange.exactly(context.version)):
            work.move(replica, current)
        else:
            work.refuse(replica, Reason.ILLEGAL_STATE, f"{replica} cannot move to {target} from {current}")
    return work.result()


class _Work:
    """One batch under way: each cache is copied once, not once for each replica."""

    def __init__(self, context: ControllerContext, zookeeper: ZooKeeper, target: ReplicaState) -> None:
        self.before = context
        self.zookeeper = zookeeper
        self.target = target
        self.leadership = dict(context.leadership)
        self.assignments = dict(context.assignments)
        self.context = replace(context, leadership=self.leadership, assignments=self.assignments)
        self.batch = RequestBatch()
        self.states: dict[PartitionAndReplica, ReplicaState] = {}
        self.outputs: list[Output] = []
        self.failures: list[Failure] = []
        self.has_moved = False

    def move(self, replica: PartitionAndReplica, current: ReplicaState) -> None:
        """A legal transition with its side effects."""
        if self.has_moved:
            return
        match self.target:
            case ReplicaState.NEW:
                self._to_new(replica)
            case ReplicaState.ONLINE:
                self._to_online(replica, current)
            case ReplicaState.OFFLINE:
                self._to_offline(replica)
            case ReplicaState.NON_EXISTENT:
                self._to_non_existent(replica)
            case ReplicaState.DELETION_STARTED:
                self._stop(replica, delete_partition=True)
                self._done(replica)
            case ReplicaState.DELETION_SUCCESSFUL | ReplicaState.DELETION_INELIGIBLE:
                self._done(replica)

    def _to_new(self, replica: PartitionAndReplica) -> None:
        info = self._leader_for_new(replica)
        if info is not None and info.leader == replica.replica_id:
            message = f"{replica} cannot move to NewReplica because it is to become leader"
            is_misnamed = self.before.version >= ASYNC_CONTROLLER_SINCE
            logged = ReplicaState.OFFLINE if is_misnamed else self.target
            return self.refuse(replica, Reason.STATE_CHANGE_FAILED, message, logged)
        if info is not None:
            self._add_leader_and_isr(replica, (replica.replica_id,), info, is_new=True)
        return self._done(replica)

    def _leader_for_new(self, replica: PartitionAndReplica) -> LeaderIsrAndControllerEpoch | None:
        """Up to 1.0 a new replica is told what ZooKeeper says, from then on what the cache says."""
        if self.before.version < ASYNC_CONTROLLER_SINCE:
            return self.zookeeper.partition_state(replica.partition)[0]
        return self.leadership.get(replica.partition)

    def _to_online(self, replica: PartitionAndReplica, current: ReplicaState) -> None:
        info = self.leadership.get(replica.partition)
        if current is ReplicaState.NEW:
            assignment = self.context.assignment(replica.partition)
            if replica.replica_id not in assignment.replicas:
                self.assignments[replica.partition] = assignment.add_replica(replica.replica_id)
        elif info is not None:
            self._add_leader_and_isr(replica, (replica.replica_id,), info, is_new=False)
        is_silent = self.before.version < ASYNC_CONTROLLER_SINCE and current is not ReplicaState.NEW and info is None
        self._done(replica, is_logged=not is_silent)

    def _to_offline(self, replica: PartitionAndReplica) -> None:
        if self.before.version >= TOPIC_DELETION_SINCE:
            self._stop(replica, delete_partition=False)
        if replica.partition not in self.leadership:
            return self._to_offline_without_leader(replica)
        if not must_leave_isr(self.context, replica):
            return self._done(replica)
        decision = remove_from_isr(self.context, self.zookeeper, replica)
        self.zookeeper = decision.zookeeper
        self.outputs.extend(decision.outputs)
        if decision.info is not None:
            self.leadership[replica.partition] = decision.info
            self._send_shrunk_isr(replica, decision.info)
            return self._done(replica)
        self.has_moved = decision.has_moved
        if decision.refusal is None:
            return None
        if decision.refusal.reason is Reason.NO_NODE:
            return self._refuse_without_leader(replica)
        return self.refuse(replica, decision.refusal.reason, decision.refusal.message)

    def _to_offline_without_leader(self, replica: PartitionAndReplica) -> None:
        """Refused up to 1.0, passed over in silence by 1.1, done since 2.0 and told since 2.3."""
        version = self.before.version
        if version < ASYNC_CONTROLLER_SINCE:
            return self._refuse_without_leader(replica)
        if version < OFFLINE_WITHOUT_LEADER_SINCE:
            return None
        if version >= OFFLINE_WITHOUT_LEADER_SENT_SINCE:
            brokers = self.context.live_or_shutting_down_broker_ids
            self.batch.add_update_metadata(self.context, brokers, (replica.partition,))
        return self._done(replica)

    def _refuse_without_leader(self, replica: PartitionAndReplica) -> None:
        is_deleted = self.before.is_queued_for_deletion(replica.topic)
        if is_deleted and self.before.version >= NO_LEADER_IS_NO_FAILURE_WHEN_DELETED_SINCE:
            return None
        message = f"{replica} cannot move to OfflineReplica because its partition has no leader and ISR in ZooKeeper"
        return self.refuse(replica, Reason.STATE_CHANGE_FAILED, message)

    def _send_shrunk_isr(self, replica: PartitionAndReplica, info: LeaderIsrAndControllerEpoch) -> None:
        if self.before.version < SHRUNK_ISR_SENT_TO_ALL_SINCE:
            self._add_leader_and_isr(replica, (info.leader,), info, is_new=False)
        elif not self.before.is_queued_for_deletion(replica.topic):
            others = without(self.context.replicas(replica.partition), (replica.replica_id,))
            self._add_leader_and_isr(replica, others, info, is_new=False)

    def _to_non_existent(self, replica: PartitionAndReplica) -> None:
        if self.before.version < TOPIC_DELETION_SINCE:
            self._stop(replica, delete_partition=True)
        assignment = self.context.assignment(replica.partition)
        self.assignments[replica.partition] = assignment.remove_replica(replica.replica_id)
        self._done(replica)

    def _add_leader_and_isr(
        self, replica: PartitionAndReplica, brokers: Iterable[int], info: LeaderIsrAndControllerEpoch, is_new: bool
    ) -> None:
        assignment = self.context.assignment(replica.partition)
        self.batch.add_leader_and_isr(self.context, brokers, replica.partition, info, assignment, is_new)

    def _stop(self, replica: PartitionAndReplica, delete_partition: bool) -> None:
        self.batch.add_stop_replica(self.context, replica.replica_id, replica.partition, delete_partition)

    def _done(self, replica: PartitionAndReplica, is_logged: bool = True) -> None:
        current = self.before.replica_state(replica)
        partition, replica_id = replica
        self.outputs.append(ReplicaTransition(partition, replica_id, current, self.target, is_logged))
        self.states[replica] = self.target

    def refuse(
        self, replica: PartitionAndReplica, reason: Reason, message: str, logged: ReplicaState | None = None
    ) -> None:
        current = self.before.replica_state(replica)
        partition, replica_id = replica
        self.failures.append(
            Failure(reason, message, partition, replica_id, current, self.target, logged or self.target)
        )

    def result(self) -> Result:
        failures = tuple(self.failures)
        if self.has_moved:
            return Result(self.before, self.zookeeper, tuple(self.outputs), failures, has_moved=True)
        requests = self.batch.requests(self.context)
        is_unchanged = not (self.states or self.outputs)
        context = self.before if is_unchanged else self.context.with_replica_states(self.states)
        return Result(context, self.zookeeper, (*self.outputs, *requests), failures)
