"""A controller's log walked block by block, and what each block must have sent by the model.

Between blocks it keeps what the controller's cache holds (:mod:`reconstruct.partitions.reexecution.steps`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconstruct.model.states import PartitionState, ReplicaState
from reconstruct.model.versions import (
    ASYNC_CONTROLLER_SINCE,
    BROKER_CHANGE_SENT_TO_ALL_SINCE,
    DELETED_PARTITIONS_LEAVE_FIRST_SINCE,
    LAST_ISR_MEMBER_KEPT_IF_CLEAN_SINCE,
    NO_LEADER_IS_NO_FAILURE_WHEN_DELETED_SINCE,
    OFFLINE_LOG_DIRS_SINCE,
    OFFLINE_WITHOUT_LEADER_SENT_SINCE,
    OFFLINE_WITHOUT_LEADER_SINCE,
    SHUTDOWN_IN_ASSIGNMENT_ORDER_SINCE,
    STOP_REPLICA_PER_PARTITION_SINCE,
    TOPIC_DELETION_SINCE,
    KafkaVersion,
    VersionRange,
)
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.reexecution.controller_log import (
    LEADER_AND_ISR,
    PARTITION,
    REPLICA,
    ControllerLog,
    own_views,
    steady_brokers,
)
from reconstruct.partitions.reexecution.model_runs import (
    ControllerCache,
    Leadership,
    SentRequest,
    requests_of_creation,
    requests_of_election,
    requests_of_replica,
)
from reconstruct.partitions.reexecution.steps import (
    Reexecuted,
    Step,
    assigned_after,
    assigned_before,
    cached_after,
    decided_by,
    leadership_of,
    live_at,
    shrunk,
)

#: The releases at which what one transition sends has changed.
_GATES: Final = (
    TOPIC_DELETION_SINCE,
    LAST_ISR_MEMBER_KEPT_IF_CLEAN_SINCE,
    BROKER_CHANGE_SENT_TO_ALL_SINCE,
    NO_LEADER_IS_NO_FAILURE_WHEN_DELETED_SINCE,
    SHUTDOWN_IN_ASSIGNMENT_ORDER_SINCE,
    OFFLINE_LOG_DIRS_SINCE,
    ASYNC_CONTROLLER_SINCE,
    OFFLINE_WITHOUT_LEADER_SINCE,
    DELETED_PARTITIONS_LEAVE_FIRST_SINCE,
    OFFLINE_WITHOUT_LEADER_SENT_SINCE,
    STOP_REPLICA_PER_PARTITION_SINCE,
)
#: Targets that send nothing, and the step that sends nothing.
_SILENT: Final = frozenset(
    {
        PartitionState.NEW,
        PartitionState.OFFLINE,
        PartitionState.NON_EXISTENT,
        ReplicaState.DELETION_SUCCESSFUL,
        ReplicaState.DELETION_INELIGIBLE,
    }
)
_JOINS: Final = (ReplicaState.NEW, ReplicaState.ONLINE)
#: A broker that asks for a controlled shutdown is gone within this time, or has given up.
SHUTDOWN_US: Final = 120_000_000
#: A reassignment's target is in the topic's znode at most this long after the replicas that it removes went Offline.
WRITTEN_WITHIN_US: Final = 30_000_000
#: More versions than this, and nothing is said.
_MOST_VERSIONS: Final = 6
#: Replicas go Offline at most this long before anything else tells of the deletion of their topic.
BEFORE_DELETION_US: Final = 5_000_000


def versions_of(known: VersionRange) -> tuple[KafkaVersion, ...]:
    """One version of each behaviour that the range allows."""
    return (known.low, *(gate for gate in _GATES if known.low < gate <= known.high))


def reexecuted_steps(case: Case, log: ControllerLog) -> Iterator[Step]:
    """Every block of a controller's log, done again."""
    versions = versions_of(case.cluster.version)
    cached: Leadership | None = None
    replicas: tuple[int, ...] | None = None
    for block in log.blocks:
        replicas = assigned_before(case, log, block, replicas)
        step = Step(log, block, cached, replicas)
        step.reexecuted = _reexecuted(case, step, versions)
        yield step
        cached = cached_after(block, cached)
        replicas = assigned_after(block, replicas)


def _reexecuted(case: Case, step: Step, versions: Sequence[KafkaVersion]) -> list[Reexecuted]:
    """Each transition of the block in turn: a creation begins without a leader and ends with one."""
    cached = step.cached
    if cached is None:
        requested = (leadership_of(line) for line in step.block.batch())
        cached = next((found for found in requested if found is not None), None)
    result = []
    if any(line.to_state == PartitionState.NEW for line in step.block.transitions):
        cached = None
    for line in step.block.transitions:
        deleted_from = case.deletion_hint
        may_be_deleted = deleted_from is not None and line.at >= deleted_from - BEFORE_DELETION_US
        reexecution = _Reexecution(case, step, line, cached, versions, may_be_deleted)
        result.append(Reexecuted(line, reexecution.required()))
        if line.to_state == PartitionState.ONLINE:
            cached = decided_by(line, step.block) or cached
        elif line.to_state == ReplicaState.OFFLINE:
            cached = shrunk(cached, line.replica_id) or cached
    return result


def _sends_nothing(line: Evidence) -> bool:
    return line.to_state in _SILENT or (line.from_state, line.to_state) == _JOINS


@dataclass(frozen=True, slots=True)
class _Reexecution:
    """One transition, to be done again in every way that the evidence leaves open."""

    case: Case
    step: Step
    line: Evidence
    cached: Leadership | None
    versions: Sequence[KafkaVersion]
    may_be_deleted: bool

    def required(self) -> frozenset[SentRequest] | None:
        """What all ways that give what was logged send; None where none does, or too little is known."""
        if _sends_nothing(self.line):
            return frozenset()
        live = live_at(self.case.cluster, self.step, self.line)
        if live is None or self.step.replicas is None or len(self.versions) > _MOST_VERSIONS:
            return None
        cached = None if self.cached is None else self.cached._replace(leader_epoch=0)
        # An UpdateMetadata that leaves a live broker out is what is asked for, too.
        listed = live | steady_brokers(self.case.cluster, self.step.log, self.line.at)
        ways = itertools.product(
            self.versions, (False, True) if self.may_be_deleted else (False,), self._assignments(), {live, listed}
        )
        runs: list[frozenset[SentRequest]] = []
        for version, is_deleted, replicas, brokers in ways:
            run = self._run(ControllerCache(version, replicas, brokers, cached, is_deleted, self._may_leave(brokers)))
            if run is not None and not (is_deleted and self._was_told(run)):
                runs.append(run)
        return frozenset.intersection(*runs) if runs else None

    def _was_told(self, run: frozenset[SentRequest]) -> bool:
        """Whether the transition, alone in its block to send anything, sent a LeaderAndIsr that it does not send of a
        deleted topic."""
        block = self.step.block
        is_alone = all(other is self.line or _sends_nothing(other) for other in block.transitions)
        is_sent = any(request.kind == LEADER_AND_ISR for request in block.batch())
        return is_alone and is_sent and all(request.kind != LEADER_AND_ISR for request in run)

    def _may_leave(self, live: frozenset[int]) -> frozenset[int]:
        """The brokers that may be shutting down at an election: as the controllers' logs say, where they were given."""
        cluster = self.case.cluster
        if self.line.kind != PARTITION:
            return frozenset()
        if not own_views(cluster, self.step.log):
            return live
        return cluster.asked_to_leave(self.line.at - SHUTDOWN_US, self.line.at + BEFORE_DELETION_US)

    def _assignments(self) -> list[tuple[int, ...]]:
        """A reassignment's last election, and the replicas that it then takes offline, go by the target, which the
        cache holds before a znode or a line does (KafkaController.moveReassignedPartitionLeaderIfRequired)."""
        assert self.step.replicas is not None
        requested = next((line.replicas for line in self.step.block.batch() if line.replicas), None)
        is_election = self.line.kind == PARTITION and self.line.from_state != PartitionState.NEW
        is_removal = self.line.to_state == ReplicaState.OFFLINE and not self.step.log.shows_assignments
        if not (is_election or is_removal) or requested == self.step.replicas:
            return [self.step.replicas]
        if requested is not None:
            return [requested]
        targets = self.case.reassignment_targets
        known = [a.value.target for a in self.case.assignments] if self.case.reassigning else []
        until = self.line.at + WRITTEN_WITHIN_US
        written = [a.value.replicas for a in self.case.assignments if self.line.at < a.start <= until]
        return list(dict.fromkeys((self.step.replicas, *targets, *known, *written)))

    def _run(self, cache: ControllerCache) -> frozenset[SentRequest] | None:
        from_state, to_state = self.line.from_state, self.line.to_state
        if self.line.kind == REPLICA:
            if self.line.replica_id is None or not {from_state, to_state} <= set(ReplicaState):
                return None
            return requests_of_replica(cache, self.line.replica_id, str(from_state), str(to_state))
        decided = decided_by(self.line, self.step.block)
        if to_state != PartitionState.ONLINE:
            return None
        if decided is None:  # up to 1.0 a preferred election that was not needed counts as one
            return frozenset() if self.cached is not None and self.line.leader == self.cached.leader else None
        if from_state == PartitionState.NEW:
            return requests_of_creation(cache, decided)
        if from_state not in (PartitionState.ONLINE, PartitionState.OFFLINE):
            return None
        unclean = self.case.cluster.unclean_election_allowed(self.case.topic)
        return requests_of_election(cache, str(from_state), decided._replace(leader_epoch=1), unclean)
