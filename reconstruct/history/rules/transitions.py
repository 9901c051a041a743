"""The transitions that controllers log, and those that they refuse (R13, R14)."""

from __future__ import annotations

import re
from typing import Final

from reconstruct.findings import Finding, Verdicts
from reconstruct.history.case import Case
from reconstruct.history.cluster import ClusterView
from reconstruct.history.evidence import Evidence
from reconstruct.model.states import (
    ReplicaState,
    is_legal_partition_transition,
    is_legal_replica_transition,
)
from reconstruct.model.versions import OFFLINE_TO_INELIGIBLE_SINCE

_REFUSED: Final = re.compile(
    r"should be in (?:one of |the )(?P<valid>.*?) states before moving to (?P<to>\w+) state\."
    r" Instead it is in (?P<from>\w+)"
)


def judge_transitions(case: Case, verdicts: Verdicts) -> None:
    """R13 and R14: what each line claims, and what the controller refused."""
    for fact in case.facts:
        if fact.kind in ("partition_state_change", "replica_state_change"):
            _judge_transition(fact, case.cluster, verdicts)
        elif fact.kind in ("partition_state_change_failed", "replica_state_change_failed"):
            _judge_refusal(fact, case.cluster, verdicts)


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
