"""What was decided, by itself: leader epochs, and the leader as a member of the ISR (R01, R02, R05)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.states import NO_LEADER
from reconstruct.model.versions import REASSIGNMENT_NEEDS_ISR_SINCE
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import came_before
from reconstruct.partitions.sightings import Rank, Sighting
from reconstruct.time.instants import utc


def all_sightings(case: Case) -> list[Sighting]:
    """Also those that the history did not believe: what contradicts is not left out."""
    return [*case.sightings, *(sighting for sighting, _ in case.discarded)]


def states_by_version(case: Case) -> dict[int, list[Sighting]]:
    """By partition epoch, every sighting that proves a state at it, the strongest first."""
    found: dict[int, list[Sighting]] = {}
    for sighting in sorted(all_sightings(case), key=Sighting.strength):
        if sighting.rank <= Rank.COMMITTED and sighting.partition_epoch is not None:
            sightings_of_version = found.setdefault(sighting.partition_epoch, [])
            if not any(sighting.fact is other.fact for other in sightings_of_version):
                sightings_of_version.append(sighting)
    return found


def judge_leader_epochs(case: Case, verdicts: Verdicts) -> None:
    """R01: by the znode's versions, and by each controller's own log of its decisions."""
    written = sorted(
        (s for s in case.sightings if s.rank is Rank.WRITTEN and s.partition_epoch is not None),
        key=lambda s: (s.partition_epoch or 0, s.fact.order),
    )
    decided: dict[tuple[int | None, int | None], list[Sighting]] = {}
    for sighting in sorted((s for s in case.sightings if s.rank is Rank.DECIDED), key=lambda s: s.fact.order):
        decided.setdefault((sighting.fact.controller_id, sighting.fact.controller_epoch), []).append(sighting)
    for sequence, by in [
        (written, "version of its znode"),
        *((line, "log of the controller") for line in decided.values()),
    ]:
        for before, after in itertools.pairwise(sequence):
            if after.leader_epoch >= before.leader_epoch:
                verdicts.kept("R01")
                continue
            if sequence is not written and not came_before(before.fact, after.fact, case.cluster):
                verdicts.unjudged("R01")
                continue
            verdicts.broken(
                Divergence(DivergenceType.LEADER_EPOCH_DECREASED, case.severity(before, after), after.at).explained(
                    f"leader epoch {before.leader_epoch} or higher",
                    f"leader epoch {after.leader_epoch}",
                    f"By the {by}, the state with leader {before.leader} at leader epoch {before.leader_epoch} came"
                    f" before the one with leader {after.leader} at leader epoch {after.leader_epoch}: within one"
                    " incarnation of a topic the leader epoch only rises.",
                    (before.fact.evidence_id, after.fact.evidence_id),
                )
            )


def judge_one_leader_per_epoch(case: Case, verdicts: Verdicts) -> None:
    """R02: among what was written and decided; a request that names another leader is a milder finding."""
    of_epoch: dict[int, list[Sighting]] = {}
    for sighting in all_sightings(case):
        of_epoch.setdefault(sighting.leader_epoch, []).append(sighting)
    for epoch, sightings in sorted(of_epoch.items()):
        strong = _first_by_leader(s for s in sightings if s.rank <= Rank.DECIDED)
        sent = _first_by_leader(s for s in sightings if s.rank is Rank.SENT)
        if len(strong) > 1:
            first, second = list(strong.values())[:2]
            verdicts.broken(_two_leaders(epoch, first, second, case.severity(first, second), "was decided"))
        elif strong and set(sent) - set(strong):
            other = next(sighting for leader, sighting in sent.items() if leader not in strong)
            verdicts.broken(_two_leaders(epoch, next(iter(strong.values())), other, "warning", "was sent in a request"))
        elif strong or len(sent) == 1:
            verdicts.kept("R02")
        else:
            verdicts.unjudged("R02")


def _first_by_leader(sightings: Iterable[Sighting]) -> dict[int | None, Sighting]:
    found: dict[int | None, Sighting] = {}
    for sighting in sorted(sightings, key=Sighting.strength):
        found.setdefault(sighting.leader, sighting)
    return found


def _two_leaders(epoch: int, first: Sighting, second: Sighting, severity: str, how: str) -> Finding:
    return Divergence(DivergenceType.TWO_LEADERS_FOR_ONE_EPOCH, severity, second.at).explained(
        f"leader {first.leader} at leader epoch {epoch}",
        f"leader {second.leader} at leader epoch {epoch}",
        f"Leader {first.leader} was decided at leader epoch {epoch} ({utc(first.at)}), and leader {second.leader} {how}"
        f" at the same epoch ({utc(second.at)}). A leader epoch belongs to one leader.",
        (first.fact.evidence_id, second.fact.evidence_id),
    )


def judge_leader_in_isr(case: Case, verdicts: Verdicts) -> None:
    """R05: as written or decided. 0.8.0 elected for a reassignment without asking for the ISR."""
    for sighting in case.sightings:
        if sighting.rank > Rank.DECIDED:
            continue
        if sighting.leader == NO_LEADER or sighting.leader in sighting.isr:
            verdicts.kept("R05")
        elif case.cluster.version.may_be_before(REASSIGNMENT_NEEDS_ISR_SINCE):
            verdicts.unjudged("R05")
        else:
            verdicts.broken(
                Divergence(
                    DivergenceType.LEADER_OUTSIDE_ISR, "error", sighting.at, broker_id=sighting.leader
                ).explained(
                    f"leader {sighting.leader} in the ISR, or no leader",
                    f"leader {sighting.leader}, ISR {','.join(map(str, sighting.isr)) or 'empty'}",
                    f"At leader epoch {sighting.leader_epoch} the leader {sighting.leader} is not in its ISR"
                    f" {list(sighting.isr)}: what it holds need not be what was committed.",
                    (sighting.fact.evidence_id,),
                )
            )
