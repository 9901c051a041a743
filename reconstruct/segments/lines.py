"""Which lines of server.log tell what of segments: from an event type and its fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.events.fields import number
from reconstruct.segments.evidence import DeletionReason, SegmentAct, SegmentActKind

#: By event type: what the line says was done.
SEGMENT_ACTS: Final[Mapping[str, SegmentActKind]] = {
    EventType.LOG_ROLLED: SegmentActKind.ROLLED,
    EventType.LOG_RETENTION_BREACHED: SegmentActKind.DELETED,
    EventType.LOG_SEGMENTS_DELETION_SCHEDULED: SegmentActKind.DELETED,
    EventType.LOG_SEGMENTS_DELETED: SegmentActKind.DELETED,
    EventType.LOG_RECOVERY: SegmentActKind.RECOVERED,
    EventType.LOG_INDEX_REBUILT: SegmentActKind.INDEX_REBUILT,
    EventType.LOG_CORRUPTION_FOUND: SegmentActKind.DAMAGED,
    EventType.LOG_CREATED: SegmentActKind.REPLICA_CREATED,
    EventType.LOG_DELETION_SCHEDULED: SegmentActKind.REPLICA_DELETED,
    EventType.LOG_MARKED_STRAY: SegmentActKind.REPLICA_DELETED,
    EventType.LOG_DELETED: SegmentActKind.REPLICA_DELETED,
    EventType.LOG_EMPTIED: SegmentActKind.REPLICA_DELETED,
}
#: These name no segment: they are about all of the replica.
_OF_ALL: Final = (SegmentActKind.REPLICA_CREATED, SegmentActKind.REPLICA_DELETED)
#: Fields in which a line names a segment's base offset as a number.
_BASES: Final = ("base_offset", "log_end_offset", "start_offset")
#: Fields that hold segments as Kafka prints them, base offsets, or the name of a segment's file.
_TEXTS: Final = ("segments", "segment", "to_delete", "deletable", "file")
_IN_TEXT: Final = re.compile(r"(?<=baseOffset=)\d{1,19}|(?<=/)\d{20}(?=\.)")
_LISTED: Final = re.compile(r"\d{1,19}")
_REASONS: Final = (
    ("retention_ms", "retention time", DeletionReason.RETENTION_TIME),
    ("retention_size", "retention size", DeletionReason.RETENTION_SIZE),
    ("log_start_offset", "log start offset", DeletionReason.LOG_START_OFFSET),
    ("", "log truncation", DeletionReason.TRUNCATION),
    ("", "log deletion", DeletionReason.REPLICA_DELETED),
)


@dataclass(frozen=True, slots=True)
class SegmentLine:
    """A line of one broker's server.log about one replica's log, as evidence: its type, its fields and its place."""

    replica_id: int
    segment_event: str
    at: int
    fields: Mapping[str, str]
    evidence_id: str
    log_place: str
    line: int


def segment_act(line: SegmentLine) -> SegmentAct | None:
    """What the line says was done with segments; None where it names none, or is of a copy that moves between the
    directories of one broker."""
    act = SEGMENT_ACTS[line.segment_event]
    is_of_all = act in _OF_ALL
    bases = () if is_of_all else _base_offsets(line.fields)
    if (not bases and not is_of_all) or line.fields.get("is_future") == "true":
        return None
    reason = _reason(line.fields) if act is SegmentActKind.DELETED else None
    return SegmentAct(line.replica_id, act, line.at, bases, reason, line.evidence_id, line.log_place, line.line)


def _base_offsets(fields: Mapping[str, str]) -> tuple[int, ...]:
    for name in _BASES:
        own = number(fields.get(name))
        if own is not None:
            return (own,)
    found = [base for name in _TEXTS for base in _IN_TEXT.findall(fields.get(name, ""))]
    found = found or _LISTED.findall(fields.get("deletable", ""))
    bases = (number(base) for base in found)
    return tuple(dict.fromkeys(base for base in bases if base is not None))


def _reason(fields: Mapping[str, str]) -> DeletionReason | None:
    text = fields.get("reason", "")
    return next((reason for name, words, reason in _REASONS if name in fields or words in text), None)
