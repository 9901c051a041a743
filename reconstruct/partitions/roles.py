"""What each broker believed of one partition: as whose replica it acted, and what its metadata cache told clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ingest.lake.tables.bronze import SourceKind
from ingest.shapes.event_types import EventType
from reconstruct.model.states import LEADER_DURING_DELETE
from reconstruct.model.value_class import value_class
from reconstruct.partitions.evidence import Evidence, in_order
from reconstruct.time.intervals import Change, Interval, close_intervals

LEADER: Final = "leader"
FOLLOWER: Final = "follower"
NONE: Final = "none"
CACHED: Final = "cached"

#: The controller and the correlation id that name a request in one broker's log.
_Request = tuple[int | None, int | None]

_TRANSITION_DONE: Final[Mapping[str, str]] = {
    EventType.BECOME_LEADER_COMPLETED: LEADER,
    EventType.BECOME_LEADER_SKIPPED: LEADER,
    EventType.BECOME_FOLLOWER_COMPLETED: FOLLOWER,
    EventType.BECOME_FOLLOWER_SKIPPED: FOLLOWER,
}
_TRANSITION_COMPLETED: Final = (EventType.BECOME_LEADER_COMPLETED, EventType.BECOME_FOLLOWER_COMPLETED)
_TRANSITION_STARTED: Final = (EventType.BECOME_LEADER_STARTED, EventType.BECOME_FOLLOWER_STARTED)
_TRANSITION_FAILED: Final = (EventType.BECOME_LEADER_FAILED, EventType.BECOME_FOLLOWER_FAILED)
#: All lines of a broker that becomes leader or follower.
ROLE_STEPS: Final = (*_TRANSITION_STARTED, *_TRANSITION_DONE, *_TRANSITION_FAILED)
#: Lines of one LeaderAndIsr request, from its receipt to its end.
_OF_ONE_REQUEST: Final = frozenset(
    {EventType.LEADER_AND_ISR_RECEIVED, EventType.LEADER_AND_ISR_IGNORED, *_TRANSITION_DONE}
)
#: From the receipt of a LeaderAndIsr to the lines that it gives, where they contradict each other, µs.
_HANDLED_WITHIN_US: Final = 5_000_000
#: Skipped because the broker held a newer partition epoch (since 3.3): the request changed nothing.
_SKIPPED_AS_OLDER: Final = frozenset({"SC-PART-11", "SC-PART-16", "SC-KR-01", "SC-KR-03"})


@value_class
class Role:
    """What a broker held true; None where its log does not say."""

    role: str
    leader: int | None = None
    leader_epoch: int | None = None
    isr: tuple[int, ...] | None = None
    partition_epoch: int | None = None
    told_by_controller_id: int | None = None
    told_by_controller_epoch: int | None = None


@value_class
class RoleChange:
    """One become-leader or become-follower, as a broker did it: what the rules about belief judge.

    ``is_failed``: it could not, and went on as before.
    """

    broker_id: int
    fact: Evidence
    role: Role
    evidence: tuple[str, ...]
    is_failed: bool = False

    @property
    def at(self) -> int:
        return self.fact.at


def replica_manager_timelines(
    evidence: Iterable[Evidence], process_starts: Mapping[int, Sequence[tuple[int, str]]]
) -> dict[int, list[Interval[Role]]]:
    """By broker: as what it acted. A broker that starts again forgets, whatever it was before."""
    timelines = {}
    for broker_id, facts in by_broker(evidence).items():
        starts = process_starts.get(broker_id, ())
        acts = (act for act in _acts(broker_id, facts, starts) if not act.is_failed)
        changes = [Change(act.at, act.role, act.evidence) for act in acts]
        timelines[broker_id] = _closed(changes, starts)
    return {broker_id: timeline for broker_id, timeline in timelines.items() if timeline}


def metadata_cache_timelines(
    evidence: Iterable[Evidence], process_starts: Mapping[int, Sequence[tuple[int, str]]]
) -> dict[int, list[Interval[Role]]]:
    """By broker: what its metadata cache held."""
    timelines = {}
    for broker_id, facts in by_broker(evidence).items():
        changes = []
        for fact in facts:
            if fact.kind == EventType.METADATA_DELETED or (
                fact.kind == EventType.METADATA_CACHED and fact.leader == LEADER_DURING_DELETE
            ):
                changes.append(Change(fact.at, _none(fact), (fact.evidence_id,)))
            elif fact.kind == EventType.METADATA_CACHED:
                changes.append(Change(fact.at, _role_of(CACHED, fact, fact.leader), (fact.evidence_id,)))
        timelines[broker_id] = _closed(changes, process_starts.get(broker_id, ()))
    return {broker_id: timeline for broker_id, timeline in timelines.items() if timeline}


def role_changes(
    evidence: Iterable[Evidence], process_starts: Mapping[int, Sequence[tuple[int, str]]]
) -> list[RoleChange]:
    """Every completed become-leader and become-follower, those included that failed, whose leader epoch the broker's
    log tells."""
    return [
        act
        for broker_id, facts in sorted(by_broker(evidence).items())
        for act in _acts(broker_id, facts, process_starts.get(broker_id, ()))
        if act.role.role in (LEADER, FOLLOWER) and act.role.leader_epoch is not None
    ]


def by_broker(evidence: Iterable[Evidence]) -> dict[int, list[Evidence]]:
    """What each broker logged of the partition as a broker, in order."""
    result: dict[int, list[Evidence]] = {}
    for fact in in_order(evidence):
        if fact.broker_id is not None and fact.source_kind in (SourceKind.STATE_CHANGE_LOG, SourceKind.SERVER_LOG):
            result.setdefault(fact.broker_id, []).append(fact)
    return result


def _acts(broker_id: int, facts: Sequence[Evidence], starts: Sequence[tuple[int, str]]) -> list[RoleChange]:
    """A completed transition names a request; the request's receipt, before it in the same log, names the epoch.

    Correlation ids begin again with each start of the broker, each controller and each connection: a receipt counts
    once, and not long after of another role, or of what follows a line of a higher leader epoch. A transition that
    failed (the new leader is not alive, the disk is not readable) is logged as completed all the same: the broker goes
    on as before.
    """
    received: dict[_Request, Evidence] = {}
    failed: set[_Request] = set()
    started: _Request = (None, None)
    stops = _accepted_stops(facts)
    acts: list[RoleChange] = []
    restarts = sorted(at for at, _ in starts)
    for fact in facts:
        while restarts and restarts[0] <= fact.at:
            restarts.pop(0)
            received.clear()
            failed.clear()
        request = (fact.controller_id, fact.correlation_id)
        if fact.kind in _OF_ONE_REQUEST and fact.correlation_id is not None and request not in received:
            received.clear()  # requests are handled one after the other: what was received before is over
        if fact.kind == EventType.LEADER_AND_ISR_RECEIVED:
            received[request] = fact
            failed.discard(request)
        elif fact.kind in _TRANSITION_STARTED:
            started = request
        elif fact.kind in _TRANSITION_FAILED or fact.shape_id in _SKIPPED_AS_OLDER:
            failed.add(started if fact.correlation_id is None else request)
        elif fact.kind == EventType.LEADER_EPOCH_STARTED and fact.role in (LEADER, FOLLOWER):
            leader = broker_id if fact.role == LEADER else fact.leader
            acts.append(RoleChange(broker_id, fact, _role_of(fact.role, fact, leader), (fact.evidence_id,)))
            received = {told: receipt for told, receipt in received.items() if not _is_over(receipt, fact)}
        elif fact.kind in _TRANSITION_DONE:
            done = _done(broker_id, fact, received.get(request))
            acts.append(replace(done, is_failed=request in failed))
            if fact.kind in _TRANSITION_COMPLETED:
                received.pop(request, None)
        elif fact.evidence_id in stops:
            acts.append(RoleChange(broker_id, fact, _none(fact), (fact.evidence_id,)))
    return acts


def _is_over(receipt: Evidence, fact: Evidence) -> bool:
    """Whether a line of a higher leader epoch, that long after, is of another request."""
    told, now = receipt.leader_epoch, fact.leader_epoch
    return told is not None and now is not None and told < now and fact.at - receipt.at > _HANDLED_WITHIN_US


def _done(broker_id: int, fact: Evidence, request: Evidence | None) -> RoleChange:
    """A transition with the state that its request told; correlation ids start again with each controller."""
    role = _TRANSITION_DONE[fact.kind]
    if request is not None and fact.at - request.at > _HANDLED_WITHIN_US:
        # the other role is that of another request
        request = None if (request.leader == broker_id) is (role == FOLLOWER) else request
    if request is None or request.leader is None or fact.controller_epoch not in (None, request.controller_epoch):
        leader = broker_id if role == LEADER else fact.leader
        return RoleChange(broker_id, fact, _role_of(role, fact, leader), (fact.evidence_id,))
    value = _role_of(role, request, broker_id if role == LEADER else request.leader)
    return RoleChange(broker_id, fact, value, (fact.evidence_id, request.evidence_id))


def _accepted_stops(facts: Sequence[Evidence]) -> frozenset[str]:
    """The lines that show a StopReplica carried out: the end of its handling up to 2.5; since 2.6 its receipt, with a
    correlation id, where no line refuses it and no higher controller epoch had been accepted."""
    refused = {(f.controller_id, f.correlation_id) for f in facts if f.kind == EventType.STOP_REPLICA_IGNORED}
    highest = -1
    stops = set()
    for fact in facts:
        if fact.kind == EventType.STOP_REPLICA_HANDLED:
            stops.add(fact.evidence_id)
        elif fact.kind == EventType.STOP_REPLICA_RECEIVED:
            is_refused = (fact.controller_id, fact.correlation_id) in refused or (fact.controller_epoch or 0) < highest
            if fact.correlation_id is not None and not is_refused:
                stops.add(fact.evidence_id)
        elif fact.kind == EventType.METADATA_CACHED or fact.kind in _TRANSITION_DONE:
            highest = max(highest, fact.controller_epoch or -1)
    return frozenset(stops)


def _none(fact: Evidence) -> Role:
    return Role(NONE, told_by_controller_id=fact.controller_id, told_by_controller_epoch=fact.controller_epoch)


def _role_of(role: str, fact: Evidence, leader: int | None) -> Role:
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
