"""Creation, deletion and reassignment of one partition, as one controller's log shows their steps (R16)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from reconstruct.cluster.view import ClusterView
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Verdicts
from reconstruct.model.states import PartitionState, ReplicaState
from reconstruct.model.versions import DELETED_PARTITIONS_LEAVE_FIRST_SINCE, REASSIGNMENT_IN_TOPIC_ZNODE_SINCE
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.reexecution.controller_log import (
    FAILED,
    LEADER_AND_ISR,
    MARGIN_US,
    ONE_BATCH_US,
    PARTITION,
    REPLICA,
    STOP_REPLICA,
    TRANSITIONS,
    ControllerLog,
    logs_every_transition,
    own_views,
)
from reconstruct.partitions.reexecution.log_coverage import LogCoverage
from reconstruct.partitions.reexecution.model_runs import SentRequest
from reconstruct.partitions.reexecution.reexecution import leadership_of
from reconstruct.time.instants import utc

_MISSING: Final = DivergenceType.STEP_MISSING
_EARLY: Final = DivergenceType.STEP_OUT_OF_ORDER
#: A clock may have been set by this much, µs, and nothing proves it.
_BACK_US: Final = 5_000_000
_BEING_DELETED: Final = (ReplicaState.DELETION_STARTED, ReplicaState.DELETION_SUCCESSFUL)
_DELETED: Final = (ReplicaState.DELETION_SUCCESSFUL, ReplicaState.NON_EXISTENT)


class _WrongStep(NamedTuple):
    """A step that the log does not have, or that stands before one that must come first: the order of Kafka, what the
    lines show instead, the lines that show it, and the replica that it is about."""

    kind: DivergenceType
    order: str
    observed: str
    lines: Sequence[Evidence]
    replica_id: int | None = None


def _settle(
    coverage: LogCoverage,
    log: ControllerLog,
    procedure: str,
    lines: Sequence[Evidence],
    found: Iterable[_WrongStep],
    verdicts: Verdicts,
) -> None:
    """The verdict about one procedure between the first and the last of ``lines``."""
    version, at = coverage.case.cluster.version, [line.at for line in lines]
    is_logged = logs_every_transition(coverage.case.cluster, log.controller_epoch)
    wrong_steps = list(found)
    # Where a new partition's lines stand in the wrong order, they do so however the log goes on.
    is_certain = procedure == "Creation" and bool(wrong_steps) and all(wrong.kind == _EARLY for wrong in wrong_steps)
    margin_us = 0 if is_certain else MARGIN_US
    if not is_logged or not coverage.is_whole(log, min(at), max(at), margin_us):
        verdicts.unjudged("R16")
        return
    if not wrong_steps:
        verdicts.kept("R16")
    for wrong in wrong_steps:
        end, severity = wrong.lines[-1].at, coverage.severity("error")
        verdicts.broken(
            Divergence(wrong.kind, severity, end, broker_id=log.controller_id, replica_id=wrong.replica_id).explained(
                wrong.order,
                wrong.observed,
                f"{procedure} by controller {log.controller_id} (epoch {log.controller_epoch}): {wrong.observed}"
                f" ({utc(end)}); Kafka {version} does it in this order: {wrong.order}.",
                tuple(line.evidence_id for line in wrong.lines),
            )
        )


# --- creation ---------------------------------------------------------------------------------------------------------


def judge_creation(coverage: LogCoverage, log: ControllerLog, verdicts: Verdicts) -> None:
    """The partition New, its replicas New, the partition Online, its replicas Online."""
    for number, line in enumerate(log.lines):
        if line.kind != PARTITION or line.to_state != PartitionState.NEW or not line.replicas:
            continue
        lines = [line, *_until_recreated(log.lines[number + 1 :])]
        done = [other for other in lines if other.kind == REPLICA and other.from_state == ReplicaState.NEW]
        if done:
            _settle(
                coverage,
                log,
                "Creation",
                [line, *done],
                _creation(lines, is_decided=bool(coverage.case.decided)),
                verdicts,
            )
        else:
            verdicts.unjudged("R16")


def _until_recreated(lines: Sequence[Evidence]) -> Iterator[Evidence]:
    for line in lines:
        if line.kind == PARTITION and line.to_state == PartitionState.NEW:
            return
        yield line


def _creation(lines: Sequence[Evidence], is_decided: bool) -> Iterator[_WrongStep]:
    begun = lines[0]
    order = "partition NewPartition, replicas NewReplica, partition OnlinePartition, replicas OnlineReplica"
    decided = next((line for line in lines if line.kind == PARTITION and line.from_state == PartitionState.NEW), None)
    tried = decided or next((line for line in lines if line.kind in FAILED), None)
    joined = [line for line in lines if line.kind == REPLICA and line.from_state == ReplicaState.NEW]
    recipients = {broker for line in lines if line.kind == LEADER_AND_ISR for broker in line.to_broker_ids or ()}
    if tried is None and (recipients or is_decided):
        return
    if tried is None:
        yield _WrongStep(
            _MISSING,
            order,
            "replicas became OnlineReplica, the partition neither OnlinePartition nor failed to",
            [begun, joined[0]],
        )
        return
    for replica_id in begun.replicas or ():
        own = [line for line in lines if line.kind == REPLICA and line.replica_id == replica_id]
        if not own:
            if replica_id not in recipients:
                yield _WrongStep(
                    _MISSING,
                    order,
                    f"the assigned replica {replica_id} never became NewReplica",
                    [begun, tried],
                    replica_id,
                )
            continue
        if own[0].to_state == ReplicaState.NEW and decided is not None and own[0].offset > decided.offset:
            yield _WrongStep(
                _EARLY,
                order,
                f"replica {replica_id} became NewReplica after the partition had become OnlinePartition",
                [decided, own[0]],
                replica_id,
            )
        online = next((line for line in own if line.from_state == ReplicaState.NEW), None)
        if online is not None and online.offset < tried.offset:
            yield _WrongStep(
                _EARLY,
                order,
                f"replica {replica_id} became {online.to_state} before a leader was decided",
                [online, tried],
                replica_id,
            )


# --- deletion ---------------------------------------------------------------------------------------------------------


def judge_deletion(coverage: LogCoverage, log: ControllerLog, verdicts: Verdicts) -> None:
    """Since 2.1 the partition ends first and its replicas are deleted then; before, it ends when they are all gone."""
    is_first = coverage.case.cluster.version.is_since(DELETED_PARTITIONS_LEAVE_FIRST_SINCE)
    is_last = coverage.case.cluster.version.is_before(DELETED_PARTITIONS_LEAVE_FIRST_SINCE)
    states: dict[int, Evidence] = {}
    ended: Evidence | None = None
    found: list[_WrongStep] = []
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
                _settle(coverage, log, "Deletion", [line], [dead], verdicts)
            if line.to_state == ReplicaState.NON_EXISTENT and ended is not None and is_first:
                touched.append(line)
                found += _forgotten_early(coverage, log, line, states)
    found += _never_ended(coverage, log, states, ended, touched)
    if touched:
        _settle(coverage, log, "Deletion", touched, found, verdicts)


def _started_without_broker(coverage: LogCoverage, log: ControllerLog, line: Evidence) -> _WrongStep | None:
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
    return _WrongStep(
        _EARLY,
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
) -> Iterator[_WrongStep]:
    # Neighbouring lines may have been lost: all that stood between the replicas' last lines and this one.
    later = _until_recreated([other for other in log.lines if other.offset > line.offset])
    is_one_stretch = not any(other.kind == REPLICA for other in later) and all(
        last.to_state != ReplicaState.NON_EXISTENT for last in states.values()
    )
    for replica_id, last in sorted(states.items()):
        if is_first and last.to_state in _BEING_DELETED:
            yield _WrongStep(
                _EARLY,
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
            yield _WrongStep(
                _EARLY,
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
) -> Iterator[_WrongStep]:
    for replica_id, last in sorted(states.items()):
        if last.to_state not in _DELETED and not _went_on(coverage, log, last):
            yield _WrongStep(
                _EARLY,
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
) -> Iterator[_WrongStep]:
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
    yield _WrongStep(
        _MISSING,
        "every replica NonExistentReplica, the partition NonExistentPartition",
        "every replica became NonExistentReplica, the partition never NonExistentPartition",
        [last],
    )


def _assigned(log: ControllerLog) -> tuple[int, ...]:
    named = [line.replicas for line in log.lines if line.replicas]
    return named[-1] if named else ()


# --- reassignment -----------------------------------------------------------------------------------------------------


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
        if coming and not _may_be_overridden(coverage, line, created):
            _settle(coverage, log, "Reassignment", [*coming, line], _removed_early(line, waits), verdicts)
        elif not coming:
            _settle(coverage, log, "Reassignment", [before, line], (), verdicts)


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


def _may_be_overridden(coverage: LogCoverage, line: Evidence, created: set[int]) -> bool:
    """Since 2.4 another reassignment, or a cancellation, removes at once what the one before it was adding."""
    if coverage.case.cluster.version.is_before(REASSIGNMENT_IN_TOPIC_ZNODE_SINCE):
        return False
    facts = [fact for fact in coverage.case.facts if fact.at <= line.at + MARGIN_US]
    return any(line.replica_id in (fact.adding_replicas or ()) for fact in facts) or any(
        fact.kind == REPLICA and fact.replica_id == line.replica_id and fact.to_state == ReplicaState.NEW
        for fact in facts
        if line.replica_id not in created
    )


def _removed_early(line: Evidence, waits: Sequence[Evidence]) -> Iterator[_WrongStep]:
    for other in waits:
        yield _WrongStep(
            _EARLY,
            "replicas that come NewReplica, in the ISR, OnlineReplica; then those that go OfflineReplica and deleted",
            f"replica {line.replica_id} became ReplicaDeletionStarted while replica {other.replica_id} was"
            f" {other.to_state if other.offset < line.offset else ReplicaState.NON_EXISTENT} and not in the ISR",
            sorted((other, line), key=lambda each: each.offset),
            line.replica_id,
        )
