"""How far one controller's log can be trusted to be whole: what a silence in it proves (R15, R16)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ingest.lake.tables.bronze import SourceKind
from ingest.shapes.event_types import EventType
from reconstruct.model.states import LEADER_DURING_DELETE
from reconstruct.model.versions import OFFLINE_LOG_DIRS_SINCE
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.reexecution.continuity import has_holes
from reconstruct.partitions.reexecution.controller_log import (
    LEADER_AND_ISR,
    MARGIN_US,
    STOP_REPLICA,
    UPDATE_METADATA,
    ControllerLog,
    is_whole,
    ordered_logs,
)
from reconstruct.partitions.reexecution.model_runs import SentRequest

_RECEIVED = {
    LEADER_AND_ISR: (
        EventType.LEADER_AND_ISR_RECEIVED,
        EventType.LEADER_AND_ISR_IGNORED,
        EventType.LEADER_AND_ISR_FAILED,
        EventType.LEADER_EPOCH_STARTED,
        EventType.BECOME_LEADER_STARTED,
        EventType.BECOME_LEADER_COMPLETED,
        EventType.BECOME_LEADER_SKIPPED,
        EventType.BECOME_LEADER_FAILED,
        EventType.BECOME_FOLLOWER_STARTED,
        EventType.BECOME_FOLLOWER_COMPLETED,
        EventType.BECOME_FOLLOWER_SKIPPED,
        EventType.BECOME_FOLLOWER_FAILED,
    ),
    UPDATE_METADATA: (EventType.METADATA_CACHED, EventType.METADATA_DELETED),
    STOP_REPLICA: (EventType.STOP_REPLICA_RECEIVED, EventType.STOP_REPLICA_HANDLED, EventType.STOP_REPLICA_IGNORED),
}


@dataclass(frozen=True)
class LogCoverage:
    """The controllers' logs of one partition, and what is known of their holes and of the brokers' receipts."""

    case: Case

    @cached_property
    def logs(self) -> list[ControllerLog]:
        return ordered_logs(self.case.facts, self.case.cluster)

    @cached_property
    def holes(self) -> frozenset[int]:
        return has_holes(self.logs, self.case.cluster, self.case.facts)

    @cached_property
    def _receipts(self) -> dict[tuple[int | None, str], list[Evidence]]:
        found: dict[tuple[int | None, str], list[Evidence]] = {}
        for fact in self.case.facts:
            for kind, received in _RECEIVED.items():
                if fact.kind in received:
                    found.setdefault((fact.broker_id, kind), []).append(fact)
        return found

    def is_whole(self, log: ControllerLog, start: int, end: int) -> bool:
        """No line of the controller is missing from [start, end], and it went on as controller."""
        return log.controller_epoch not in self.holes and is_whole(log, self.case.cluster, start, end)

    def lives_on(self, log: ControllerLog, after: Evidence) -> bool:
        """Whether the controller is known to have gone on after a line, rather than died in the middle: by a later line
        of its tenure, or of its process."""
        if any(line.offset > after.offset for line in log.lines):
            return True
        starts = [at for at, _ in self.case.cluster.process_starts.get(log.controller_id, ()) if at > after.at]
        until = min(starts, default=None)
        return any(
            fact.broker_id == log.controller_id
            and fact.at > after.at + MARGIN_US
            and (until is None or fact.at < until)
            for fact in self.case.facts
        )

    def was_received(self, log: ControllerLog, request: SentRequest, around: int) -> bool:
        """Whether the broker's own log tells of such a request of this controller's about that time; of UpdateMetadata,
        which since 1.0 is logged once for all brokers, any broker's."""
        is_any = request.kind == UPDATE_METADATA and self.case.cluster.version.may_be_since(OFFLINE_LOG_DIRS_SINCE)
        return any(
            fact.controller_epoch in (None, log.controller_epoch)
            and (request.kind != STOP_REPLICA or fact.is_delete in (None, request.is_delete))
            and abs(fact.at - around) <= _RECEIVED_WITHIN_US
            for (broker, kind), facts in self._receipts.items()
            if kind == request.kind and (is_any or broker == request.broker_id)
            for fact in facts
        )

    def was_anything_received(self, log: ControllerLog, start: int, end: int) -> bool:
        """Whether any broker's log tells of a request of this controller's between these instants."""
        return any(
            fact.controller_epoch == log.controller_epoch and start <= fact.at <= end + _RECEIVED_WITHIN_US
            for (_, kind), facts in self._receipts.items()
            if kind != UPDATE_METADATA
            for fact in facts
        )

    def was_answered(self, replica_id: int, since: int) -> bool:
        """Whether the controller logged the broker's answer to the request to delete its replica."""
        return any(
            fact.kind == EventType.TOPIC_DELETION_RESPONSE
            and replica_id in (fact.to_broker_ids or ())
            and fact.at >= since
            for fact in self.case.facts
        )

    def broker_logs_all(self, broker_id: int, start: int, end: int) -> bool:
        """Whether the broker would have logged a request that it received."""
        return self.case.cluster.logs_all(broker_id, start - MARGIN_US, end + MARGIN_US)

    def lacks_receipts(self, log: ControllerLog, broker_id: int) -> bool:
        """Whether the broker's log has nothing of this controller's requests, or not all that the controller's log
        tells of: then that log, or the network, lost more than one line, and what it does not say proves little."""
        received = {
            (kind, fact.leader_epoch)
            for kind in (LEADER_AND_ISR, UPDATE_METADATA)
            for fact in self._receipts.get((broker_id, kind), ())
            if fact.controller_epoch == log.controller_epoch
        }
        return not received or any(
            line.kind in (LEADER_AND_ISR, UPDATE_METADATA)
            and line.leader != LEADER_DURING_DELETE
            and broker_id in (line.to_broker_ids or ())
            and (line.kind, line.leader_epoch) not in received
            for line in log.lines
        )

    def controller_log_covers(self, log: ControllerLog, start: int, end: int) -> bool:
        """Whether one file of the controller's controller.log has lines of this partition before and after."""
        spans: dict[str, list[int]] = {}
        for fact in self.case.facts:
            if fact.source_kind == SourceKind.CONTROLLER_LOG and fact.broker_id == log.controller_id:
                spans.setdefault(fact.file, []).append(fact.at)
        return any(min(at) < start and end < max(at) for at in spans.values())

    def severity(self, wanted: str) -> str:
        """Where a topic has several incarnations, a line is told to one of them by its clock, which may be wrong."""
        return "warning" if wanted == "error" and not self.case.is_only_incarnation else wanted


#: A request is received within this time, the clocks of two machines included, µs.
_RECEIVED_WITHIN_US = 5_000_000
