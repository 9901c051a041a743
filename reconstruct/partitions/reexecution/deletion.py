"""The deletion of one partition, as one controller's log shows its steps (R16)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconstruct.cluster.view import ClusterView
from reconstruct.findings.verdicts import Verdicts
from reconstruct.model.states import PartitionState, ReplicaState
from reconstruct.model.versions import DELETED_PARTITIONS_LEAVE_FIRST_SINCE
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.reexecution.controller_log import PARTITION, REPLICA, STOP_REPLICA, ControllerLog, own_views
from reconstruct.partitions.reexecution.log_coverage import LogCoverage
from reconstruct.partitions.reexecution.model_runs import SentRequest
from reconstruct.partitions.reexecution.procedures import EARLY, MISSING, WrongStep, settle, until_recreated

#: A clock may have been set by this much, µs, and nothing proves it.
_BACK_US: Final = 5_000_000
_BEING_DELETED: Final = (ReplicaState.DELETION_STARTED, ReplicaState.DELETION_SUCCESSFUL)
_DELETED: Final = (ReplicaState.DELETION_SUCCESSFUL, ReplicaState.NON_EXISTENT)


def judge_deletion(coverage: LogCoverage, log: ControllerLog, verdicts: Verdicts) -> None:
    """Since 2.1 the partition ends first and its replicas are deleted then; before, it ends when they are all gone."""
    is_first = coverage.case.cluster.version.is_since(DELETED_PARTITIONS_LEAVE_FIRST_SINCE)
    is_last = coverage.case.cluster.version.is_before(DELETED_PARTITIONS_LEAVE_FIRST_SINCE)
    states: dict[int, Evidence] = {}
    ended: Evidence | None = None
    found: list[WrongStep] = []
    touched: list[Evidence] = []
    for line in log.lines:
        if line.kind == PARTITION and line.to_state == PartitionState.NEW:
            ended = None
        elif line.kind == PARTITION and line.to_state == PartitionState.NON_EXISTENT:
            ended = line
            touched.append(line)
            found += _at_the_end(coverage, log, line, states, is_first, is_last)
        elif line.kind == REPLICA and line.replica_id is not None:
            states[line.replica_id] = line
            dead = _started_without_broker(coverage, log, line)
            if dead is not None:
                settle(coverage, log, "Deletion", [line], [dead], verdicts)
            if line.to_state == ReplicaState.NON_EXISTENT and ended is not None and is_first:
                touched.append(line)
                found += _forgotten_early(coverage, log, line, states)
    found += _never_ended(coverage, log, states, ended, touched)
    if touched:
        settle(coverage, log, "Deletion", touched, found, verdicts)


def _started_without_broker(coverage: LogCoverage, log: ControllerLog, line: Evidence) -> WrongStep | None:
    """The deletion of a replica begins only while its broker is live; a reassignment does not ask."""
    case, broker = coverage.case, line.replica_id
    deleted_from = case.deletion_hint
    is_deletion = deleted_from is not None and line.at >= deleted_from and not case.reassigning
    if line.to_state != ReplicaState.DELETION_STARTED or not is_deletion or broker is None:
        return None
    views = [view for view in own_views(case.cluster, log) if view.at < line.at]
    if not views or broker in views[-1].live or case.cluster.is_live(broker, line.at) is not False:
        return None
    if _may_be_back(case.cluster, log, broker, line.at):
        return None
    if any(views[-1].at < start <= line.at for start, _ in case.cluster.process_starts.get(broker, ())):
        return None
    return WrongStep(
        EARLY,
        "a replica whose broker is not live ReplicaDeletionIneligible, until the broker is back",
        f"replica {broker} became ReplicaDeletionStarted while its broker was not live",
        [line],
        broker,
    )


def _may_be_back(cluster: ClusterView, log: ControllerLog, broker: int, at: int) -> bool:
    """Whether the broker was back soon after: by a clock that was set the line may have come after that."""
    soon = [view for view in own_views(cluster, log) if at <= view.at <= at + _BACK_US]
    return cluster.is_live(broker, at + _BACK_US) is not False or any(broker in view.live for view in soon)


def _at_the_end(
    coverage: LogCoverage,
    log: ControllerLog,
    line: Evidence,
    states: dict[int, Evidence],
    is_first: bool,
    is_last: bool,
) -> Iterator[WrongStep]:
    # Neighbouring lines may have been lost: all that stood between the replicas' last lines and this one.
    later = until_recreated([other for other in log.lines if other.offset > line.offset])
    is_one_stretch = not any(other.kind == REPLICA for other in later) and all(
        last.to_state != ReplicaState.NON_EXISTENT for last in states.values()
    )
    for replica_id, last in sorted(states.items()):
        if is_first and last.to_state in _BEING_DELETED:
            yield WrongStep(
                EARLY,
                "partition OfflinePartition and NonExistentPartition, then replicas ReplicaDeletionStarted",
                f"the partition became NonExistentPartition after replica {replica_id} had become {last.to_state}",
                [last, line],
                replica_id,
            )
        elif (
            is_last
            and last.to_state != ReplicaState.NON_EXISTENT
            and not (is_one_stretch or _went_on(coverage, log, last))
        ):
            yield WrongStep(
                EARLY,
                "replicas ReplicaDeletionSuccessful, replicas NonExistentReplica, partition NonExistentPartition",
                f"the partition became NonExistentPartition while replica {replica_id} was {last.to_state}",
                [last, line],
                replica_id,
            )


def _went_on(coverage: LogCoverage, log: ControllerLog, last: Evidence) -> bool:
    """Whether something besides the transitions tells that the deletion of the replica went on: lines are missing."""
    if last.replica_id is None:
        return False
    is_received = last.to_state != ReplicaState.DELETION_STARTED and coverage.was_received(
        log, SentRequest(STOP_REPLICA, last.replica_id, is_delete=True), last.at
    )
    return is_received or coverage.was_answered(last.replica_id, last.at)


def _forgotten_early(
    coverage: LogCoverage, log: ControllerLog, line: Evidence, states: dict[int, Evidence]
) -> Iterator[WrongStep]:
    for replica_id, last in sorted(states.items()):
        if last.to_state not in _DELETED and not _went_on(coverage, log, last):
            yield WrongStep(
                EARLY,
                "every replica ReplicaDeletionSuccessful, then every replica NonExistentReplica",
                f"replica {line.replica_id} became NonExistentReplica while replica {replica_id} was {last.to_state}",
                [last, line],
                replica_id,
            )


def _never_ended(
    coverage: LogCoverage,
    log: ControllerLog,
    states: dict[int, Evidence],
    ended: Evidence | None,
    touched: list[Evidence],
) -> Iterator[WrongStep]:
    """All replicas are forgotten, and the partition is not: it ends with them (or, since 2.1, before them)."""
    lines = list(states.values())
    if ended is not None or len(lines) < 2 or any(line.to_state != ReplicaState.NON_EXISTENT for line in lines):
        return
    last = max(lines, key=lambda line: line.offset)
    is_proven_otherwise = coverage.case.deleted_at is not None or any(
        line.kind == PARTITION and line.to_state == PartitionState.OFFLINE for line in log.lines
    )
    if is_proven_otherwise or not coverage.lives_on(log, last) or not set(_assigned(log)) <= set(states):
        return
    touched.append(last)
    yield WrongStep(
        MISSING,
        "every replica NonExistentReplica, the partition NonExistentPartition",
        "every replica became NonExistentReplica, the partition never NonExistentPartition",
        [last],
    )


def _assigned(log: ControllerLog) -> tuple[int, ...]:
    named = [line.replicas for line in log.lines if line.replicas]
    return named[-1] if named else ()
