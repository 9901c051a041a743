"""The rules by which a quorum's controller chooses: who joins the ISR (R53), who is eligible (R55), when a reassignment
ends (R57); with those of its elections.

Each record is judged with the partition's state before it, and with what the records before it made of the brokers.
"""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.events import METADATA_CHANGES
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.rule import EvidenceKind, Rule
from reconstruct.findings.verdicts import Divergence, Verdicts
from reconstruct.metadata_log.elections import (
    RECOVERING,
    is_elected,
    is_elected_uncleanly,
    is_last_known,
    judge_clean_leader,
    judge_first_replica,
    judge_unclean_leader,
    place_of,
)
from reconstruct.metadata_log.elections import RULES as OF_ELECTIONS
from reconstruct.metadata_log.evidence import MIN_ISR, ClusterLog, LogRow
from reconstruct.model.metadata_log.reassignment import may_have_ended
from reconstruct.model.metadata_log.values import PartitionState
from reconstruct.model.versions import LAST_KNOWN_LEADER_IS_ACTIVE_SINCE

#: The records that may come with the end of a process that lost what it had.
_NEW_PROCESS: Final = ("RegisterBrokerRecord", "UnregisterBrokerRecord")
#: The records of a partition that a controller writes with a choice in mind.
CHOOSING: Final = ("PartitionRecord", "PartitionChangeRecord")


def judge_choices(
    before: PartitionState | None,
    after: PartitionState,
    row: LogRow,
    log: ClusterLog,
    verdicts: Verdicts,
    min_isr: int | None = None,
) -> None:
    """All of one record that made ``after`` of ``before``; None where it made the partition. ``min_isr`` is how many
    the controller asked to be in sync; None where that is not known."""
    if not log.is_read_before(row.offset + 1) or log.is_taken_from_zookeeper(row.offset):
        for rule in RULES:
            verdicts.unjudged(rule.rule_id)
        return
    judge_chosen_brokers(before, after, row, log, verdicts)
    judge_clean_leader(before, after, row, log, verdicts)
    judge_eligible_replicas(before, after, row, log, verdicts, min_isr)
    judge_first_replica(before, after, row, log, verdicts)
    judge_end_of_reassignment(before, after, row, log, verdicts)
    judge_unclean_leader(before, after, row, log, verdicts)


def judge_chosen_brokers(
    before: PartitionState | None, after: PartitionState, row: LogRow, log: ClusterLog, verdicts: Verdicts
) -> None:
    """R53: who becomes leader, and who joins the ISR, is registered, not fenced and not shutting down.

    Whether a leader may take such a replica into its ISR is asked since 3.3 (KIP-841), not before. Of unclean
    elections R58 judges; up to 4.0 the last known leader, whose process this event ends, may follow itself while it
    recovers, though dead.
    """
    if is_elected_uncleanly(before, after):
        return
    may_be_dead = (
        before is not None
        and after.leader_recovery_state == RECOVERING
        and is_last_known(before, after, log.removed_behind(row))
        and log.releases_at(row.offset).may_be_before(LAST_KNOWN_LEADER_IS_ACTIVE_SINCE)
    )
    chosen = set(after.isr) - set(() if before is None else before.isr)
    if is_elected(before, after):
        chosen.add(after.leader)
    if may_be_dead:
        chosen.discard(after.leader)
    standing = {broker: log.is_active_before(broker, row.offset) for broker in sorted(chosen)}
    for broker, is_active in standing.items():
        leads = broker == after.leader and is_elected(before, after)
        if is_active is None or not (is_active or leads or log.has_metadata_version_at(row.offset)):
            verdicts.unjudged("R53")
        elif is_active:
            verdicts.kept("R53")
        else:
            how = "leader" if leads else "in the ISR"
            verdicts.broken(
                Divergence(DivergenceType.INACTIVE_BROKER_CHOSEN, "error", row.at, broker_id=broker).explained(
                    "a broker that is registered, not fenced and not shutting down",
                    f"{place_of(row)} with broker {broker} {how}",
                    f"The {place_of(row)} makes broker {broker} {how}, which the"
                    " records before it leave fenced, shutting down or not registered.",
                    (row.evidence_id,),
                )
            )


def judge_eligible_replicas(
    before: PartitionState | None,
    after: PartitionState,
    row: LogRow,
    log: ClusterLog,
    verdicts: Verdicts,
    min_isr: int | None = None,
) -> None:
    """R55: a member of the ELR was in the ISR or the ELR before, and is not in the ISR.

    Where the ISR is smaller than ``min_isr`` all who left either are in it, but a broker whose new process may have
    lost records; where it is not, nobody is. Where ``min_isr`` is not known, an ELR or an empty ISR says that it was
    smaller.
    """
    known = () if before is None else (*before.isr, *before.elr)
    wrong = sorted(one for one in after.elr if one in after.isr or one not in known)
    if wrong:
        verdicts.broken(
            Divergence(DivergenceType.ELR_OUT_OF_NOTHING, "error", row.at, broker_id=wrong[0]).explained(
                "an ELR of replicas that were in the ISR, or in the ELR, and are not in the ISR now",
                f"ELR {list(after.elr)}, ISR {list(after.isr)}",
                f"The {place_of(row)} has {wrong} in the ELR: before, ISR and ELR"
                f" were {sorted(set(known))}, and the ISR is {list(after.isr)}.",
                (row.evidence_id,),
            )
        )
        return
    if min_isr is not None and _is_needless(before, after, row, log, min_isr):
        verdicts.broken(
            Divergence(DivergenceType.ELR_OUT_OF_NOTHING, "error", row.at, broker_id=after.elr[0]).explained(
                f"no ELR where {min_isr} of the ISR are enough",
                f"ELR {list(after.elr)}, ISR {list(after.isr)}",
                f"The {place_of(row)} has {list(after.elr)} in the ELR, though the ISR is {list(after.isr)}: as many as"
                f" {MIN_ISR} asks, which was {min_isr} by the records before it.",
                (row.evidence_id,),
            )
        )
        return
    lost = _no_longer_eligible(before, after, row, log, min_isr)
    if lost:
        verdicts.broken(
            Divergence(DivergenceType.ELIGIBLE_REPLICA_LOST, "error", row.at, broker_id=lost[0]).explained(
                f"an ELR with {sorted({*after.elr, *lost})}",
                f"ELR {list(after.elr)}, ISR {list(after.isr)}",
                f"The {place_of(row)} leaves {lost} out of ISR and ELR: before, they were in {sorted(set(known))}, and"
                f" no new process of theirs registers.",
                (row.evidence_id,),
            )
        )
    elif after.elr:
        verdicts.kept("R55")


def _is_needless(
    before: PartitionState | None, after: PartitionState, row: LogRow, log: ClusterLog, min_isr: int
) -> bool:
    """Whether there is an ELR though the ISR is large enough. Who is elected from the ELR joins the ISR after that was
    asked."""
    if before is None or not after.elr or not log.has_elr_at(row.offset):
        return False
    return len(after.isr) >= min_isr and not (is_elected(before, after) and after.leader in before.elr)


def _no_longer_eligible(
    before: PartitionState | None, after: PartitionState, row: LogRow, log: ClusterLog, min_isr: int | None
) -> list[int]:
    """Who was in ISR or ELR and is in neither, without a reason to be seen."""
    if before is None or before.assignment != after.assignment or not log.has_elr_at(row.offset):
        return []
    if is_elected_uncleanly(before, after):
        return []
    is_small = min_isr is not None and len(after.isr) < min(min_isr, len(after.replicas))
    if after.isr and not after.elr and not is_small:
        return []
    removed = log.removed_behind(row, _NEW_PROCESS)
    return [] if removed is None else sorted({*before.isr, *before.elr} - {*after.isr, *after.elr, removed})


def judge_end_of_reassignment(
    before: PartitionState | None, after: PartitionState, row: LogRow, log: ClusterLog, verdicts: Verdicts
) -> None:
    """R57: a reassignment ends when the replicas that its version waits for are in the ISR.

    One that is called back leaves other replicas; an election from the ELR, or an unclean one, makes another ISR.
    """
    if before is None or not before.is_reassigned:
        return
    left = tuple(one for one in before.replicas if one not in before.removing_replicas)
    if after.is_reassigned or after.replicas != left:
        return
    if after.leader_recovery_state == RECOVERING or (is_elected(before, after) and after.leader in before.elr):
        verdicts.unjudged("R57")
    elif may_have_ended(
        before.replicas, before.adding_replicas, before.removing_replicas, after.isr, log.releases_at(row.offset)
    ):
        verdicts.kept("R57")
    else:
        lacking = [one for one in left if one not in after.isr]
        verdicts.broken(
            Divergence(DivergenceType.REASSIGNMENT_ENDED_EARLY, "error", row.at, broker_id=lacking[0]).explained(
                f"an ISR with the replicas that the reassignment waits for, of {list(left)}",
                f"ISR {list(after.isr)}",
                f"The {place_of(row)} ends the reassignment to {list(left)}, which adds {list(before.adding_replicas)}"
                f" and removes {list(before.removing_replicas)}: {lacking} are not in the ISR {list(after.isr)}.",
                (row.evidence_id,),
            )
        )


_NEEDS: Final = (EvidenceKind.METADATA_LOG,)
#: Their judges are called where the log is replayed.
RULES: Final = (
    *OF_ELECTIONS,
    Rule(
        "R53",
        "a quorum's controller makes no broker leader, and takes none into an ISR, that is fenced or shuts down",
        "org.apache.kafka.controller.ReplicationControlManager since 3.3; KIP-841",
        METADATA_CHANGES.full_name,
        needs=_NEEDS,
        judges=(judge_chosen_brokers,),
    ),
    Rule(
        "R55",
        "eligible leader replicas are those that left the ISR",
        "org.apache.kafka.controller.PartitionChangeBuilder since 4.0; KIP-966",
        METADATA_CHANGES.full_name,
        needs=_NEEDS,
        judges=(judge_eligible_replicas,),
    ),
    Rule(
        "R57",
        "a quorum's controller ends a reassignment when the replicas that it waits for are in the ISR",
        "org.apache.kafka.controller.PartitionReassignmentReplicas since 3.3; 3.8 and 4.3 changed it",
        METADATA_CHANGES.full_name,
        needs=_NEEDS,
        judges=(judge_end_of_reassignment,),
    ),
)
