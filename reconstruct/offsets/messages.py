"""Which messages of server.log and state-change.log say what of offsets: from an event type and its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.events.fields import Partition, number, partitions_of, words
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.evidence import OffsetObservation, ReplicaEvent, ReplicaEventKind

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
    EventType.HIGH_WATERMARK_INITIALISED: ((oe.HIGH_WATERMARK, "high_watermark"),),
}
#: By event type: what it says that the replica did.
REPLICA_EVENTS: Final[Mapping[str, ReplicaEventKind]] = {
    EventType.FETCHER_ADDED: ReplicaEventKind.FOLLOWS,
    EventType.BECOME_LEADER_COMPLETED: ReplicaEventKind.LEADS,
    EventType.LEADER_EPOCH_STARTED: ReplicaEventKind.LEADS,
    EventType.LOG_TRUNCATED: ReplicaEventKind.TRUNCATED,
    EventType.LOG_DELETION_SCHEDULED: ReplicaEventKind.DELETED,
    EventType.LOG_DELETED: ReplicaEventKind.DELETED,
    EventType.LOG_CREATED: ReplicaEventKind.DELETED,
    EventType.STOP_REPLICA_HANDLED: ReplicaEventKind.DELETED,
}


def logged_replica_events(
    broker_id: int, at: int, evidence_id: str, event_type: str, fields: Mapping[str, str]
) -> Iterator[tuple[Partition, ReplicaEvent]]:
    """What one record of ``broker_id``'s log says that its replicas did. A start concerns every partition: not here.

    ``at`` is the record's time in microseconds. A truncation that names no offset (state-change.log up to 2.x) restates
    one that server.log tells with it, or one that had no effect.
    """
    kind = REPLICA_EVENTS.get(event_type)
    offset = number(fields.get("offset")) if kind is ReplicaEventKind.TRUNCATED else None
    is_follower = event_type == EventType.LEADER_EPOCH_STARTED and fields.get("role") != "leader"
    if kind is None or is_follower or (kind is ReplicaEventKind.TRUNCATED and offset is None):
        return
    is_leader = kind is ReplicaEventKind.LEADS
    epoch = number(fields.get("leader_epoch")) if is_leader else None
    leaders = words(fields.get("leaders"))
    for index, partition in enumerate(partitions_of(fields)):
        leader = broker_id if is_leader else None
        if kind is ReplicaEventKind.FOLLOWS:
            leader = number((leaders[index] if index < len(leaders) else "") or fields.get("leader"))
        yield partition, ReplicaEvent(broker_id, kind, at, offset, leader, epoch, evidence_id)


def printed_offsets(
    broker_id: int, at: int, evidence_id: str, event_type: str, fields: Mapping[str, str]
) -> Iterator[tuple[Partition, OffsetObservation]]:
    """The offsets that one record prints.

    Before 2.4 a broker logs "Replica loaded ... with initial high watermark" for every replica that it makes a note
    of, other brokers' too, and always 0 for those: a 0 there says nothing of its own.
    """
    epoch = number(fields.get("leader_epoch"))
    for partition in partitions_of(fields):
        for quantity, name in PRINTED_OFFSETS.get(event_type, ()):
            offset = number(fields.get(name))
            if offset is None or (event_type == EventType.HIGH_WATERMARK_INITIALISED and offset == 0):
                continue
            yield (
                partition,
                OffsetObservation(
                    broker_id, quantity, offset, at, leader_epoch=epoch, source=LOG_RECORD, evidence_id=evidence_id
                ),
            )
