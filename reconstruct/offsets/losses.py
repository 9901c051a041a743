"""What an election lost: committed records that the new leader did not have, and logs that differ silently afterwards.

A new leader's log ends where its epoch begins; whatever the leader before had committed above that is lost, at least up
to what its high watermark is proven to have reached, at most up to its own log end when it went. The replica that
returns then keeps some of those records if it does not cut its log down to where the epoch began: up to 0.10 it cuts to
its own high watermark, and to its new leader's log end where its own is longer, and keeps its own records below it.
Nothing in Kafka tells that they differ.

Bounds are of the cluster's time, lines of their broker's clock, decisions of another: what is before or after what is
taken as known only where no clock can be so far off that it was otherwise. What epochs tie together needs no clock.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from reconstruct.findings.divergences import DivergenceType, Harm
from reconstruct.model.states import NO_LEADER
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_AFTER, intervals_over
from reconstruct.offsets.clocks import DECISIONS, earlier
from reconstruct.offsets.evidence import (
    DecidedState,
    OffsetBounds,
    OffsetEvidence,
    OffsetObservation,
    ReplicaEvent,
    ReplicaEventKind,
)
from reconstruct.time.instants import at_of
from reconstruct.time.spans import each_from

UNCLEAN_ELECTION: Final = DivergenceType.UNCLEAN_ELECTION
CLEAN_ELECTION: Final = "clean_election"
SAME_LEADER: Final = "leader_returned_with_less"
_ROLES: Final = (ReplicaEventKind.LEADS, ReplicaEventKind.FOLLOWS)


@dataclass(frozen=True, slots=True)
class DivergingReplica:
    """A replica that kept its own records from ``from_offset`` up to and without ``to_offset`` while following."""

    replica_id: int
    from_offset: int
    to_offset: int
    since: int
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OffsetLoss:
    """One election and the committed records that it lost, or may have.

    Offsets are of records: ``lost_from_offset`` is the first lost one, ``lost_to_offset_*`` the last one, at least and
    at most; an upper bound of None is not bounded. ``lost_count_lower`` 0 says that nothing is proven lost.
    """

    event_at: int
    cause: str
    leader: int
    previous_leader: int
    leader_epoch: int
    lost_from_offset: int
    lost_to_offset_lower: int | None
    lost_to_offset_upper: int | None
    lost_count_lower: int
    lost_count_upper: int | None
    diverging: tuple[DivergingReplica, ...] = ()
    evidence: tuple[str, ...] = ()

    @property
    def may_have_lost(self) -> bool:
        """Whether committed records are proven lost, or an unclean election may have lost some."""
        return self.lost_count_lower > 0 or (self.cause == UNCLEAN_ELECTION and self.lost_count_upper != 0)

    @property
    def harm(self) -> Harm:
        """What an unclean election did."""
        if self.lost_count_lower:
            return Harm.RECORDS_LOST
        return Harm.NONE if self.lost_count_upper == 0 else Harm.POSSIBLE

    @property
    def sentence(self) -> str:
        """How many committed records were lost, as far as the offsets say."""
        if self.lost_count_upper == 0:
            return "The offsets show that no record was lost."
        most = "" if self.lost_count_upper is None else f", at most {self.lost_count_upper}"
        if self.lost_count_lower:
            return f"By the offsets at least {self.lost_count_lower} committed records were lost{most}."
        return f"By the offsets none of them is proven to have been lost{most}."


def find_losses(evidence: OffsetEvidence, bounds: Iterable[OffsetBounds]) -> list[OffsetLoss]:
    """Every election of ``evidence`` that certainly lost committed records, and every unclean one that may have."""
    return [loss for loss in weighed_elections(evidence, bounds) if loss.may_have_lost]


def weighed_elections(evidence: OffsetEvidence, bounds: Iterable[OffsetBounds]) -> list[OffsetLoss]:
    """Every election of ``evidence`` of which it is known where its epoch begins, also those that lost nothing."""
    known = _Known(evidence, bounds)
    decided = sorted(evidence.decided, key=lambda state: (state.leader_epoch, state.valid_from))
    result = []
    last: DecidedState | None = None
    reign_began = 0
    for before, state in zip([None, *decided], decided, strict=False):
        if state.leader == NO_LEADER:
            continue
        if last is not None and before is not None and state.leader_epoch != last.leader_epoch:
            loss = _judge(known, last, reign_began, before.isr, state)
            if loss is not None:
                result.append(loss)
        if last is None or last.leader != state.leader:
            reign_began = state.valid_from
        last = state
    return result


class _Known:
    """The evidence, and what of it and of the bounds is asked for at each election."""

    def __init__(self, evidence: OffsetEvidence, bounds: Iterable[OffsetBounds]) -> None:
        self.evidence = evidence
        self.replicas: Final = sorted({event.replica_id for event in evidence.events})
        self._events: dict[tuple[int, tuple[ReplicaEventKind, ...]], list[ReplicaEvent]] = {}
        self._led: dict[tuple[int, int | None], ReplicaEvent] = {}
        self._followed: dict[tuple[int, int | None], list[ReplicaEvent]] = {}
        for event in sorted(evidence.events, key=at_of):
            if event.kind is ReplicaEventKind.LEADS:
                self._led.setdefault((event.replica_id, event.leader_epoch), event)
            elif event.kind is ReplicaEventKind.FOLLOWS:
                self._followed.setdefault((event.replica_id, event.leader), []).append(event)
        self._bounds: dict[int, list[OffsetBounds]] = {}
        self._highest: dict[tuple[int, int], list[OffsetBounds | None]] = {}
        for row in sorted(bounds, key=lambda row: row.valid_from):
            self._bounds.setdefault(row.replica_id, []).append(row)
        self._named: dict[tuple[int, int | None], list[OffsetObservation]] = {}
        self._printed: dict[int, list[OffsetObservation]] = {}
        for seen in evidence.observations:
            if seen.offset_kind in (oe.EPOCH_START, oe.LOG_END_OFFSET):
                self._named.setdefault((seen.replica_id, seen.leader_epoch), []).append(seen)
            if seen.offset_kind == oe.LOG_END_OFFSET and seen.is_printed and not seen.is_minimum:
                self._printed.setdefault(seen.replica_id, []).append(seen)
        for of_replica in self._printed.values():
            of_replica.sort(key=_observed_at)

    def events_of(self, replica: int, *kinds: ReplicaEventKind) -> Sequence[ReplicaEvent]:
        """What the replica did, in the order of time."""
        if (replica, kinds) not in self._events:
            self._events[replica, kinds] = sorted(self.evidence.events_of(replica, *kinds), key=at_of)
        return self._events[replica, kinds]

    def led(self, replica: int, leader_epoch: int) -> ReplicaEvent | None:
        """The first line in which it becomes leader in that epoch."""
        return self._led.get((replica, leader_epoch))

    def followed(self, replica: int, leader: int, since: int) -> ReplicaEvent | None:
        """The first line from ``since`` on in which it follows that leader."""
        return next(each_from(self._followed.get((replica, leader), ()), since), None)

    def bounds_of(self, replica: int) -> Sequence[OffsetBounds]:
        """Its bounds, in order."""
        return self._bounds.get(replica, ())

    def bounds_about(self, replica: int, instant: int, slack: int) -> list[OffsetBounds]:
        """The bounds at every instant that ``instant`` may have been; none where there are none at any of them."""
        return intervals_over(self.bounds_of(replica), instant - slack, instant + slack)

    def highest_committed(self, replica: int, since: int, until: int) -> OffsetBounds | None:
        """Of its bounds after ``since`` that begin before ``until`` the first with the highest lower bound of its high
        watermark. As long as one leader reigns this is asked with one ``since`` at each election."""
        rows = self.bounds_of(replica)
        first = bisect_right(rows, since, key=lambda row: row.end)
        last = max(bisect_left(rows, until, key=lambda row: row.valid_from), first)
        highest = self._highest.setdefault((replica, first), [None])
        for row in rows[first + len(highest) - 1 : last]:
            highest.append(_higher(highest[-1], row) if row.end > row.valid_from else highest[-1])
        return highest[last - first]

    def named_for(self, replica: int, leader_epoch: int) -> Sequence[OffsetObservation]:
        """Where the epoch begins, or the log ended then, as its lineage and lines say."""
        return self._named.get((replica, leader_epoch), ())

    def printed_log_ends(self, replica: int, first: int, last: int) -> Sequence[OffsetObservation]:
        """The log ends that lines of the replica's broker print from ``first`` to ``last``, both inclusive."""
        own = self._printed.get(replica, ())
        return own[bisect_left(own, first, key=_observed_at) : bisect_right(own, last, key=_observed_at)]


_observed_at: Final = attrgetter("observed_at")


def _higher(best: OffsetBounds | None, row: OffsetBounds) -> OffsetBounds | None:
    """The one of which the high watermark's lower bound is higher; the first of equal ones."""
    known, more = None if best is None else best.high_watermark_lower, row.high_watermark_lower
    return best if more is None or (known is not None and known >= more) else row


def _judge(
    known: _Known,
    last: DecidedState,
    reign_began: int,
    isr: Sequence[int],
    state: DecidedState,
) -> OffsetLoss | None:
    """One election; a leader that stays has the same log, whatever the ISR was: it loses only what is proven lost."""
    is_unclean = state.leader not in isr and state.leader != last.leader
    evidence = known.evidence
    began = _leadership(known, state)
    start = _epoch_start(known, state, began)
    if start is None:
        return None
    start_lower, start_upper, ids = start
    slack = evidence.clocks.slack_us(DECISIONS)
    committed, committed_ids = _committed(known, last.leader, reign_began + slack, state.valid_from - slack)
    end = _log_end(known, last.leader, state.valid_from)
    count_lower = 0
    if committed is not None and start_upper is not None:
        count_lower = max(committed - start_upper, 0)
    count_upper = None if end is None else max(end - start_lower, count_lower)
    cause = UNCLEAN_ELECTION if is_unclean else SAME_LEADER if state.leader == last.leader else CLEAN_ELECTION
    return OffsetLoss(
        event_at=state.valid_from,
        cause=cause,
        leader=state.leader,
        previous_leader=last.leader,
        leader_epoch=state.leader_epoch,
        lost_from_offset=start_lower,
        lost_to_offset_lower=committed - 1 if committed is not None and count_lower else None,
        lost_to_offset_upper=None if count_upper is None else start_lower + count_upper - 1,
        lost_count_lower=count_lower,
        lost_count_upper=count_upper,
        diverging=tuple(_diverging(known, state, start_lower)),
        evidence=tuple(sorted({*ids, *committed_ids})),
    )


def _leadership(known: _Known, state: DecidedState) -> ReplicaEvent | None:
    """The new leader's own line of its becoming leader, the first after the decision."""
    slack = known.evidence.clocks.between_us(state.leader, DECISIONS)
    since, until = state.valid_from + slack, earlier(state.end, slack)
    of_epoch = known.led(state.leader, state.leader_epoch)
    following = next(each_from(known.events_of(state.leader, ReplicaEventKind.LEADS), since), None)
    found = [event for event in (of_epoch, following) if event is not None and (event is of_epoch or event.at < until)]
    return min(found, key=at_of, default=None)


def _epoch_start(
    known: _Known, state: DecidedState, began: ReplicaEvent | None
) -> tuple[int, int | None, tuple[str, ...]] | None:
    """Where the epoch begins, at least and at most.

    From the leader's lineage or its line; else from the log it loaded, if it did nothing between loading and leading;
    else from its bounds.
    """
    named = known.named_for(state.leader, state.leader_epoch)
    if named:
        exact = min(named, key=lambda s: (s.offset_kind, s.offset))
        return exact.offset, exact.offset, (exact.evidence_id,)
    if began is None:
        return None
    loaded = _loaded_before(known, began)
    if loaded is not None:
        return loaded.offset, loaded.offset, (loaded.evidence_id,)
    over = known.bounds_about(state.leader, began.at, known.evidence.clocks.slack_us(state.leader))
    least = _least_log_end(over)
    highest = [row.log_end_offset_upper for row in over if row.log_end_offset_upper is not None]
    if least is None:
        return None
    ids = tuple(sorted({name for row in over for name in row.evidence}))
    return least, max(highest) if len(highest) == len(over) else None, ids


def _loaded_before(known: _Known, began: ReplicaEvent) -> OffsetObservation | None:
    roles = known.events_of(began.replica_id, *_ROLES)
    before = bisect_left(roles, began.at, key=at_of)
    since = roles[before - 1].at if before else 0
    found = known.printed_log_ends(began.replica_id, since + 1, began.at)
    return max(found, key=lambda o: o.observed_at, default=None)


def _least_log_end(over: Sequence[OffsetBounds]) -> int | None:
    least = [row.log_end_offset_lower for row in over if row.log_end_offset_lower is not None]
    return min(least) if least and len(least) == len(over) else None


def _committed(known: _Known, leader: int, since: int, until: int) -> tuple[int | None, tuple[str, ...]]:
    """The highest high watermark that the last leader is proven to have reached before another was decided."""
    best = known.highest_committed(leader, since, until)
    return (None, ()) if best is None else (best.high_watermark_lower, best.evidence)


def _log_end(known: _Known, leader: int, decided_at: int) -> int | None:
    """Where the last leader's log ended when it went: what it loaded when it next started.

    Of a power failure, in which records go that were never on disk, this would say too little; of a killed process it
    is exact.
    """
    slack = known.evidence.clocks.between_us(leader, DECISIONS)
    started = next(each_from(known.events_of(leader, ReplicaEventKind.STARTED), decided_at - slack), None)
    if started is None or started.at - slack < decided_at:
        return None  # it did not return, or nobody knows whether it did
    following = next(each_from(known.events_of(leader, *_ROLES), started.at + 1), None)
    until = EVER_AFTER if following is None else following.at
    return max((o.offset for o in known.printed_log_ends(leader, started.at, until)), default=None)


def _diverging(known: _Known, state: DecidedState, start: int) -> Iterable[DivergingReplica]:
    """Replicas that followed the new leader with records of their own above where its epoch began."""
    evidence = known.evidence
    until = state.end
    for replica in known.replicas:
        if replica == state.leader:
            continue
        slack = evidence.clocks.between_us(replica, DECISIONS)
        follows = known.followed(replica, state.leader, state.valid_from + slack)
        if follows is None:
            continue
        had = _log_end(known, replica, state.valid_from)
        if had is None:
            decisions = evidence.clocks.slack_us(DECISIONS)
            had = _least_log_end(known.bounds_about(replica, state.valid_from, decisions))
        if had is None or had <= start:
            continue
        ids, kept = {follows.evidence_id}, had
        for cut in each_from(known.events_of(replica, ReplicaEventKind.TRUNCATED), state.valid_from - slack):
            if cut.offset is not None:
                ids.add(cut.evidence_id)
                kept = min(kept, cut.offset)
                if kept <= start:
                    break
        else:
            yield DivergingReplica(replica, start, kept, min(follows.at, until), tuple(sorted(ids)))
