"""Proven bounds of every replica's high watermark and log end offset, from sightings and the rules of replication.

A sighting is one value at one instant, and a coarse one: a checkpoint copied at 10:00:03 was written some time before,
and its high watermark was right when it was written. What makes bounds of it is that these offsets only rise, except in
the drops of :mod:`reconstruct.offsets.role_spans`: the value bounds from below all that comes after the *latest*
instant it may be of, and from above all that came before the *earliest*.

Five rules then carry facts between quantities and replicas, each where it is proven to hold and nowhere else:

* a high watermark is not above its own log end (R31); before 2.4 a truncation may leave it there until the next fetch;
* once a follower fetched in a span of following, its high watermark is not above its leader's (R32), nor its log end;
* the leader's high watermark, once above what it was when the reign began, is not above the log end of any member of
  the ISR (R33): up to 0.10 a member may have cut its log to its own high watermark at the reign's begin, no later;
* an epoch begins at its leader's log end (``leader-epoch-checkpoint``);
* a leader knows its followers' log ends from below (what an ISR shrink prints).

Nothing is claimed of a time that a broker's log does not cover, nor of a replica whose broker's clock nothing bounds:
every bound needs to know when its offsets may have fallen. All that is compared here is of the cluster's time, to which
lines belong as exactly as their broker's clock is known (:mod:`reconstruct.offsets.clocks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import Final

from reconstruct.model.versions import HIGH_WATERMARK_KEPT_IN_LOG_SINCE, KafkaVersion
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_AFTER, EVER_BEFORE, Drop, Fact, Step, interval_at
from reconstruct.offsets.evidence import LINE_TO_VALUE_US, OffsetBounds, OffsetEvidence
from reconstruct.offsets.inference.facts import Facts
from reconstruct.offsets.inference.isr import infer_over_isr
from reconstruct.offsets.inference.replicas import infer_between_replicas, infer_within_replica
from reconstruct.offsets.probe_answers import with_probe_answers
from reconstruct.offsets.role_spans import RoleSpan, drops_of, find_role_spans
from reconstruct.offsets.timed_offsets import Key, TimedOffset, timed_offsets
from reconstruct.time.spans import SpansByTime

_ROUNDS: Final = 2


def bound_offsets(evidence: OffsetEvidence, version: KafkaVersion) -> list[OffsetBounds]:
    """The bounds of every replica that any evidence is about, by replica and time; contiguous while anything is known.

    A probe's answer is shown where the bounds do not meet anyway (:mod:`reconstruct.offsets.probe_answers`). Where
    bounds contradict each other once the probes are among the evidence, as they do where the prober's clock is wrong,
    they are made without the probes.

    They hold by the rules of ``version``. The same evidence in any order gives the same bounds.
    """
    is_kept_in_log = version >= HIGH_WATERMARK_KEPT_IN_LOG_SINCE
    evidence = evidence.in_order()
    by_replica = _proven(evidence, is_kept_in_log=is_kept_in_log)
    if any(map(_is_contradiction, chain.from_iterable(by_replica.values()))):
        others = [observation for observation in evidence.observations if observation.source != oe.PROBE]
        if len(others) < len(evidence.observations):
            without = _proven(replace(evidence, observations=others), is_kept_in_log=is_kept_in_log)
            by_replica = {replica: without.get(replica, []) for replica in by_replica}
    return [
        row for replica, rows in by_replica.items() for row in with_probe_answers(replica, rows, evidence.observations)
    ]


def _is_contradiction(row: OffsetBounds) -> bool:
    high_watermark, log_end = row.high_watermark_upper, row.log_end_offset_upper
    return (high_watermark is not None and (row.high_watermark_lower or 0) > high_watermark) or (
        log_end is not None and (row.log_end_offset_lower or 0) > log_end
    )


def _proven(evidence: OffsetEvidence, *, is_kept_in_log: bool) -> dict[int, list[OffsetBounds]]:
    """By replica, ascending: the bounds at every instant of which anything is known."""
    values = timed_offsets(evidence)
    replicas = sorted({replica for replica, _ in values} | {event.replica_id for event in evidence.events})
    roles = find_role_spans(evidence, values)
    floors: dict[tuple[int, int], int] = {}
    facts = Facts()
    for _ in range(_ROUNDS):
        facts = Facts(drops=drops_of(evidence, replicas, roles, floors, is_kept_in_log=is_kept_in_log))
        for key, of_key in values.items():
            _add_values(facts, key, of_key)
        for _ in range(_ROUNDS):
            infer_within_replica(facts, evidence, replicas, roles, is_kept_in_log=is_kept_in_log)
            infer_between_replicas(facts, roles)
            infer_over_isr(facts, evidence, roles)
        floors = _floors(facts, roles)
    timed = evidence.clocks.is_bounded
    return {replica: _bounds_of(replica, facts) if timed(replica) else [] for replica in replicas}


# --- facts that stop at drops ---------------------------------------------------------------------------------------


def _add_values(facts: Facts, key: Key, values: Iterable[TimedOffset]) -> None:
    """A value that may be of before or after a drop is at most of use down to the drop's floor."""
    drops = SpansByTime(facts.drops.get(key, ()))
    for value in values:
        near = drops.touching(value.earliest, value.latest)
        crossed = [drop for drop in near if value.may_cross(drop)]
        at_latest, at_earliest = [_over(near, at) if value.slack_us else [] for at in (value.latest, value.earliest)]
        # a drop that this value shows to be over does not lower it
        lowering = [drop for drop in crossed if (drop.end, drop.last_offset) != (value.latest, value.offset)]
        offset: int | None = value.offset
        for drop in (*lowering, *at_latest):
            offset = None if offset is None or drop.floor is None else min(offset, drop.floor)
        if offset is not None:
            facts.at_least(key, Fact(value.latest, offset, value.evidence))
        if not crossed and not at_earliest and not value.is_minimum and value.earliest > EVER_BEFORE:
            facts.at_most(key, Fact(value.earliest, value.offset, value.evidence))


def _over(drops: Iterable[Drop], instant: int) -> list[Drop]:
    """The drops that may be at ``instant``, also where they are of other lines than the value of just then."""
    return [drop for drop in drops if drop.start <= instant <= drop.end]


def _floors(facts: Facts, roles: Sequence[RoleSpan]) -> dict[tuple[int, int], int]:
    """By (leader, begin of following it): what its high watermark surely was already, if it did not fall later."""
    result = {}
    of_leader: dict[int, tuple[list[Step], SpansByTime[Drop]]] = {}
    for role in roles:
        if role.is_leader:
            continue
        if role.leader not in of_leader:
            key = (role.leader, oe.HIGH_WATERMARK)
            of_leader[role.leader] = facts.lower_of(key), SpansByTime(facts.drops.get(key, ()))
        steps, drops = of_leader[role.leader]
        begin = role.begun - 2 * LINE_TO_VALUE_US
        known = interval_at(steps, begin)
        if known is not None and not drops.touching(begin, role.ended - 1):
            result[role.leader, role.begun] = known.offset
    return result


# --- from facts to intervals ----------------------------------------------------------------------------------------


def _bounds_of(replica: int, facts: Facts) -> list[OffsetBounds]:
    curves: dict[str, list[Step]] = {}
    for quantity, (lower, upper) in oe.BOUNDS.items():
        curves[lower] = facts.lower_of((replica, quantity))
        if upper is not None:
            curves[upper] = facts.upper_of((replica, quantity))
    instants = sorted({instant for steps in curves.values() for step in steps for instant in (step.start, step.end)})
    result: list[OffsetBounds] = []
    for start, end in pairwise(instants):
        if start == EVER_BEFORE:
            continue
        steps = {name: step for name, curve in curves.items() if (step := interval_at(curve, start)) is not None}
        if steps:
            offsets = {name: step.offset for name, step in steps.items()}
            ids = tuple(sorted({name for step in steps.values() for name in step.evidence}))
            result.append(OffsetBounds(replica, start, None if end == EVER_AFTER else end, **offsets, evidence=ids))
    return result
