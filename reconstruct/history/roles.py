"""What each broker believed of one partition: as whose replica it acted, and what its metadata cache told clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconstruct.history.evidence import Evidence, in_order
from reconstruct.history.intervals import Change, Interval, close_intervals
from reconstruct.history.sightings import LEADER_DURING_DELETE

LEADER: Final = "leader"
FOLLOWER: Final = "follower"
NONE: Final = "none"
CACHED: Final = "cached"

_TRANSITION_DONE: Final = {
    "become_leader_completed": LEADER,
    "become_leader_skipped": LEADER,
    "become_follower_completed": FOLLOWER,
    "become_follower_skipped": FOLLOWER,
}


@dataclass(frozen=True, slots=True)
class Role:
    """What a broker held true; None where its log does not say."""

    role: str
    leader: int | None = None
    leader_epoch: int | None = None
    isr: tuple[int, ...] | None = None
    partition_epoch: int | None = None
    told_by_controller_id: int | None = None
    told_by_controller_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class RoleChange:
    """One become-leader or become-follower, as a broker did it: what the rules about belief judge."""

    broker_id: int
    at: int
    role: Role
    evidence: tuple[str, ...]


def replica_manager_timelines(
    evidence: Iterable[Evidence], process_starts: Mapping[int, Sequence[tuple[int, str]]]
) -> dict[int, list[Interval[Role]]]:
    """By broker: as what it acted. A broker that starts again forgets, whatever it was before."""
    timelines = {}
    for broker_id, facts in _by_broker(evidence).items():
        changes = _acts(facts)
        timelines[broker_id] = _closed(changes, process_starts.get(broker_id, ()))
    return {broker_id: timeline for broker_id, timeline in timelines.items() if timeline}


def metadata_cache_timelines(
    evidence: Iterable[Evidence], process_starts: Mapping[int, Sequence[tuple[int, str]]]
) -> dict[int, list[Interval[Role]]]:
    """By broker: what its metadata cache held."""
    timelines = {}
    for broker_id, facts in _by_broker(evidence).items():
        changes = []
        for fact in facts:
            if fact.kind == "metadata_deleted" or (
                fact.kind == "metadata_cached" and fact.leader == LEADER_DURING_DELETE
            ):
                changes.append(
                    Change(
                        fact.at,
                        Role(
                            NONE,
                            told_by_controller_id=fact.controller_id,
                            told_by_controller_epoch=fact.controller_epoch,
                        ),
                        (fact.evidence_id,),
                    )
                )
            elif fact.kind == "metadata_cached":
                changes.append(Change(fact.at, _told(CACHED, fact, fact.leader), (fact.evidence_id,)))
        timelines[broker_id] = _closed(changes, process_starts.get(broker_id, ()))
    return {broker_id: timeline for broker_id, timeline in timelines.items() if timeline}


def role_changes(evidence: Iterable[Evidence]) -> list[RoleChange]:
    """Every completed become-leader and become-follower whose leader epoch the broker's log tells."""
    return [
        RoleChange(broker_id, change.at, change.value, change.evidence)
        for broker_id, facts in sorted(_by_broker(evidence).items())
        for change in _acts(facts)
        if change.value is not None
        and change.value.role in (LEADER, FOLLOWER)
        and change.value.leader_epoch is not None
    ]


def _by_broker(evidence: Iterable[Evidence]) -> dict[int, list[Evidence]]:
    result: dict[int, list[Evidence]] = {}
    for fact in in_order(evidence):
        if fact.broker_id is not None and fact.source_kind in ("state_change_log", "server_log"):
            result.setdefault(fact.broker_id, []).append(fact)
    return result


def _acts(facts: Sequence[Evidence]) -> list[Change[Role]]:
    """A completed transition names a request; the request's receipt, before it in the same log, names the epoch."""
    received: dict[tuple[int | None, int | None], Evidence] = {}
    changes: list[Change[Role]] = []
    for fact in facts:
        request = (fact.controller_id, fact.correlation_id)
        if fact.kind == "leader_and_isr_received":
            received[request] = fact
        elif fact.kind == "leader_epoch_started" and fact.role in (LEADER, FOLLOWER):
            leader = fact.broker_id if fact.role == LEADER else fact.leader
            changes.append(Change(fact.at, _told(fact.role, fact, leader), (fact.evidence_id,)))
        elif fact.kind in _TRANSITION_DONE:
            role = _TRANSITION_DONE[fact.kind]
            told = received.get(request)
            if told is not None and told.leader is not None:
                value = _told(role, told, fact.broker_id if role == LEADER else told.leader)
                changes.append(Change(fact.at, value, (fact.evidence_id, told.evidence_id)))
            else:
                leader = fact.broker_id if role == LEADER else fact.leader
                changes.append(Change(fact.at, _told(role, fact, leader), (fact.evidence_id,)))
        elif fact.kind == "stop_replica_handled":
            changes.append(
                Change(
                    fact.at,
                    Role(
                        NONE, told_by_controller_id=fact.controller_id, told_by_controller_epoch=fact.controller_epoch
                    ),
                    (fact.evidence_id,),
                )
            )
    return changes


def _told(role: str, fact: Evidence, leader: int | None) -> Role:
    return Role(
        role, leader, fact.leader_epoch, fact.isr, fact.partition_epoch, fact.controller_id, fact.controller_epoch
    )


def _closed(changes: Sequence[Change[Role]], starts: Sequence[tuple[int, str]]) -> list[Interval[Role]]:
    """Intervals, a restart forgetting all, restatements of what was believed already left out."""
    if not changes:
        return []
    first = changes[0].at
    forgets = [Change(at, Role(NONE), (record_id,)) for at, record_id in starts if at > first]
    kept: list[Change[Role]] = []
    for change in sorted([*changes, *forgets], key=lambda c: c.at):
        previous = kept[-1].value if kept else None
        if previous is not None and change.value is not None and _same_belief(previous, change.value):
            continue
        kept.append(change)
    return close_intervals(kept)


def _same_belief(before: Role, after: Role) -> bool:
    if before.role == NONE or after.role == NONE:
        return before.role == after.role
    same_place = (before.role, before.leader_epoch) == (after.role, after.leader_epoch)
    same_leader = before.leader == after.leader or after.leader is None
    same_isr = after.isr is None or (before.isr is not None and frozenset(before.isr) == frozenset(after.isr))
    return same_place and same_leader and same_isr
