"""States that are known exactly: as the znode held them, or as who wrote them says with the version it got."""

from __future__ import annotations

from reconstruct.partitions.case import Case
from reconstruct.partitions.sightings import Rank, Sighting


def all_sightings(case: Case) -> list[Sighting]:
    """Also those that the history did not believe: what contradicts is not left out."""
    return [*case.history.sightings, *(sighting for sighting, _ in case.history.discarded)]


def states_by_version(case: Case) -> dict[int, list[Sighting]]:
    """By partition epoch, every sighting that proves a state at it, the strongest first."""
    found: dict[int, list[Sighting]] = {}
    for sighting in sorted(all_sightings(case), key=lambda s: (s.rank, s.fact.order)):
        if sighting.rank <= Rank.COMMITTED and sighting.partition_epoch is not None:
            shown = found.setdefault(sighting.partition_epoch, [])
            if not any(sighting.fact is other.fact for other in shown):
                shown.append(sighting)
    return found


def severity(is_only_incarnation: bool, *sightings: Sighting) -> str:
    """Where a topic has several incarnations, a line is told to one of them by its clock, which may be wrong."""
    is_certain = is_only_incarnation or all(sighting.rank is Rank.WRITTEN for sighting in sightings)
    return "error" if is_certain else "warning"
