"""The ISR against the assignment (R04)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.known_issues import known_issue
from reconstruct.findings.verdicts import Divergence, Verdicts
from reconstruct.model.versions import REASSIGNMENT_IN_TOPIC_ZNODE_SINCE
from reconstruct.partitions.assignment import Assignment
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import ZNODE_ASSIGNMENT, ZNODE_STATE
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from reconstruct.time.intervals import Interval

#: Lines of requests that show the replicas as well as the state.
_NAMES_REPLICAS: Final = (
    EventType.LEADER_AND_ISR_SENT,
    EventType.LEADER_AND_ISR_RECEIVED,
    EventType.UPDATE_METADATA_SENT,
    EventType.METADATA_CACHED,
)


def judge_isr_is_assigned(case: Case, verdicts: Verdicts) -> None:
    """R04: against every assignment that overlaps the state; only where znodes give both exactly.

    An assignment that no snapshot shows may lie between two that are: their versions tell. After the last one nothing
    tells, since a snapshot is not atomic: then the finding leaves that way out and is no error.
    """
    facts, assignments = case.facts, case.assignments
    exact = {fact.evidence_id: fact.partition_epoch for fact in facts if fact.kind == ZNODE_ASSIGNMENT}
    written = {fact.evidence_id for fact in facts if fact.kind == ZNODE_STATE}
    for state in case.decided:
        overlapping = [a for a in assignments if _overlap(a, state)]
        is_exact = all(set(a.evidence) & set(exact) for a in overlapping) and bool(set(state.evidence[:1]) & written)
        following = [a for a in assignments if a.start > overlapping[-1].start] if overlapping else []
        enclosing = [*overlapping, *following[:1]]
        versions = [exact.get(a.evidence[0]) for a in enclosing if a.evidence]
        if not overlapping or not is_exact or not _follow_each_other(versions):
            verdicts.unjudged("R04")
            continue
        outside = [sorted(set(state.value.isr) - set(a.value.replicas)) for a in overlapping]
        if not all(outside):
            verdicts.kept("R04")
            continue
        issue = None
        is_enclosed = enclosing[-1].start > state.start
        may_be_assigned = _may_be_assigned(outside[-1], state.value.leader, case)
        if not is_enclosed and may_be_assigned:
            verdicts.unjudged("R04")
            continue
        is_told = not may_be_assigned and _is_still_unassigned(outside[-1], state, case)
        severity = "error" if is_enclosed or is_told else "warning"
        if not is_told and case.cluster.version.may_be_since(REASSIGNMENT_IN_TOPIC_ZNODE_SINCE):
            severity = "info"
            issue = known_issue("KAFKA-9672", case.cluster.version)
        replicas = ",".join(map(str, overlapping[0].value.replicas))
        verdicts.broken(
            Divergence(
                DivergenceType.ISR_OUTSIDE_ASSIGNMENT, severity, state.start, replica_id=outside[0][0]
            ).explained(
                f"ISR within the assigned replicas {replicas}",
                f"ISR {','.join(map(str, state.value.isr))}",
                f"At leader epoch {state.value.leader_epoch} the ISR held {outside[0]}, assigned were {replicas}, as"
                " the znodes show both.",
                (*state.evidence[:1], *overlapping[0].evidence),
                known_issue=issue,
            )
        )


def _is_still_unassigned(outside: Sequence[int], state: Interval[LeaderAndIsrState], case: Case) -> bool:
    """Whether a line of the same leader epoch with that very ISR, or one of a higher epoch, names the replicas, and not
    those: the controller's own assignment then."""
    return any(
        fact.replicas
        and fact.kind in _NAMES_REPLICAS
        and fact.leader_epoch is not None
        and not set(outside) & set(fact.replicas)
        and (
            fact.leader_epoch > state.value.leader_epoch
            or (fact.leader_epoch == state.value.leader_epoch and set(fact.isr or ()) == set(state.value.isr))
        )
        for fact in case.facts
    )


def _may_be_assigned(outside: Sequence[int], leader: int, case: Case) -> bool:
    """Whether a later assignment must be missing: a controller elects, and tells, assigned replicas only."""
    recipients = {
        broker
        for fact in case.facts
        if fact.kind == EventType.LEADER_AND_ISR_SENT
        for broker in fact.to_broker_ids or ()
    }
    named = {replica for fact in case.facts if fact.kind != ZNODE_ASSIGNMENT for replica in fact.replicas or ()}
    receivers = {fact.broker_id for fact in case.facts if fact.kind == EventType.LEADER_AND_ISR_RECEIVED}
    return leader in outside or set(outside) <= recipients | named | receivers


def _follow_each_other(versions: Sequence[int | None]) -> bool:
    """Whether no write is missing between known versions; one alone follows, an unknown one among several does not."""
    if len(versions) < 2:
        return True
    return all(a is not None and b is not None and b == a + 1 for a, b in itertools.pairwise(versions))


def _overlap(one: Interval[Assignment], other: Interval[LeaderAndIsrState]) -> bool:
    begins_before = other.end is None or one.start <= other.end
    return begins_before and (one.end is None or other.start <= one.end)
