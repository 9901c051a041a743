"""Who acted as leader at the same time (R25)."""

from __future__ import annotations

from typing import Final

from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.partitions.case import Case
from reconstruct.partitions.overlaps import PROCESS_ENDED, LeadershipOverlap
from reconstruct.partitions.processes import is_between
from reconstruct.partitions.roles import LEADER, RoleChange
from reconstruct.time.instants import utc

#: A controller sends a request again 300 ms after it failed (later 100 ms): a broker that runs and can be
#: reached hears of its deposition within a few tries. Longer means that it was paused, cut off, or not told.
LONG_OVERLAP_US: Final = 1_000_000


def judge_one_acting_leader(case: Case, verdicts: Verdicts) -> None:
    """R25: at one leader epoch one broker acts as leader; across epochs, a long overlap is told."""
    acted: dict[int, dict[int, RoleChange]] = {}
    for change in case.role_changes:
        if change.role.role == LEADER and change.role.leader_epoch is not None:
            acted.setdefault(change.role.leader_epoch, {}).setdefault(change.broker_id, change)
    for epoch, leaders in sorted(acted.items()):
        first, *others = sorted(leaders.values(), key=lambda change: change.fact.order)
        if not others:
            verdicts.kept("R25")
        elif is_between(case.recreated_at, first.at, others[0].at):
            verdicts.unjudged("R25")
        else:
            verdicts.broken(_two(case, epoch, first, others[0]))
    for overlap in case.overlaps:
        is_exact = overlap.end is not None and overlap.ended_by != PROCESS_ENDED
        if is_exact and (overlap.end or 0) - overlap.start > LONG_OVERLAP_US:
            verdicts.broken(_long(overlap))


def _two(case: Case, epoch: int, first: RoleChange, second: RoleChange) -> Finding:
    return Divergence(
        DivergenceType.TWO_ACTING_LEADERS, case.severity(), second.at, broker_id=second.broker_id
    ).explained(
        f"one leader at leader epoch {epoch}",
        f"brokers {first.broker_id} and {second.broker_id} became leader",
        f"Broker {first.broker_id} became leader at leader epoch {epoch} ({utc(first.at)}), and so did broker"
        f" {second.broker_id} ({utc(second.at)}): both take writes, and nothing tells their records apart.",
        (*first.evidence, *second.evidence),
    )


def _long(overlap: LeadershipOverlap) -> Finding:
    assert overlap.end is not None
    lasted = (overlap.end - overlap.start) / 1_000_000
    return Divergence(
        DivergenceType.DEPOSED_LEADER_WENT_ON, "info", overlap.start, broker_id=overlap.deposed
    ).explained(
        f"broker {overlap.deposed} no longer leader",
        f"leader at leader epoch {overlap.deposed_leader_epoch}",
        f"Broker {overlap.leader} led at leader epoch {overlap.leader_epoch} from {utc(overlap.start)} on; broker"
        f" {overlap.deposed} acted as leader at leader epoch {overlap.deposed_leader_epoch} until {utc(overlap.end)}"
        f" ({overlap.ended_by}), for {lasted:.3f} s. A deposed leader that was paused or cut off does so; what it"
        " accepted in that time, and no follower fetched, is lost.",
        overlap.evidence,
    )
