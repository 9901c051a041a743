"""What the rules about offsets judge: one partition's evidence, and what each replica's own sightings prove.

A rule that compares two quantities must not read one out of the other. So the curves here are each made of the
sightings of one quantity of one replica and of the drops of :mod:`reconstruct.offsets.role_spans` alone; the bounds
of :mod:`reconstruct.offsets.timeline`, which carry facts between quantities by the very rules that are judged
here, are not used. A sighting is an interval: a rule is broken only where it is at every instant of it.

Intervals and curves are of the cluster's time, widened by what is not known of the clocks they are of; acts are at the
times of their lines, and compared with anything of another clock within the slack of both.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from reconstruct.cluster.view import ClusterView
from reconstruct.model.value_class import value_class
from reconstruct.model.versions import HIGH_WATERMARK_KEPT_IN_LOG_SINCE, VersionRange
from reconstruct.offsets.bound_steps import EVER_BEFORE, Drop, Fact, Step, intervals_over, lower_steps, upper_steps
from reconstruct.offsets.clocks import CAPTURER, OffsetClocks
from reconstruct.offsets.evidence import DecidedState, OffsetEvidence, OffsetObservation, ReplicaEvent, ReplicaEventKind
from reconstruct.offsets.losses import OffsetLoss
from reconstruct.offsets.role_spans import RoleSpan, drops_of, find_role_spans
from reconstruct.offsets.timed_offsets import Key, TimedOffset, timed_offsets
from reconstruct.time.instants import may_be_later_us
from reconstruct.time.spans import SpansByTime


class IsrMoveKind(StrEnum):
    """Whether a leader took a replica out of the ISR or into it, or has it in the ISR that was written for it."""

    LEFT = "left_isr"
    JOINED = "joined_isr"
    WRITTEN = "in_written_isr"


@dataclass(frozen=True, slots=True)
class IsrMove:
    """One replica of one "Shrinking ISR", "Expanding ISR" or "ISR updated to" line.

    ``end_offset`` is what the leader knew of it, and ``lag_us`` how long ago, at the most and by its own clock, it had
    been caught up (lines since 3.6).
    """

    leader: int
    member: int
    kind: IsrMoveKind
    at: int
    end_offset: int | None = None
    evidence_id: str = ""
    lag_us: int | None = None


def printed_lag_us(printed_at: int, caught_up_ms: int | None) -> int | None:
    """How long before a line, at the most, what it prints as ``caught_up_ms`` was: both of one clock, the first in
    µs. None where that is not printed, or none (0).
    """
    if not caught_up_ms:
        return None
    return printed_at + may_be_later_us(printed_at) + 1_000 - 1000 * caught_up_ms


@dataclass(frozen=True)
class OffsetCase:
    """One partition incarnation.

    ``decided_evidence`` by (``valid_from``, leader epoch) of each decided state: the records that say so.
    """

    topic: str
    view: ClusterView
    evidence: OffsetEvidence
    losses: Sequence[OffsetLoss] = ()
    isr_moves: Sequence[IsrMove] = ()
    decided_evidence: Mapping[tuple[int, int], Sequence[str]] = field(default_factory=dict)
    #: the replicas that are judged; None: all.
    judged: frozenset[int] | None = None

    def judged_of(self, replicas: Iterable[int]) -> list[int]:
        """Those of ``replicas`` that are judged, each once, in order."""
        return sorted(replica for replica in set(replicas) if self.judged is None or replica in self.judged)

    def judged_with(self, quantity: str) -> list[int]:
        """The judged replicas of which a value of ``quantity`` is known."""
        return self.judged_of(replica for replica, known in self.curves.values if known == quantity)

    @property
    def version(self) -> VersionRange:
        return self.view.version

    @cached_property
    def curves(self) -> Curves:
        """What each replica's own sightings prove of its offsets over time."""
        return Curves(self)

    @cached_property
    def printed(self) -> dict[tuple[str, int], dict[str, OffsetObservation]]:
        """By (record, broker): the offsets that its line prints, all as of one instant."""
        lines: dict[tuple[str, int], dict[str, OffsetObservation]] = {}
        for observation in self.evidence.observations:
            if observation.is_printed and observation.evidence_id:
                line = lines.setdefault((observation.evidence_id, observation.replica_id), {})
                line[observation.offset_kind] = observation
        return lines

    def events_of(self, replica_id: int, *kinds: ReplicaEventKind) -> Sequence[ReplicaEvent]:
        """What a replica did, in the order of time; of all ``kinds`` where none is given."""
        found = self._events.get((replica_id, kinds))
        if found is None:
            own = self.evidence.events_of(replica_id, *kinds)
            found = self._events[replica_id, kinds] = sorted(own, key=lambda e: (e.at, e.kind, e.evidence_id))
        return found

    @cached_property
    def _events(self) -> dict[tuple[int, tuple[ReplicaEventKind, ...]], list[ReplicaEvent]]:
        return {}

    def moves_of(self, kind: IsrMoveKind) -> Sequence[IsrMove]:
        """The moves of a kind, in the order of time."""
        return self._moves.get(kind, ())

    @cached_property
    def _moves(self) -> dict[IsrMoveKind, list[IsrMove]]:
        found: dict[IsrMoveKind, list[IsrMove]] = {}
        for move in sorted(self.isr_moves, key=lambda m: (m.at, m.evidence_id, m.member)):
            found.setdefault(move.kind, []).append(move)
        return found

    def has_moved(self, kind: IsrMoveKind, leader: int, member: int, since: int, until: int) -> bool:
        """Whether a leader's lines show such a move of a member in [since, until]."""
        instants = self._instants_of_moves.get((kind, leader, member), ())
        return bisect_left(instants, since) < bisect_right(instants, until)

    @cached_property
    def _instants_of_moves(self) -> dict[tuple[IsrMoveKind, int, int], list[int]]:
        found: dict[tuple[IsrMoveKind, int, int], list[int]] = {}
        for move in sorted(self.isr_moves, key=lambda m: m.at):
            found.setdefault((move.kind, move.leader, move.member), []).append(move.at)
        return found

    @cached_property
    def decided_in_order(self) -> list[DecidedState]:
        """The decided states in the order of time."""
        return sorted(self.evidence.decided, key=lambda state: (state.valid_from, state.leader_epoch))

    @cached_property
    def _largest_isr(self) -> int:
        return max((len(state.isr) for state in self.evidence.decided), default=0)

    @property
    def clocks(self) -> OffsetClocks:
        return self.evidence.clocks

    def is_covered(self, replica_id: int, start: int, end: int, clock: int = CAPTURER) -> bool:
        """Whether the broker's server.log is complete from ``start`` to ``end``, which are instants of ``clock``."""
        slack = self.clocks.between_us(replica_id, clock)
        return any(
            first <= start - slack and end + slack <= last for first, last in self.evidence.covered.get(replica_id, ())
        )

    def min_insync_replicas(self, leader: int, start: int, end: int | None) -> int | None:
        """``min.insync.replicas`` as the topic's or the leader's configuration had it from ``start`` to ``end``; None
        where nothing says what either had then, or where it changed.

        Only one that some ISR of the partition reached: a leader takes no more than there are replicas. A broker's own
        counts only where it is known that the topic set none.
        """
        required = self.view.min_isr(self.topic, leader, start, end)
        return required if required is not None and required <= self._largest_isr else None


@value_class
class Extreme:
    """The highest or the lowest of a bound over a span of time, and its evidence."""

    offset: int
    evidence: tuple[str, ...]


class Curves:
    """Each replica's own observations, as values and as bounds over time; and the spans of its roles."""

    def __init__(self, case: OffsetCase) -> None:
        evidence = case.evidence.in_order()
        self.values: dict[Key, list[TimedOffset]] = {
            key: sorted(values, key=lambda v: (v.earliest, v.latest, v.offset, v.evidence))
            for key, values in timed_offsets(evidence).items()
        }
        replicas = sorted({replica for replica, _ in self.values})
        self.roles: list[RoleSpan] = find_role_spans(evidence, self.values)
        roles_of: dict[tuple[int, bool], list[RoleSpan]] = {}
        for role in self.roles:
            roles_of.setdefault((role.replica_id, role.is_leader), []).append(role)
        self._roles_of = {key: SpansByTime(roles) for key, roles in roles_of.items()}
        is_kept_in_log = case.version.may_be_since(HIGH_WATERMARK_KEPT_IN_LOG_SINCE)
        self.drops: dict[Key, list[Drop]] = drops_of(evidence, replicas, self.roles, {}, is_kept_in_log=is_kept_in_log)
        self._lower: dict[Key, list[Step]] = {}
        self._upper: dict[Key, list[Step]] = {}

    def of(self, replica_id: int, quantity: str) -> Sequence[TimedOffset]:
        """The values that a replica's quantity had, by the earliest instant each may be of."""
        return self.values.get((replica_id, quantity), ())

    def least(self, replica_id: int, quantity: str, start: int, end: int) -> Extreme | None:
        """What the quantity was at least, at every instant from ``start`` to ``end``; None: not bounded somewhere."""
        key = (replica_id, quantity)
        if key not in self._lower:
            drops = self.drops.get(key, ())
            by_time = SpansByTime(drops)
            facts = {
                Fact(v.latest, v.offset, v.evidence)
                for v in self.values.get(key, ())
                if not _crosses(v, by_time, is_proof=True)
            }
            self._lower[key] = lower_steps(facts, drops)
        over = intervals_over(self._lower[key], start, end)
        lowest = min(over, key=lambda step: (step.offset, step.start), default=None)
        return None if lowest is None else Extreme(lowest.offset, lowest.evidence)

    def most(self, replica_id: int, quantity: str, start: int, end: int) -> Extreme | None:
        """What the quantity was at most, at every instant from ``start`` to ``end``; None: not bounded somewhere."""
        key = (replica_id, quantity)
        if key not in self._upper:
            drops = self.drops.get(key, ())
            by_time = SpansByTime(drops)
            facts = {
                Fact(v.earliest, v.offset, v.evidence)
                for v in self.values.get(key, ())
                if not v.is_minimum and v.earliest > EVER_BEFORE and not _crosses(v, by_time)
            }
            self._upper[key] = upper_steps(facts, drops)
        over = intervals_over(self._upper[key], start, end)
        highest = max(over, key=lambda step: (step.offset, -step.start), default=None)
        return None if highest is None else Extreme(highest.offset, highest.evidence)

    def following(self, replica_id: int, start: int, end: int) -> RoleSpan | None:
        """The span in which the replica followed one leader, its first fetch over, from ``start`` to ``end``."""
        return self._role(replica_id, start, end, is_leader=False)

    def leading(self, replica_id: int, start: int, end: int) -> RoleSpan | None:
        """The span in which the replica led from ``start`` to ``end``."""
        return self._role(replica_id, start, end, is_leader=True)

    def _role(self, replica_id: int, start: int, end: int, *, is_leader: bool) -> RoleSpan | None:
        own = self._roles_of.get((replica_id, is_leader))
        for role in own.touching(end + 1, start) if own is not None else ():
            since = role.start if is_leader else role.proven_from
            if since <= start and end < role.end:
                return role
        return None


def names(*groups: Iterable[str]) -> tuple[str, ...]:
    """Evidence ids of all groups, each once, in an order that does not depend on theirs."""
    return tuple(sorted({name for group in groups for name in group if name}))


def _crosses(value: TimedOffset, drops: SpansByTime[Drop], *, is_proof: bool = False) -> bool:
    """A value that may be of before or after a drop bounds nothing here; but for ``is_proof``, where just this value
    shows that the drop was over."""
    return any(
        value.may_cross(drop) and not (is_proof and (drop.end, drop.last_offset) == (value.latest, value.offset))
        for drop in drops.touching(value.earliest, value.latest)
    )
