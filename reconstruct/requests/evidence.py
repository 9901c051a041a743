"""What is known of one request of a controller to one broker: its sending, receipt, handling and answer."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.model.value_class import value_class

LEADER_AND_ISR: Final = "LEADER_AND_ISR"
UPDATE_METADATA: Final = "UPDATE_METADATA"
STOP_REPLICA: Final = "STOP_REPLICA"
#: From the receipt of a LeaderAndIsr to that of the next request of its connection, which waits for its answer, µs.
#: What comes later may be of a connection that counts anew.
NEXT_WITHIN_US: Final = 5_000_000
#: Kafka's names of the requests, by the names of its protocol.
REQUEST_KINDS: Final = {
    LEADER_AND_ISR: "LeaderAndIsr",
    UPDATE_METADATA: "UpdateMetadata",
    STOP_REPLICA: "StopReplica",
}
#: What a controller logs when it sends one.
SENT_LINES: Final[Mapping[EventType, str]] = {
    EventType.LEADER_AND_ISR_SENT: LEADER_AND_ISR,
    EventType.UPDATE_METADATA_SENT: UPDATE_METADATA,
    EventType.STOP_REPLICA_SENT: STOP_REPLICA,
}


class Step(StrEnum):
    """What a broker's line says that it did with a request."""

    RECEIVED = "received"
    STARTED = "started"
    COMPLETED = "completed"
    CACHED = "cached"
    HANDLED = "handled"
    FAILED = "failed"
    IGNORED = "ignored"
    SKIPPED = "skipped"


#: The steps after which a request is in force at its broker.
APPLIED_STEPS: Final = (Step.COMPLETED, Step.CACHED, Step.HANDLED)
#: What a broker logs of a request: the request's kind, and the step of handling it.
BROKER_LINES: Final[Mapping[EventType, tuple[str, Step]]] = {
    EventType.LEADER_AND_ISR_RECEIVED: (LEADER_AND_ISR, Step.RECEIVED),
    EventType.LEADER_AND_ISR_HANDLED: (LEADER_AND_ISR, Step.HANDLED),
    EventType.LEADER_AND_ISR_IGNORED: (LEADER_AND_ISR, Step.IGNORED),
    EventType.LEADER_AND_ISR_FAILED: (LEADER_AND_ISR, Step.FAILED),
    EventType.BECOME_LEADER_STARTED: (LEADER_AND_ISR, Step.STARTED),
    EventType.BECOME_LEADER_COMPLETED: (LEADER_AND_ISR, Step.COMPLETED),
    EventType.BECOME_LEADER_SKIPPED: (LEADER_AND_ISR, Step.SKIPPED),
    EventType.BECOME_LEADER_FAILED: (LEADER_AND_ISR, Step.FAILED),
    EventType.BECOME_FOLLOWER_STARTED: (LEADER_AND_ISR, Step.STARTED),
    EventType.BECOME_FOLLOWER_COMPLETED: (LEADER_AND_ISR, Step.COMPLETED),
    EventType.BECOME_FOLLOWER_SKIPPED: (LEADER_AND_ISR, Step.SKIPPED),
    EventType.BECOME_FOLLOWER_FAILED: (LEADER_AND_ISR, Step.FAILED),
    EventType.TOPIC_ID_ASSIGNED: (LEADER_AND_ISR, Step.SKIPPED),
    EventType.TOPIC_ID_REMOVED: (LEADER_AND_ISR, Step.SKIPPED),
    EventType.METADATA_CACHED: (UPDATE_METADATA, Step.CACHED),
    EventType.METADATA_DELETED: (UPDATE_METADATA, Step.CACHED),
    EventType.METADATA_BATCH: (UPDATE_METADATA, Step.HANDLED),
    EventType.UPDATE_METADATA_IGNORED: (UPDATE_METADATA, Step.IGNORED),
    EventType.STOP_REPLICA_RECEIVED: (STOP_REPLICA, Step.RECEIVED),
    EventType.STOP_REPLICA_IGNORED: (STOP_REPLICA, Step.IGNORED),
    EventType.STOP_REPLICA_HANDLED: (STOP_REPLICA, Step.HANDLED),
}


@value_class
class Request:
    """One request of a controller to one broker; instants are corrected µs, NULL where no line tells.

    ``*_ref`` are records. The counts are lines of the broker: ``lines`` name a partition of the request,
    ``received_lines`` say that it came, ``started`` and ``completed`` are transitions, ``ignored`` partitions refused;
    ``is_refused``: the whole request was, for its controller epoch, where ``known_epoch`` was known. ``is_repeated``:
    the same words had been sent once less than they were received. ``sent_before`` is when the latest request was sent
    that the broker received before this one; ``next_*`` are of later requests of the connection, ``next_applied_at`` of
    one of LeaderAndIsr. ``is_next_unsent``: no
    line tells of the sending of what was received next, and ``is_lost_before``: nor of the receipt of what was sent
    last before: it may be this one, which a broker that hung received so late that the two were not tied.
    ``lacking_sent`` and ``lacking_received`` count the lines at TRACE that the controller's and the broker's log lack
    of those that they count themselves (2.6 and later); ``is_counted``: the broker's log has the count, and all lines
    of it. ``unconnected_lines`` count what the controller logged right
    after the sending of connections to that broker that failed, ``unconnected_refs`` are the first of them.
    ``accepted_epoch_before`` is the highest controller epoch that the broker's process had accepted before.
    """

    cluster_id: str
    controller_id: int
    controller_epoch: int | None
    to_broker_id: int
    api: str
    sequence: int = 0
    correlation_id: int | None = None
    partitions: int | None = None
    decided_at: int | None = None
    sent_at: int | None = None
    received_at: int | None = None
    applied_at: int | None = None
    acknowledged_at: int | None = None
    sent_ref: str | None = None
    received_ref: str | None = None
    applied_ref: str | None = None
    acknowledged_ref: str | None = None
    response_error: int | None = None
    lines: int = 0
    received_lines: int = 0
    started: int = 0
    completed: int = 0
    applied_lines: int = 0
    failed: int = 0
    ignored: int = 0
    skipped: int = 0
    known_epoch: int | None = None
    is_refused: bool = False
    is_repeated: bool = False
    lacking_sent: int = 0
    lacking_received: int = 0
    is_counted: bool = False
    sent_before: int | None = None
    next_received_at: int | None = None
    next_acknowledged_at: int | None = None
    next_applied_at: int | None = None
    is_next_unsent: bool = False
    is_lost_before: bool = False
    unconnected_lines: int = 0
    unconnected_refs: tuple[str, ...] = ()
    accepts: bool = False
    accepted_epoch_before: int | None = None
    accepted_at_before: int | None = None
    accepted_ref_before: str | None = None

    @property
    def evidence(self) -> tuple[str, ...]:
        """The records of the request: at most one for each of its steps."""
        refs = (self.sent_ref, self.received_ref, self.applied_ref, self.acknowledged_ref)
        return tuple(dict.fromkeys(ref for ref in refs if ref is not None))

    @property
    def name(self) -> str:
        number = "" if self.correlation_id is None else f" {self.correlation_id}"
        return (
            f"{REQUEST_KINDS.get(self.api, self.api)} request{number} of controller {self.controller_id}"
            f" (epoch {self.controller_epoch}) to broker {self.to_broker_id}"
        )
