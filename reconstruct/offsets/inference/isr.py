"""What the ISR proves of its members' log ends and of what their leader committed: its high watermark.

A leader may be told hundreds of times that it leads, and each is a reign that lasts as long as the first: what an
earlier one says as well is not gone through again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, groupby, pairwise
from operator import attrgetter
from typing import Final, NamedTuple

from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_AFTER, EVER_BEFORE, Drop, Fact, Step, interval_at
from reconstruct.offsets.clocks import DECISIONS, earlier, later
from reconstruct.offsets.evidence import LINE_TO_ACT_US, OffsetEvidence
from reconstruct.offsets.inference.facts import Facts
from reconstruct.offsets.role_spans import RoleSpan
from reconstruct.time.spans import SpansByTime, within

_start: Final = attrgetter("start")
_end: Final = attrgetter("end")
_last: Final = attrgetter("last")


def infer_over_isr(facts: Facts, evidence: OffsetEvidence, roles: Sequence[RoleSpan]) -> None:
    """Every member of the ISR has what the leader committed since this reign began and the member last lost anything.

    So what the leader committed bounds its members' log ends from below, and their log ends what it committed from
    above. A reign ends, for this, where another leader is decided, heard of or not: its followers may have cut their
    logs.
    """
    inference = _Inference(facts, evidence, roles)
    for role in roles:
        if role.is_leader:
            inference.conclude_of(role)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Decided states of one leader, ``first`` to ``last`` of all, with none of another between them, and ``until`` when
    they last. Those of others before it were over at ``others_until``; ``members`` are the followers in its ISR."""

    first: int
    last: int
    until: int
    others_until: int
    members: tuple[int, ...]


class _Known(NamedTuple):
    """From ``start`` on: what the leader had committed, at most, at ``since``. What a member has later is no less.

    Until then the member may have fallen, the last time up to ``fell_until``, and up to ``lost_until`` in what it had
    of this leader, whom it follows from ``followed`` on at the earliest.
    """

    start: int
    since: int
    committed: Step | None
    fell_until: int
    lost_until: int
    followed: int

    def implies(self, other: _Known) -> bool:
        """Whether all that follows from the other at an instant follows from this one, by the same evidence."""
        mine, its = self.committed, other.committed
        if its is None:
            return True
        if mine is None or self.since > other.since:
            return False
        return mine.offset < its.offset or (mine.offset, mine.evidence) == (its.offset, its.evidence)

    def goes_on_as(self, other: _Known) -> bool:
        """Whether what is known after this is what is known after the other."""
        is_same = (self.start, self.fell_until, self.lost_until) == (other.start, other.fell_until, other.lost_until)
        followed = max(self.followed, other.followed)
        return is_same and (self.followed == other.followed or _is_lost_to(followed, self.start))


def _is_lost_to(followed: int, fell_from: int) -> bool:
    """Whether what falls from then on may be of what was followed."""
    return followed < fell_from - 2 * LINE_TO_ACT_US


@dataclass(slots=True)
class _Leader:
    """What a leader's reigns up to now say.

    ``committed`` bounds its high watermark from above; since then it is bounded closer up to ``newest``. ``known``, by
    stretch and member, is what all reigns up to the one of ``start`` and ``end`` say together, by what was committed
    at most then; now that is less up to ``closer_until``.
    """

    stretches: Sequence[_Stretch]
    committed: Sequence[Step] = ()
    newest: int = EVER_AFTER
    start: int = EVER_AFTER
    end: int = EVER_BEFORE
    closer_until: int = EVER_BEFORE
    known: dict[tuple[int, int], list[_Known]] = field(default_factory=dict)


class _Inference:
    """The inference of one partition, reign by reign."""

    def __init__(self, facts: Facts, evidence: OffsetEvidence, roles: Sequence[RoleSpan]) -> None:
        self._facts, self._decided = facts, evidence.decided
        self._slack = evidence.clocks.slack_us(DECISIONS)
        self._decided_until = list(accumulate(map(_end, evidence.decided), max))
        followed: dict[tuple[int, int], list[RoleSpan]] = {}
        for role in roles:
            followed.setdefault((role.leader, role.replica_id), []).append(role)
        self._followed = {pair: _Followed(spans) for pair, spans in followed.items()}
        self._drops: dict[int, SpansByTime[Drop]] = {}
        self._log_ends: dict[int, list[Step]] = {}  # nothing here bounds a log end from above
        self._leaders: dict[int, _Leader] = {}

    def conclude_of(self, role: RoleSpan) -> None:
        """Conclude what a reign says, and those before it do not."""
        if role.leader not in self._leaders:
            self._leaders[role.leader] = _Leader(self._stretches(role.leader))
        leader = self._leaders[role.leader]
        if leader.newest >= role.start:
            leader.closer_until = max(leader.closer_until, leader.newest)
            leader.committed, leader.newest = self._facts.upper_of((role.leader, oe.HIGH_WATERMARK)), EVER_BEFORE
        is_another = leader.end == role.end and leader.start <= role.start
        if not is_another:
            leader.known.clear()
        # none that was over by then, nor any after it
        first = bisect_right(self._decided_until, earlier(role.start, self._slack))
        for number in range(bisect_left(leader.stretches, first, key=_last), len(leader.stretches)):
            stretch = leader.stretches[number]
            if self._decided[max(first, stretch.first)].valid_from + self._slack >= role.end:
                break
            began = max(role.start, min(stretch.others_until, role.end))
            if is_another and role.start < began and leader.closer_until < began:
                break  # from here on it is the reign before
            for member in stretch.members:
                known = self._known_of(leader, role, member, began)
                before = leader.known.get((number, member), [])
                leader.known[number, member] = self._concluded(leader, role, stretch, member, before, known)
        leader.start, leader.end, leader.closer_until = role.start, role.end, EVER_BEFORE

    def _stretches(self, leader: int) -> list[_Stretch]:
        stretches: list[_Stretch] = []
        others_until = EVER_BEFORE
        for is_own, each in groupby(enumerate(self._decided), lambda numbered: numbered[1].leader == leader):
            states = list(each)
            if is_own:
                members = {member for _, state in states for member in state.isr} - {leader}
                until = max(state.end for _, state in states)
                stretches.append(_Stretch(states[0][0], states[-1][0], until, others_until, tuple(sorted(members))))
            else:
                others_until = max(others_until, *(later(state.end, self._slack) for _, state in states))
        return stretches

    def _known_of(self, leader: _Leader, role: RoleSpan, member: int, began: int) -> Iterator[_Known]:
        """What the leader had committed at most when what it knows of a member's log began to be what the member has.

        That is so since the reign began or the member last lost anything before it fetched from this leader. One that
        lost something afterwards, as a broker that is back before anybody noticed, may have less than the leader counts
        it with until it fetches again (KIP-101), and where that is not proven nothing is known.
        """
        if member not in self._drops:
            self._drops[member] = SpansByTime(self._facts.drops.get((member, oe.LOG_END_OFFSET), ()))
        spans = self._followed.get((role.leader, member), _Followed(()))
        fell_until, lost_until, followed = began, EVER_BEFORE, spans.begun_from(began)
        known = _Known(began, began, interval_at(leader.committed, began), fell_until, lost_until, followed)
        # what was over when the reign began, and what came after it, says nothing of what is in between
        for drop in self._drops[member].each_touching(began + 1, role.end):
            if drop.start > known.start:
                yield known
            fell_until = max(fell_until, drop.end)
            if _is_lost_to(followed, drop.start):
                lost_until = max(lost_until, drop.end)
            fetched = began if lost_until == EVER_BEFORE else spans.fetched_after(lost_until)
            start, since = max(began, drop.start), max(fell_until, fetched)
            known = _Known(start, since, interval_at(leader.committed, since), fell_until, lost_until, followed)
        yield known

    def _concluded(
        self,
        leader: _Leader,
        role: RoleSpan,
        stretch: _Stretch,
        member: int,
        before: Sequence[_Known],
        known: Iterable[_Known],
    ) -> list[_Known]:
        """Conclude from what is ``known`` where that says more than what was known ``before``. What both say together,
        in the order of time."""
        found: list[_Known] = []
        ends = min(stretch.until, role.end)
        for one, following in pairwise(chain(known, (None,))):
            assert one is not None
            if one.start >= ends:
                break
            index = bisect_right(before, one.start, key=_start) - 1
            if index >= 0 and leader.closer_until < one.since and one.goes_on_as(before[index]):
                return [*found, *before[index:]]
            start, until = one.start, ends if following is None else min(following.start, ends)
            while start < until:
                end = min(until, before[index + 1].start) if index + 1 < len(before) else until
                if index >= 0 and before[index].implies(one):
                    found.append(before[index]._replace(start=start))
                else:
                    self._conclude(leader, role, stretch, member, one._replace(start=start), end)
                    found.append(one._replace(start=start))
                start, index = end, index + 1
        return found

    def _conclude(
        self, leader: _Leader, role: RoleSpan, stretch: _Stretch, member: int, known: _Known, until: int
    ) -> None:
        """Conclude from what is known, from its start up to ``until``."""
        begin, committed = max(known.start, known.since + 1), known.committed
        if committed is None or begin >= until:
            return
        high_watermark, log_end = (role.leader, oe.HIGH_WATERMARK), (member, oe.LOG_END_OFFSET)
        if member not in self._log_ends:
            self._log_ends[member] = self._facts.upper_of(log_end)
        log_ends, reached = self._log_ends[member], self._facts.lower.get(high_watermark, ())
        first = bisect_right(self._decided_until, earlier(begin, self._slack))
        for index in range(max(first, stretch.first), stretch.last + 1):
            state = self._decided[index]
            start, end = state.valid_from + self._slack, min(earlier(state.end, self._slack), role.end)
            if start >= until:
                break
            if member not in state.isr or max(start, begin) >= end:
                continue
            for fact in within(reached, max(start + 1, begin), min(end, until) - 1):
                if committed.offset < fact.offset:
                    self._facts.at_least(log_end, fact)
            first_step = bisect_right(log_ends, max(start, begin), key=_end)
            last_step = bisect_left(log_ends, min(end, until), key=_start)
            for step in log_ends[first_step:last_step]:
                instant = min(step.end, end) - 1
                if instant >= until:
                    break
                higher = committed if committed.offset > step.offset else step
                is_new = self._facts.at_most(high_watermark, Fact(instant, higher.offset, higher.evidence))
                bounded = interval_at(leader.committed, instant)
                if is_new and (bounded is None or bounded.offset > higher.offset):
                    leader.newest = max(leader.newest, instant)


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
