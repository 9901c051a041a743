"""The reassignment of one partition, as one controller's log shows its steps (R16)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reconstruct.findings.verdicts import Verdicts
from reconstruct.model.states import PartitionState, ReplicaState
from reconstruct.model.versions import REASSIGNMENT_IN_TOPIC_ZNODE_SINCE
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.reexecution.controller_log import (
    MARGIN_US,
    ONE_BATCH_US,
    PARTITION,
    REPLICA,
    TRANSITIONS,
    ControllerLog,
)
from reconstruct.partitions.reexecution.log_coverage import LogCoverage
from reconstruct.partitions.reexecution.procedures import EARLY, WrongStep, settle
from reconstruct.partitions.reexecution.steps import leadership_of


def judge_reassignment(coverage: LogCoverage, log: ControllerLog, verdicts: Verdicts) -> None:
    """Replicas that come are NewReplica until they are in the ISR, then OnlineReplica; only then others are removed."""
    states: dict[int, Evidence] = {}
    isr: tuple[int, ...] | None = None
    told: Evidence | None = None
    assigned: tuple[int, ...] = ()
    created: set[int] = set()
    deleted_from = coverage.case.deletion_hint
    for line in log.lines:
        logged = leadership_of(line)
        isr, told = (logged.isr, line) if logged is not None else (isr, told)
        assigned = line.replicas or assigned
        if line.kind == PARTITION and line.to_state == PartitionState.NEW:
            created = set(line.replicas or ())
        if line.kind not in TRANSITIONS or line.replica_id is None:
            continue
        before = states.get(line.replica_id)
        states[line.replica_id] = line
        is_deletion = deleted_from is not None and line.at >= deleted_from
        if line.to_state != ReplicaState.DELETION_STARTED or is_deletion or before is None:
            continue
        coming = [
            other
            for other in states.values()
            if other.to_state == ReplicaState.NEW and other.replica_id not in created and other is not line
        ]
        waits = [other for other in coming if isr is not None and other.replica_id not in isr]
        if isr is not None and told is not None:
            joined = (other for other in states.values() if _has_joined(other) and other.offset < told.offset)
            waits += [
                other for other in joined if other.replica_id not in isr and _stays_assigned(coverage, other, line)
            ]
        waits += _created_later(log, states, assigned, line)
        coming = list({id(other): other for other in (*coming, *waits)}.values())
        if coming and not _may_be_overridden(coverage, line):
            settle(coverage, log, "Reassignment", [*coming, line], _removed_early(line, waits), verdicts)
        elif not coming:
            settle(coverage, log, "Reassignment", [before, line], (), verdicts)


def _has_joined(line: Evidence) -> bool:
    return (line.from_state, line.to_state) == (ReplicaState.NEW, ReplicaState.ONLINE)


def _stays_assigned(coverage: LogCoverage, joined: Evidence, line: Evidence) -> bool:
    """Whether a replica that came less than a batch before another went is one of those that the reassignment keeps."""
    return line.at - joined.at <= ONE_BATCH_US and any(
        joined.replica_id in assigned.value.replicas and line.replica_id not in assigned.value.replicas
        for assigned in coverage.case.assignments
        if assigned.start >= joined.at - ONE_BATCH_US
    )


def _created_later(
    log: ControllerLog, states: Mapping[int, Evidence], assigned: Sequence[int], line: Evidence
) -> list[Evidence]:
    """The first lines of replicas that were assigned when another was removed, and became NewReplica only then."""
    first: dict[int | None, Evidence] = {}
    for other in log.lines:
        if other.kind == REPLICA and other.offset > line.offset and other.replica_id in set(assigned) - set(states):
            first.setdefault(other.replica_id, other)
    return [other for other in first.values() if other.to_state == ReplicaState.NEW]


def _may_be_overridden(coverage: LogCoverage, line: Evidence) -> bool:
    """Since 2.4 another reassignment, or a cancellation, removes at once what the one before it was adding."""
    if coverage.case.cluster.version.is_before(REASSIGNMENT_IN_TOPIC_ZNODE_SINCE):
        return False
    facts = [fact for fact in coverage.case.facts if fact.at <= line.at + MARGIN_US]
    created_by = {
        fact.controller_epoch
        for fact in facts
        if fact.kind == PARTITION and fact.to_state == PartitionState.NEW and line.replica_id in (fact.replicas or ())
    }
    return any(line.replica_id in (fact.adding_replicas or ()) for fact in facts) or any(
        fact.kind == REPLICA and fact.replica_id == line.replica_id and fact.to_state == ReplicaState.NEW
        for fact in facts
        if fact.controller_epoch not in created_by
    )


def _removed_early(line: Evidence, waits: Sequence[Evidence]) -> Iterator[WrongStep]:
    for other in waits:
        yield WrongStep(
            EARLY,
            "replicas that come NewReplica, in the ISR, OnlineReplica; then those that go OfflineReplica and deleted",
            f"replica {line.replica_id} became ReplicaDeletionStarted while replica {other.replica_id} was"
            f" {other.to_state if other.offset < line.offset else ReplicaState.NON_EXISTENT} and not in the ISR",
            sorted((other, line), key=lambda each: each.offset),
            line.replica_id,
        )
