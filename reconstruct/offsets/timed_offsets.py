"""The values that observations prove an offset had, each with the earliest and the latest instant it may be of.

These instants are of the cluster's time: what a line says is widened by what is not known of its broker's clock.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

from reconstruct.model.value_class import value_class
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_BEFORE, Drop
from reconstruct.offsets.evidence import (
    LINE_TO_ACT_US,
    LINE_TO_VALUE_US,
    CheckpointSchedule,
    OffsetEvidence,
    OffsetObservation,
    ReplicaEventKind,
)

#: A replica and one of its offsets.
Key = tuple[int, str]


@value_class
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


def timed_offsets(evidence: OffsetEvidence) -> dict[Key, list[TimedOffset]]:
    """By (replica, quantity): the values that observations prove, with the earliest and latest instant they may be of.

    None of a replica whose broker's clock nothing bounds: what lowers its offsets may have been at any time.
    """
    result: dict[Key, list[TimedOffset]] = {}
    starts = _instants_of(evidence, ReplicaEventKind.STARTED)
    roles = _instants_of(evidence, ReplicaEventKind.LEADS, ReplicaEventKind.FOLLOWS)
    previous: dict[tuple[int, str, str], OffsetObservation] = {}
    for observation in evidence.observations:
        replica = observation.replica_id
        if observation.offset_kind == oe.EPOCH_START or not evidence.clocks.is_bounded(replica):
            continue
        slack = evidence.clocks.slack_us(replica)
        key = (replica, observation.offset_kind)
        if observation.source in oe.FILE_SOURCES:
            began = _began_acting(observation, starts.get(replica, ()), roles.get(replica, ()), slack)
            due = _due(observation, evidence.schedules.get(replica), began)
            value = _from_file(observation, previous.get((*key, observation.source)), due)
            previous[(*key, observation.source)] = observation
        else:
            value = _from_line_or_answer(observation, starts.get(replica, ()), slack)
        if value is not None:
            result.setdefault(key, []).append(value)
    for key, value in _epoch_starts(evidence):
        result.setdefault(key, []).append(value)
    return result


def _from_file(observation: OffsetObservation, before: OffsetObservation | None, due: int | None) -> TimedOffset | None:
    """A copy is news only if the file was written since the copy before: it was where its content is another.

    It also was where it had been due since ``due``.
    """
    known = [instant for instant in (observation.written_after, due) if instant is not None]
    if before is None:
        known.append(EVER_BEFORE)
    elif before.offset != observation.offset:
        known.append(before.observed_at)
    if not known:
        return None
    return TimedOffset(max(known), observation.until, observation.offset, observation.is_minimum, observation.evidence)


def _due(observation: OffsetObservation, schedule: CheckpointSchedule | None, began: int | None) -> int | None:
    """An instant at which the high watermark was not above what the file still had when it was copied.

    Had it been above, the next write would have shown it; without a write until the copy the broker did not run, for
    longer than a session outlives.
    """
    if schedule is None or began is None or observation.offset_kind != oe.HIGH_WATERMARK:
        return None
    instant = observation.observed_at - schedule.interval_us - schedule.longest_stall_us
    lived = any(start <= instant and observation.observed_at <= end for start, end in schedule.sessions)
    return instant if lived and began <= instant else None


def _began_acting(
    observation: OffsetObservation, starts: Sequence[int], roles: Sequence[int], slack_us: int
) -> int | None:
    """By when the process that the copy is of had taken a role: from then on it writes the file."""
    started = _last_until(starts, observation.observed_at + slack_us)
    index = bisect_left(roles, started)
    acted = roles[index] + slack_us if index < len(roles) else None
    return acted if acted is not None and acted <= observation.observed_at else None


def _from_line_or_answer(observation: OffsetObservation, starts: Sequence[int], slack_us: int) -> TimedOffset:
    """A line prints a value of about its own time, of the process that wrote it; an answer one between its two ends."""
    instant = observation.observed_at
    value = TimedOffset(instant, observation.until, observation.offset, observation.is_minimum, observation.evidence)
    if observation.observed_at_upper is not None:
        return value
    started = _last_until(starts, instant)
    earliest = max(instant - LINE_TO_VALUE_US, started) - slack_us
    latest = instant + LINE_TO_VALUE_US + slack_us
    return replace(value, earliest=earliest, latest=latest, slack_us=slack_us)


def _last_until(instants: Sequence[int], until: int) -> int:
    index = bisect_right(instants, until)
    return instants[index - 1] if index else EVER_BEFORE


def _instants_of(evidence: OffsetEvidence, *kinds: ReplicaEventKind) -> dict[int, list[int]]:
    """By replica: when it did one of ``kinds``, in order."""
    result: dict[int, list[int]] = {}
    for event in sorted(evidence.events, key=lambda event: event.at):
        if event.kind in kinds:
            result.setdefault(event.replica_id, []).append(event.at)
    return result


def _epoch_starts(evidence: OffsetEvidence) -> Iterable[tuple[Key, TimedOffset]]:
    """The leader of an epoch ended where its own lineage says that the epoch begins, when it first became its leader.

    A broker that starts again goes on leading at the same epoch, from wherever its log ends then.
    """
    first_led: dict[tuple[int, int | None], int] = {}
    for event in evidence.events:
        if event.kind is ReplicaEventKind.LEADS:
            own = (event.replica_id, event.leader_epoch)
            first_led[own] = min(event.at, first_led.get(own, event.at))
    printed = {
        (s.replica_id, s.leader_epoch, s.evidence_id): s.offset
        for s in evidence.observations
        if s.offset_kind == oe.LOG_END_OFFSET and s.leader_epoch is not None
    }
    entries = {
        (s.replica_id, s.leader_epoch): s
        for s in evidence.observations
        if s.offset_kind == oe.EPOCH_START and s.leader_epoch is not None
    }
    for event in evidence.events:
        if event.kind is not ReplicaEventKind.LEADS or event.leader_epoch is None:
            continue
        if not evidence.clocks.is_bounded(event.replica_id):
            continue
        own = (event.replica_id, event.leader_epoch)
        entry = entries.get(own)
        led_before = event.at - LINE_TO_ACT_US > first_led[own]
        if (
            entry is not None
            and not led_before
            and printed.get((*own, event.evidence_id), entry.offset) == entry.offset
        ):
            slack = evidence.clocks.slack_us(event.replica_id)
            earliest, latest = event.at - LINE_TO_ACT_US - slack, event.at + slack
            value = TimedOffset(earliest, latest, entry.offset, evidence=entry.evidence, slack_us=slack)
            yield (event.replica_id, oe.LOG_END_OFFSET), value
