"""When each replica led or followed, and when its offsets could fall: role spans, and the drops between bounds.

A high watermark falls in three cases only. A start sets it to the checkpoint's. A follower's first fetch from a new
leader sets it to min(that leader's, own log end), which may be lower. From 2.4 on, a truncation below it takes it
along. A log end offset falls by a truncation, and by what recovery drops at a start.

The first fetch is not logged. It is *proven* by two high watermarks of one span of following, both written after its
begin, the second higher: only a fetch raises a follower's high watermark. Until then the high watermark may still fall,
but not below the leader's at the begin of the span, nor below where the log was cut to.

All instants here are of the cluster's time. A line is of its broker's clock, of which something may remain unknown: a
role span is narrowed by that to what surely was one, a drop widened to what may have been one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconstruct.offsets.bound_steps import EVER_AFTER, EVER_BEFORE, Drop
from reconstruct.offsets.clocks import DECISIONS, earlier, later
from reconstruct.offsets.evidence import DecidedState, OffsetEvidence, ReplicaEvent, ReplicaEventKind

#: The leader of a span of following whose line does not name it: nothing is proven in it.
UNKNOWN_LEADER: Final = -1
#: A line and the act it tells of lie within this; nothing in a log says how far apart they are.
LINE_TO_ACT_US: Final = 1_000_000
#: A line that prints an offset prints it as of an instant this close to its own time.
LINE_TO_VALUE_US: Final = 50_000


@dataclass(frozen=True, slots=True)
class TimedOffset:
    """One value that a quantity had at some instant of ``[earliest, latest]``.

    Of a line, ``slack_us`` is by how much its broker's clock widened that, on either side.
    """

    earliest: int
    latest: int
    offset: int
    is_minimum: bool = False
    evidence: tuple[str, ...] = ()
    slack_us: int = 0

    def may_cross(self, drop: Drop) -> bool:
        """Whether it may be of before the drop's end or of after its begin; two lines of one log keep their order."""
        slack = min(self.slack_us, drop.slack_us)
        return drop.end - slack > self.earliest + slack and drop.start + slack < self.latest - slack


@dataclass(frozen=True, slots=True)
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


def find_role_spans(evidence: OffsetEvidence, high_watermarks: Mapping[int, Sequence[TimedOffset]]) -> list[RoleSpan]:
    """Every role span of every replica. A follower's ends with its leader's, or when another leader is decided, too."""
    by_replica = _by_replica(evidence.events)
    result: list[RoleSpan] = []
    for replica, events in by_replica.items():
        slack = evidence.clocks.slack_us(replica)
        for event in events:
            if event.kind not in (ReplicaEventKind.LEADS, ReplicaEventKind.FOLLOWS):
                continue
            role = _role_of(event, events, slack)
            if role.is_leader or role.leader == UNKNOWN_LEADER:
                result.append(role)
                continue
            seen = high_watermarks.get(replica, ())
            result += [_proven(piece, seen) for piece in _pieces(role, by_replica, evidence)]
    return sorted(result, key=lambda role: (role.start, role.replica_id))


def _role_of(event: ReplicaEvent, events: Sequence[ReplicaEvent], slack: int) -> RoleSpan:
    """The role that a line tells of, to the next one in its log."""
    start, end = _span(event, events)
    ends = (start + slack, earlier(end, slack))
    widest = (start - slack, later(end, slack))
    if event.kind is ReplicaEventKind.LEADS:
        return RoleSpan(event.replica_id, *ends, event.replica_id, *widest, start, proven_from=ends[0])
    return RoleSpan(event.replica_id, *ends, UNKNOWN_LEADER if event.leader is None else event.leader, *widest, start)


def _pieces(
    role: RoleSpan, by_replica: Mapping[int, Sequence[ReplicaEvent]], evidence: OffsetEvidence
) -> Iterator[RoleSpan]:
    """A follower's role span, divided where its leader's reign ended, by the leader's log or by what was decided."""
    slack = evidence.clocks.slack_us(role.leader)
    breaks = [
        at
        for at in _ends_of_reign(by_replica.get(role.leader, ()))
        if role.begun < at + slack and at - slack < role.ended
    ]
    begins = [(role.start, role.begun)]
    begins += [(max(role.start, at + slack), max(role.begun, at - slack)) for at in breaks]
    untils = [*((min(at - slack, role.end), min(at + slack, role.ended)) for at in breaks), (role.end, role.ended)]
    for (start, begun), (end, ended) in zip(begins, untils, strict=True):
        piece = replace(role, start=start, end=end, begun=begun, ended=ended)
        yield _cut(piece, evidence.decided, evidence.clocks.slack_us(DECISIONS))


def _by_replica(events: Sequence[ReplicaEvent]) -> dict[int, list[ReplicaEvent]]:
    result: dict[int, list[ReplicaEvent]] = {}
    for event in events:
        result.setdefault(event.replica_id, []).append(event)
    return result


_CHANGES_ROLE: Final = (
    ReplicaEventKind.STARTED,
    ReplicaEventKind.LEADS,
    ReplicaEventKind.FOLLOWS,
    ReplicaEventKind.DELETED,
)


def _span(event: ReplicaEvent, events: Sequence[ReplicaEvent]) -> tuple[int, int]:
    """From ``event`` to the replica's next change of role: less what a line may be late, but for a new process."""
    following = [e for e in events[events.index(event) + 1 :] if e.kind in _CHANGES_ROLE]
    for follower in following:
        if (follower.kind, follower.leader) == (event.kind, event.leader):
            continue  # the same role again, in a new epoch
        late = 0 if follower.kind is ReplicaEventKind.STARTED else LINE_TO_ACT_US
        return event.at, max(event.at, follower.at - late)
    return event.at, EVER_AFTER


def _ends_of_reign(events: Sequence[ReplicaEvent]) -> list[int]:
    """Instants after which a leader is another one, even if it leads again and its followers never heard of it."""
    return [event.at for event in events if event.kind in _CHANGES_ROLE and event.kind is not ReplicaEventKind.LEADS]


def _cut(role: RoleSpan, decided: Sequence[DecidedState], slack: int) -> RoleSpan:
    """Up to the first decision of another leader after its begin, of which the follower may not have heard.

    A decision that may be of before the begin counts as well, but where epochs say that it came before any in which
    this leader led.
    """
    led = [state.leader_epoch for state in decided if state.leader == role.leader]
    is_complete = min((state.leader_epoch for state in decided), default=None) == 0
    since = min(led, default=0) if slack and is_complete else 0
    others = [
        state.valid_from
        for state in decided
        if state.leader != role.leader
        and state.leader_epoch >= since
        and role.begun < state.valid_from + slack
        and state.valid_from - slack < role.ended
    ]
    if not others:
        return role
    return replace(role, end=min(role.end, min(others) - slack), ended=min(role.ended, min(others) + slack))


def _proven(role: RoleSpan, seen: Sequence[TimedOffset]) -> RoleSpan:
    """With the earliest proof: a value, and a higher one after it."""
    lowest: TimedOffset | None = None
    proof: RoleSpan = role
    for held in sorted(seen, key=lambda h: (h.earliest, h.latest, h.offset)):
        if held.earliest < role.start or held.latest >= role.end or held.is_minimum:
            continue
        if lowest is not None and held.offset > lowest.offset:
            over = max(held.latest, lowest.latest)
            if over < proof.proven_from:
                proof = replace(role, proven_from=over, proven_offset=held.offset if over == held.latest else None)
        if lowest is None or held.offset < lowest.offset:
            lowest = held
    return proof


def log_drops(evidence: OffsetEvidence, replica: int) -> list[Drop]:
    """When the replica's log end offset may fall."""
    drops = _common_drops(evidence, replica)
    drops += [_cut_drop(evidence, cut) for cut in _cuts(evidence, replica)]
    return sorted(drops, key=lambda drop: (drop.start, drop.end))


def high_watermark_drops(
    evidence: OffsetEvidence,
    replica: int,
    roles: Sequence[RoleSpan],
    floors: Mapping[tuple[int, int], int],
    *,
    is_kept_in_log: bool,
) -> list[Drop]:
    """When the replica's high watermark may fall; ``floors`` by (leader, begin of following it): its then."""
    drops = _common_drops(evidence, replica)
    cuts, slack = _cuts(evidence, replica), evidence.clocks.slack_us(replica)
    if is_kept_in_log:
        drops += [_cut_drop(evidence, cut) for cut in cuts]
    for role in roles:
        if role.replica_id != replica or role.is_leader:
            continue
        proven = _first_proof(roles, role)
        begin, end = role.begun - LINE_TO_ACT_US, min(proven.proven_from, _next_role(evidence, replica, role))
        proof = proven.proven_offset if end == proven.proven_from else None
        floor = floors.get((role.leader, role.begun))
        for cut in cuts:
            if floor is not None and begin <= cut.at + slack and cut.at - slack <= end:
                floor = None if cut.offset is None else min(floor, cut.offset)
        drops.append(Drop(begin, end, floor, proof))
    return sorted(drops, key=lambda drop: (drop.start, drop.end))


def _cuts(evidence: OffsetEvidence, replica: int) -> list[ReplicaEvent]:
    return [e for e in evidence.events if e.replica_id == replica and e.kind is ReplicaEventKind.TRUNCATED]


def _cut_drop(evidence: OffsetEvidence, cut: ReplicaEvent) -> Drop:
    slack = evidence.clocks.slack_us(cut.replica_id)
    return Drop(cut.at - slack, cut.at + LINE_TO_ACT_US + slack, cut.offset, slack_us=slack)


def _first_proof(roles: Sequence[RoleSpan], role: RoleSpan) -> RoleSpan:
    """Of the role spans from ``role`` on, the one whose first fetch is proven first: it was over then in all before."""
    following = [s for s in roles if s.replica_id == role.replica_id and not s.is_leader and s.start >= role.start]
    return min(following, key=lambda s: (s.proven_from, s.start), default=role)


def _next_role(evidence: OffsetEvidence, replica: int, role: RoleSpan) -> int:
    """When an unproven follower certainly was no follower of that leader any more."""
    later_roles = [
        event.at + evidence.clocks.slack_us(replica)
        for event in evidence.events
        if event.replica_id == replica
        and event.at > max(role.logged_at, role.begun)
        and event.kind in _CHANGES_ROLE
        and not (event.kind is ReplicaEventKind.FOLLOWS and event.leader == role.leader)
    ]
    return min(later_roles, default=EVER_AFTER)


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
    for event in evidence.events:
        if event.replica_id != replica:
            continue
        if event.kind is ReplicaEventKind.STARTED:
            drops.append(Drop(event.at - slack, event.at + slack, slack_us=slack))
        elif event.kind is ReplicaEventKind.DELETED:
            widest = (event.at - LINE_TO_ACT_US - slack, event.at + LINE_TO_ACT_US + slack)
            drops.append(Drop(*widest, slack_us=slack))
    return drops
