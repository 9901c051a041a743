"""The rules that one partition's evidence can judge."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Final

from reconstruct.findings import Finding, Verdicts
from reconstruct.history.assignment import Assignment
from reconstruct.history.cluster import ClusterView
from reconstruct.history.evidence import ZNODE_ASSIGNMENT, ZNODE_STATE, Evidence, in_order
from reconstruct.history.instants import utc
from reconstruct.history.intervals import Interval
from reconstruct.history.leader_and_isr import LeaderAndIsr, LeaderAndIsrHistory
from reconstruct.history.roles import LEADER, RoleChange
from reconstruct.history.sightings import NO_LEADER, Rank, Sighting
from reconstruct.model.states import (
    ReplicaState,
    is_legal_partition_transition,
    is_legal_replica_transition,
)
from reconstruct.model.versions import (
    LEADER_DROPS_REMOVED_REPLICAS_SINCE,
    OFFLINE_TO_INELIGIBLE_SINCE,
    REASSIGNMENT_IN_TOPIC_ZNODE_SINCE,
    REASSIGNMENT_NEEDS_ISR_SINCE,
)

_REFUSED: Final = re.compile(
    r"should be in (?:one of |the )(?P<valid>.*?) states before moving to (?P<to>\w+) state\."
    r" Instead it is in (?P<from>\w+)"
)


def judge_leader_epochs(history: LeaderAndIsrHistory, verdicts: Verdicts, is_only_incarnation: bool = True) -> None:
    """R01: by the znode's versions, and by each controller's own log of its decisions."""
    written = sorted(
        (s for s in history.sightings if s.rank is Rank.WRITTEN and s.partition_epoch is not None),
        key=lambda s: (s.partition_epoch or 0, s.fact.order),
    )
    decided: dict[tuple[int | None, int | None], list[Sighting]] = {}
    for sighting in sorted((s for s in history.sightings if s.rank is Rank.DECIDED), key=lambda s: s.fact.order):
        decided.setdefault((sighting.fact.controller_id, sighting.fact.controller_epoch), []).append(sighting)
    for sequence, by in [
        (written, "version of its znode"),
        *((line, "log of the controller") for line in decided.values()),
    ]:
        for before, after in itertools.pairwise(sequence):
            if after.leader_epoch >= before.leader_epoch:
                verdicts.kept("R01")
                continue
            verdicts.broken(
                Finding(
                    "R01", "leader_epoch_decreased", _severity(is_only_incarnation, before, after), after.at,
                    f"leader epoch {before.leader_epoch} or higher", f"leader epoch {after.leader_epoch}",
                    f"By the {by}, the state with leader {before.leader} at leader epoch {before.leader_epoch} came"
                    f" before the one with leader {after.leader} at leader epoch {after.leader_epoch}: within one"
                    " incarnation of a topic the leader epoch only rises.",
                    (before.fact.evidence_id, after.fact.evidence_id),
                )
            )  # fmt: skip


def judge_one_leader_per_epoch(
    history: LeaderAndIsrHistory, verdicts: Verdicts, is_only_incarnation: bool = True
) -> None:
    """R02: among what was written and decided; a request that names another leader is a milder finding."""
    all_sightings = [*history.sightings, *(s for s, _ in history.discarded)]
    for epoch in sorted({s.leader_epoch for s in all_sightings}):
        strong = _first_by_leader(s for s in all_sightings if s.leader_epoch == epoch and s.rank <= Rank.DECIDED)
        sent = _first_by_leader(s for s in all_sightings if s.leader_epoch == epoch and s.rank is Rank.SENT)
        if len(strong) > 1:
            first, second = list(strong.values())[:2]
            verdicts.broken(
                _two_leaders(epoch, first, second, _severity(is_only_incarnation, first, second), "was decided")
            )
        elif strong and set(sent) - set(strong):
            other = next(sighting for leader, sighting in sent.items() if leader not in strong)
            verdicts.broken(_two_leaders(epoch, next(iter(strong.values())), other, "warning", "was sent in a request"))
        elif strong or len(sent) == 1:
            verdicts.kept("R02")
        else:
            verdicts.unjudged("R02")


def _severity(is_only_incarnation: bool, *sightings: Sighting) -> str:
    """Where a topic has several incarnations, a line is told to one of them by its clock, which may be wrong."""
    is_certain = is_only_incarnation or all(sighting.rank is Rank.WRITTEN for sighting in sightings)
    return "error" if is_certain else "warning"


def _first_by_leader(sightings: Iterable[Sighting]) -> dict[int | None, Sighting]:
    found: dict[int | None, Sighting] = {}
    for sighting in sorted(sightings, key=lambda s: (s.rank, s.fact.order)):
        found.setdefault(sighting.leader, sighting)
    return found


def _two_leaders(epoch: int, first: Sighting, second: Sighting, severity: str, how: str) -> Finding:
    return Finding(
        "R02", "two_leaders_for_one_epoch", severity, second.at,
        f"leader {first.leader} at leader epoch {epoch}", f"leader {second.leader} at leader epoch {epoch}",
        f"Leader {first.leader} was decided at leader epoch {epoch} ({utc(first.at)}), and leader {second.leader} {how}"
        f" at the same epoch ({utc(second.at)}). A leader epoch belongs to one leader.",
        (first.fact.evidence_id, second.fact.evidence_id),
    )  # fmt: skip


def judge_isr_is_assigned(
    decided: Sequence[Interval[LeaderAndIsr]],
    assignments: Sequence[Interval[Assignment]],
    evidence: Iterable[Evidence],
    cluster: ClusterView,
    verdicts: Verdicts,
) -> None:
    """R04: against every assignment that overlaps the state; only where znodes give both exactly.

    An assignment that no snapshot shows may lie between two that are: their versions tell. After the last one nothing
    tells, since a snapshot is not atomic: then the finding leaves that way out and is no error.
    """
    facts = list(evidence)
    exact = {fact.evidence_id: fact.partition_epoch for fact in facts if fact.kind == ZNODE_ASSIGNMENT}
    written = {fact.evidence_id for fact in facts if fact.kind == ZNODE_STATE}
    for state in decided:
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
        known_issue = None
        severity = "error" if enclosing[-1].start > state.start else "warning"
        if cluster.version.may_be_since(REASSIGNMENT_IN_TOPIC_ZNODE_SINCE):
            severity = "info"
            if cluster.version.may_be_before(LEADER_DROPS_REMOVED_REPLICAS_SINCE):
                known_issue = "KAFKA-9672"
        replicas = ",".join(map(str, overlapping[0].value.replicas))
        verdicts.broken(
            Finding(
                "R04", "isr_outside_assignment", severity, state.start,
                f"ISR within the assigned replicas {replicas}", f"ISR {','.join(map(str, state.value.isr))}",
                f"At leader epoch {state.value.leader_epoch} the ISR held {outside[0]}, assigned were {replicas}, as"
                " the znodes show both.",
                (*state.evidence[:1], *overlapping[0].evidence), replica_id=outside[0][0], known_issue=known_issue,
            )
        )  # fmt: skip


def _follow_each_other(versions: Sequence[int | None]) -> bool:
    """Whether no write is missing between known versions; one alone follows, an unknown one among several does not."""
    if len(versions) < 2:
        return True
    return all(a is not None and b is not None and b == a + 1 for a, b in itertools.pairwise(versions))


def _overlap(one: Interval[Assignment], other: Interval[LeaderAndIsr]) -> bool:
    begins_before = other.end is None or one.start <= other.end
    return begins_before and (one.end is None or other.start <= one.end)


def judge_leader_in_isr(history: LeaderAndIsrHistory, cluster: ClusterView, verdicts: Verdicts) -> None:
    """R05: as written or decided. 0.8.0 elected for a reassignment without asking for the ISR."""
    for sighting in history.sightings:
        if sighting.rank > Rank.DECIDED:
            continue
        if sighting.leader == NO_LEADER or sighting.leader in sighting.isr:
            verdicts.kept("R05")
        elif cluster.version.may_be_before(REASSIGNMENT_NEEDS_ISR_SINCE):
            verdicts.unjudged("R05")
        else:
            verdicts.broken(
                Finding(
                    "R05", "leader_outside_isr", "error", sighting.at,
                    f"leader {sighting.leader} in the ISR, or no leader",
                    f"leader {sighting.leader}, ISR {','.join(map(str, sighting.isr)) or 'empty'}",
                    f"At leader epoch {sighting.leader_epoch} the leader {sighting.leader} is not in its ISR"
                    f" {list(sighting.isr)}: what it holds need not be what was committed.",
                    (sighting.fact.evidence_id,), broker_id=sighting.leader,
                )
            )  # fmt: skip


def judge_transitions(evidence: Iterable[Evidence], cluster: ClusterView, verdicts: Verdicts) -> None:
    """R13 and R14: what each line claims, and what the controller refused."""
    for fact in in_order(evidence):
        if fact.kind in ("partition_state_change", "replica_state_change"):
            _judge_transition(fact, cluster, verdicts)
        elif fact.kind in ("partition_state_change_failed", "replica_state_change_failed"):
            _judge_refusal(fact, cluster, verdicts)


def _judge_transition(fact: Evidence, cluster: ClusterView, verdicts: Verdicts) -> None:
    is_replica = fact.kind == "replica_state_change"
    rule = "R14" if is_replica else "R13"
    if fact.from_state is None or fact.to_state is None:
        verdicts.unjudged(rule)
        return
    legal = is_legal_replica_transition if is_replica else is_legal_partition_transition
    if legal(fact.from_state, fact.to_state, cluster.version):
        verdicts.kept(rule)
        return
    subject = f"replica {fact.replica_id}" if is_replica else "the partition"
    verdicts.broken(
        Finding(
            rule, "illegal_transition", "error", fact.at,
            f"a transition that Kafka {cluster.version} allows", f"{fact.from_state} to {fact.to_state}",
            f"Controller {fact.controller_id} (epoch {fact.controller_epoch}) moved {subject} from {fact.from_state} to"
            f" {fact.to_state}, which no version from {cluster.version} allows.",
            (fact.evidence_id,), broker_id=fact.controller_id, replica_id=fact.replica_id,
        )
    )  # fmt: skip


def _judge_refusal(fact: Evidence, cluster: ClusterView, verdicts: Verdicts) -> None:
    """A transition that the controller refused changed nothing; why it was tried is the finding."""
    refused = _REFUSED.search(fact.cause or "")
    if refused is None:
        return
    is_replica = fact.kind == "replica_state_change_failed"
    from_state, to_state = refused["from"], refused["to"]
    is_benign = (
        is_replica
        and (from_state, to_state) == (ReplicaState.OFFLINE, ReplicaState.DELETION_INELIGIBLE)
        and cluster.version.may_be_before(OFFLINE_TO_INELIGIBLE_SINCE)
    )
    subject = f"replica {fact.replica_id}" if is_replica else "the partition"
    note = (
        " Up to Kafka 2.2 the deletion of a topic with a dead replica does this; it does no harm." if is_benign
        else " The attempt changed nothing; the step before it is missing or came in another order."
    )  # fmt: skip
    verdicts.broken(
        Finding(
            "R14" if is_replica else "R13", "refused_transition", "info" if is_benign else "warning", fact.at,
            f"{to_state} entered from {refused['valid']}", f"{from_state} to {to_state} refused",
            f"Controller {fact.controller_id} (epoch {fact.controller_epoch}) tried to move {subject} from {from_state}"
            f" to {to_state} and refused it itself.{note}",
            (fact.evidence_id,), broker_id=fact.controller_id, replica_id=fact.replica_id,
            known_issue="fixed in Kafka 2.3.0 (ReplicaStateMachine)" if is_benign else None,
        )
    )  # fmt: skip


def judge_beliefs(
    roles: Iterable[RoleChange], history: LeaderAndIsrHistory, verdicts: Verdicts, is_only_incarnation: bool = True
) -> None:
    """R20: against what the znodes and the controllers show; a broker's own receipts prove nothing about itself."""
    decided: dict[int, dict[int | None, Sighting]] = {}
    for sighting in sorted(history.sightings, key=lambda s: (s.rank, s.fact.order)):
        if sighting.rank <= Rank.SENT and sighting.rank not in (Rank.COMMITTED, Rank.PROPOSED):
            decided.setdefault(sighting.leader_epoch, {}).setdefault(sighting.leader, sighting)
    for change in roles:
        role = change.role
        leaders = decided.get(role.leader_epoch if role.leader_epoch is not None else -1)
        if not leaders or role.leader is None:
            verdicts.unjudged("R20")
        elif role.leader in leaders:
            verdicts.kept("R20")
        else:
            leader, sighting = next(iter(leaders.items()))
            acted = "leader" if role.role == LEADER else f"follower of {role.leader}"
            verdicts.broken(
                Finding(
                    "R20", "role_not_decided", "error" if is_only_incarnation else "warning", change.at,
                    f"leader {leader} at leader epoch {role.leader_epoch}",
                    f"broker {change.broker_id} became {acted} at leader epoch {role.leader_epoch}",
                    f"Broker {change.broker_id} became {acted} at leader epoch {role.leader_epoch} ({utc(change.at)});"
                    f" decided for that epoch was leader {leader} ({utc(sighting.at)}).",
                    (*change.evidence, sighting.fact.evidence_id), broker_id=change.broker_id,
                )
            )  # fmt: skip
