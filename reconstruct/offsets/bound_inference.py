"""The rules of replication that carry facts from one offset to another: each where it is proven to hold, nowhere else.

Five rules, explained in :mod:`reconstruct.offsets.timeline`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import (
    EVER_AFTER,
    EVER_BEFORE,
    Drop,
    Fact,
    Step,
    interval_at,
    lower_steps,
    upper_steps,
)
from reconstruct.offsets.clocks import DECISIONS, earlier, later
from reconstruct.offsets.evidence import LINE_TO_ACT_US, OffsetEvidence, ReplicaEventKind
from reconstruct.offsets.role_spans import RoleSpan
from reconstruct.offsets.timed_offsets import Key
from reconstruct.time.spans import SpansByTime, within


@dataclass(slots=True)
class Facts:
    """Facts by (replica, quantity), each once and in the order of time, and the drops they stop at."""

    lower: dict[Key, list[Fact]] = field(default_factory=dict)
    upper: dict[Key, list[Fact]] = field(default_factory=dict)
    drops: dict[Key, list[Drop]] = field(default_factory=dict)

    def at_least(self, key: Key, fact: Fact) -> None:
        _put(self.lower.setdefault(key, []), fact)

    def at_most(self, key: Key, fact: Fact) -> bool:
        """Whether it was not known."""
        return _put(self.upper.setdefault(key, []), fact)

    def lower_of(self, key: Key) -> list[Step]:
        return lower_steps(self.lower.get(key, ()), self.drops.get(key, ()))

    def upper_of(self, key: Key) -> list[Step]:
        return upper_steps(self.upper.get(key, ()), self.drops.get(key, ()))


def _put(facts: list[Fact], fact: Fact) -> bool:
    index = bisect_left(facts, fact)
    is_new = index == len(facts) or facts[index] != fact
    if is_new:
        facts.insert(index, fact)
    return is_new


def infer_within_replica(
    facts: Facts, evidence: OffsetEvidence, replicas: Sequence[int], roles: Sequence[RoleSpan], *, is_kept_in_log: bool
) -> None:
    """High watermark <= log end offset."""
    for replica in replicas:
        above = [] if is_kept_in_log else _may_be_above(evidence, replica, roles)
        high_watermark, log_end = (replica, oe.HIGH_WATERMARK), (replica, oe.LOG_END_OFFSET)
        for fact in list(facts.lower.get(high_watermark, ())):
            if not any(start <= fact.at <= end for start, end in above):
                facts.at_least(log_end, fact)
        for fact in list(facts.upper.get(log_end, ())):
            if not any(start <= fact.at <= end for start, end in above):
                facts.at_most(high_watermark, fact)
        for fact in list(facts.lower.get((replica, oe.RECOVERY_POINT), ())):
            facts.at_least(log_end, fact)


def _may_be_above(evidence: OffsetEvidence, replica: int, roles: Sequence[RoleSpan]) -> list[tuple[int, int]]:
    """Spans from a truncation to the next proven fetch or start: there the high watermark may be above the log."""
    slack = evidence.clocks.slack_us(replica)
    starts = [event.at for event in evidence.events_of(replica, ReplicaEventKind.STARTED)]
    fetched = [role.proven_from for role in roles if role.follows(replica)]
    result = []
    for cut in evidence.events_of(replica, ReplicaEventKind.TRUNCATED):
        healed = [at + slack for at in starts if at > cut.at] + [at for at in fetched if at > cut.at + slack]
        result.append((cut.at - slack, min(healed, default=EVER_AFTER)))
    return result


def infer_between_replicas(facts: Facts, roles: Sequence[RoleSpan]) -> None:
    """A proven follower's high watermark and log end are not above its leader's."""
    for role in roles:
        if role.is_leader or role.proven_from >= role.end:
            continue
        for quantity in (oe.HIGH_WATERMARK, oe.LOG_END_OFFSET):
            own, leaders = (role.replica_id, quantity), (role.leader, quantity)
            for fact in within(facts.lower.get(own, ()), role.proven_from, role.end - 1):
                facts.at_least(leaders, fact)
            for fact in within(facts.upper.get(leaders, ()), role.proven_from, role.end - 1):
                facts.at_most(own, fact)


def infer_over_isr(facts: Facts, evidence: OffsetEvidence, roles: Sequence[RoleSpan]) -> None:
    """Every member of the ISR has what the leader committed since this reign began and the member last lost anything.

    So what the leader committed bounds its members' log ends from below, and their log ends what it committed from
    above. A reign ends, for this, where another leader is decided, heard of or not: its followers may have cut their
    logs.
    """
    slack = evidence.clocks.slack_us(DECISIONS)
    log_ends: dict[int, list[Step]] = {}  # nothing here bounds a log end from above
    followed: dict[tuple[int, int], list[RoleSpan]] = {}
    for role in roles:
        followed.setdefault((role.leader, role.replica_id), []).append(role)
    followed_by = {pair: _Followed(spans) for pair, spans in followed.items()}
    drops_of: dict[int, SpansByTime[Drop]] = {}
    decided_until = list(accumulate((state.end for state in evidence.decided), max))
    #: what bounded a leader's high watermark from above, and the latest instant that something bounds closer since.
    committed_by: dict[int, tuple[list[Step], int]] = {}
    for role in roles:
        if not role.is_leader:
            continue
        key = (role.leader, oe.HIGH_WATERMARK)
        if committed_by.get(role.leader, ((), EVER_AFTER))[1] >= role.start:
            committed_by[role.leader] = facts.upper_of(key), EVER_BEFORE
        committed, newest = committed_by[role.leader]
        reached = facts.lower.get(key, ())
        began = role.start
        known_by: dict[tuple[int, int], _KnownOfMember] = {}
        # none that was over by then, nor any after it
        for index in range(bisect_right(decided_until, earlier(role.start, slack)), len(evidence.decided)):
            state = evidence.decided[index]
            if state.valid_from + slack >= role.end:
                break
            if state.leader != role.leader:
                began = max(began, min(later(state.end, slack), role.end))
                continue
            start, until = max(state.valid_from + slack, began), min(earlier(state.end, slack), role.end)
            if start >= until:
                continue
            for member in set(state.isr) - {role.leader}:
                if (member, began) not in known_by:
                    if member not in drops_of:
                        drops_of[member] = SpansByTime(facts.drops.get((member, oe.LOG_END_OFFSET), ()))
                    spans = followed_by.get((role.leader, member), _Followed(()))
                    known_by[member, began] = _KnownOfMember(drops_of[member], spans, began, role.end, committed)
                known_at = known_by[member, began].at
                for fact in within(reached, start + 1, until - 1):
                    known = known_at(fact.at)
                    if known is not None and known.offset < fact.offset:
                        facts.at_least((member, oe.LOG_END_OFFSET), fact)
                if member not in log_ends:
                    log_ends[member] = facts.upper_of((member, oe.LOG_END_OFFSET))
                log_end = log_ends[member]
                first = bisect_right(log_end, start, key=lambda step: step.end)
                last = bisect_left(log_end, until, key=lambda step: step.start)
                for instant in {min(step.end, until) - 1 for step in log_end[first:last]}:
                    known, limit = known_at(instant), interval_at(log_end, instant)
                    if known is not None and limit is not None:
                        higher = known if known.offset > limit.offset else limit
                        is_new = facts.at_most(key, Fact(instant, higher.offset, higher.evidence))
                        bounded = interval_at(committed, instant)
                        if is_new and (bounded is None or bounded.offset > higher.offset):
                            newest = max(newest, instant)
        committed_by[role.leader] = committed, newest


class _Followed:
    """A replica's spans under one leader."""

    def __init__(self, spans: Iterable[RoleSpan]) -> None:
        of_leader = list(spans)
        self._begun = sorted(span.begun for span in of_leader)
        self._proven = sorted(span.proven_from for span in of_leader)

    def begun_from(self, instant: int) -> int:
        """When the first of those began that began then or later."""
        return _next(self._begun, bisect_left(self._begun, instant))

    def fetched_after(self, instant: int) -> int:
        """When the first fetch after it surely was over."""
        return _next(self._proven, bisect_right(self._proven, instant))


def _next(instants: Sequence[int], index: int) -> int:
    return instants[index] if index < len(instants) else EVER_AFTER


class _KnownOfMember:
    """What the leader had committed at most when what it knows of a member's log began to be what the member has.

    That is so since the reign began or the member last lost anything before it fetched from this leader. One that lost
    something afterwards, as a broker that is back before anybody noticed, may have less than the leader counts it with
    until it fetches again (KIP-101), and where that is not proven nothing is known. ``followed`` are its spans under
    this leader, who reigned from ``began`` to ``ended``. What fell is gone through as far as is asked.
    """

    def __init__(
        self, drops: SpansByTime[Drop], followed: _Followed, began: int, ended: int, committed: Sequence[Step]
    ) -> None:
        # what was over when the reign began, and what came after it, says nothing of what is in between
        self._drops = drops.each_touching(began + 1, ended)
        self._following = next(self._drops, None)
        self._followed, self._began, self._all_committed = followed, began, committed
        self._first_followed = followed.begun_from(began)
        self._since, self._lost = began, EVER_BEFORE
        self._starts: list[int] = []
        self._sinces: list[int] = []
        self._committed: list[Step | None] = []
        self._known_since(began)

    def _known_since(self, instant: int) -> None:
        self._sinces.append(instant)
        self._committed.append(interval_at(self._all_committed, instant))

    def _fall(self, drop: Drop) -> None:
        self._since = max(self._since, drop.end)
        if self._first_followed < drop.start - 2 * LINE_TO_ACT_US:
            self._lost = max(self._lost, drop.end)
        fetched = self._began if self._lost == EVER_BEFORE else self._followed.fetched_after(self._lost)
        self._starts.append(drop.start)
        self._known_since(max(self._since, fetched))

    def at(self, instant: int) -> Step | None:
        """None where that is not proven, or nothing bounded what was committed then."""
        while self._following is not None and self._following.start <= instant:
            self._fall(self._following)
            self._following = next(self._drops, None)
        index = bisect_right(self._starts, instant)
        return self._committed[index] if self._sinces[index] < instant else None
