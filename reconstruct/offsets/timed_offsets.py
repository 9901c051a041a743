"""From sightings to values held: each with the earliest and the latest instant at which the offset had it.

These instants are of the cluster's time: what a line says is widened by what is not known of its broker's clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_BEFORE
from reconstruct.offsets.evidence import (
    CheckpointSchedule,
    OffsetEvidence,
    OffsetObservation,
    ReplicaEventKind,
)
from reconstruct.offsets.role_spans import LINE_TO_ACT_US, LINE_TO_VALUE_US, TimedOffset

#: A replica and one of its offsets.
Key = tuple[int, str]


def timed_offsets(evidence: OffsetEvidence) -> dict[Key, list[TimedOffset]]:
    """By (replica, quantity): the values that sightings prove, with the earliest and latest instant they may be of.

    None of a replica whose broker's clock nothing bounds: what lowers its offsets may have been at any time.
    """
    result: dict[Key, list[TimedOffset]] = {}
    starts = _process_starts(evidence)
    roles = _role_lines(evidence)
    previous: dict[tuple[int, str, str], OffsetObservation] = {}
    for sighting in evidence.sightings:
        if sighting.offset_kind == oe.EPOCH_START or not evidence.clocks.is_bounded(sighting.replica_id):
            continue
        slack = evidence.clocks.slack_us(sighting.replica_id)
        key = (sighting.replica_id, sighting.offset_kind)
        if sighting.source in oe.FILE_SOURCES:
            own = starts.get(sighting.replica_id, ()), roles.get(sighting.replica_id, ())
            began = _began_acting(sighting, *own, slack)
            due = _due(sighting, evidence.schedules.get(sighting.replica_id), began)
            held = _from_file(sighting, previous.get((*key, sighting.source)), due)
            previous[(*key, sighting.source)] = sighting
        else:
            held = _from_line_or_answer(sighting, starts.get(sighting.replica_id, ()), slack)
        if held is not None:
            result.setdefault(key, []).append(held)
    for key, held in _epoch_starts(evidence):
        result.setdefault(key, []).append(held)
    return result


def _from_file(sighting: OffsetObservation, before: OffsetObservation | None, due: int | None) -> TimedOffset | None:
    """A copy is news only if the file was written since the copy before: it was where its content is another.

    It also was where it had been due since ``due``.
    """
    latest = sighting.observed_at if sighting.observed_at_upper is None else sighting.observed_at_upper
    known = [instant for instant in (sighting.written_after, due) if instant is not None]
    if before is None:
        known.append(EVER_BEFORE)
    elif before.offset != sighting.offset:
        known.append(before.observed_at)
    if not known:
        return None
    return TimedOffset(max(known), latest, sighting.offset, sighting.is_minimum, _ids(sighting))


def _due(sighting: OffsetObservation, schedule: CheckpointSchedule | None, began: int | None) -> int | None:
    """An instant at which the high watermark was not above what the file still had when it was copied.

    Had it been above, the next write would have shown it; without a write until the copy the broker did not run, for
    longer than a session outlives.
    """
    if schedule is None or began is None or sighting.offset_kind != oe.HIGH_WATERMARK:
        return None
    instant = sighting.observed_at - schedule.interval_us - schedule.longest_stall_us
    lived = any(start <= instant and sighting.observed_at <= end for start, end in schedule.sessions)
    return instant if lived and began <= instant else None


def _began_acting(
    sighting: OffsetObservation, starts: Sequence[int], roles: Sequence[int], slack_us: int
) -> int | None:
    """By when the process that the copy is of had taken a role: from then on it writes the file."""
    started = max((start for start in starts if start - slack_us <= sighting.observed_at), default=EVER_BEFORE)
    acted = [at + slack_us for at in roles if started <= at]
    return min((at for at in acted if at <= sighting.observed_at), default=None)


def _from_line_or_answer(sighting: OffsetObservation, starts: Sequence[int], slack_us: int) -> TimedOffset:
    """A line prints a value of about its own time, of the process that wrote it; an answer one between its two ends."""
    if sighting.observed_at_upper is not None:
        return TimedOffset(
            sighting.observed_at, sighting.observed_at_upper, sighting.offset, sighting.is_minimum, _ids(sighting)
        )
    instant = sighting.observed_at
    started = max((start for start in starts if start <= instant), default=EVER_BEFORE)
    earliest = max(instant - LINE_TO_VALUE_US, started) - slack_us
    latest = instant + LINE_TO_VALUE_US + slack_us
    return TimedOffset(earliest, latest, sighting.offset, sighting.is_minimum, _ids(sighting), slack_us)


def _ids(sighting: OffsetObservation) -> tuple[str, ...]:
    return (sighting.evidence_id,) if sighting.evidence_id else ()


def _process_starts(evidence: OffsetEvidence) -> dict[int, list[int]]:
    result: dict[int, list[int]] = {}
    for event in evidence.events:
        if event.kind is ReplicaEventKind.STARTED:
            result.setdefault(event.replica_id, []).append(event.at)
    return result


def _role_lines(evidence: OffsetEvidence) -> dict[int, list[int]]:
    result: dict[int, list[int]] = {}
    for event in evidence.events:
        if event.kind in (ReplicaEventKind.LEADS, ReplicaEventKind.FOLLOWS):
            result.setdefault(event.replica_id, []).append(event.at)
    return result


def _epoch_starts(evidence: OffsetEvidence) -> Iterable[tuple[Key, TimedOffset]]:
    """The leader of an epoch ended where its own lineage says that the epoch begins, when it became leader."""
    entries = {
        (s.replica_id, s.leader_epoch): s
        for s in evidence.sightings
        if s.offset_kind == oe.EPOCH_START and s.leader_epoch is not None
    }
    for event in evidence.events:
        if event.kind is not ReplicaEventKind.LEADS or event.leader_epoch is None:
            continue
        if not evidence.clocks.is_bounded(event.replica_id):
            continue
        entry = entries.get((event.replica_id, event.leader_epoch))
        if entry is not None:
            slack = evidence.clocks.slack_us(event.replica_id)
            earliest, latest = event.at - LINE_TO_ACT_US - slack, event.at + slack
            held = TimedOffset(earliest, latest, entry.offset, evidence=_ids(entry), slack_us=slack)
            yield (event.replica_id, oe.LOG_END_OFFSET), held
