"""Elections: whom they chose, and whether they might (R07, R08, R09)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.findings.divergences import DivergenceType, Harm
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.elections import ElectionKind
from reconstruct.model.states import ReplicaState
from reconstruct.model.versions import ASYNC_CONTROLLER_SINCE, ELECTION_BY_ADMINISTRATOR_SINCE, OFFLINE_LOG_DIRS_SINCE
from reconstruct.partitions.case import Case
from reconstruct.partitions.elections.controller_view import (
    VIEW_SLACK_US,
    BrokerStatus,
    added_next,
    registered_since_list,
)
from reconstruct.partitions.elections.counterfactuals import what_would_explain
from reconstruct.partitions.elections.inputs import NEW_PARTITION, UNKNOWN_KIND
from reconstruct.partitions.elections.judging import JudgedElection, unclean_setting
from reconstruct.time.instants import utc
from reconstruct.time.intervals import as_of

_NAMES: Final = {
    NEW_PARTITION: "the choice of a new partition's first leader",
    ElectionKind.OFFLINE_PARTITION: "the election of an offline partition",
    ElectionKind.REASSIGNED_PARTITION: "the election of a reassigned partition",
    ElectionKind.PREFERRED_REPLICA: "the election of the preferred replica",
    ElectionKind.CONTROLLED_SHUTDOWN: "the election of a controlled shutdown",
    UNKNOWN_KIND: "the election",
}
#: What a leader does by itself.
_OF_A_LEADER: Final = (EventType.ISR_SHRINK_PROPOSED, EventType.ISR_EXPAND_PROPOSED, EventType.ISR_UPDATE_FAILED)


def judge_elections(case: Case, verdicts: Verdicts) -> None:
    """R07 and R09: every election, those included that chose the leader there was."""
    for election in case.all_elections:
        _judge_leader_was_live(election, case, verdicts)
        _judge_outcome(election, case, verdicts)


def _judge_leader_was_live(election: JudgedElection, case: Case, verdicts: Verdicts) -> None:
    """R07: by the controller's own lists. Up to 1.0 a controlled shutdown does not ask who is live."""
    leader, inputs = election.observed_leader, election.inputs
    asks_nobody = case.cluster.version.may_be_before(ASYNC_CONTROLLER_SINCE) and election.kind in (
        ElectionKind.CONTROLLED_SHUTDOWN,
        UNKNOWN_KIND,
    )
    if inputs is None or leader not in inputs.statuses or len(inputs.statuses[leader]) == len(BrokerStatus):
        verdicts.unjudged("R07")
    elif BrokerStatus.LIVE in inputs.statuses[leader]:
        verdicts.kept("R07")
    elif asks_nobody or _shows_life(leader, election, case) or not _is_written(election, case):
        verdicts.unjudged("R07")
    else:
        statuses = " or ".join(sorted(statuses.value for statuses in inputs.statuses[leader]))
        verdicts.broken(
            Divergence(DivergenceType.DEAD_LEADER_ELECTED, "error", election.at, broker_id=leader).explained(
                f"a leader that controller {election.decision.controller_id} held for live",
                f"leader {leader} at leader epoch {election.leader_epoch}",
                f"Broker {leader} was elected at leader epoch {election.leader_epoch} ({utc(election.at)}) while it was"
                f" {statuses} by the list of live brokers of controller {election.decision.controller_id}, and by its"
                " registration.",
                election.evidence,
            )
        )


def _is_written(election: JudgedElection, case: Case) -> bool:
    """Whether the decision is the controller's own, against its own list: nothing else is beyond doubt."""
    decision = election.decision
    if not decision.is_own_clock or election.inferred_from is not None:
        return False
    begin, end = case.cluster.tenure_bounds(decision.controller_id, decision.controller_epoch)
    lists = case.cluster.live_views_of(decision.controller_id, begin - VIEW_SLACK_US, end)
    registered = registered_since_list(election.observed_leader, decision, case.cluster)
    return True not in registered and any(view.at <= decision.at for view in lists)


def _shows_life(broker_id: int, election: JudgedElection, case: Case) -> bool:
    """Whether the broker itself logged anything of the partition right after: then a list was missing. A leader that
    was paused goes on changing its ISR until it is told of another: where its log is whole and has nothing else, it was
    told of nothing. From the controller's next list on, where it takes the broker in, nothing tells of before."""
    at = election.decision.at
    until = min(at + VIEW_SLACK_US, added_next(broker_id, election.decision, case.cluster) or at + VIEW_SLACK_US)
    own = [fact for fact in case.facts if fact.broker_id == broker_id and at <= fact.at <= until]
    if any(fact.kind not in _OF_A_LEADER for fact in own):
        return True
    return bool(own) and not case.cluster.logs_all(broker_id, at, max(fact.at for fact in own))


def _judge_outcome(election: JudgedElection, case: Case, verdicts: Verdicts) -> None:
    """R09: the leader, then the ISR, against every outcome of every possible input.

    Whether an unclean election was allowed is R08's: here each is possible.
    """
    if election.inputs is None or election.decision.controller_id is None:
        verdicts.unjudged("R09")
        return
    election = replace(election, inputs=replace(election.inputs, unclean=(False, True)))
    assert election.inputs is not None
    outcomes = election.inputs.outcomes()
    if election.outcome in outcomes:
        verdicts.kept("R09")
    elif not election.is_exact or not outcomes or not _is_closed(election, case):
        verdicts.unjudged("R09")
    else:
        verdicts.broken(_wrong(election, case))


def _is_closed(election: JudgedElection, case: Case) -> bool:
    """Whether a broker that the outcome has out is known to have been in: it said nothing, and no list is missing.

    A broker that the outcome makes live, against the lists, is as doubtful as a list that is missing.
    """
    inputs = election.inputs
    assert inputs is not None
    listed_dead = [
        b for b in election.isr if inputs.statuses.get(b, frozenset()) <= {BrokerStatus.GONE, BrokerStatus.LEAVING}
    ]
    return not any(_shows_life(broker, election, case) for broker in listed_dead)


def _wrong(election: JudgedElection, case: Case) -> Finding:
    inputs = election.inputs
    assert inputs is not None
    outcomes = inputs.outcomes()
    leader, isr = election.outcome
    of_that_isr = {chosen for chosen, given in outcomes if given == isr}
    is_leader_wrong = leader not in (of_that_isr or {chosen for chosen, _ in outcomes})
    expected_leader, expected_isr = min(
        outcomes, key=lambda outcome: (outcome[1] != isr, outcome[0] != leader, outcome[0], sorted(outcome[1]))
    )
    explanation = what_would_explain(inputs, election.outcome)
    expected = f"leader {expected_leader}, ISR {_ids(expected_isr)}"
    observed = f"leader {leader}, ISR {_ids(isr)} at leader epoch {election.leader_epoch}"
    return Divergence(
        DivergenceType.WRONG_LEADER_ELECTED if is_leader_wrong else DivergenceType.WRONG_ISR_AFTER_ELECTION,
        "warning" if _may_be_a_failed_directory(election, case) else "error",
        election.at,
        broker_id=leader,
    ).explained(
        expected,
        observed,
        f"From the assignment {_ids(inputs.assignments[0], False)} and the ISR {_ids(inputs.isr, False)},"
        f" {_NAMES[election.kind]} by controller {election.decision.controller_id} gives {expected}; written was"
        f" {observed} ({utc(election.at)}). {explanation}",
        election.evidence,
    )


def _may_be_a_failed_directory(election: JudgedElection, case: Case) -> bool:
    """Since 1.0 a replica may be offline on a live broker: its transition to OfflineReplica follows in a log at TRACE.

    It leaves a way out only where the outcome is one without a replica that the lists have as live.
    """
    inputs = election.inputs
    if inputs is None or not case.cluster.version.may_be_since(OFFLINE_LOG_DIRS_SINCE):
        return False
    missing = {replica for replica in inputs.replicas if replica not in election.isr}
    missing = {replica for replica in missing if _may_be_offline(replica, election, case)}
    without = {replica: inputs.statuses[replica] | {BrokerStatus.GONE} for replica in missing}
    return election.outcome in inputs.with_statuses(without).outcomes()


def _may_be_offline(replica: int, election: JudgedElection, case: Case) -> bool:
    """Unless the controller's log is whole there and shows the replica in another state before and after."""
    decision = election.decision
    around = (decision.at, decision.at + VIEW_SLACK_US)
    if decision.controller_id is None or not case.cluster.logs_all(decision.controller_id, *around):
        return True
    states = [as_of(case.replica_states.get(replica, ()), instant) for instant in around]
    return any(state is None or state.value.state == ReplicaState.OFFLINE for state in states)


def _ids(brokers: frozenset[int] | tuple[int, ...], is_set: bool = True) -> str:
    return ",".join(map(str, sorted(brokers) if is_set else brokers)) or "none"


def judge_unclean_elections(case: Case, verdicts: Verdicts) -> None:
    """R08: a clean election takes the leader from the ISR before; an unclean one must have been allowed."""
    may_be_asked_for = case.cluster.version.may_be_since(ELECTION_BY_ADMINISTRATOR_SINCE)
    for election in case.elections:
        if election.kind == NEW_PARTITION:
            continue
        if election.is_unclean is None:
            verdicts.unjudged("R08")
        elif not election.is_unclean:
            verdicts.kept("R08")
        else:
            changed = case.cluster.settings.topics.get(case.topic) or case.cluster.settings.brokers
            at_once = case.cluster.unclean_election_allowed(case.topic, election.at)
            held = unclean_setting(case.topic, case.facts, case.cluster, election.at)
            is_allowed = at_once if changed else held
            verdicts.broken(_unclean(election, is_allowed, may_be_asked_for))


def _unclean(election: JudgedElection, is_allowed: bool | None, may_be_asked_for: bool) -> Finding:
    isr = election.isr_before or ()
    loses_nothing = election.observed_leader in isr
    setting = {
        True: "The configuration allows it",
        False: "The configuration does not allow it",
        None: "Whether the configuration allowed it is not in the evidence",
    }[is_allowed]
    if election.is_last_known:
        setting = (
            "ISR and ELR had run empty: by KIP-966 the last known leader may then lead whatever the configuration says"
        )
    elif is_allowed is False and may_be_asked_for:
        setting += ", but since 2.4 an administrator may ask for it all the same"
    if loses_nothing:
        loss = "it was the last member of the ISR, so nothing committed is lost"
    else:
        loss = f"committed records that only {', '.join(map(str, isr)) or 'the former ISR'} held, if any, are lost"
    is_forbidden = is_allowed is False and not may_be_asked_for
    return Divergence(
        DivergenceType.UNCLEAN_ELECTION,
        "info" if loses_nothing else "error" if is_forbidden else "warning",
        election.at,
        broker_id=election.observed_leader,
        harm=Harm.NONE if loses_nothing else None,
    ).explained(
        f"a leader from the ISR {','.join(map(str, isr))}" if isr else "a leader from the ISR",
        f"leader {election.observed_leader} at leader epoch {election.leader_epoch}",
        f"Broker {election.observed_leader} was elected at leader epoch {election.leader_epoch} ({utc(election.at)})"
        f" though the last ISR was {list(isr)}: {loss}. {setting} (unclean.leader.election.enable).",
        election.evidence,
    )
