"""The rules of replication that carry facts from one offset to another: each where it is proven to hold, nowhere else.

Five rules, explained in :mod:`reconstruct.offsets.timeline`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_AFTER, Drop, Fact, Step, interval_at, lower_steps, upper_steps
from reconstruct.offsets.clocks import DECISIONS, earlier, later
from reconstruct.offsets.evidence import LINE_TO_ACT_US, OffsetEvidence, ReplicaEventKind
from reconstruct.offsets.role_spans import RoleSpan
from reconstruct.offsets.timed_offsets import Key


@dataclass(slots=True)
class Facts:
    """Facts by (replica, quantity), and the drops they stop at."""

    lower: dict[Key, set[Fact]] = field(default_factory=dict)
    upper: dict[Key, set[Fact]] = field(default_factory=dict)
    drops: dict[Key, list[Drop]] = field(default_factory=dict)

    def at_least(self, key: Key, fact: Fact) -> None:
        self.lower.setdefault(key, set()).add(fact)

    def at_most(self, key: Key, fact: Fact) -> None:
        self.upper.setdefault(key, set()).add(fact)

    def lower_of(self, key: Key) -> list[Step]:
        return lower_steps(self.lower.get(key, ()), self.drops.get(key, ()))

    def upper_of(self, key: Key) -> list[Step]:
        return upper_steps(self.upper.get(key, ()), self.drops.get(key, ()))


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
            for fact in list(facts.lower.get(own, ())):
                if role.proven_from <= fact.at < role.end:
                    facts.at_least(leaders, fact)
            for fact in list(facts.upper.get(leaders, ())):
                if role.proven_from <= fact.at < role.end:
                    facts.at_most(own, fact)


def infer_over_isr(facts: Facts, evidence: OffsetEvidence, roles: Sequence[RoleSpan]) -> None:
    """Every member of the ISR has what the leader committed since this reign began and the member last lost anything.

    So what the leader committed bounds its members' log ends from below, and their log ends what it committed from
    above. A reign ends, for this, where another leader is decided, heard of or not: its followers may have cut their
    logs.
    """
    slack = evidence.clocks.slack_us(DECISIONS)
    log_ends: dict[int, list[Step]] = {}  # nothing here bounds a log end from above
    for role in roles:
        if not role.is_leader:
            continue
        key = (role.leader, oe.HIGH_WATERMARK)
        committed, reached = facts.upper_of(key), sorted(facts.lower.get(key, ()))
        instants = [fact.at for fact in reached]
        began = role.start
        followed: dict[int, list[RoleSpan]] = {}
        for s in roles:
            if s.leader == role.leader:
                followed.setdefault(s.replica_id, []).append(s)
        known_by: dict[tuple[int, int], _KnownOfMember] = {}
        for state in evidence.decided:
            if state.leader != role.leader:
                began = max(began, min(later(state.end, slack), role.end))
                continue
            start, until = max(state.valid_from + slack, began), min(earlier(state.end, slack), role.end)
            if start >= until:
                continue
            for member in set(state.isr) - {role.leader}:
                if (member, began) not in known_by:
                    drops = facts.drops.get((member, oe.LOG_END_OFFSET), ())
                    known_by[member, began] = _KnownOfMember(drops, followed.get(member, ()), began, committed)
                known_at = known_by[member, began].at
                for fact in reached[bisect_right(instants, start) : bisect_left(instants, until)]:
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
                        facts.at_most(key, Fact(instant, higher.offset, higher.evidence))


class _KnownOfMember:
    """What the leader had committed at most when what it knows of a member's log began to be what the member has.

    That is so since the reign began or the member last lost anything before it fetched from this leader. One that lost
    something afterwards, as a broker that is back before anybody noticed, may have less than the leader counts it with
    until it fetches again (KIP-101), and where that is not proven nothing is known. ``followed`` are its spans under
    this leader.
    """

    def __init__(
        self, drops: Sequence[Drop], followed: Sequence[RoleSpan], began: int, committed: Sequence[Step]
    ) -> None:
        ordered = sorted(drops, key=lambda drop: drop.start)
        self._starts = [drop.start for drop in ordered]
        since, lost = began, None
        self._sinces = [since]
        for drop in ordered:
            since = max(since, drop.end)
            if any(began <= span.begun < drop.start - 2 * LINE_TO_ACT_US for span in followed):
                lost = drop.end if lost is None else max(lost, drop.end)
            fetched_again = (
                began if lost is None else min((s.proven_from for s in followed if s.proven_from > lost), default=None)
            )
            self._sinces.append(EVER_AFTER if fetched_again is None else max(since, fetched_again))
        self._committed = [interval_at(committed, since) for since in self._sinces]

    def at(self, instant: int) -> Step | None:
        """None where that is not proven, or nothing bounded what was committed then."""
        index = bisect_right(self._starts, instant)
        return self._committed[index] if self._sinces[index] < instant else None
