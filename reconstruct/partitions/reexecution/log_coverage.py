"""How far one controller's log can be trusted to be whole: what a silence in it proves (R15, R16)."""

from __future__ import annotations

from collections.abc import Sequence
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
from reconstruct.partitions.roles import ROLE_STEPS

_RECEIVED = {
    LEADER_AND_ISR: (
        EventType.LEADER_AND_ISR_RECEIVED,
        EventType.LEADER_AND_ISR_IGNORED,
        EventType.LEADER_AND_ISR_FAILED,
        EventType.LEADER_EPOCH_STARTED,
        *ROLE_STEPS,
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

    def is_whole(self, log: ControllerLog, start: int, end: int, margin_us: int = MARGIN_US) -> bool:
        """No line of the controller is missing from [start, end], and it went on as controller for ``margin_us``."""
        return log.controller_epoch not in self.holes and is_whole(log, self.case.cluster, start, end, margin_us)

    def lives_on(self, log: ControllerLog, after: Evidence) -> bool:
        """Whether the controller is known to have gone on after a line, rather than died in the middle: by a later line
        of its tenure, or of its process."""
        if any(line.offset > after.offset for line in log.lines):
            return True
        starts = [at for at, _ in self.case.cluster.process_starts.get(log.controller_id, ()) if at > after.at]
        until = min(starts, default=None)
        departures = self.case.cluster.departures.get(log.controller_id, ())
        if any(
            after.at + MARGIN_US < left.served_until and (until is None or left.served_until < until)
            for left in departures
        ):
            return True
        return any(
            fact.broker_id == log.controller_id
            and fact.at > after.at + MARGIN_US
            and (until is None or fact.at < until)
            for fact in self.case.facts
        )

    def was_received(
        self, log: ControllerLog, request: SentRequest, around: int, beside: Sequence[Evidence] = ()
    ) -> bool:
        """Whether the broker's own log tells of such a request of this controller's about that time, more often than
        this controller's log does where ``beside``, the other requests of the batch, say which state it had. Of
        UpdateMetadata, logged once for all brokers since 1.0, any broker's log tells where none stands beside.

        More receipts of such a state than requests in all of the tenure tell the same, whatever clocks show.
        """
        since_1_0 = self.case.cluster.version.may_be_since(OFFLINE_LOG_DIRS_SINCE)
        is_any = request.kind == UPDATE_METADATA and since_1_0 and not beside
        found = [
            fact
            for (broker, kind), facts in self._receipts.items()
            if kind == request.kind and (is_any or broker == request.broker_id)
            for fact in facts
            if fact.controller_epoch in (None, log.controller_epoch)
            and (request.kind != STOP_REPLICA or fact.is_delete in (None, request.is_delete))
        ]
        near = [fact for fact in found if _is_near(fact, around)]
        if not beside or request.kind == STOP_REPLICA:
            return bool(near)
        states = {_state_of(line) for line in beside}
        sent = [
            line
            for line in log.lines
            if line.kind == request.kind
            and request.broker_id in (line.to_broker_ids or ())
            and _state_of(line) in states
        ]
        received = [fact for fact in found if fact.kind in _STATED and _state_of(fact) in states]
        return (
            _has_orphan(near)
            or sum(_is_near(fact, around) for fact in received) > sum(_is_near(line, around) for line in sent)
            or sum(fact.controller_epoch == log.controller_epoch for fact in received) > len(sent)
        )

    def was_cached(self, log: ControllerLog, leader: int, leader_epoch: int, isr: Sequence[int]) -> bool:
        """Whether any broker's log tells of such a state in an UpdateMetadata of this controller's."""
        return any(
            fact.controller_epoch == log.controller_epoch and _state_of(fact) == (leader_epoch, leader, frozenset(isr))
            for (_, kind), facts in self._receipts.items()
            if kind == UPDATE_METADATA
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

    def lacks_receipts(self, log: ControllerLog, broker_id: int, around: int) -> bool:
        """Whether the broker's log has nothing of this controller's requests, or not all that the controller's log
        tells of about then: then that log, or the network, lost more than one line, and its silence proves little."""
        received = {
            (kind, fact.leader_epoch)
            for kind in (LEADER_AND_ISR, UPDATE_METADATA)
            for fact in self._receipts.get((broker_id, kind), ())
            if fact.controller_epoch == log.controller_epoch
        }
        departures = self.case.cluster.departures.get(broker_id, ())
        return not received or any(
            line.kind in (LEADER_AND_ISR, UPDATE_METADATA)
            and line.leader != LEADER_DURING_DELETE
            and broker_id in (line.to_broker_ids or ())
            and abs(line.at - around) <= _NEAR_US
            and (line.kind, line.leader_epoch) not in received
            and not any(left.served_until - MARGIN_US <= line.at <= left.unregistered_by for left in departures)
            for line in log.lines
        )

    def lacking_begins(self, log: ControllerLog, around: int) -> frozenset[int]:
        """The brokers whose logs at TRACE tell about then of steps of this controller's LeaderAndIsr, and not that they
        received it: lines of theirs are missing."""
        lacking = set()
        for (broker, kind), facts in self._receipts.items():
            near = [
                fact
                for fact in facts
                if fact.controller_epoch == log.controller_epoch and abs(fact.at - around) <= _NEAR_US
            ]
            if kind == LEADER_AND_ISR and broker is not None and _has_orphan(near):
                begin, end = min(fact.at for fact in near), max(fact.at for fact in near)
                if self.broker_logs_all(broker, begin, end):
                    lacking.add(broker)
        return frozenset(lacking)

    def lacks_sendings(self, log: ControllerLog, around: int) -> bool:
        """Whether a broker received about then a LeaderAndIsr of this controller, of a state that the controller's log,
        at TRACE, tells to send it nowhere: lines of that log are missing."""
        sent = {
            (broker, _state_of(line))
            for line in log.lines
            if line.kind == LEADER_AND_ISR
            for broker in line.to_broker_ids or ()
        }
        return any(
            fact.kind == EventType.LEADER_AND_ISR_RECEIVED
            and fact.controller_epoch == log.controller_epoch
            and abs(fact.at - around) <= _NEAR_US
            and (broker, _state_of(fact)) not in sent
            and self.case.cluster.logs_all(log.controller_id, fact.at - MARGIN_US, fact.at + MARGIN_US)
            for (broker, kind), facts in self._receipts.items()
            if kind == LEADER_AND_ISR and broker is not None
            for fact in facts
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
#: What a log lacks at most this far from a request says something of that request, µs.
_NEAR_US = 30_000_000
#: Receipts that show the state that was sent.
_STATED = (EventType.LEADER_AND_ISR_RECEIVED, EventType.METADATA_CACHED)


def _is_near(fact: Evidence, around: int) -> bool:
    return abs(fact.at - around) <= _RECEIVED_WITHIN_US


def _has_orphan(receipts: Sequence[Evidence]) -> bool:
    """Whether a broker did what was asked of it without a receipt; a deletion in a cache is its own receipt."""
    stated = [fact for fact in receipts if fact.kind in _STATED]
    known, epochs = {fact.correlation_id for fact in stated}, {fact.leader_epoch for fact in stated}
    return any(
        fact.correlation_id not in known if fact.correlation_id is not None else fact.leader_epoch not in epochs
        for fact in receipts
        if fact.kind not in (*_STATED, EventType.METADATA_DELETED)
    )


def _state_of(line: Evidence) -> tuple[int | None, int | None, frozenset[int]]:
    return line.leader_epoch, line.leader, frozenset(line.isr or ())
