"""Elections, and changes of the ISR or of the leader that are none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.explain.quorum import record_of, recorded
from reconstruct.explain.states import (
    STEP_US,
    answered_within,
    caches,
    found_then,
    learned,
    state_text,
    taken_over,
    title_of,
)
from reconstruct.explain.story import Chapter, clock, ids, section
from reconstruct.findings.verdicts import Finding
from reconstruct.model.election_reasons import Reasoning, reasons
from reconstruct.model.elections import Brokers, Elected, ElectionKind, PartitionView
from reconstruct.model.states import NO_LEADER, ReplicaState
from reconstruct.partitions.case import Case
from reconstruct.partitions.elections.inputs import NEW_PARTITION, ElectionInputs
from reconstruct.partitions.elections.judging import JudgedElection
from reconstruct.partitions.evidence import ZNODE_DELETION_REQUESTED
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from reconstruct.time.intervals import Interval

_KINDS: Final = {
    NEW_PARTITION: "the choice of the first leader",
    ElectionKind.OFFLINE_PARTITION: "an election because the partition had no leader",
    ElectionKind.REASSIGNED_PARTITION: "an election for a reassignment",
    ElectionKind.PREFERRED_REPLICA: "a preferred election",
    ElectionKind.CONTROLLED_SHUTDOWN: "an election because the leader shuts down",
}


def decisions(case: Case, findings: Sequence[Finding]) -> Iterator[Chapter]:
    """Every state that was decided, in order."""
    elections = {(election.leader_epoch, election.observed_leader): election for election in case.elections}
    before: Interval[LeaderAndIsrState] | None = None
    for state, following in pairwise([*case.decided, None]):
        assert state is not None
        election = elections.get((state.value.leader_epoch, state.value.leader))
        election = election if election is not None and election.at == state.start else None
        record = record_of(case, state)
        if record is not None:
            chapter = recorded(case, record, election, before, state, findings)
        elif election is not None:
            chapter = _election(case, election, before, state, findings)
        else:
            chapter = _change(case, before, state, following, findings)
        yield replace(chapter, brokers=_changed_for(before.value if before else None, state.value))
        before = state


def _changed_for(old: LeaderAndIsrState | None, new: LeaderAndIsrState) -> frozenset[int]:
    """The brokers that lead, are in the ISR or are eligible in one of the two states alone, and whoever leads by a new
    leader epoch."""
    led_before = None if old is None else old.leader
    raised = old is None or old.leader_epoch != new.leader_epoch
    leaders = {led_before, new.leader} if raised else set()
    isr = set(old.isr if old else ()) ^ set(new.isr)
    elr = set(old.elr or () if old else ()) ^ set(new.elr or ())
    return frozenset({one for one in leaders if one is not None and one != NO_LEADER} | isr | elr)


def _election(
    case: Case,
    election: JudgedElection,
    before: Interval[LeaderAndIsrState] | None,
    state: Interval[LeaderAndIsrState],
    findings: Sequence[Finding],
) -> Chapter:
    unclean = ", uncleanly" if election.is_unclean else ""
    title = f"leader {election.observed_leader} elected{unclean}, leader epoch {election.leader_epoch}"
    return Chapter(
        election.at,
        title,
        (
            section("What the controller had", _inputs(case, election, before)),
            section("What the rules give", _reasoning(election)),
            section("What was decided", [state_text(state.value), *_by_whom(case, election)]),
            section("What came of it", _who_received(case, state)),
            found_then(findings, state, {election.at, election.decision.at}),
        ),
    )


def _inputs(case: Case, election: JudgedElection, before: Interval[LeaderAndIsrState] | None) -> Iterator[str]:
    yield f"occasion         {_KINDS.get(election.kind, 'not known from the evidence')}"
    yield f"state before     {state_text(before.value) if before else 'none: the partition was new'}"
    inputs = election.inputs
    if inputs is None:
        yield "assignment       not known"
        return
    yield f"assignment       {' or '.join(map(ids, inputs.assignments))}"
    if inputs.targets:
        yield f"reassigned to    {' or '.join(map(ids, inputs.targets))}"
    for replica in inputs.replicas:
        if replica != NO_LEADER:
            yield f"broker {replica:<10}{' or '.join(sorted(status.value for status in inputs.statuses[replica]))}"
    allowed = " or ".join("allowed" if value else "not allowed" for value in inputs.unclean)
    yield f"unclean election {allowed} (unclean.leader.election.enable)"
    yield f"Kafka            {case.cluster.version}"


def _reasoning(election: JudgedElection) -> Iterator[str]:
    inputs = election.inputs
    if inputs is None:
        yield "Without the assignment nothing can be said."
        return
    if election.kind == NEW_PARTITION:
        yield "The first live assigned replica leads, all live ones are the ISR."
    else:
        found = list(_possible(inputs))
        fitting = [one for one in found if _gives(one, election)] or found
        if fitting:
            yield from fitting[0].steps
        results = {one.steps[-1] for one in found}
        if len(results) > 1:
            yield f"The evidence leaves {len(results)} outcomes open; these are the steps of one that fits best."
    observed = election.observed_leader
    if observed in election.allowed:
        only = "the only leader" if len(election.allowed) == 1 else f"one of the leaders {ids(election.allowed)}"
        yield f"Observed: leader {observed}, {only} that the rules allow."
    else:
        yield f"Observed: leader {observed}; the rules allow {ids(election.allowed)}."


def _possible(inputs: ElectionInputs) -> Iterator[Reasoning]:
    """The reasoning for every input that the evidence allows."""
    for brokers in inputs.possible_brokers():
        for assigned in inputs.assignments:
            for kind in inputs.kinds:
                yield from _of_kind(inputs, ElectionKind(kind), assigned, brokers)


def _of_kind(
    inputs: ElectionInputs, kind: ElectionKind, assigned: tuple[int, ...], brokers: Brokers
) -> Iterator[Reasoning]:
    targets = inputs.targets or (assigned,)
    for target in targets if kind is ElectionKind.REASSIGNED_PARTITION else (assigned,):
        view = PartitionView(assigned, inputs.isr, inputs.leader, inputs.leader_epoch, target)
        for version in inputs.versions:
            for unclean in inputs.unclean:
                yield reasons(kind, view, brokers, unclean, version)


def _gives(reasoning: Reasoning, election: JudgedElection) -> bool:
    result = reasoning.result
    return isinstance(result, Elected) and (result.leader, frozenset(result.isr)) == election.outcome


def _by_whom(case: Case, election: JudgedElection) -> Iterator[str]:
    decision = election.decision
    if decision.controller_id is not None:
        came = f", from {decision.from_state}" if decision.from_state else ""
        yield f"by controller {decision.controller_id}, controller epoch {decision.controller_epoch}{came}"
        return
    tenure = case.cluster.tenure_at(election.at)
    if tenure is not None:
        yield f"while broker {tenure.controller_id} was controller, epoch {tenure.controller_epoch}"


def _change(
    case: Case,
    before: Interval[LeaderAndIsrState] | None,
    state: Interval[LeaderAndIsrState],
    following: Interval[LeaderAndIsrState] | None,
    findings: Sequence[Finding],
) -> Chapter:
    """A write that elected nobody: an ISR change, a leader lost, an epoch raised."""
    new = state.value
    old = before.value if before else None
    elected = following if following is not None and _is_step_before(state, following) else None
    return Chapter(
        state.start,
        title_of(old, new) + (", a step before the election" if elected else ""),
        (
            section("Before", [state_text(old)] if old else ["nothing is known"]),
            section("Why", _why(case, old, state, elected)),
            section("What was decided", [state_text(new)]),
            section("What came of it", learned(case, state)),
            found_then(findings, state, {state.start}),
        ),
    )


def _is_step_before(state: Interval[LeaderAndIsrState], following: Interval[LeaderAndIsrState]) -> bool:
    """Whether the state has no leader only until the next step of the controller that wrote it elects one."""
    one, other = state.value, following.value
    return (
        one.leader == NO_LEADER != other.leader
        and other.leader_epoch == one.leader_epoch + 1
        and other.controller_epoch == one.controller_epoch
        and following.start - state.start <= STEP_US
    )


def _why(
    case: Case,
    old: LeaderAndIsrState | None,
    state: Interval[LeaderAndIsrState],
    elected: Interval[LeaderAndIsrState] | None,
) -> Iterator[str]:
    new = state.value
    if old is None:
        return
    if new.leader_epoch == old.leader_epoch:
        yield "The leader epoch is the same: the leader asked for the change."
        gone = sorted(set(old.isr) - set(new.isr))
        if gone:
            yield f"It found replica {ids(gone)} too far behind (replica.lag.time.max.ms, in 0.8 also .max.messages)."
        elif set(new.isr) - set(old.isr):
            yield "The replica had caught up with the leader's high watermark."
        return
    yield f"The leader epoch rose from {old.leader_epoch} to {new.leader_epoch}: a controller decided."
    gone = sorted(set(old.isr) - set(new.isr))
    if _is_deleted_then(case, state.start):
        yield "The topic is being deleted: its replicas are taken offline, one after the other."
    elif elected is not None:
        later_ms = (elected.start - state.start) / 1000
        yield (
            f"Leader {old.leader} went offline: OfflineReplica takes it out, which leaves no leader. It is a step"
            f" between two of one controller, which elected leader {elected.value.leader} {later_ms:g} ms later."
        )
    elif new.leader == NO_LEADER:
        yield f"Leader {old.leader} went offline, and nobody could be elected."
    elif gone:
        yield f"Replica {ids(gone)} went offline: OfflineReplica takes it out of the ISR."


def _is_deleted_then(case: Case, at: int) -> bool:
    """Whether the deletion of the topic had been asked for, or its first step came right after."""
    started = [
        fact.at
        for fact in case.facts
        if fact.kind == ZNODE_DELETION_REQUESTED
        or (fact.kind == EventType.REPLICA_STATE_CHANGE and fact.to_state == ReplicaState.DELETION_STARTED)
    ]
    return any(began - STEP_US <= at for began in started)


def _who_received(case: Case, state: Interval[LeaderAndIsrState]) -> Iterator[str]:
    """To whom it was sent, and who acted, in the order of the brokers."""
    since, until = answered_within(state)
    epoch = state.value.leader_epoch
    sent: dict[int, int] = {}
    for fact in case.facts:
        if fact.kind == EventType.LEADER_AND_ISR_SENT and fact.leader_epoch == epoch and since <= fact.at <= until:
            for broker_id in fact.to_broker_ids or ():
                sent.setdefault(broker_id, fact.at)
    acted: dict[int, str] = {}
    for broker_id, role in taken_over(state, case.roles):
        acted.setdefault(broker_id, f"{role.value.role} at {clock(role.start)}")
    for broker_id in sorted({*sent, *acted}):
        sending = (
            f"told at {clock(sent[broker_id])}" if broker_id in sent else "told (the sending is not in the evidence)"
        )
        yield f"broker {broker_id}: {sending}, {acted.get(broker_id, 'no change of its role is logged')}"
    yield from caches({broker_id for broker_id, _ in taken_over(state, case.caches)})
