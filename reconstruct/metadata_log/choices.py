"""The rules by which a quorum's controller chooses leaders and replicas in sync: R53 to R57.

Each record is judged with the partition's state before it, and with what the records before it made of the brokers.
Where the record marks the leader as recovering it was elected uncleanly: any broker may have been (KIP-704), up to 4.0
even one that is fenced, as the last known leader.
"""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.events import METADATA_CHANGES
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.rule import EvidenceKind, Rule
from reconstruct.findings.verdicts import Divergence, Verdicts
from reconstruct.metadata_log.evidence import ClusterLog, LogRow
from reconstruct.model.metadata_log.reassignment import may_have_ended
from reconstruct.model.metadata_log.values import PartitionState
from reconstruct.model.states import NO_LEADER

_RECOVERING: Final = 1
#: The records of a partition that a controller writes with a choice in mind.
CHOOSING: Final = ("PartitionRecord", "PartitionChangeRecord")


def _place(row: LogRow) -> str:
    return f"{row.record_type} at offset {row.offset} (epoch {row.epoch})"


def judge_choices(
    before: PartitionState | None, after: PartitionState, row: LogRow, log: ClusterLog, verdicts: Verdicts
) -> None:
    """All of one record that made ``after`` of ``before``; None where it made the partition."""
    if not log.is_read_before(row.offset + 1):
        for rule in RULES:
            verdicts.unjudged(rule.rule_id)
        return
    judge_chosen_brokers(before, after, row, log, verdicts)
    judge_clean_leader(before, after, row, verdicts)
    judge_eligible_replicas(before, after, row, verdicts)
    judge_first_replica(before, after, row, log, verdicts)
    judge_end_of_reassignment(before, after, row, log, verdicts)


def _is_elected(before: PartitionState | None, after: PartitionState) -> bool:
    return after.leader != NO_LEADER and (before is None or before.leader != after.leader)


def judge_chosen_brokers(
    before: PartitionState | None, after: PartitionState, row: LogRow, log: ClusterLog, verdicts: Verdicts
) -> None:
    """R53: who becomes leader, and who joins the ISR, is registered, not fenced and not shutting down."""
    if after.leader_recovery_state == _RECOVERING:
        return
    chosen = set(after.isr) - set(() if before is None else before.isr)
    if _is_elected(before, after):
        chosen.add(after.leader)
    standing = {broker: log.is_active_before(broker, row.offset) for broker in sorted(chosen)}
    for broker, is_active in standing.items():
        if is_active is None:
            verdicts.unjudged("R53")
        elif is_active:
            verdicts.kept("R53")
        else:
            how = "leader" if broker == after.leader and _is_elected(before, after) else "in the ISR"
            verdicts.broken(
                Divergence(DivergenceType.INACTIVE_BROKER_CHOSEN, "error", row.at, broker_id=broker).explained(
                    "a broker that is registered, not fenced and not shutting down",
                    f"{_place(row)} with broker {broker} {how}",
                    f"The {_place(row)} makes broker {broker} {how}, which the"
                    " records before it leave fenced, shutting down or not registered.",
                    (row.evidence_id,),
                )
            )


def judge_clean_leader(before: PartitionState | None, after: PartitionState, row: LogRow, verdicts: Verdicts) -> None:
    """R54: a new leader was in the ISR, or was eligible (KIP-966); else the record marks it as recovering.

    Where a reassignment ends, replicas may join the ISR in the same record: then it cannot be judged.
    """
    if before is None or not _is_elected(before, after) or after.leader_recovery_state == _RECOVERING:
        return
    if after.leader in (*before.isr, *before.elr):
        verdicts.kept("R54")
    elif before.adding_replicas or before.removing_replicas:
        verdicts.unjudged("R54")
    else:
        verdicts.broken(
            Divergence(DivergenceType.LEADER_NOT_ELIGIBLE, "error", row.at, broker_id=after.leader).explained(
                f"a leader of ISR {list(before.isr)} or ELR {list(before.elr)}, or one marked as recovering",
                f"leader {after.leader}, recovered",
                f"The {_place(row)} elects leader {after.leader} as if cleanly:"
                f" before, the ISR was {list(before.isr)} and the ELR {list(before.elr)}.",
                (row.evidence_id,),
            )
        )


def judge_eligible_replicas(
    before: PartitionState | None, after: PartitionState, row: LogRow, verdicts: Verdicts
) -> None:
    """R55: a member of the ELR was in the ISR or the ELR before, and is not in the ISR."""
    known = () if before is None else (*before.isr, *before.elr)
    wrong = sorted(one for one in after.elr if one in after.isr or one not in known)
    if wrong:
        verdicts.broken(
            Divergence(DivergenceType.ELR_OUT_OF_NOTHING, "error", row.at, broker_id=wrong[0]).explained(
                "an ELR of replicas that were in the ISR, or in the ELR, and are not in the ISR now",
                f"ELR {list(after.elr)}, ISR {list(after.isr)}",
                f"The {_place(row)} has {wrong} in the ELR: before, ISR and ELR"
                f" were {sorted(set(known))}, and the ISR is {list(after.isr)}.",
                (row.evidence_id,),
            )
        )
    elif after.elr:
        verdicts.kept("R55")


def judge_first_replica(
    before: PartitionState | None, after: PartitionState, row: LogRow, log: ClusterLog, verdicts: Verdicts
) -> None:
    """R56: of the replicas that may lead, the first assigned one does; of a new partition, the first of its ISR.

    The order of the assignment decides a preferred election too. One from the ELR cannot be judged: the record that
    fences the old leader comes behind it.
    """
    if not _is_elected(before, after) or after.leader_recovery_state == _RECOVERING:
        return
    earlier = _earlier_in_order(before, after)
    may_lead = [
        _may_lead(one, before, row, log) if before else log.is_active_before(one, row.offset) for one in earlier or ()
    ]
    if earlier is None or None in may_lead:
        verdicts.unjudged("R56")
    elif True not in may_lead:
        verdicts.kept("R56")
    else:
        first = earlier[may_lead.index(True)]
        verdicts.broken(
            Divergence(DivergenceType.LATER_REPLICA_ELECTED, "error", row.at, broker_id=after.leader).explained(
                f"leader {first}, the first of the assigned replicas {list(after.replicas)} that may lead",
                f"leader {after.leader}",
                f"The {_place(row)} elects leader {after.leader}: replica {first} comes before it in the assignment"
                f" {list(after.replicas)}, is in the ISR {list(after.isr)} and was active.",
                (row.evidence_id,),
            )
        )


def _earlier_in_order(before: PartitionState | None, after: PartitionState) -> list[int] | None:
    """The replicas in sync before the leader, in the order that decides; None where that order is not known."""
    if after.leader not in after.isr or after.leader not in after.replicas:
        return None
    if before is None:
        return list(after.isr[: after.isr.index(after.leader)])
    if after.leader not in before.isr:
        return None
    return [one for one in after.replicas[: after.replicas.index(after.leader)] if one in after.isr]


def _may_lead(broker_id: int, before: PartitionState, row: LogRow, log: ClusterLog) -> bool | None:
    """Whether it is active, and the directory of its replica online (KIP-858); None where that is not certain."""
    is_active = log.is_active_before(broker_id, row.offset)
    if not is_active or not before.directories:
        return is_active
    if broker_id not in before.replicas or len(before.directories) != len(before.replicas):
        return None
    _, state = log.broker_before(broker_id, row.offset)
    directory = before.directories[before.replicas.index(broker_id)]
    return True if state is not None and directory in state.log_dirs else None


def judge_end_of_reassignment(
    before: PartitionState | None, after: PartitionState, row: LogRow, log: ClusterLog, verdicts: Verdicts
) -> None:
    """R57: a reassignment ends when the replicas that its version waits for are in the ISR.

    One that is called back leaves other replicas; an election from the ELR, or an unclean one, makes another ISR.
    """
    if before is None or not (before.adding_replicas or before.removing_replicas):
        return
    left = tuple(one for one in before.replicas if one not in before.removing_replicas)
    if after.adding_replicas or after.removing_replicas or after.replicas != left:
        return
    if after.leader_recovery_state == _RECOVERING or (_is_elected(before, after) and after.leader in before.elr):
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
                f"The {_place(row)} ends the reassignment to {list(left)}, which adds {list(before.adding_replicas)}"
                f" and removes {list(before.removing_replicas)}: {lacking} are not in the ISR {list(after.isr)}.",
                (row.evidence_id,),
            )
        )


_NEEDS: Final = (EvidenceKind.METADATA_LOG,)
#: Their judges are called where the log is replayed.
RULES: Final = (
    Rule(
        "R53",
        "a quorum's controller makes no broker leader, and takes none into an ISR, that is fenced or shuts down",
        "org.apache.kafka.controller.ReplicationControlManager since 3.3; KIP-841",
        METADATA_CHANGES.full_name,
        needs=_NEEDS,
        judges=(judge_chosen_brokers,),
    ),
    Rule(
        "R54",
        "a quorum's controller elects from the ISR or the ELR, or marks the leader as recovering",
        "org.apache.kafka.controller.PartitionChangeBuilder since 3.3; KIP-704, KIP-966",
        METADATA_CHANGES.full_name,
        needs=_NEEDS,
        judges=(judge_clean_leader,),
    ),
    Rule(
        "R55",
        "eligible leader replicas were in the ISR, and are no longer",
        "org.apache.kafka.controller.PartitionChangeBuilder since 4.0; KIP-966",
        METADATA_CHANGES.full_name,
        needs=_NEEDS,
        judges=(judge_eligible_replicas,),
    ),
    Rule(
        "R56",
        "of the replicas that may lead, a quorum's controller elects the first assigned one",
        "org.apache.kafka.controller.PartitionChangeBuilder since 3.3; KIP-858",
        METADATA_CHANGES.full_name,
        needs=_NEEDS,
        judges=(judge_first_replica,),
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
