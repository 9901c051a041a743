"""Every cut of a replica's log that lines, lineages, checkpoints or probes show, and which records went with it.

A line tells of a cut exactly: to which offset, and mostly why (ReplicaFetcherThread.truncate, AbstractFetcherThread,
Log.truncateTo). Where no line does, two sightings prove one: the log ended at ``a`` or above and later, by an exact
sighting, at ``b`` below that; or the replica's lineage has an epoch begin below where its log ended in an older one
that it led. What was cut is bounded by the offsets at that instant; what of it had been committed, by the high
watermark of the leader whose records they were. A record above that was acknowledged with acks=1 or acks=0 at the most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconstruct.model.versions import (
    TRUNCATION_BY_EPOCH_LINEAGE_SINCE,
    TRUNCATION_BY_LEADER_EPOCH_SINCE,
    VersionRange,
)
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_AFTER, interval_at
from reconstruct.offsets.evidence import (
    LINE_TO_ACT_US,
    OffsetBounds,
    OffsetEvidence,
    ReplicaEvent,
    ReplicaEventKind,
    TruncationCause,
)
from reconstruct.offsets.timed_offsets import TimedOffset, timed_offsets

_ROLES: Final = (ReplicaEventKind.LEADS, ReplicaEventKind.FOLLOWS)
_ENDS: Final = (*_ROLES, ReplicaEventKind.STARTED)
#: Sightings of these prove from below where the log ended.
_BELOW_LOG_END: Final = (oe.LOG_END_OFFSET, oe.RECOVERY_POINT)
SIGHTINGS: Final = "replication_rules"


@dataclass(frozen=True, slots=True)
class Truncation:
    """One cut, between ``truncated_at`` and ``truncated_at_upper``; ``inferred_from`` None where a line tells of it.

    The log ended at ``log_end_lower`` to ``log_end_upper`` before and at ``truncated_to`` at the most afterwards,
    exactly there where a line says so. Counts are of offsets; an upper bound of None is not bounded. ``leader`` and
    ``leader_epoch`` are whom the replica then followed.
    """

    replica_id: int
    truncated_at: int
    truncated_at_upper: int
    truncated_to: int
    cause: TruncationCause
    log_end_lower: int | None = None
    log_end_upper: int | None = None
    leader: int | None = None
    leader_epoch: int | None = None
    dropped_count_lower: int = 0
    dropped_count_upper: int | None = None
    committed_count_lower: int = 0
    committed_count_upper: int | None = None
    uncommitted_count_lower: int = 0
    uncommitted_count_upper: int | None = None
    evidence: tuple[str, ...] = ()
    inferred_from: str | None = None


def find_truncations(
    evidence: OffsetEvidence, bounds: Iterable[OffsetBounds], version: VersionRange
) -> list[Truncation]:
    """By replica and time; without those that are proven to have dropped nothing."""
    evidence = evidence.in_order()
    by_replica: dict[int, list[OffsetBounds]] = {}
    for row in bounds:
        if row.valid_to is None or row.valid_to > row.valid_from:  # an answer's row holds at no instant
            by_replica.setdefault(row.replica_id, []).append(row)
    values = timed_offsets(evidence)
    result = []
    for replica in sorted({event.replica_id for event in evidence.events} | {replica for replica, _ in values}):
        told = _told(evidence, replica, version)
        sightings = [value for kind in _BELOW_LOG_END for value in values.get((replica, kind), ())]
        exact = [value for value in values.get((replica, oe.LOG_END_OFFSET), ()) if not value.is_minimum]
        cuts = [*told, *_seen(evidence, replica, sightings, exact, told)]
        cuts += _of_lineage(evidence, replica, exact, cuts)
        for cut in sorted(cuts, key=lambda c: (c.truncated_at, -c.truncated_to, c.evidence)):
            weighed = _weighed(cut, evidence, by_replica)
            if weighed.dropped_count_upper != 0:
                result.append(weighed)
    return result


# --- what lines tell ------------------------------------------------------------------------------------------------


def _told(evidence: OffsetEvidence, replica: int, version: VersionRange) -> list[Truncation]:
    """One for each cut: several lines within a second that name one offset are of one."""
    result: list[Truncation] = []
    for line in evidence.events_of(replica, ReplicaEventKind.TRUNCATED):
        if line.offset is None:
            continue
        last = result[-1] if result else None
        if (
            last is not None
            and last.truncated_to == line.offset
            and line.at <= last.truncated_at_upper + LINE_TO_ACT_US
        ):
            ids = tuple(sorted({*last.evidence, line.evidence_id}))
            result[-1] = replace(last, truncated_at_upper=line.at, evidence=ids)
        else:
            cause = TruncationCause.UNKNOWN
            result.append(Truncation(replica, line.at, line.at, line.offset, cause, evidence=(line.evidence_id,)))
    return [replace(cut, cause=_cause(evidence, cut, version)) for cut in result]


def _cause(evidence: OffsetEvidence, cut: Truncation, version: VersionRange) -> TruncationCause:
    """What the lines around it say; up to 0.10 a follower of a new leader cuts to its high watermark first."""
    kinds = (ReplicaEventKind.TRUNCATED, ReplicaEventKind.TRUNCATION_DECIDED)
    near = [
        event
        for event in evidence.events_of(cut.replica_id, *kinds, ReplicaEventKind.FOLLOWS)
        if cut.truncated_at - LINE_TO_ACT_US <= event.at <= cut.truncated_at_upper + LINE_TO_ACT_US
    ]
    said = [event.cause for event in near if event.cause is not None and event.offset in (None, cut.truncated_to)]
    if said:
        return min(said, key=list(TruncationCause).index)
    follows = any(event.kind is ReplicaEventKind.FOLLOWS and event.at >= cut.truncated_at for event in near)
    if version.is_before(TRUNCATION_BY_LEADER_EPOCH_SINCE) and follows:
        return TruncationCause.HIGH_WATERMARK
    # these log only answers without an epoch's end, or that need no cut (ReplicaFetcherThread.maybeTruncate)
    if version.is_since(TRUNCATION_BY_LEADER_EPOCH_SINCE) and version.is_before(TRUNCATION_BY_EPOCH_LINEAGE_SINCE):
        return TruncationCause.LEADER_EPOCH
    return TruncationCause.UNKNOWN


# --- what sightings prove -------------------------------------------------------------------------------------------


def _seen(
    evidence: OffsetEvidence,
    replica: int,
    sightings: Sequence[TimedOffset],
    exact: Sequence[TimedOffset],
    told: Sequence[Truncation],
) -> list[Truncation]:
    """Of two sightings, the later one of a lower log end, where no line told of a cut down to it."""
    result: list[Truncation] = []
    since = -EVER_AFTER
    slack = evidence.clocks.slack_us(replica) + LINE_TO_ACT_US
    for value in sorted(exact, key=lambda v: (v.earliest, v.latest, v.offset)):
        before = [s for s in sightings if since <= s.earliest and s.latest < value.earliest]
        highest = max(before, key=lambda s: (s.offset, -s.latest), default=None)
        if highest is None or highest.offset <= value.offset:
            continue
        since = value.earliest
        if any(_explains(cut, highest, value, slack) for cut in told):
            continue
        events = [
            e
            for e in evidence.events_of(replica, ReplicaEventKind.STARTED, ReplicaEventKind.DELETED)
            if highest.earliest - slack <= e.at <= value.latest + slack
        ]
        started = any(event.kind is ReplicaEventKind.STARTED for event in events)
        if events and not started:
            continue  # the replica was deleted: its log is another one
        cause = TruncationCause.START if started else TruncationCause.UNKNOWN
        ids = tuple(sorted({*highest.evidence, *value.evidence}))
        cut = Truncation(replica, highest.latest, value.earliest, value.offset, cause, highest.offset, evidence=ids)
        result.append(replace(cut, inferred_from=SIGHTINGS))
    return result


def _explains(cut: Truncation, highest: TimedOffset, value: TimedOffset, slack: int) -> bool:
    is_between = highest.earliest - slack <= cut.truncated_at <= value.latest + slack
    return is_between and cut.truncated_to <= value.offset


def _of_lineage(
    evidence: OffsetEvidence, replica: int, exact: Sequence[TimedOffset], known: Sequence[Truncation]
) -> list[Truncation]:
    """Where the replica's lineage has an epoch begin below where its log ended while it led an older one."""
    lineage: dict[int, tuple[int, str]] = {
        entry.leader_epoch: (entry.offset, entry.evidence_id)
        for entry in evidence.observations
        if (entry.replica_id, entry.offset_kind) == (replica, oe.EPOCH_START) and entry.leader_epoch is not None
    }
    result: list[Truncation] = []
    slack = evidence.clocks.slack_us(replica) + LINE_TO_ACT_US
    roles = evidence.events_of(replica, *_ENDS)
    for index, led in enumerate(roles):
        if led.kind is not ReplicaEventKind.LEADS or led.leader_epoch is None:
            continue
        ended = next((e.at for e in roles[index + 1 :] if e.leader_epoch != led.leader_epoch), EVER_AFTER)
        had = [v for v in exact if led.at - slack <= v.earliest and v.latest <= ended - slack]
        highest = max(had, key=lambda v: v.offset, default=None)
        later = min((epoch for epoch in lineage if epoch > led.leader_epoch), default=None)
        if highest is None or later is None or ended == EVER_AFTER or highest.offset <= lineage[later][0]:
            continue
        begins, entry = lineage[later]
        if any(
            cut.truncated_at_upper >= highest.earliest - slack and cut.truncated_to <= begins
            for cut in (*known, *result)
        ):
            continue
        ids = tuple(sorted({*highest.evidence, entry}))
        cut = Truncation(
            replica, ended, EVER_AFTER, begins, TruncationCause.LEADER_EPOCH, highest.offset, leader_epoch=later
        )
        result.append(replace(cut, evidence=ids, inferred_from=SIGHTINGS))
    return result


# --- which records went ---------------------------------------------------------------------------------------------


def _weighed(cut: Truncation, evidence: OffsetEvidence, by_replica: Mapping[int, Sequence[OffsetBounds]]) -> Truncation:
    slack = evidence.clocks.slack_us(cut.replica_id)
    instant = cut.truncated_at - slack - 1
    own = interval_at(by_replica.get(cut.replica_id, ()), instant)
    leader, epoch = _followed(evidence, cut)
    lower = max(
        (v for v in (cut.log_end_lower, own.log_end_offset_lower if own else None) if v is not None), default=None
    )
    resting = _resting(evidence, cut)
    upper = own.log_end_offset_upper if own is not None and resting is None else resting
    if cut.inferred_from is not None or slack > oe.LINE_TO_VALUE_US:
        upper = None
    to = cut.truncated_to
    dropped_lower = 0 if lower is None else max(lower - to, 0)
    dropped_upper = None if upper is None else max(upper - to, dropped_lower)
    committed = _committed_at_least(cut, evidence, by_replica.get(cut.replica_id, ()), instant)
    committed_lower = 0 if committed is None or lower is None else max(min(committed, lower) - to, 0)
    most = _committed_at_most(cut, evidence, by_replica, instant)
    committed_upper = dropped_upper if most is None else max(most - to, committed_lower)
    if dropped_upper is not None and committed_upper is not None:
        committed_upper = min(committed_upper, dropped_upper)
    uncommitted_lower = 0 if most is None or lower is None else max(lower - max(most, to), 0)
    uncommitted_upper = None if dropped_upper is None else dropped_upper - committed_lower
    return replace(
        cut,
        log_end_lower=lower,
        log_end_upper=upper,
        leader=cut.leader if cut.leader is not None else leader,
        leader_epoch=cut.leader_epoch if cut.leader_epoch is not None else epoch,
        dropped_count_lower=dropped_lower,
        dropped_count_upper=dropped_upper,
        committed_count_lower=committed_lower,
        committed_count_upper=committed_upper,
        uncommitted_count_lower=uncommitted_lower,
        uncommitted_count_upper=uncommitted_upper,
    )


def _followed(evidence: OffsetEvidence, cut: Truncation) -> tuple[int | None, int | None]:
    """Whom the replica followed when it cut its log, and the epoch that was decided for that leader then."""
    if cut.truncated_at_upper == EVER_AFTER:
        return None, None
    follows = [
        event
        for event in evidence.events_of(cut.replica_id, *_ROLES)
        if event.at <= cut.truncated_at_upper + LINE_TO_ACT_US
    ]
    last = max(follows, key=lambda event: event.at, default=None)
    if last is None or last.kind is not ReplicaEventKind.FOLLOWS:
        return None, None
    decided = [s for s in evidence.decided if s.leader == last.leader and s.valid_from <= last.at + LINE_TO_ACT_US]
    return last.leader, max((state.leader_epoch for state in decided), default=None)


def _resting(evidence: OffsetEvidence, cut: Truncation) -> int | None:
    """Where the log ended since its broker started, or made it anew, if it has taken no role until the one for which it
    is cut: nothing is written to it then. None where that is not so, or not known."""
    line = cut.truncated_at
    before = evidence.events_of(cut.replica_id, *_ENDS, ReplicaEventKind.DELETED)
    before = [event for event in before if event.at <= line and event.evidence_id not in cut.evidence]
    if before and before[-1].kind is ReplicaEventKind.FOLLOWS and line - before[-1].at <= LINE_TO_ACT_US:
        before.pop()
    if not before or before[-1].kind in _ROLES:
        return None
    if before[-1].kind is ReplicaEventKind.DELETED:
        return 0
    loaded = [
        s.offset
        for s in evidence.observations
        if (s.replica_id, s.offset_kind) == (cut.replica_id, oe.LOG_END_OFFSET)
        and s.is_printed
        and not s.is_minimum
        and before[-1].at <= s.observed_at <= line
    ]
    return max(loaded, default=None)


def _committed_at_least(
    cut: Truncation, evidence: OffsetEvidence, rows: Sequence[OffsetBounds], instant: int
) -> int | None:
    """What the replica's own high watermark had reached in the role before, which no high watermark of a leader is
    below."""
    roles = [event.at for event in evidence.events_of(cut.replica_id, *_ROLES) if event.at < instant - LINE_TO_ACT_US]
    since = max(roles, default=instant)
    known = [
        row.high_watermark_lower
        for row in rows
        if row.valid_from <= instant and row.end > since and row.high_watermark_lower is not None
    ]
    return max(known, default=None)


def _committed_at_most(
    cut: Truncation, evidence: OffsetEvidence, by_replica: Mapping[int, Sequence[OffsetBounds]], instant: int
) -> int | None:
    """The high watermark that the leader whose records were cut can have reached at most; None: not bounded.

    That is the leader that the replica was or followed before it follows the one for which it cuts.
    """
    roles: list[ReplicaEvent] = [e for e in evidence.events_of(cut.replica_id, *_ROLES) if e.at <= instant]
    leader, _ = _followed(evidence, cut)
    before = [event for event in roles if event.kind is ReplicaEventKind.LEADS or event.leader != leader]
    last = max(before, key=lambda event: event.at, default=None)
    if last is None or last.leader is None:
        return None
    reigns = [state for state in evidence.decided if state.leader == last.leader and state.valid_from <= instant]
    ended = max((state.end for state in reigns), default=None)
    if ended is None:
        return None
    at_end = interval_at(by_replica.get(last.leader, ()), min(ended, instant) - 1)
    return None if at_end is None else at_end.high_watermark_upper
