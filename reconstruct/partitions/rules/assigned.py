"""The ISR against the assignment (R04), and reassignments that nobody begins (R16)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.spans import Tenure
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.known_issues import known_issue
from reconstruct.findings.verdicts import Divergence, Verdicts
from reconstruct.model.versions import REASSIGNMENT_IN_TOPIC_ZNODE_SINCE
from reconstruct.partitions.assignment import Assignment
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import (
    ZNODE_ASSIGNMENT,
    ZNODE_REASSIGNMENT,
    ZNODE_REASSIGNMENT_DONE,
    ZNODE_STATE,
    Evidence,
)
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from reconstruct.time.instants import utc
from reconstruct.time.intervals import Interval

#: Lines of requests that show the replicas as well as the state.
_NAMES_REPLICAS: Final = (
    EventType.LEADER_AND_ISR_SENT,
    EventType.LEADER_AND_ISR_RECEIVED,
    EventType.UPDATE_METADATA_SENT,
    EventType.METADATA_CACHED,
)


#: A controller acts on a request to reassign within seconds.
_BEGUN_WITHIN_US: Final = 300_000_000
#: Lines of controller.log with which one begins: up to 2.3, and since.
_BEGINS: Final = (EventType.REASSIGNMENT_STARTED, EventType.REASSIGNMENT_ASSIGNMENT_UPDATED)


def judge_reassignments_begun(case: Case, verdicts: Verdicts) -> None:
    """R16: what stands in /admin/reassign_partitions is begun by the controller that holds on (since 2.4).

    Before anything else a controller then writes the topic's znode, with the replicas that come and go, and takes the
    partition out of the request only when it is done (KafkaController.updateCurrentReassignment). So it has not begun
    where snapshots, read so far apart, show the request and the topic's znode without it. That a line is missing
    proves nothing; but a log must tell that this controller's broker went on, by another clock than the snapshots'.
    """
    asked = [fact for fact in case.facts if fact.kind == ZNODE_REASSIGNMENT and fact.replicas is not None]
    if not asked or case.cluster.version.may_be_before(REASSIGNMENT_IN_TOPIC_ZNODE_SINCE):
        return
    last = asked[-1]
    until = last.at + _BEGUN_WITHIN_US
    later = [fact for fact in case.facts if fact.at >= last.at]
    is_over = any(fact.kind == ZNODE_REASSIGNMENT_DONE for fact in later)
    # by ZooKeeper's transactions, and by the times of all else that tells of the assignment
    newest = max((fact for fact in case.facts if fact.kind == ZNODE_ASSIGNMENT), key=lambda f: f.offset, default=None)
    told = [a.value for a in case.assignments if a.end is None or a.end > last.at]
    if newest is not None:
        told.append(Assignment(newest.replicas or (), newest.adding_replicas, newest.removing_replicas))
    is_begun = any(fact.kind in _BEGINS for fact in later) or any(
        assignment.replicas == last.replicas or assignment.adding or assignment.removing for assignment in told
    )
    if is_over or is_begun:
        verdicts.kept("R16")
        return
    tenure = None if newest is None else _controller_that_held_on(case, last, until)
    if tenure is None:
        verdicts.unjudged("R16")
        return
    verdicts.broken(
        Divergence(
            DivergenceType.REASSIGNMENT_NOT_BEGUN, "warning", last.at, broker_id=tenure.controller_id, rule_id="R16"
        ).explained(
            f"a reassignment to {list(last.replicas or ())} within {_BEGUN_WITHIN_US // 1_000_000} s",
            "neither begun nor taken out of /admin/reassign_partitions",
            f"A reassignment to {list(last.replicas or ())} was asked for in /admin/reassign_partitions"
            f" ({utc(last.at)}); controller {tenure.controller_id} held on for more than"
            f" {_BEGUN_WITHIN_US // 60_000_000} minutes and did not begin it: snapshots show both znodes unchanged for"
            f" {(last.stood_us or 0) // 1_000_000} s. The znode stays, and is watched no more: another controller,"
            " elected by deleting /controller, takes it up.",
            (last.evidence_id,),
            known_issue("KAFKA-9478", case.cluster.version),
        )
    )


def _controller_that_held_on(case: Case, asked: Evidence, until: int) -> Tenure | None:
    """The controller from when a reassignment was asked for until ``until``, where the evidence proves all of it: that
    the znodes stood, that it stayed controller, registered, and that its broker or others logged on."""
    cluster, tenure = case.cluster, case.cluster.tenure_at(until)
    is_unasked = case.deletion_hint is not None or case.deleted_at is not None
    if tenure is None or tenure.start > asked.at or is_unasked:
        return None
    stands = asked.stood_us is not None and asked.stood_us >= _BEGUN_WITHIN_US
    goes_on = case.facts[-1].at >= until or cluster.is_in_one_file(tenure.controller_id, asked.at, until)
    is_there = cluster.is_registered(tenure.controller_id, asked.at, until)
    return tenure if stands and goes_on and is_there else None


def judge_isr_is_assigned(case: Case, verdicts: Verdicts) -> None:
    """R04: against every assignment that overlaps the state; only where znodes give both exactly.

    Between two writes of the topic's znode that snapshots show there may be one that none shows: their versions tell.
    After the last one nothing tells, since a snapshot is not atomic: then the finding leaves that way out and is no
    error.
    """
    written = {fact.evidence_id: fact.at for fact in case.facts if fact.kind == ZNODE_STATE}
    topics = sorted(
        (fact for fact in case.facts if fact.kind == ZNODE_ASSIGNMENT and fact.replicas), key=lambda fact: fact.at
    )
    for decided in case.decided:
        # a line by a wrong clock, of a state before, moves its begin; by ZooKeeper's own time it was written then
        began = min(decided.start, written.get(decided.evidence[0], decided.start))
        state = replace(decided, start=began)
        overlapping = [a for a in case.assignments if _overlap(a, state)]
        before, after = _topic_writes_about(topics, state)
        versions = [fact.partition_epoch for fact in (*before, *after)]
        if not overlapping or not before or state.evidence[0] not in written or not _follow_each_other(versions):
            verdicts.unjudged("R04")
            continue
        assigned = [*(a.value.replicas for a in overlapping), *(fact.replicas or () for fact in before)]
        outside = [sorted(set(state.value.isr) - set(replicas)) for replicas in assigned]
        if not all(outside):
            verdicts.kept("R04")
            continue
        shown = before[-1]
        issue = None
        is_enclosed = bool(after)
        may_be_assigned = _may_be_assigned(outside[len(overlapping) - 1], state.value.leader, case)
        if not is_enclosed and may_be_assigned:
            verdicts.unjudged("R04")
            continue
        is_told = not may_be_assigned and _is_still_unassigned(outside[len(overlapping) - 1], state, case)
        severity = "error" if is_enclosed or is_told else "warning"
        if not is_told and case.cluster.version.may_be_since(REASSIGNMENT_IN_TOPIC_ZNODE_SINCE):
            severity = "info"
            issue = known_issue("KAFKA-9672", case.cluster.version)
        replicas = ",".join(map(str, shown.replicas or ()))
        verdicts.broken(
            Divergence(
                DivergenceType.ISR_OUTSIDE_ASSIGNMENT, severity, state.start, replica_id=outside[0][0]
            ).explained(
                f"ISR within the assigned replicas {replicas}",
                f"ISR {','.join(map(str, state.value.isr))}",
                f"At leader epoch {state.value.leader_epoch} the ISR held {outside[0]}, assigned were {replicas}, as"
                " the znodes show both.",
                (*state.evidence[:1], shown.evidence_id),
                known_issue=issue,
            )
        )


def _is_still_unassigned(outside: Sequence[int], state: Interval[LeaderAndIsrState], case: Case) -> bool:
    """Whether a line of that state, or of a later one, names the replicas, and not those: the controller's assignment
    then."""
    return any(
        fact.replicas
        and fact.kind in _NAMES_REPLICAS
        and fact.leader_epoch is not None
        and not set(outside) & set(fact.replicas)
        and (
            fact.leader_epoch > state.value.leader_epoch
            or (fact.leader_epoch == state.value.leader_epoch and _is_of_it_or_later(fact, state.value))
        )
        for fact in case.facts
    )


def _is_of_it_or_later(fact: Evidence, state: LeaderAndIsrState) -> bool:
    """Whether a line of the same leader epoch shows that very ISR, or a later version of the state."""
    if fact.partition_epoch is not None and state.partition_epoch is not None:
        return fact.partition_epoch >= state.partition_epoch
    return set(fact.isr or ()) == set(state.isr)


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


def _topic_writes_about(
    topics: Sequence[Evidence], state: Interval[LeaderAndIsrState]
) -> tuple[list[Evidence], list[Evidence]]:
    """Of the writes of the topic's znode, in order: the last before the state with those of its instant, and the first
    after it began."""
    earlier = [fact for fact in topics if fact.at < state.start]
    same = [fact for fact in topics if fact.at == state.start]
    return [*earlier[-1:], *same], [fact for fact in topics if fact.at > state.start][:1]


def _overlap(one: Interval[Assignment], other: Interval[LeaderAndIsrState]) -> bool:
    begins_before = other.end is None or one.start <= other.end
    return begins_before and (one.end is None or other.start <= one.end)
