"""Who made an election, when, and on what occasion: from the controller's own lines, else from what changed.

The state a partition leaves tells most: from OfflinePartition it is the election of an offline partition, from
OnlinePartition one of the other three. A controlled shutdown takes the old leader out of the ISR, a reassignment and a
preferred election leave the ISR as it was; of these two it is a reassignment where one is under way whose target lacks
the old leader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.view import ClusterView
from reconstruct.model.elections import ElectionKind
from reconstruct.model.states import NO_LEADER, PartitionState
from reconstruct.model.versions import ASYNC_CONTROLLER_SINCE
from reconstruct.partitions.assignment import Assignment, Window
from reconstruct.partitions.elections.controller_view import VIEW_SLACK_US, BrokerStatus, StateDecision
from reconstruct.partitions.elections.inputs import NEW_PARTITION, distinct
from reconstruct.partitions.evidence import METADATA_PARTITION, ZNODE_ASSIGNMENT, Evidence, in_order
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from reconstruct.partitions.sightings import OF_QUORUM, RANKS, Rank, Sighting, direct_sightings
from reconstruct.time.intervals import Interval
from reconstruct.time.spans import within

_ELECTED: Final[frozenset[str]] = frozenset(ElectionKind)
_KEEPS_ISR: Final[frozenset[str]] = frozenset({ElectionKind.PREFERRED_REPLICA, ElectionKind.REASSIGNED_PARTITION})


@dataclass(frozen=True, slots=True)
class Assigned:
    """Replicas that may have been assigned when a leader was elected, and the targets that a reassignment may have had.

    ``is_certain``: the controller said so itself with the election, or no version of the assignment is missing.
    """

    assignments: tuple[tuple[int, ...], ...]
    targets: tuple[tuple[int, ...], ...]
    is_reassigning: bool
    is_certain: bool


class Occasions:
    """The evidence of one partition that tells of elections, sorted once."""

    def __init__(
        self,
        facts: Iterable[Evidence],
        assignments: Sequence[Interval[Assignment]],
        reassigning: Sequence[Window],
        cluster: ClusterView,
    ) -> None:
        known = in_order(facts)
        self.assignments = assignments
        self.cluster = cluster
        #: whether the partition is a KRaft quorum's: then each change of it is a record.
        self.records = {
            f.partition_epoch: f for f in known if f.kind == METADATA_PARTITION and f.partition_epoch is not None
        }
        self.is_of_quorum = bool(self.records)
        #: whether its lines tell so, where its records are not known.
        self.is_led_by_quorum = any(f.kind in OF_QUORUM for f in known)
        self.moves = [
            f for f in known if f.kind == EventType.PARTITION_STATE_CHANGE and f.to_state == PartitionState.ONLINE
        ]
        self.logged_as_unclean = [f for f in known if f.kind == EventType.UNCLEAN_LEADER_SELECTED]
        self.started = [f for f in known if f.kind == EventType.REASSIGNMENT_STARTED and f.replicas]
        self.sent: list[Sighting] = []
        self.requests: dict[int, list[Sighting]] = {}
        for sighting in direct_sightings(known):
            if sighting.rank in (Rank.DECIDED, Rank.SENT):
                self.requests.setdefault(sighting.leader_epoch, []).append(sighting)
            if sighting.rank is Rank.SENT:
                self.sent.append(sighting)
        znodes = [f for f in known if f.kind == ZNODE_ASSIGNMENT and f.partition_epoch is not None]
        self.znodes = sorted(znodes, key=lambda f: (f.partition_epoch or 0, f.order))
        self.logged_by = {f.evidence_id: f.broker_id for f in known if f.replicas and f.kind != ZNODE_ASSIGNMENT}
        self.stated = {
            (f.partition_epoch, frozenset(f.isr))
            for f in known
            if RANKS.get(f.kind, Rank.SENT) <= Rank.COMMITTED and f.partition_epoch is not None and f.isr is not None
        }
        finished = [f.at for f in known if f.kind == EventType.REASSIGNMENT_COMPLETED]
        self.windows: list[tuple[int, int | None]] = [(start, end) for start, end, _ in reassigning]
        for fact in self.started:
            self.windows.append((fact.at, min((at for at in finished if at >= fact.at), default=None)))

    def decision(self, state: Interval[LeaderAndIsrState]) -> StateDecision:
        """The controller's own line of the election, else the first request that tells of it, else the write."""
        value = state.value
        if self.is_of_quorum:
            tenure = self.cluster.tenure_of(value.controller_epoch)
            return StateDecision(state.start, None if tenure is None else tenure.controller_id, value.controller_epoch)
        requested = [s for s in self.requests.get(value.leader_epoch, ()) if s.leader == value.leader]
        own = [s for s in requested if _is_by(s.fact, value.controller_epoch)]
        line = next((s.fact for s in own if s.fact.kind == EventType.PARTITION_STATE_CHANGE), None)
        sent = min((s for s in own if s.rank is Rank.SENT), key=lambda s: s.fact.order, default=None)
        if line is None and sent is not None:
            line = self._line_before(sent)
        if line is not None:
            return _decided(line, line.from_state, state)
        near = sent is not None and abs(sent.at - state.start) <= VIEW_SLACK_US
        if sent is not None and near and value.controller_epoch is not None:
            return _decided(sent.fact, None, state)
        return StateDecision(state.start, None, value.controller_epoch)

    def follow_each_other(self, before: LeaderAndIsrState | None, after: LeaderAndIsrState) -> bool:
        """Whether both states are known as written, by their own versions, with no write between them; ``before`` is
        None for the first."""
        version = after.partition_epoch
        if version is None or (version, frozenset(after.isr)) not in self.stated:
            return False
        if before is None:
            return version == 0
        return before.partition_epoch == version - 1 and (version - 1, frozenset(before.isr)) in self.stated

    def _line_before(self, sent: Sighting) -> Evidence | None:
        """Up to 1.0 the line names the leader and no epoch: the last before the request that tells of it."""
        before = [
            move
            for move in within(self.moves, sent.at - VIEW_SLACK_US, sent.at)
            if move.leader_epoch is None and move.leader == sent.leader and _is_by(move, sent.fact.controller_epoch)
        ]
        line = max(before, key=lambda move: move.order, default=None)
        if line is None:
            return None
        others = (s for s in within(self.sent, line.at, sent.at - 1) if s.leader == sent.leader)
        return None if any(s.leader_epoch != sent.leader_epoch for s in others) else line

    def assigned(self, decision: StateDecision, state: LeaderAndIsrState) -> Assigned:
        """What was assigned at the decision."""
        windows = [
            (start, end)
            for start, end in self.windows
            if start <= decision.at + decision.slack and (end is None or decision.at <= end + VIEW_SLACK_US)
        ]
        logged = self._logged_with(decision, state)
        if logged is not None and logged.replicas:
            adding, removing = logged.adding_replicas, logged.removing_replicas
            current = [Assignment(logged.replicas, adding, removing)]
            is_certain = True
        else:
            found = [interval for interval in self.assignments if self._may_hold(interval, decision)]
            current = [interval.value for interval in found]
            is_certain = self._is_known(decision, current)
        is_reassigning = bool(windows) or any(a.adding or a.removing for a in current)
        targets = self._targets(decision, current) if is_reassigning else ()
        return Assigned(distinct(a.replicas for a in current), targets, is_reassigning, is_certain)

    def _logged_with(self, decision: StateDecision, state: LeaderAndIsrState) -> Evidence | None:
        """The request that tells of the election restates the assignment as the controller holds it (1.1 and later)."""
        if decision.controller_id is None or self.cluster.version.may_be_before(ASYNC_CONTROLLER_SINCE):
            return None
        requested = [
            s.fact
            for s in self.requests.get(state.leader_epoch, ())
            if s.fact.kind == EventType.LEADER_AND_ISR_SENT
            and (s.leader, s.members) == (state.leader, frozenset(state.isr))
            and s.fact.controller_id == decision.controller_id
            and abs(s.at - decision.at) <= VIEW_SLACK_US
        ]
        return min(requested, key=lambda fact: fact.order, default=None)

    def _may_hold(self, interval: Interval[Assignment], decision: StateDecision) -> bool:
        is_own = decision.is_own_clock and self.logged_by.get(interval.evidence[0]) == decision.controller_id
        slack = decision.slack if is_own else VIEW_SLACK_US
        ends_before = interval.end is not None and interval.end < decision.at - VIEW_SLACK_US
        return interval.start <= decision.at + slack and not ends_before

    def _is_known(self, decision: StateDecision, current: Sequence[Assignment]) -> bool:
        """By the topic's znode: no other assignment may have stood between the version before and the next known."""
        before = [f for f in self.znodes if f.at <= decision.at + VIEW_SLACK_US]
        if not before or all(before[-1].replicas != assignment.replicas for assignment in current):
            return False
        following = self.znodes[len(before) : len(before) + 1]
        return all(
            f.partition_epoch == (before[-1].partition_epoch or 0) + 1 or f.replicas == before[-1].replicas
            for f in following
        )

    def _targets(self, decision: StateDecision, current: Sequence[Assignment]) -> tuple[tuple[int, ...], ...]:
        """Where a reassignment leads: as it was asked for, as the znode says, else what is assigned afterwards."""
        asked = [f.replicas for f in self.started if f.replicas and f.at <= decision.at + VIEW_SLACK_US][-1:]
        stated = [tuple(r for r in a.replicas if r not in a.removing) for a in current if a.removing is not None]
        found = distinct([*asked, *stated])
        if found:
            return found
        later = [i.value.replicas for i in self.assignments if i.start > decision.at - VIEW_SLACK_US]
        return distinct([*later, *(a.replicas for a in current)])


def _is_by(fact: Evidence, controller_epoch: int | None) -> bool:
    return fact.controller_id is not None and controller_epoch in (None, fact.controller_epoch)


def _decided(fact: Evidence, from_state: str | None, state: Interval[LeaderAndIsrState]) -> StateDecision:
    is_doubted = abs(fact.at - state.start) > VIEW_SLACK_US
    return StateDecision(
        fact.at, fact.controller_id, fact.controller_epoch, from_state, True, fact.evidence_id, is_doubted
    )


def possible_kinds(
    old: LeaderAndIsrState,
    new: LeaderAndIsrState,
    decision: StateDecision,
    assigned: Assigned,
    statuses: Mapping[int, frozenset[BrokerStatus]],
) -> tuple[str, ...]:
    """The kinds of election that the evidence leaves, most often one."""
    if decision.from_state == PartitionState.NEW:
        return (NEW_PARTITION,)
    if decision.from_state == PartitionState.OFFLINE or old.leader == NO_LEADER:
        return (ElectionKind.OFFLINE_PARTITION,)
    by_isr = _by_isr(old, new)
    kinds = by_isr
    if decision.from_state == PartitionState.ONLINE:
        kinds = (_ELECTED - {ElectionKind.OFFLINE_PARTITION}) & by_isr or _ELECTED - {ElectionKind.OFFLINE_PARTITION}
    else:
        kinds = _by_leader_status(kinds, statuses.get(old.leader, frozenset()))
    if kinds <= _KEEPS_ISR:
        kinds = _of_those_that_keep_the_isr(old.leader, new.leader, assigned) or kinds
    return tuple(sorted(kinds))


def _by_isr(old: LeaderAndIsrState, new: LeaderAndIsrState) -> frozenset[str]:
    """A leader that was taken out of the ISR was gone or leaving; where epochs are missing it may have left before."""
    if old.leader in new.isr:
        return _KEEPS_ISR
    if new.leader_epoch > old.leader_epoch + 1:
        return _ELECTED
    return _ELECTED - _KEEPS_ISR


def _by_leader_status(kinds: frozenset[str], statuses: frozenset[BrokerStatus]) -> frozenset[str]:
    """Without those that what the controller saw of the old leader rules out, unless nothing would be left."""
    ruled_out: set[str] = set()
    if statuses and BrokerStatus.LEAVING not in statuses:
        ruled_out.add(ElectionKind.CONTROLLED_SHUTDOWN)
    if statuses and BrokerStatus.GONE not in statuses:
        ruled_out.add(ElectionKind.OFFLINE_PARTITION)
    return kinds - ruled_out or kinds


def _of_those_that_keep_the_isr(old_leader: int, leader: int, assigned: Assigned) -> frozenset[str]:
    if assigned.is_reassigning and any(leader in t and old_leader not in t for t in assigned.targets):
        return frozenset({ElectionKind.REASSIGNED_PARTITION})
    if any(replicas[0] == leader for replicas in assigned.assignments):
        return frozenset({ElectionKind.PREFERRED_REPLICA})
    if assigned.is_certain and not assigned.is_reassigning:
        return frozenset({ElectionKind.PREFERRED_REPLICA})
    return frozenset()
