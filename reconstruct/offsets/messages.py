"""Which messages of server.log and state-change.log say what of offsets: from an event type and its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ingest.shapes.event_types import EventType
from ingest.shapes.partition_lists import ALIGNED
from reconstruct.events.fields import Partition, number, partitions_of, words
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.evidence import OffsetObservation, ReplicaEvent, ReplicaEventKind, TruncationCause

LOG_RECORD: Final = "log_record"

#: By event type: (quantity, field) of the replica whose broker wrote the line, as of the line.
PRINTED_OFFSETS: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    EventType.LEADER_EPOCH_STARTED: (
        (oe.LOG_END_OFFSET, "leader_epoch_start_offset"),
        (oe.LOG_END_OFFSET, "log_end_offset"),
        (oe.HIGH_WATERMARK, "high_watermark"),
    ),
    EventType.ISR_SHRINK_PROPOSED: ((oe.LOG_END_OFFSET, "log_end_offset"), (oe.HIGH_WATERMARK, "high_watermark")),
    EventType.LOG_LOADED: ((oe.LOG_END_OFFSET, "log_end_offset"), (oe.LOG_START_OFFSET, "log_start_offset")),
    # Log.roll, just before the append that made it: the new segment's first offset
    EventType.LOG_ROLLED: ((oe.LOG_END_OFFSET, "log_end_offset"),),
    EventType.LOG_START_OFFSET_INCREMENTED: ((oe.LOG_START_OFFSET, "log_start_offset"),),
    EventType.HIGH_WATERMARK_INITIALISED: ((oe.HIGH_WATERMARK, "high_watermark"),),
    # Partition.maybeIncrementLeaderHW, at DEBUG; one that is not raised stays the old one
    EventType.HIGH_WATERMARK_UPDATED: ((oe.HIGH_WATERMARK, "high_watermark"),),
    EventType.HIGH_WATERMARK_NOT_UPDATED: ((oe.HIGH_WATERMARK, "old_high_watermark"),),
    # Log.updateHighWatermark, at WARN: what it went down to
    EventType.HIGH_WATERMARK_DECREASED: ((oe.HIGH_WATERMARK, "high_watermark"),),
    # a follower's own end, before it is cut: ReplicaFetcherThread.truncate, handleOffsetOutOfRange; Log.truncateTo
    EventType.LOG_TRUNCATION_DECIDED: ((oe.LOG_END_OFFSET, "log_end_offset"),),
    EventType.LOG_TRUNCATION_NOT_NEEDED: ((oe.LOG_END_OFFSET, "last_offset"),),
    EventType.FETCH_OFFSET_RESET: ((oe.LOG_END_OFFSET, "log_end_offset"),),
    EventType.LOG_TRUNCATION_NOT_ALLOWED: ((oe.LOG_END_OFFSET, "log_end_offset"),),
    # which of the follower's offsets that is: reconstruct.offsets.fetch_offsets
    EventType.FETCHER_ADDED: ((oe.FETCH_OFFSET, "fetch_offsets"), (oe.FETCH_OFFSET, "offset")),
}
#: By event type: what it says that the replica did.
REPLICA_EVENTS: Final[Mapping[str, ReplicaEventKind]] = {
    EventType.FETCHER_ADDED: ReplicaEventKind.FOLLOWS,
    EventType.BECOME_LEADER_COMPLETED: ReplicaEventKind.LEADS,
    EventType.LEADER_EPOCH_STARTED: ReplicaEventKind.LEADS,
    EventType.LOG_TRUNCATED: ReplicaEventKind.TRUNCATED,
    EventType.LOG_TRUNCATION_DECIDED: ReplicaEventKind.TRUNCATION_DECIDED,
    EventType.FETCH_OFFSET_RESET: ReplicaEventKind.TRUNCATION_DECIDED,
    EventType.LOG_DELETION_SCHEDULED: ReplicaEventKind.DELETED,
    EventType.LOG_MARKED_STRAY: ReplicaEventKind.DELETED,
    EventType.LOG_DELETED: ReplicaEventKind.DELETED,
    EventType.LOG_CREATED: ReplicaEventKind.DELETED,
    EventType.STOP_REPLICA_HANDLED: ReplicaEventKind.DELETED,
    # Log.updateHighWatermarkMetadata
    EventType.HIGH_WATERMARK_DECREASED: ReplicaEventKind.LOWERED,
}


def logged_replica_events(
    broker_id: int, at: int, evidence_id: str, event_type: str, fields: Mapping[str, str]
) -> Iterator[tuple[Partition, ReplicaEvent]]:
    """What one record of ``broker_id``'s log says that its replicas did. A start concerns every partition: not here.

    ``at`` is the record's time in microseconds. A truncation that names no offset (state-change.log up to 2.x) restates
    one that server.log tells with it, or one that had no effect.
    """
    kind = REPLICA_EVENTS.get(event_type)
    is_cut = kind in (ReplicaEventKind.TRUNCATED, ReplicaEventKind.TRUNCATION_DECIDED)
    offset = number(fields.get("offset")) if is_cut else None
    cause = _cause_of_cut(fields, offset) if is_cut else None
    if kind is ReplicaEventKind.LOWERED:
        offset = number(fields.get("high_watermark"))
    if kind is ReplicaEventKind.TRUNCATED and offset is None and cause is not None:
        kind = ReplicaEventKind.TRUNCATION_DECIDED  # 2.1 to 3.0 name the high watermark only; what is cut follows
    is_follower = event_type == EventType.LEADER_EPOCH_STARTED and fields.get("role") != "leader"
    if kind is None or is_follower or _is_of_copy(fields) or (kind is ReplicaEventKind.TRUNCATED and offset is None):
        return
    is_leader = kind is ReplicaEventKind.LEADS
    epoch, previous = (
        number(fields.get(name)) if is_leader else None for name in ("leader_epoch", "previous_leader_epoch")
    )
    leaders = words(fields.get("leaders"))
    for index, partition in enumerate(partitions_of(fields)):
        leader = broker_id if is_leader else None
        if kind is ReplicaEventKind.FOLLOWS:
            leader = number((leaders[index] if index < len(leaders) else "") or fields.get("leader"))
        yield partition, ReplicaEvent(broker_id, kind, at, offset, leader, epoch, evidence_id, cause, previous)


def _cause_of_cut(fields: Mapping[str, str], offset: int | None) -> TruncationCause | None:
    """Why, by what the line names beside the offset; None where it does not say.

    ``high_watermark`` beside another offset is what a cut goes below. A fetch offset is where the fetcher began: the
    high watermark, where no epoch is known (since 1.1).
    """
    high_watermark = number(fields.get("high_watermark"))
    if "log_end_offset" in fields and "leader_start_offset" in fields:
        return TruncationCause.LEADER_LOG_START
    leader_end = number(fields.get("leader_end_offset"))
    if leader_end is not None:
        if leader_end >= (number(fields.get("log_end_offset")) or 0) and "log_end_offset" in fields:
            return None  # nothing is cut
        is_out_of_range = offset is None and "leader_epoch" not in fields
        return TruncationCause.LEADER_LOG_END if is_out_of_range else TruncationCause.LEADER_EPOCH
    if high_watermark is not None:
        return TruncationCause.HIGH_WATERMARK if offset in (None, high_watermark) else None
    if "leader_epoch" in fields:
        return TruncationCause.LEADER_EPOCH
    return TruncationCause.HIGH_WATERMARK if offset is None and "fetch_offset" in fields else None


def _is_deleted(fields: Mapping[str, str]) -> bool:
    """Whether it is of a log that waits for its deletion under another name: what it held says nothing any more."""
    return fields.get("is_deleted") == "true"


def _is_of_copy(fields: Mapping[str, str]) -> bool:
    """Whether it is of a copy that moves between the directories of one broker, not of the replica."""
    return fields.get("is_future") == "true"


def printed_offsets(
    broker_id: int, at: int, evidence_id: str, event_type: str, fields: Mapping[str, str]
) -> Iterator[tuple[Partition, OffsetObservation]]:
    """The offsets that one record prints, of each of its partitions. Of a last offset: the log ends after it.

    Before 2.4 a broker logs "Replica loaded ... with initial high watermark" for every replica that it makes a note
    of, other brokers' too, and always 0 for those: a 0 there says nothing of its own.
    """
    epoch = number(fields.get("leader_epoch")) if event_type == EventType.LEADER_EPOCH_STARTED else None
    for index, partition in enumerate(partitions_of(fields)):
        for quantity, name in PRINTED_OFFSETS.get(event_type, ()):
            listed = words(fields.get(name))[index:] if name in ALIGNED else [fields.get(name)]
            offset = number(listed[0]) if listed else None
            is_default = event_type == EventType.HIGH_WATERMARK_INITIALISED and offset == 0
            if offset is None or is_default or _is_of_copy(fields) or _is_deleted(fields):
                continue
            offset += name == "last_offset"
            yield (
                partition,
                OffsetObservation(
                    broker_id, quantity, offset, at, leader_epoch=epoch, source=LOG_RECORD, evidence_id=evidence_id
                ),
            )
