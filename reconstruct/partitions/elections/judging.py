"""Elections of one partition: what the controller had before it, what the rules allow, and what it chose.

A change of leader is an election of one of four kinds, or of a new partition. Its inputs (the ISR before, who was
live) are known only as far as the evidence goes: ``allowed`` holds every leader that some possible input gives, and
whether an election was clean is stated only where the state just before it is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from reconstruct.cluster.view import ClusterView
from reconstruct.model.states import NO_LEADER, PartitionState
from reconstruct.model.versions import (
    ELECTION_BY_ADMINISTRATOR_SINCE,
    UNCLEAN_ELECTION_CONFIGURABLE_SINCE,
    VersionRange,
)
from reconstruct.partitions.elections.controller_view import (
    VIEW_SLACK_US,
    BrokerStatus,
    StateDecision,
    possible_statuses,
)
from reconstruct.partitions.elections.inputs import (
    NEW_PARTITION,
    UNKNOWN_KIND,
    ElectionInputs,
    Outcome,
    versions_to_ask,
)
from reconstruct.partitions.elections.occasions import Assigned, Occasions, possible_kinds
from reconstruct.partitions.elections.of_quorum import occasion, statuses_at
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from reconstruct.time.intervals import Interval


@dataclass(frozen=True, slots=True)
class JudgedElection:
    """One election. ``is_unclean`` is None where the ISR just before it is not known.

    ``is_exact``: the state before and the state elected follow each other and are known as they were written, and so is
    the assignment; then an outcome that ``inputs`` do not give is one that the rules do not allow. ``inputs`` is None
    where nothing is known of the assignment or of the brokers, and of a KRaft quorum, which elects by other rules:
    ``seen`` is what is known all the same. ``is_last_known``: ISR and ELR had run empty, and the record before names
    the one elected as the last known leader, who may then lead whatever the setting is (KIP-966).
    """

    at: int
    kind: str
    previous_leader: int | None
    observed_leader: int
    leader_epoch: int
    allowed: tuple[int, ...]
    is_unclean: bool | None
    isr_before: tuple[int, ...] | None
    isr: tuple[int, ...]
    evidence: tuple[str, ...]
    inferred_from: str | None
    decision: StateDecision
    inputs: ElectionInputs | None = None
    is_exact: bool = False
    seen: ElectionInputs | None = None
    is_last_known: bool = False

    @property
    def outcome(self) -> Outcome:
        return self.observed_leader, frozenset(self.isr)


def elections(
    decided: Sequence[Interval[LeaderAndIsrState]], occasions: Occasions, setting: bool | None
) -> list[JudgedElection]:
    """The changes of leader that the decided states show, the choice of the first, and the elections that the
    controller says it held and that chose the leader there was; ``setting`` is :func:`unclean_setting`."""
    # since 2.4 an administrator may ask for an unclean election whatever the setting
    may_be_asked_for = occasions.cluster.version.may_be_since(ELECTION_BY_ADMINISTRATOR_SINCE)
    is_open = setting is None or (not setting and may_be_asked_for)
    unclean = (False, True) if is_open else (bool(setting),)
    result = []
    if decided and decided[0].value.leader_epoch == 0 and decided[0].value.leader != NO_LEADER:
        result.append(_election(None, decided[0], decided, occasions, unclean))
    for before, after in pairwise(decided):
        old, new = before.value, after.value
        if new.leader == NO_LEADER or new.leader_epoch <= old.leader_epoch:
            continue
        if new.leader != old.leader or occasions.decision(after).from_state == PartitionState.OFFLINE:
            result.append(_election(before, after, decided, occasions, unclean))
    return result


def unclean_setting(
    topic: str, evidence: Iterable[Evidence], cluster: ClusterView, at: int | None = None
) -> bool | None:
    """unclean.leader.election.enable of the topic at ``at``, else all the time; None where it is not known, or changed.

    The brokers' own setting is the topic's only where znodes were given and show no other.
    """
    has_znodes = any(fact.source_kind == "znode" for fact in evidence)
    is_fixed = cluster.version.is_before(UNCLEAN_ELECTION_CONFIGURABLE_SINCE)
    is_known = is_fixed or has_znodes or topic in cluster.settings.topics
    return cluster.unclean_election_allowed(topic, at) if is_known else None


def _election(
    before: Interval[LeaderAndIsrState] | None,
    after: Interval[LeaderAndIsrState],
    decided: Sequence[Interval[LeaderAndIsrState]],
    occasions: Occasions,
    unclean: tuple[bool, ...],
) -> JudgedElection:
    new = after.value
    decision = occasions.decision(after)
    old = before.value if before is not None else LeaderAndIsrState(NO_LEADER, -1, ())
    assigned = occasions.assigned(decision, new)
    record = occasions.records.get(-1 if new.partition_epoch is None else new.partition_epoch)
    if record is not None and record.replicas is not None:
        assigned = replace(assigned, assignments=(record.replicas,))
    replicas = {r for replicas in assigned.assignments for r in replicas} | {*old.isr, *new.isr, old.leader}
    if occasions.is_of_quorum:
        statuses = statuses_at(replicas, after.start, occasions.cluster)
        kinds: tuple[str, ...] = (occasion(None if before is None else old, new, occasions.records, statuses),)
    else:
        statuses = {replica: possible_statuses(replica, decision, occasions.cluster) for replica in replicas}
        kinds = (NEW_PARTITION,) if before is None else possible_kinds(old, new, decision, assigned, statuses)
        # that the old leader left the ISR says what it was to the controller
        if old.leader not in new.isr:
            statuses[old.leader] |= {BrokerStatus.GONE, BrokerStatus.LEAVING}
    seen = _inputs(old, new, kinds, assigned, statuses, unclean, occasions.cluster.version)
    inputs = None if occasions.is_of_quorum else seen  # its rules are those of the controller of ZooKeeper
    follow = occasions.follow_each_other(None if before is None else old, new)
    is_exact = assigned.is_certain and follow and not decision.is_clock_doubted
    witness: list[Evidence] = []
    if before is not None:
        witness = [fact for fact in occasions.logged_as_unclean if abs(fact.at - decision.at) <= VIEW_SLACK_US]
    evidence = [*after.evidence[:2], *(before.evidence[:1] if before is not None else ())]
    evidence += [] if decision.evidence_id is None else [decision.evidence_id]
    evidence += [fact.evidence_id for fact in witness[:1]]
    return JudgedElection(
        after.start,
        kinds[0] if len(kinds) == 1 else UNKNOWN_KIND,
        None if before is None else old.leader,
        new.leader,
        new.leader_epoch,
        _allowed(inputs, (new.leader, frozenset(new.isr)), is_exact),
        False if before is None else _is_unclean(before, after, bool(witness), occasions),
        None if before is None else _last_known_isr(before, decided),
        new.isr,
        tuple(dict.fromkeys(evidence)),
        after.inferred_from,
        decision,
        inputs,
        is_exact,
        seen,
        old.last_known_elr == (new.leader,) and not old.isr and not old.elr,
    )


def _inputs(
    old: LeaderAndIsrState,
    new: LeaderAndIsrState,
    kinds: tuple[str, ...],
    assigned: Assigned,
    statuses: dict[int, frozenset[BrokerStatus]],
    unclean: tuple[bool, ...],
    version: VersionRange,
) -> ElectionInputs | None:
    if not assigned.assignments:
        return None
    inputs = ElectionInputs(
        kinds,
        old.leader,
        old.leader_epoch,
        old.isr,
        assigned.assignments,
        assigned.targets,
        statuses,
        unclean,
        versions_to_ask(version),
    )
    return None if inputs.are_too_many else inputs


def _allowed(inputs: ElectionInputs | None, observed: Outcome, is_exact: bool) -> tuple[int, ...]:
    """Leaders of the outcomes that give the ISR observed; of all outcomes where none does, or the ISR may be later.

    Where the inputs are uncertain and the observed leader is in none, they were others: any replica may have led.
    """
    if inputs is None:
        return ()
    outcomes = inputs.outcomes()
    leader, isr = observed
    leaders = {chosen for chosen, given in outcomes if given == isr}
    if not leaders or (leader not in leaders and not is_exact):
        leaders |= {chosen for chosen, _ in outcomes}
    if leader not in leaders and not is_exact:
        leaders |= {leader, *inputs.replicas}
    return tuple(sorted(leaders))


def _is_unclean(
    before: Interval[LeaderAndIsrState], after: Interval[LeaderAndIsrState], is_logged: bool, occasions: Occasions
) -> bool | None:
    """Against the ISR just before: certain where the versions follow each other, or the controller says so itself. That
    of a KRaft quorum always does (KIP-704): the ELR, and replicas that a reassignment adds, may lead cleanly too. By
    lines alone it may have done so in one that is missing."""
    old, new = before.value, after.value
    if occasions.is_of_quorum:
        is_marked = new.leader_recovery_state == 1
        return None if is_marked and old.leader_recovery_state == 1 else is_marked
    if is_logged or (new.leader_recovery_state == 1 and old.leader_recovery_state != 1):
        return True
    if len(new.isr) > 1:
        return False  # an unclean leader is alone in its ISR
    versions = (old.partition_epoch, new.partition_epoch)
    follows = None not in versions and versions[1] == (versions[0] or 0) + 1
    if not follows or (occasions.is_led_by_quorum and new.leader not in old.isr):
        return None
    return new.leader not in old.isr


def _last_known_isr(
    before: Interval[LeaderAndIsrState], decided: Sequence[Interval[LeaderAndIsrState]]
) -> tuple[int, ...]:
    """The ISR before the election; where it was empty, the last that was not."""
    for interval in reversed(decided):
        is_earlier = interval.start <= before.start and interval.value.leader_epoch <= before.value.leader_epoch
        if is_earlier and interval.value.isr:
            return interval.value.isr
    return before.value.isr
