"""What a controller did between its election and its end, beside its take-over: counts for each tenure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.brokers import RegistrationSpan
from reconstruct.cluster.controllers import TenureSpan
from reconstruct.cluster.evidence import BrokerFact, ControllerFact
from reconstruct.cluster.spans import Tenure
from reconstruct.time.spans import within

#: Several lines within this, µs, are of one coming or going of a broker.
_ONE_CHANGE_US: Final = 10_000_000
#: How much later than the election of the next controller the end of the one before may be told: µs.
_SKEW_US: Final = 2_000_000
#: What a controller failed of, left out or waited for.
TROUBLE: Final = (
    EventType.BROKER_CHANGE_FAILED,
    EventType.CONTROLLER_ELECTION_FAILED,
    EventType.CONTROLLER_EPOCH_INCREMENT_FAILED,
    EventType.CONTROLLER_EVENT_FAILED,
    EventType.CONTROLLER_REQUEST_NOT_SENT,
    EventType.CONTROLLER_RESIGNATION_FORCED,
    EventType.CONTROLLER_STARTUP_ABORTED,
    EventType.CONTROLLER_THREAD_FAILED,
    EventType.ISR_SHRINK_BY_CONTROLLER_FAILED,
    EventType.LEADER_ELECTION_RETRIED,
    EventType.LEADER_ELECTION_SKIPPED,
    EventType.PARTITION_ADDITION_FAILED,
    EventType.PARTITION_ADDITION_SKIPPED,
    EventType.PREFERRED_ELECTION_FAILED,
    EventType.REASSIGNMENT_FAILED,
    EventType.REASSIGNMENT_IGNORED,
    EventType.REASSIGNMENT_LEADER_AND_ISR_FAILED,
    EventType.REASSIGNMENT_WAITING,
    EventType.REPLICA_NOT_ASSIGNED,
    EventType.TOPIC_CHANGE_FAILED,
    EventType.TOPIC_DELETION_DISABLED,
    EventType.TOPIC_DELETION_FAILED,
    EventType.TOPIC_DELETION_HALTED,
    EventType.TOPIC_DELETION_IGNORED,
    EventType.TOPIC_DELETION_IN_PROGRESS,
    EventType.TOPIC_DELETION_RETRIED,
)


@dataclass(frozen=True, slots=True)
class Episode:
    """Of one tenure: how long there was no controller before it (None: not known), and of how many brokers it noticed
    that they came or went."""

    without_controller_ms: int | None
    brokers_came_count: int
    brokers_went_count: int


def reigns(tenures: Iterable[TenureSpan]) -> list[tuple[Tenure, int, int | None]]:
    """Each controller from its election to the next one's, None for the last: what happened then is of no other."""
    in_order = sorted((span.tenure for span in tenures), key=lambda tenure: tenure.start)
    ends = [*(later.start for _, later in pairwise(in_order)), None]
    return [(tenure, tenure.start, end) for tenure, end in zip(in_order, ends, strict=False)]


def episodes(
    tenures: Sequence[TenureSpan],
    windows: Sequence[tuple[int, int]],
    registrations: Mapping[int, Sequence[RegistrationSpan]],
    controllers: Iterable[ControllerFact],
    brokers: Iterable[BrokerFact],
) -> list[Episode]:
    """One for each tenure, in their order; ``windows`` of :func:`reconstruct.cluster.take_overs.line_windows`."""
    told: dict[int, list[BrokerFact]] = {}
    for fact in sorted(brokers, key=lambda f: (f.at, f.broker_id, f.evidence_id)):
        if fact.controller_id is not None:
            told.setdefault(fact.controller_id, []).append(fact)
    ends = _ends(registrations, controllers)
    result = []
    for index, (span, (since, until)) in enumerate(zip(tenures, windows, strict=True)):
        own = within(told.get(span.tenure.controller_id, []), since, until - 1)
        before = tenures[index - 1] if index else None
        gap = None if before is None else _without_controller_ms(before, span, ends)
        result.append(Episode(gap, _changes(own, "up"), _changes(own, "down")))
    return result


def _changes(facts: Iterable[BrokerFact], kind: str) -> int:
    last: dict[int, int] = {}
    count = 0
    for fact in facts:
        if fact.kind == kind:
            count += fact.at - last.get(fact.broker_id, -(2**62)) > _ONE_CHANGE_US
            last[fact.broker_id] = fact.at
    return count


def _ends(
    registrations: Mapping[int, Sequence[RegistrationSpan]], controllers: Iterable[ControllerFact]
) -> dict[int, list[int]]:
    """By broker, when its registrations ended or it resigned as the controller, in order."""
    ends = {id_: [r.interval.end for r in spans if r.interval.end is not None] for id_, spans in registrations.items()}
    for fact in controllers:
        if fact.kind == "resigned" and fact.controller_id is not None:
            ends.setdefault(fact.controller_id, []).append(fact.at)
    return {broker_id: sorted(instants) for broker_id, instants in ends.items()}


def _without_controller_ms(before: TenureSpan, span: TenureSpan, ends: Mapping[int, Sequence[int]]) -> int | None:
    """From the first end of the controller before, as its registration or its own line tells, to the election."""
    start, controller_id = before.tenure.start, before.tenure.controller_id
    if before.tenure.generation != span.tenure.generation:
        return None
    own = ends.get(controller_id, ())
    place = bisect_right(own, start)
    if place == len(own) or own[place] > span.tenure.start + _SKEW_US:
        return None
    return max(0, span.tenure.start - own[place]) // 1000
