"""The rules by which a quorum's controller elects leaders: R54, R56, R58.

Each record is judged with the partition's state before it, and with what the records before it made of the brokers.
Where the controller takes a broker away (it is fenced, shuts down uncleanly, is unregistered, loses a directory), the
records of its partitions come before the one of the broker: that broker may not lead, though nothing before says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ingest.lake.tables.events import METADATA_CHANGES
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.rule import EvidenceKind, Rule
from reconstruct.findings.verdicts import Divergence, Verdicts
from reconstruct.metadata_log.evidence import ClusterLog, LogRow
from reconstruct.model.metadata_log.values import PartitionState
from reconstruct.model.states import NO_LEADER
from reconstruct.model.versions import LAST_KNOWN_LEADER_IS_ACTIVE_SINCE

RECOVERING: Final = 1
#: Ids of no directory of its own, which count as online (org.apache.kafka.common.DirectoryId: MIGRATING, UNASSIGNED).
_UNNAMED_DIRECTORIES: Final = ("AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ")


def place_of(row: LogRow) -> str:
    """The record, in a sentence."""
    return f"{row.record_type} at offset {row.offset} (epoch {row.epoch})"


def is_elected(before: PartitionState | None, after: PartitionState) -> bool:
    """Whether the record that made ``after`` of ``before`` has another leader, or the first."""
    return after.leader != NO_LEADER and (before is None or before.leader != after.leader)


def is_elected_uncleanly(before: PartitionState | None, after: PartitionState) -> bool:
    """By what the record marks; while a leader recovers, another that is in sync may follow it cleanly."""
    if before is None or not is_elected(before, after) or after.leader_recovery_state != RECOVERING:
        return False
    return before.leader_recovery_state != RECOVERING or after.leader not in (*before.isr, *before.elr)


def _is_of_elr(before: PartitionState, after: PartitionState) -> bool:
    return after.leader in before.elr and after.leader not in before.isr


def judge_clean_leader(
    before: PartitionState | None, after: PartitionState, row: LogRow, log: ClusterLog, verdicts: Verdicts
) -> None:
    """R54: a new leader was in the ISR, or was eligible and the ISR had run empty (KIP-966); else the record marks it
    as recovering.

    Where a reassignment ends, replicas may join the ISR in the same record: then it cannot be judged. Another change of
    the assignment lets none join.
    """
    if before is None or not is_elected(before, after) or is_elected_uncleanly(before, after):
        return
    is_replica = after.leader in after.replicas
    if before.is_reassigned and not after.is_reassigned and after.leader not in before.isr and is_replica:
        verdicts.unjudged("R54")
        return
    left = _left_in_sync(before, row, log) if _is_of_elr(before, after) else []
    if after.leader in (*before.isr, *before.elr) and is_replica and not left:
        verdicts.kept("R54")
        return
    still = f", of which {left} were active and are still in it" if left else ""
    verdicts.broken(
        Divergence(DivergenceType.LEADER_NOT_ELIGIBLE, "error", row.at, broker_id=after.leader).explained(
            f"a leader of ISR {list(before.isr)}, or of ELR {list(before.elr)} if that is empty; or a recovering one",
            f"leader {after.leader}, recovered",
            f"The {place_of(row)} elects leader {after.leader} as if cleanly:"
            f" before, the ISR was {list(before.isr)}{still}, and the ELR {list(before.elr)}.",
            (row.evidence_id,),
        )
    )


def _left_in_sync(before: PartitionState, row: LogRow, log: ClusterLog) -> list[int]:
    """Who was in the ISR, and is certain to have stayed there while the leader was chosen."""
    removed = log.removed_behind(row)
    return [one for one in before.isr if removed not in (None, one) and log.is_active_before(one, row.offset)]


def judge_first_replica(
    before: PartitionState | None, after: PartitionState, row: LogRow, log: ClusterLog, verdicts: Verdicts
) -> None:
    """R56: of the replicas that may lead, the first assigned one does; of a new partition, the first of its ISR.

    The order of the assignment decides a preferred election too, and one from the ELR.
    """
    if not is_elected(before, after) or is_elected_uncleanly(before, after):
        return
    earlier = _earlier_in_order(before, after, row, log)
    may_lead = [
        _may_lead(one, before, row, log) if before else log.is_active_before(one, row.offset) for one in earlier or ()
    ]
    if earlier is None or None in may_lead:
        verdicts.unjudged("R56")
    elif True not in may_lead:
        verdicts.kept("R56")
    else:
        first = earlier[may_lead.index(True)]
        of = f"ISR {list(after.isr)}" if first in after.isr else f"ELR {list(after.elr)}"
        verdicts.broken(
            Divergence(DivergenceType.LATER_REPLICA_ELECTED, "error", row.at, broker_id=after.leader).explained(
                f"leader {first}, the first of the assigned replicas {list(after.replicas)} that may lead",
                f"leader {after.leader}",
                f"The {place_of(row)} elects leader {after.leader}: replica {first} comes before it in the assignment"
                f" {list(after.replicas)}, is in the {of} and was active.",
                (row.evidence_id,),
            )
        )


def _earlier_in_order(
    before: PartitionState | None, after: PartitionState, row: LogRow, log: ClusterLog
) -> list[int] | None:
    """Those before the leader that could be chosen, in the order that decides; None where that is not known."""
    if after.leader not in after.isr or after.leader not in after.replicas:
        return None
    if before is None:
        return list(after.isr[: after.isr.index(after.leader)])
    earlier = after.replicas[: after.replicas.index(after.leader)]
    is_kept = before.assignment == after.assignment
    if after.leader in before.isr or not (is_kept or after.leader in before.elr):
        return [one for one in earlier if one in after.isr]
    removed = log.removed_behind(row)
    if not _is_of_elr(before, after) or not is_kept or removed is None:
        return None
    return [one for one in earlier if one in after.elr and one != removed]


def _may_lead(broker_id: int, before: PartitionState, row: LogRow, log: ClusterLog) -> bool | None:
    """Whether it is active, and the directory of its replica online (KIP-858); None where that is not certain."""
    is_active = log.is_active_before(broker_id, row.offset)
    if not is_active or not before.directories:
        return is_active
    if broker_id not in before.replicas or len(before.directories) != len(before.replicas):
        return None
    _, state = log.broker_before(broker_id, row.offset)
    directory = before.directories[before.replicas.index(broker_id)]
    is_online = directory in _UNNAMED_DIRECTORIES or (state is not None and directory in state.log_dirs)
    return True if is_online else None


def judge_unclean_leader(
    before: PartitionState | None, after: PartitionState, row: LogRow, log: ClusterLog, verdicts: Verdicts
) -> None:
    """R58: where no replica in sync may lead, an unclean election takes the last known leader (KIP-966), else the first
    assigned replica that is active; it alone is the ISR.

    Whether it was allowed is not judged: who administers the cluster may ask for it whatever is configured. Of a record
    that changes the assignment too it is asked only whether a member of the ISR stayed that was active.
    """
    if before is None or not is_elected_uncleanly(before, after):
        return
    standing = {one: _may_lead(one, before, row, log) for one in {*before.replicas, after.leader}}
    removed, is_moved = log.removed_behind(row), before.assignment != after.assignment
    problem = _problem_of_leader(before, after, is_last_known(before, after, None if is_moved else removed), row, log)
    if problem is None and removed is not None:
        able = [one for one in before.replicas if standing[one] and one not in (removed, after.leader)]
        if is_moved:
            problem = _problem_of_isr(before, [one for one in able if one in after.replicas])
        else:
            problem = _problem_of_others(before, after, able, removed) or _problem_of_last_known(
                before, after, able, row, log
            )
    if problem is not None:
        verdicts.broken(
            Divergence(DivergenceType.UNCLEAN_LEADER_UNFIT, "error", row.at, broker_id=after.leader).explained(
                "the last known leader, or the first assigned replica that is active, where none in sync may lead",
                f"leader {after.leader}, recovering, ISR {list(after.isr)}",
                f"The {place_of(row)} elects leader {after.leader} uncleanly: {problem}.",
                (row.evidence_id,),
            )
        )
    elif removed is None or is_moved or None in standing.values():
        verdicts.unjudged("R58")
    else:
        verdicts.kept("R58")


def is_last_known(before: PartitionState, after: PartitionState, removed: int | None) -> bool:
    """Whether the leader may have been elected as the last known one: of a partition whose ISR and ELR are empty."""
    may_be_empty = removed is None or {*before.isr, *before.elr} <= {removed}
    return may_be_empty and before.last_known_elr == (after.leader,)


def _problem_of_leader(
    before: PartitionState, after: PartitionState, was_last_known: bool, row: LogRow, log: ClusterLog
) -> str | None:
    """Why the leader may not be chosen, whoever else there is."""
    if after.isr != (after.leader,):
        return f"the ISR is {list(after.isr)}, not it alone"
    if was_last_known and log.releases_at(row.offset).may_be_before(LAST_KNOWN_LEADER_IS_ACTIVE_SINCE):
        return None
    if after.leader not in (*before.replicas, *after.replicas) and not was_last_known:
        return f"it is none of the replicas {list(after.replicas)}"
    if log.is_active_before(after.leader, row.offset) is False:
        return "the records before leave it fenced, shutting down or not registered"
    return None


def _problem_of_isr(before: PartitionState, able: Sequence[int]) -> str | None:
    in_sync = next((one for one in able if one in before.isr), None)
    if in_sync is None:
        return None
    return f"replica {in_sync} of the ISR {list(before.isr)} was active, and to be elected cleanly"


def _problem_of_others(before: PartitionState, after: PartitionState, able: Sequence[int], removed: int) -> str | None:
    """Who of those that may lead was to be chosen before it; not the one that this very event takes away."""
    if problem := _problem_of_isr(before, able):
        return problem
    eligible = [one for one in able if one in before.elr] if {*before.isr} <= {removed} else []
    if eligible:
        return f"the ISR had run empty, and replica {eligible[0]} of the ELR {list(before.elr)} was active"
    if is_last_known(before, after, removed):
        return None
    earlier = [one for one in before.replicas[: before.replicas.index(after.leader)] if one in able]
    return f"replica {earlier[0]} is assigned before it, and was active" if earlier else None


def _problem_of_last_known(
    before: PartitionState, after: PartitionState, able: Sequence[int], row: LogRow, log: ClusterLog
) -> str | None:
    """Whether the last known leader was to be chosen: of a partition whose ISR and ELR are empty, with ELR enabled."""
    if before.isr or before.elr or len(before.last_known_elr) != 1 or not log.has_elr_at(row.offset):
        return None
    (last,) = before.last_known_elr
    is_awaited = last in able or log.releases_at(row.offset).high < LAST_KNOWN_LEADER_IS_ACTIVE_SINCE
    return f"the last known leader {last} comes before all others" if is_awaited and last != after.leader else None


_NEEDS: Final = (EvidenceKind.METADATA_LOG,)
#: Their judges are called where the log is replayed.
RULES: Final = (
    Rule(
        "R54",
        "a quorum's controller elects from the ISR or the ELR, or marks the leader as recovering",
        "org.apache.kafka.controller.PartitionChangeBuilder since 3.3; KIP-704, KIP-966",
        METADATA_CHANGES.full_name,
        needs=_NEEDS,
        judges=(judge_clean_leader,),
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
        "R58",
        "where none in sync may lead, a quorum's controller elects the last known leader, or the first active replica",
        "org.apache.kafka.controller.PartitionChangeBuilder since 3.3; KIP-704, KIP-966; 4.1 changed it",
        METADATA_CHANGES.full_name,
        needs=_NEEDS,
        judges=(judge_unclean_leader,),
    ),
)
