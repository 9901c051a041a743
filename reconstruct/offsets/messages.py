"""Which messages of server.log and state-change.log say what of offsets: from an event type and its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.evidence import OffsetObservation, ReplicaEvent, ReplicaEventKind

Partition = tuple[str, int]
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
_DELETIONS: Final = (
    EventType.LOG_DELETION_SCHEDULED,
    EventType.LOG_DELETED,
    EventType.LOG_CREATED,
    EventType.STOP_REPLICA_HANDLED,
)


def partitions_of(fields: Mapping[str, str]) -> list[Partition]:
    """The partitions that a record is about, in its order."""
    if "topic" in fields and "partition_id" in fields:
        return [(fields["topic"], int(fields["partition_id"]))]
    names = [name.rsplit("-", 1) for name in fields.get("topic_partitions", "").split(",") if name]
    return [(topic, int(number)) for topic, number in names]


def logged_replica_events(
    broker_id: int, at: int, evidence_id: str, event_type: str, fields: Mapping[str, str]
) -> Iterator[tuple[Partition, ReplicaEvent]]:
    """What one record of ``broker_id``'s log says that its replicas did. A start concerns every partition: not here.

    ``at`` is the record's time in microseconds. A truncation that names no offset (state-change.log up to 2.x) restates
    one that server.log tells with it, or one that had no effect.
    """
    epoch = _number(fields.get("leader_epoch"))
    leaders = fields.get("leaders", "").split(",")
    for index, partition in enumerate(partitions_of(fields)):
        if event_type == EventType.FETCHER_ADDED:
            named = leaders[index] if index < len(leaders) else ""
            leader = _number(named or fields.get("leader"))
            yield partition, ReplicaEvent(broker_id, ReplicaEventKind.FOLLOWS, at, None, leader, None, evidence_id)
        elif event_type == EventType.BECOME_LEADER_COMPLETED or (
            event_type == EventType.LEADER_EPOCH_STARTED and fields.get("role") == "leader"
        ):
            yield partition, ReplicaEvent(broker_id, ReplicaEventKind.LEADS, at, None, broker_id, epoch, evidence_id)
        elif event_type == EventType.LOG_TRUNCATED and (offset := _number(fields.get("offset"))) is not None:
            yield partition, ReplicaEvent(broker_id, ReplicaEventKind.TRUNCATED, at, offset, None, None, evidence_id)
        elif event_type in _DELETIONS:
            yield partition, ReplicaEvent(broker_id, ReplicaEventKind.DELETED, at, None, None, None, evidence_id)


def printed_offsets(
    broker_id: int, at: int, evidence_id: str, event_type: str, fields: Mapping[str, str]
) -> Iterator[tuple[Partition, OffsetObservation]]:
    """The offsets that one record prints.

    Before 2.4 a broker logs "Replica loaded ... with initial high watermark" for every replica that it makes a note
    of, other brokers' too, and always 0 for those: a 0 there says nothing of its own.
    """
    epoch = _number(fields.get("leader_epoch"))
    for partition in partitions_of(fields):
        for quantity, name in PRINTED_OFFSETS.get(event_type, ()):
            offset = _number(fields.get(name))
            if offset is None or (event_type == EventType.HIGH_WATERMARK_INITIALISED and offset == 0):
                continue
            yield (
                partition,
                OffsetObservation(
                    broker_id, quantity, offset, at, leader_epoch=epoch, source=LOG_RECORD, evidence_id=evidence_id
                ),
            )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
