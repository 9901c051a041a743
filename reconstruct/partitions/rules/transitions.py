"""The transitions that controllers log, and those that they refuse (R13, R14); the order of the steps of creation,
deletion, broker failure, broker start and reassignment (R16).

A procedure is read from one controller's log alone, in the order of its file, and only where that log is whole: a step
that another line proves to have been made is a missing line, not a missing step.

Sources: kafka.controller.KafkaController.onNewPartitionCreation, onBrokerFailure, onBrokerStartup,
onPartitionReassignment; PartitionStateMachine; ReplicaStateMachine; TopicDeletionManager; 0.8.1 to 3.9.
"""

from __future__ import annotations

import re
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.states import (
    ReplicaState,
    is_legal_partition_transition,
    is_legal_replica_transition,
)
from reconstruct.model.versions import OFFLINE_TO_INELIGIBLE_SINCE
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.reexecution.broker_changes import judge_broker_changes
from reconstruct.partitions.reexecution.continuity import Gap, gaps
from reconstruct.partitions.reexecution.controller_log import REPLICA, TRANSITIONS, ordered_logs
from reconstruct.partitions.reexecution.creation import judge_creation
from reconstruct.partitions.reexecution.deletion import judge_deletion
from reconstruct.partitions.reexecution.log_coverage import LogCoverage
from reconstruct.partitions.reexecution.reassignment import judge_reassignment
from reconstruct.partitions.reexecution.shutdowns import judge_shutdowns
from reconstruct.time.instants import utc

_REFUSED: Final = re.compile(
    r"should be in (?:one of |the )(?P<valid>.*?) states before moving to (?P<to>\w+) state\."
    r" Instead it is in (?P<from>\w+)"
)


def judge_transitions(case: Case, verdicts: Verdicts) -> None:
    """R13 and R14: what each line claims, whether it starts where the one before ended, what the controller refused."""
    found = (gap for log in ordered_logs(case.facts, case.cluster) for gap in gaps(log, case.cluster))
    missing = {gap.line.evidence_id: gap for gap in found}
    for fact in case.facts:
        if fact.kind in TRANSITIONS:
            _judge_transition(fact, case.cluster, missing.get(fact.evidence_id), verdicts)
        elif fact.kind in (EventType.PARTITION_STATE_CHANGE_FAILED, EventType.REPLICA_STATE_CHANGE_FAILED):
            _judge_refusal(fact, case.cluster, verdicts)


def _of(fact: Evidence, divergence_type: DivergenceType, severity: str, rule: str) -> Divergence:
    return Divergence(divergence_type, severity, fact.at, fact.controller_id, fact.replica_id, rule)


def _judge_transition(fact: Evidence, cluster: ClusterView, gap: Gap | None, verdicts: Verdicts) -> None:
    is_replica = fact.kind == REPLICA
    rule = "R14" if is_replica else "R13"
    if fact.from_state is None or fact.to_state is None:
        verdicts.unjudged(rule)
        return
    legal = is_legal_replica_transition if is_replica else is_legal_partition_transition
    subject = f"replica {fact.replica_id}" if is_replica else "the partition"
    if legal(fact.from_state, fact.to_state, cluster.version):
        if gap is None:
            verdicts.kept(rule)
        else:
            verdicts.broken(_not_logged(rule, subject, gap))
        return
    verdicts.broken(
        _of(fact, DivergenceType.ILLEGAL_TRANSITION, "error", rule).explained(
            f"a transition that Kafka {cluster.version} allows",
            f"{fact.from_state} to {fact.to_state}",
            f"Controller {fact.controller_id} (epoch {fact.controller_epoch}) moved {subject} from {fact.from_state} to"
            f" {fact.to_state}, which no version from {cluster.version} allows.",
            (fact.evidence_id,),
        )
    )


def _not_logged(rule: str, subject: str, gap: Gap) -> Finding:
    """A hole in the evidence, not a fault of Kafka's: the line between is not in what was given."""
    line, before = gap.line, gap.before
    if before is not None:
        left = f"the line before it ({utc(before.at)}) had left {subject} in {before.to_state}"
    else:
        left = f"it is the first about {subject} in the tenure, which begins with Online, ineligible or no replicas"
    return _of(line, DivergenceType.TRANSITION_NOT_LOGGED, "info", rule).explained(
        f"a transition from {gap.expected}",
        f"{line.from_state} to {line.to_state}",
        f"Controller {line.controller_id} (epoch {line.controller_epoch}) moved {subject} from {line.from_state} to"
        f" {line.to_state} ({utc(line.at)}), but {left}. This version logs every transition: the line between is"
        " missing from what was given.",
        (*((before.evidence_id,) if before is not None else ()), line.evidence_id),
    )


def _judge_refusal(fact: Evidence, cluster: ClusterView, verdicts: Verdicts) -> None:
    """A transition that the controller refused changed nothing; why it was tried is the finding."""
    refused = _REFUSED.search(fact.cause or "")
    if refused is None:
        return
    is_replica = fact.kind == EventType.REPLICA_STATE_CHANGE_FAILED
    from_state, to_state = refused["from"], refused["to"]
    is_deletion = is_replica and to_state == ReplicaState.DELETION_INELIGIBLE
    severity, issue, evidence = "info", None, [fact.evidence_id]
    leaves = _request_to_leave(fact, cluster)
    if (
        is_deletion
        and from_state == ReplicaState.OFFLINE
        and cluster.version.may_be_before(OFFLINE_TO_INELIGIBLE_SINCE)
    ):
        note = "Up to Kafka 2.2 the deletion of a topic with a dead replica does this; it does no harm."
        issue = "fixed in Kafka 2.3.0 (ReplicaStateMachine)"
    elif is_deletion and from_state == ReplicaState.ONLINE and leaves is not None:
        note = (
            f"Broker {fact.replica_id} had asked to be shut down: a deletion takes its replicas for dead while they are"
            " online; it does no harm."
        )
        evidence.append(leaves)
    else:
        note = "The attempt changed nothing; the step before it is missing or came in another order."
        severity = "warning"
    subject = f"replica {fact.replica_id}" if is_replica else "the partition"
    verdicts.broken(
        _of(fact, DivergenceType.REFUSED_TRANSITION, severity, "R14" if is_replica else "R13").explained(
            f"{to_state} entered from {refused['valid']}",
            f"{from_state} to {to_state} refused",
            f"Controller {fact.controller_id} (epoch {fact.controller_epoch}) tried to move {subject} from {from_state}"
            f" to {to_state} and refused it itself. {note}",
            tuple(evidence),
            known_issue=issue,
        )
    )


def _request_to_leave(fact: Evidence, cluster: ClusterView) -> str | None:
    """The record by which the broker of a replica had last asked this controller to be shut down, and it has not
    started since (``ControllerContext.shuttingDownBrokerIds``)."""
    if fact.replica_id is None:
        return None
    asked = [one for one in cluster.shutdown_requests.get(fact.replica_id, ()) if one[0] <= fact.at]
    if not asked:
        return None
    at, record = asked[-1]
    is_same = cluster.shutdown_controllers.get(record) in (None, fact.controller_id)
    starts = cluster.process_starts.get(fact.replica_id, ())
    return record if is_same and not any(at < start <= fact.at for start, _ in starts) else None


def judge_sequences(case: Case, verdicts: Verdicts) -> None:
    """R16: every procedure that a controller's log shows of this partition."""
    judge_shutdowns(case, verdicts)
    coverage = LogCoverage(case)
    for log in coverage.logs:
        judge_creation(coverage, log, verdicts)
        judge_deletion(coverage, log, verdicts)
        judge_reassignment(coverage, log, verdicts)
        judge_broker_changes(coverage, log, verdicts)
