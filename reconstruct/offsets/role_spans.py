"""When each replica led or followed, and when its offsets could fall: role spans, and the drops between bounds.

A high watermark falls in three cases only. A start sets it to the checkpoint's. A follower's first fetch from a new
leader sets it to min(that leader's, own log end), which may be lower. From 2.4 on, a truncation below it takes it
along. A broker warns of each such fall since then, so that it is known where the lines of its cause are missing. A log
end offset falls by a truncation, and by what recovery drops at a start.

The first fetch is not logged. It is *proven* by two high watermarks of one span of following, both written after its
begin, the second higher: only a fetch raises a follower's high watermark. Until then the high watermark may still fall,
but not below the leader's at the begin of the span, nor below where the log was cut to.

All instants here are of the cluster's time. A line is of its broker's clock, of which something may remain unknown: a
role span is narrowed by that to what surely was one, a drop widened to what may have been one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final

from reconstruct.model.value_class import value_class
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_AFTER, EVER_BEFORE, Drop
from reconstruct.offsets.clocks import DECISIONS, earlier, later
from reconstruct.offsets.evidence import (
    LINE_TO_ACT_US,
    LINE_TO_VALUE_US,
    OffsetEvidence,
    ReplicaEvent,
    ReplicaEventKind,
)
from reconstruct.offsets.timed_offsets import Key, TimedOffset

#: The leader of a span of following whose line does not name it: nothing is proven in it.
UNKNOWN_LEADER: Final = -1
#: After one of these a leader is another one, even if it leads again and its followers never heard of it.
_ENDS_REIGN: Final = (ReplicaEventKind.STARTED, ReplicaEventKind.FOLLOWS, ReplicaEventKind.DELETED)
_CHANGES_ROLE: Final = (*_ENDS_REIGN, ReplicaEventKind.LEADS)


@value_class
class RoleSpan:
    """One replica in one role without a break, surely from ``start`` to ``end``; that may be never.

    It began at ``begun`` or later and ended by ``ended``; ``logged_at`` is the time of its line, by its broker's clock.
    A follower's ``proven_from`` is when its first fetch surely was over.
    """

    replica_id: int
    start: int
    end: int
    leader: int
    begun: int
    ended: int
    logged_at: int
    proven_from: int = EVER_AFTER
    proven_offset: int | None = None

    @property
    def is_leader(self) -> bool:
        return self.replica_id == self.leader

    def follows(self, replica_id: int) -> bool:
        """Whether it is of ``replica_id`` as a follower."""
        return self.replica_id == replica_id and not self.is_leader


def find_role_spans(evidence: OffsetEvidence, values: Mapping[Key, Sequence[TimedOffset]]) -> list[RoleSpan]:
    """Every role span of every replica. A follower's ends with its leader's, or when another leader is decided, too."""
    result: list[RoleSpan] = []
    reigns = _Reigns(evidence)
    for replica in dict.fromkeys(event.replica_id for event in evidence.events):
        events = evidence.events_of(replica, *_CHANGES_ROLE)
        slack = evidence.clocks.slack_us(replica)
        known = sorted(values.get((replica, oe.HIGH_WATERMARK), ()), key=lambda v: (v.earliest, v.latest, v.offset))
        own = [value for value in known if not value.is_minimum]
        before: RoleSpan | None = None
        for event, change in zip(events, _next_changes(events), strict=True):
            if event.kind not in (ReplicaEventKind.LEADS, ReplicaEventKind.FOLLOWS):
                continue
            role = _role_of(event, change, slack)
            if role.is_leader or role.leader == UNKNOWN_LEADER:
                result.append(role)
            else:
                result += [_proven(piece, own) for piece in reigns.pieces(role, before)]
            before = role
    return sorted(result, key=lambda role: (role.start, role.replica_id))


def _next_changes(events: Sequence[ReplicaEvent]) -> list[ReplicaEvent | None]:
    """Of each the next one that is another: the same role again, in a new epoch, is none."""
    found: list[ReplicaEvent | None] = []
    following: ReplicaEvent | None = None
    for event in reversed(events):
        is_same = following is not None and (following.kind, following.leader) == (event.kind, event.leader)
        found.append(found[-1] if is_same else following)
        following = event
    return found[::-1]


def _role_of(event: ReplicaEvent, change: ReplicaEvent | None, slack: int) -> RoleSpan:
    """The role that a line tells of, to the next change in its log: less what a line may be late, but for a new
    process."""
    start, end = event.at, EVER_AFTER
    if change is not None:
        end = max(start, change.at - (0 if change.kind is ReplicaEventKind.STARTED else LINE_TO_ACT_US))
    ends = (start + slack, earlier(end, slack))
    widest = (start - slack, later(end, slack))
    if event.kind is ReplicaEventKind.LEADS:
        return RoleSpan(event.replica_id, *ends, event.replica_id, *widest, start, proven_from=ends[0])
    return RoleSpan(event.replica_id, *ends, UNKNOWN_LEADER if event.leader is None else event.leader, *widest, start)


class _Reigns:
    """When each replica's reign as leader ended, by its own log and by what was decided."""

    def __init__(self, evidence: OffsetEvidence) -> None:
        self._clocks = evidence.clocks
        self._ends: dict[int, list[int]] = {}
        for event in sorted(evidence.events, key=lambda event: event.at):
            if event.kind in _ENDS_REIGN:
                self._ends.setdefault(event.replica_id, []).append(event.at)
        self._decided = sorted(evidence.decided, key=lambda state: state.valid_from)
        self._decided_at = [state.valid_from for state in self._decided]
        #: by leader the first epoch in which it led, and the first of all.
        self._first_epochs: dict[int, int] = {}
        for state in self._decided:
            known = self._first_epochs.setdefault(state.leader, state.leader_epoch)
            self._first_epochs[state.leader] = min(known, state.leader_epoch)
        self._is_complete = min(self._first_epochs.values(), default=None) == 0

    def pieces(self, role: RoleSpan, before: RoleSpan | None) -> Iterator[RoleSpan]:
        """A follower's role span, divided where its leader's reign ended, by the leader's log or by what was decided.
        Of one that only goes on with the span ``before``, those that are not pieces of that, too."""
        goes_on = before is not None and (before.leader, before.end, before.ended) == (
            role.leader,
            role.end,
            role.ended,
        )
        slack = self._clocks.slack_us(role.leader)
        ends = self._ends.get(role.leader, [])
        breaks = ends[bisect_right(ends, role.begun - slack) : bisect_left(ends, role.ended + slack)]
        begins = [(role.start, role.begun)]
        begins += [(max(role.start, at + slack), max(role.begun, at - slack)) for at in breaks]
        untils = [*((min(at - slack, role.end), min(at + slack, role.ended)) for at in breaks), (role.end, role.ended)]
        for (start, begun), (end, ended) in zip(begins, untils, strict=True):
            if goes_on and start > role.start and begun >= role.logged_at:
                return
            yield self._cut(replace(role, start=start, end=end, begun=begun, ended=ended))

    def _cut(self, role: RoleSpan) -> RoleSpan:
        """Up to the first decision of another leader after its begin, of which the follower may not have heard.

        A decision that may be of before the begin counts as well, but where epochs say that it came before any in
        which this leader led.
        """
        slack = self._clocks.slack_us(DECISIONS)
        since = self._first_epochs.get(role.leader, 0) if slack and self._is_complete else 0
        first = bisect_right(self._decided_at, role.begun - slack)
        for index in range(first, bisect_left(self._decided_at, role.ended + slack)):
            state = self._decided[index]
            if state.leader != role.leader and state.leader_epoch >= since:
                at = state.valid_from
                return replace(role, end=min(role.end, at - slack), ended=min(role.ended, at + slack))
        return role


def _proven(role: RoleSpan, high_watermarks: Sequence[TimedOffset]) -> RoleSpan:
    """With the earliest proof: a value, and a higher one after it. ``high_watermarks`` are in the order of time."""
    lowest: TimedOffset | None = None
    proof = role
    for index in range(bisect_left(high_watermarks, role.start, key=_earliest), len(high_watermarks)):
        value = high_watermarks[index]
        if value.earliest >= min(role.end, proof.proven_from):
            break
        if value.latest >= role.end:
            continue
        if lowest is not None and value.offset > lowest.offset:
            over = max(value.latest, lowest.latest)
            if over < proof.proven_from:
                proof = replace(role, proven_from=over, proven_offset=value.offset if over == value.latest else None)
        if lowest is None or value.offset < lowest.offset:
            lowest = value
    return proof


_earliest: Final = attrgetter("earliest")


def drops_of(
    evidence: OffsetEvidence,
    replicas: Iterable[int],
    roles: Sequence[RoleSpan],
    floors: Mapping[tuple[int, int], int],
    *,
    is_kept_in_log: bool,
) -> dict[Key, list[Drop]]:
    """When each offset of each replica may fall.

    ``floors`` by (leader, begin of following it) is the leader's high watermark then. ``is_kept_in_log``: a truncation
    takes the high watermark along (since 2.4).
    """
    result: dict[Key, list[Drop]] = {}
    for replica in replicas:
        common, cuts = _common_drops(evidence, replica), evidence.events_of(replica, ReplicaEventKind.TRUNCATED)
        of_log = [*common, *(_cut_drop(evidence, cut) for cut in cuts)]
        if is_kept_in_log:
            of_log += [_told_drop(evidence, event) for event in _lowered_untold(evidence, replica, cuts)]
        of_follower = _first_fetch_drops(evidence, replica, roles, floors, cuts)
        of_high_watermark = [*(of_log if is_kept_in_log else common), *of_follower]
        for quantity in (oe.LOG_END_OFFSET, oe.LOG_START_OFFSET, oe.RECOVERY_POINT):
            result[replica, quantity] = sorted(of_log, key=lambda drop: (drop.start, drop.end))
        result[replica, oe.HIGH_WATERMARK] = sorted(of_high_watermark, key=lambda drop: (drop.start, drop.end))
    return result


def _first_fetch_drops(
    evidence: OffsetEvidence,
    replica: int,
    roles: Sequence[RoleSpan],
    floors: Mapping[tuple[int, int], int],
    cuts: Sequence[ReplicaEvent],
) -> list[Drop]:
    """A follower's first fetch from each leader, with which it takes the leader's high watermark."""
    slack = evidence.clocks.slack_us(replica)
    followed = [role for role in roles if role.follows(replica)]
    proofs = _first_proofs(followed)
    changes = _ChangesOfRole(evidence, replica)
    result = []
    for role in followed:
        proven = proofs[bisect_left(followed, role.start, key=lambda span: span.start)]
        begin, end = role.begun - LINE_TO_ACT_US, min(proven.proven_from, changes.next_role(role))
        floor = floors.get((role.leader, role.begun))
        for cut in cuts if floor is not None else ():
            if floor is not None and begin <= cut.at + slack and cut.at - slack <= end:
                floor = None if cut.offset is None else min(floor, cut.offset)
        result.append(Drop(begin, end, floor, proven.proven_offset if end == proven.proven_from else None))
    return result


def _cut_drop(evidence: OffsetEvidence, cut: ReplicaEvent) -> Drop:
    slack = evidence.clocks.slack_us(cut.replica_id)
    return Drop(cut.at - slack, cut.at + LINE_TO_ACT_US + slack, cut.offset, slack_us=slack)


def _lowered_untold(evidence: OffsetEvidence, replica: int, cuts: Sequence[ReplicaEvent]) -> list[ReplicaEvent]:
    """Warnings of a high watermark that fell, without a line of a cut just before that tells why."""
    return [
        event
        for event in evidence.events_of(replica, ReplicaEventKind.LOWERED)
        if not any(cut.at <= event.at <= cut.at + LINE_TO_ACT_US for cut in cuts)
    ]


def _told_drop(evidence: OffsetEvidence, lowered: ReplicaEvent) -> Drop:
    """A high watermark that fell, and a log that may have been cut for that, to no less, just before the line."""
    slack = evidence.clocks.slack_us(lowered.replica_id)
    ends = lowered.at - LINE_TO_VALUE_US - slack, lowered.at + LINE_TO_VALUE_US + slack
    return Drop(*ends, lowered.offset, slack_us=slack)


def _first_proofs(followed: Sequence[RoleSpan]) -> list[RoleSpan]:
    """Of the role spans of one follower from each on, the one whose first fetch is proven first: it was over then in
    all before."""
    found: list[RoleSpan] = []
    for role in reversed(followed):
        found.append(min([role, *found[-1:]], key=lambda span: (span.proven_from, span.start)))
    return found[::-1]


class _ChangesOfRole:
    """What ended a replica's roles, in the order of time."""

    def __init__(self, evidence: OffsetEvidence, replica: int) -> None:
        self._slack = evidence.clocks.slack_us(replica)
        self._events = sorted(evidence.events_of(replica, *_CHANGES_ROLE), key=lambda event: event.at)
        self._instants = [event.at for event in self._events]
        self._following = _next_changes(self._events)

    def next_role(self, role: RoleSpan) -> int:
        """When an unproven follower certainly was no follower of that leader any more."""
        index = bisect_right(self._instants, max(role.logged_at, role.begun))
        event = self._events[index] if index < len(self._events) else None
        if event is not None and (event.kind, event.leader) == (ReplicaEventKind.FOLLOWS, role.leader):
            event = self._following[index]
        return EVER_AFTER if event is None else event.at + self._slack


def _common_drops(evidence: OffsetEvidence, replica: int) -> list[Drop]:
    drops = []
    slack = evidence.clocks.slack_us(replica)
    end = EVER_BEFORE
    for start, until in sorted(evidence.covered.get(replica, ())):
        if start > end:
            drops.append(Drop(earlier(end, slack), later(start, slack), slack_us=slack))
        end = max(end, until)
    if end < EVER_AFTER:
        drops.append(Drop(earlier(end, slack), EVER_AFTER, slack_us=slack))
    for event in evidence.events_of(replica, ReplicaEventKind.STARTED, ReplicaEventKind.DELETED):
        either_way = slack + (LINE_TO_ACT_US if event.kind is ReplicaEventKind.DELETED else 0)
        drops.append(Drop(event.at - either_way, event.at + either_way, slack_us=slack))
    return drops
