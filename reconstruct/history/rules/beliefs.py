"""What each broker did against what was decided (R20)."""

from __future__ import annotations

from reconstruct.findings import Finding, Verdicts
from reconstruct.history.case import Case
from reconstruct.history.instants import utc
from reconstruct.history.roles import LEADER, role_changes
from reconstruct.history.sightings import Rank, Sighting


def judge_roles(case: Case, verdicts: Verdicts) -> None:
    """R20: against what the znodes and the controllers show; a broker's own receipts prove nothing about itself."""
    decided: dict[int, dict[int | None, Sighting]] = {}
    for sighting in sorted(case.history.sightings, key=lambda s: (s.rank, s.fact.order)):
        if sighting.rank <= Rank.SENT and sighting.rank not in (Rank.COMMITTED, Rank.PROPOSED):
            decided.setdefault(sighting.leader_epoch, {}).setdefault(sighting.leader, sighting)
    for change in role_changes(case.facts):
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
                    "R20", "role_not_decided", "error" if case.is_only_incarnation else "warning", change.at,
                    f"leader {leader} at leader epoch {role.leader_epoch}",
                    f"broker {change.broker_id} became {acted} at leader epoch {role.leader_epoch}",
                    f"Broker {change.broker_id} became {acted} at leader epoch {role.leader_epoch} ({utc(change.at)});"
                    f" decided for that epoch was leader {leader} ({utc(sighting.at)}).",
                    (*change.evidence, sighting.fact.evidence_id), broker_id=change.broker_id,
                )
            )  # fmt: skip
