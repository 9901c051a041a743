"""What each broker did against what was decided (R20), what it had accepted before (R21), and what others did (R25)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ingest.lake.tables.bronze import SourceKind
from ingest.shapes.event_types import EventType
from reconstruct.findings.divergences import DivergenceType, Harm
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.versions import REQUESTS_ORDERED_SINCE, VersionRange
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import Evidence, came_before
from reconstruct.partitions.overlaps import PROCESS_ENDED, LeadershipOverlap, leads_at
from reconstruct.partitions.processes import (
    AcceptedEpoch,
    is_between,
    is_in_order,
    is_one_process,
    walk,
)
from reconstruct.partitions.roles import LEADER, RoleChange
from reconstruct.partitions.sightings import LEADER_SIDE, Rank, Sighting
from reconstruct.time.instants import utc

Decided = Mapping[int, Mapping[int | None, Sighting]]

#: Lines that a broker writes once a request has passed its check of the controller epoch, and under its lock.
_CHECKED: Final = frozenset(
    {
        EventType.BECOME_LEADER_STARTED,
        EventType.BECOME_LEADER_COMPLETED,
        EventType.BECOME_FOLLOWER_STARTED,
        EventType.BECOME_FOLLOWER_COMPLETED,
        EventType.METADATA_CACHED,
        EventType.METADATA_DELETED,
        EventType.LEADER_AND_ISR_IGNORED,
    }
)

#: A controller sends a request again 300 ms after it failed (later 100 ms): a broker that runs and can be
#: reached hears of its deposition within a few tries. Longer means that it was paused, cut off, or not told.
LONG_OVERLAP_US: Final = 1_000_000


def judge_roles(case: Case, verdicts: Verdicts) -> None:
    """R20: against what the znodes and the controllers show; a broker's own receipts prove nothing about itself."""
    decided = decided_leaders(case)
    by_version: dict[int | None, list[Sighting]] = {}
    for sighting in _decided_sightings(case):
        if sighting.partition_epoch is not None:
            by_version.setdefault(sighting.partition_epoch, []).append(sighting)
    for change in case.role_changes:
        role = change.role
        leaders = decided.get(_epoch_of(change))
        written = by_version.get(role.partition_epoch, [])
        if written and all(sighting.leader_epoch != role.leader_epoch for sighting in written):
            verdicts.broken(_not_decided(case, change, written[0]))
        elif not leaders or role.leader is None:
            verdicts.unjudged("R20")
        elif role.leader in leaders:
            verdicts.kept("R20")
        else:
            verdicts.broken(_not_decided(case, change, next(iter(leaders.values()))))
    for change in case.failed_changes:
        _judge_failed(case, change, decided.get(_epoch_of(change), {}), verdicts)


def _judge_failed(case: Case, change: RoleChange, leaders: Mapping[int | None, Sighting], verdicts: Verdicts) -> None:
    """What a broker was told and could not become must have been decided all the same."""
    leader = change.role.leader
    if not leaders or leader is None or leader < 0:
        verdicts.unjudged("R20")
    elif leader in leaders:
        verdicts.kept("R20")
    else:
        verdicts.broken(_not_decided(case, change, next(iter(leaders.values()))))


def _epoch_of(change: RoleChange) -> int:
    return -1 if change.role.leader_epoch is None else change.role.leader_epoch


def decided_leaders(case: Case) -> Decided:
    """By leader epoch: the leaders that znodes and controllers show, each with its strongest sighting."""
    decided: dict[int, dict[int | None, Sighting]] = {}
    for sighting in _decided_sightings(case):
        decided.setdefault(sighting.leader_epoch, {}).setdefault(sighting.leader, sighting)
    return decided


def _decided_sightings(case: Case) -> list[Sighting]:
    """What znodes and controllers show, the strongest first."""
    sightings = [s for s in case.sightings if s.rank <= Rank.SENT and s.rank not in LEADER_SIDE]
    return sorted(sightings, key=Sighting.strength)


def _not_decided(case: Case, change: RoleChange, sighting: Sighting) -> Finding:
    role = change.role
    acted = acted_as(role.role, role.leader)
    became = "was to become" if change.is_failed else "became"
    version = "" if role.partition_epoch is None else f" and partition epoch {role.partition_epoch}"
    decided = f"leader {sighting.leader} at leader epoch {sighting.leader_epoch}"
    return Divergence(
        DivergenceType.ROLE_NOT_DECIDED, case.severity(), change.at, broker_id=change.broker_id
    ).explained(
        decided,
        f"broker {change.broker_id} {became} {acted} at leader epoch {role.leader_epoch}",
        f"Broker {change.broker_id} {became} {acted} at leader epoch {role.leader_epoch}{version} ({utc(change.at)});"
        f" decided was {decided} ({utc(sighting.at)}).",
        (*change.evidence, sighting.fact.evidence_id),
    )


def acted_as(role: str, leader: int | None) -> str:
    """``leader`` or ``follower of 2``."""
    return "leader" if role == LEADER else f"follower of {'another' if leader is None else leader}"


def judge_accepted_epochs(case: Case, verdicts: Verdicts) -> None:
    """R21: since its process started, a broker acts on no lower leader epoch, and no lower controller epoch."""
    for broker_id, facts in case.facts_of_brokers.items():
        own = {c.fact.order: c for c in case.role_changes if c.broker_id == broker_id and is_in_order(c)}
        for fact, accepted in walk(case.cluster, broker_id, facts, tuple(own.values())):
            if fact.order in own:
                _judge_leader_epoch(case, own[fact.order], accepted, verdicts)
        _judge_controller_epochs(case, broker_id, facts, verdicts)


def _judge_leader_epoch(case: Case, change: RoleChange, accepted: AcceptedEpoch | None, verdicts: Verdicts) -> None:
    epoch = change.role.leader_epoch
    if epoch is None or accepted is None or is_between(case.recreated_at, accepted.change.at, change.at):
        verdicts.unjudged("R21")
    elif epoch >= accepted.leader_epoch:
        verdicts.kept("R21")
    else:
        verdicts.broken(
            Divergence(
                DivergenceType.ACTED_ON_LOWER_LEADER_EPOCH, case.severity(), change.at, broker_id=change.broker_id
            ).explained(
                f"a leader epoch of {accepted.leader_epoch} or higher",
                f"leader epoch {epoch}",
                f"Broker {change.broker_id} became {acted_as(change.role.role, change.role.leader)} at leader epoch"
                f" {epoch} ({utc(change.at)}) though it had accepted leader epoch {accepted.leader_epoch}"
                f" ({utc(accepted.change.at)}) and had not been started again since.",
                (*change.evidence, *accepted.change.evidence),
            )
        )


def _judge_controller_epochs(case: Case, broker_id: int, facts: Sequence[Evidence], verdicts: Verdicts) -> None:
    highest: Evidence | None = None
    for fact in _accepted_requests(facts, case.cluster.version):
        assert fact.controller_epoch is not None
        if highest is None or not is_one_process(case.cluster, broker_id, highest.at, fact.at):
            highest = fact
        elif highest.controller_epoch is not None and fact.controller_epoch < highest.controller_epoch:
            if came_before(highest, fact, case.cluster):
                verdicts.broken(_lower_controller(case, broker_id, fact, highest))
            else:
                verdicts.unjudged("R21")
        else:
            verdicts.kept("R21")
            highest = fact


def _accepted_requests(facts: Sequence[Evidence], version: VersionRange) -> Iterator[Evidence]:
    """Up to 0.8.1 an UpdateMetadata is checked and logged without the lock, so that two may overtake each other."""
    if version.may_be_before(REQUESTS_ORDERED_SINCE):
        return
    for fact in facts:
        if (
            fact.kind in _CHECKED
            and fact.source_kind == SourceKind.STATE_CHANGE_LOG
            and fact.controller_epoch is not None
        ):
            yield fact


def _lower_controller(case: Case, broker_id: int, fact: Evidence, highest: Evidence) -> Finding:
    return Divergence(
        DivergenceType.ACTED_ON_LOWER_CONTROLLER_EPOCH, case.severity(), fact.at, broker_id=broker_id
    ).explained(
        f"controller epoch {highest.controller_epoch} or higher",
        f"controller epoch {fact.controller_epoch}",
        f"Broker {broker_id} handled a request of controller {fact.controller_id} with controller epoch"
        f" {fact.controller_epoch} ({utc(fact.at)}) though it had accepted controller epoch {highest.controller_epoch}"
        f" ({utc(highest.at)}) and had not been started again since.",
        (fact.evidence_id, highest.evidence_id),
    )


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
            verdicts.broken(_two_leaders(case, epoch, first, others[0]))
    for overlap in case.overlaps:
        is_exact = overlap.end is not None and overlap.ended_by != PROCESS_ENDED
        if is_exact and (overlap.end or 0) - overlap.start > LONG_OVERLAP_US:
            verdicts.broken(_long_overlap(overlap))


def _two_leaders(case: Case, epoch: int, first: RoleChange, second: RoleChange) -> Finding:
    is_at_once = leads_at(case.roles, case.facts, case.cluster, first.broker_id, epoch, second.at)
    return Divergence(
        DivergenceType.TWO_ACTING_LEADERS,
        case.severity(),
        second.at,
        broker_id=second.broker_id,
        harm=Harm.TWO_LEADERS if is_at_once else Harm.POSSIBLE,
    ).explained(
        f"one leader at leader epoch {epoch}",
        f"brokers {first.broker_id} and {second.broker_id} became leader",
        f"Broker {first.broker_id} became leader at leader epoch {epoch} ({utc(first.at)}), and so did broker"
        f" {second.broker_id} ({utc(second.at)})"
        + (": both take writes, and" if is_at_once else ", which may have been after the first had ended:")
        + " nothing tells their records apart.",
        (*first.evidence, *second.evidence),
    )


def _long_overlap(overlap: LeadershipOverlap) -> Finding:
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
