"""What the rules about offsets judge: one partition's evidence, and what each replica's own sightings prove.

A rule that compares two quantities must not read one out of the other. So the curves here are each made of the
sightings of one quantity of one replica and of the drops of :mod:`reconstruct.offsets.role_spans` alone; the bounds
of :mod:`reconstruct.offsets.timeline`, which carry facts between quantities by the very rules that are judged
here, are not used. A sighting is an interval: a rule is broken only where it is at every instant of it.

Intervals and curves are of the cluster's time, widened by what is not known of the clocks they are of; acts are at the
times of their lines, and compared with anything of another clock within the slack of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Final

from reconstruct.cluster.view import ClusterView
from reconstruct.model.versions import HIGH_WATERMARK_KEPT_IN_LOG_SINCE, VersionRange
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_AFTER, EVER_BEFORE, Drop, Fact, Step, lower_steps, upper_steps
from reconstruct.offsets.clocks import CAPTURER, OffsetClocks
from reconstruct.offsets.evidence import OffsetEvidence, ReplicaEvent, ReplicaEventKind
from reconstruct.offsets.losses import OffsetLoss
from reconstruct.offsets.role_spans import RoleSpan, TimedOffset, find_role_spans, high_watermark_drops, log_drops
from reconstruct.offsets.timed_offsets import Key, timed_offsets

_LOG_QUANTITIES: Final = (oe.LOG_END_OFFSET, oe.LOG_START_OFFSET, oe.RECOVERY_POINT)


class IsrMoveKind(StrEnum):
    """Whether a leader took a replica out of the ISR or into it."""

    LEFT = "left_isr"
    JOINED = "joined_isr"


@dataclass(frozen=True, slots=True)
class IsrMove:
    """One replica of one "Shrinking ISR" or "Expanding ISR" line; ``end_offset`` is what the leader knew of it."""

    leader: int
    member: int
    kind: IsrMoveKind
    at: int
    end_offset: int | None = None
    evidence_id: str = ""


@dataclass(frozen=True)
class OffsetCase:
    """One partition incarnation.

    ``lag_time_max_us`` by broker: ``replica.lag.time.max.ms`` in force, at the least. ``decided_evidence`` by
    (``valid_from``, leader epoch) of each decided state: the records that say so.
    """

    topic: str
    view: ClusterView
    evidence: OffsetEvidence
    losses: Sequence[OffsetLoss] = ()
    isr_moves: Sequence[IsrMove] = ()
    lag_time_max_us: Mapping[int, int] = field(default_factory=dict)
    decided_evidence: Mapping[tuple[int, int], Sequence[str]] = field(default_factory=dict)

    @property
    def version(self) -> VersionRange:
        return self.view.version

    @cached_property
    def curves(self) -> Curves:
        """What each replica's own sightings prove of its offsets over time."""
        return Curves(self)

    def events_of(self, replica_id: int, *kinds: ReplicaEventKind) -> list[ReplicaEvent]:
        """What a replica did, in the order of time; of all ``kinds`` where none is given."""
        found = [e for e in self.evidence.events if e.replica_id == replica_id and (not kinds or e.kind in kinds)]
        return sorted(found, key=lambda e: (e.at, e.kind, e.evidence_id))

    @property
    def clocks(self) -> OffsetClocks:
        return self.evidence.clocks

    def is_covered(self, replica_id: int, start: int, end: int, clock: int = CAPTURER) -> bool:
        """Whether the broker's server.log is complete from ``start`` to ``end``, which are instants of ``clock``."""
        slack = self.clocks.between_us(replica_id, clock)
        return any(
            first <= start - slack and end + slack <= last for first, last in self.evidence.covered.get(replica_id, ())
        )

    def min_insync_replicas(self, leader: int) -> int | None:
        """``min.insync.replicas`` as the topic's or the leader's configuration has it; None where neither says.

        Only one that some ISR of the partition reached: a leader takes no more than there are replicas.
        """
        required = self.view.min_insync_replicas.get(self.topic, self.view.broker_min_insync_replicas.get(leader))
        largest = max((len(state.isr) for state in self.evidence.decided), default=0)
        return required if required is not None and required <= largest else None


@dataclass(frozen=True, slots=True)
class Extreme:
    """The highest or the lowest of a bound over a span of time, and its evidence."""

    offset: int
    evidence: tuple[str, ...]


class Curves:
    """Each replica's own sightings, as values held and as bounds over time; and the spans of its roles."""

    def __init__(self, case: OffsetCase) -> None:
        evidence = _in_order(case.evidence)
        self.held: dict[Key, list[TimedOffset]] = {
            key: sorted(values, key=lambda h: (h.earliest, h.latest, h.offset, h.evidence))
            for key, values in timed_offsets(evidence).items()
        }
        replicas = sorted({replica for replica, _ in self.held})
        high_watermarks = {replica: self.held.get((replica, oe.HIGH_WATERMARK), []) for replica in replicas}
        self.roles: list[RoleSpan] = find_role_spans(evidence, high_watermarks)
        self.drops: dict[Key, list[Drop]] = {}
        is_kept_in_log = case.version.may_be_since(HIGH_WATERMARK_KEPT_IN_LOG_SINCE)
        for replica in replicas:
            for quantity in _LOG_QUANTITIES:
                self.drops[replica, quantity] = log_drops(evidence, replica)
            self.drops[replica, oe.HIGH_WATERMARK] = high_watermark_drops(
                evidence, replica, self.roles, {}, is_kept_in_log=is_kept_in_log
            )
        self._lower: dict[Key, list[Step]] = {}
        self._upper: dict[Key, list[Step]] = {}

    def of(self, replica_id: int, quantity: str) -> Sequence[TimedOffset]:
        """The values that a replica's quantity held, by the earliest instant each may be of."""
        return self.held.get((replica_id, quantity), ())

    def least(self, replica_id: int, quantity: str, start: int, end: int) -> Extreme | None:
        """What the quantity was at least, at every instant from ``start`` to ``end``; None: not bounded somewhere."""
        key = (replica_id, quantity)
        if key not in self._lower:
            drops = self.drops.get(key, ())
            facts = {
                Fact(h.latest, h.offset, h.evidence)
                for h in self.held.get(key, ())
                if not _crosses(h, drops, is_proof=True)
            }
            self._lower[key] = lower_steps(facts, drops)
        over = _over(self._lower[key], start, end)
        lowest = min(over, key=lambda step: (step.offset, step.start), default=None)
        return None if lowest is None else Extreme(lowest.offset, lowest.evidence)

    def most(self, replica_id: int, quantity: str, start: int, end: int) -> Extreme | None:
        """What the quantity was at most, at every instant from ``start`` to ``end``; None: not bounded somewhere."""
        key = (replica_id, quantity)
        if key not in self._upper:
            drops = self.drops.get(key, ())
            facts = {
                Fact(h.earliest, h.offset, h.evidence)
                for h in self.held.get(key, ())
                if not h.is_minimum and h.earliest > EVER_BEFORE and not _crosses(h, drops)
            }
            self._upper[key] = upper_steps(facts, drops)
        over = _over(self._upper[key], start, end)
        highest = max(over, key=lambda step: (step.offset, -step.start), default=None)
        return None if highest is None else Extreme(highest.offset, highest.evidence)

    def following(self, replica_id: int, start: int, end: int) -> RoleSpan | None:
        """The span in which the replica followed one leader, its first fetch over, from ``start`` to ``end``."""
        for role in self.roles:
            if role.replica_id == replica_id and not role.is_leader and role.proven_from <= start and end < role.end:
                return role
        return None

    def leading(self, replica_id: int, start: int, end: int) -> RoleSpan | None:
        """The span in which the replica led from ``start`` to ``end``."""
        for role in self.roles:
            if role.replica_id == replica_id and role.is_leader and role.start <= start and end < role.end:
                return role
        return None


def names(*groups: Iterable[str]) -> tuple[str, ...]:
    """Evidence ids of all groups, each once, in an order that does not depend on theirs."""
    return tuple(sorted({name for group in groups for name in group if name}))


def _crosses(held: TimedOffset, drops: Sequence[Drop], *, is_proof: bool = False) -> bool:
    """A value that may be of before or after a drop bounds nothing here; but for ``is_proof``, where just this value
    shows that the drop was over."""
    return any(
        held.may_cross(drop) and not (is_proof and (drop.end, drop.last_offset) == (held.latest, held.offset))
        for drop in drops
    )


def _over(steps: Sequence[Step], start: int, end: int) -> list[Step]:
    """The steps from ``start`` to ``end``, both inclusive; none where there is a gap among them."""
    low, high = 0, len(steps)
    while low < high:
        middle = (low + high) // 2
        if steps[middle].end <= start:
            low = middle + 1
        else:
            high = middle
    result: list[Step] = []
    reached = start
    for step in steps[low:]:
        if step.start > reached:
            return []
        result.append(step)
        reached = step.end
        if reached > end:
            return result
    return []


def _in_order(evidence: OffsetEvidence) -> OffsetEvidence:
    return replace(
        evidence,
        sightings=sorted(
            evidence.sightings,
            key=lambda s: (s.replica_id, s.offset_kind, s.observed_at, s.source, s.evidence_id, s.offset),
        ),
        events=sorted(evidence.events, key=lambda e: (e.at, e.replica_id, e.evidence_id)),
        decided=sorted(evidence.decided, key=lambda d: (d.valid_from, d.leader_epoch)),
    )


def end_of(valid_to: int | None) -> int:
    """The end of an interval that may still be open."""
    return EVER_AFTER if valid_to is None else valid_to
