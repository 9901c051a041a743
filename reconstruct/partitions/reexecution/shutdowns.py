"""Controlled shutdown: the controller moves what the broker leads before it is gone (R16).

Source: kafka.controller.KafkaController.shutdownBroker (0.8.0 to 1.0), doControlledShutdown since 1.1.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.spans import LiveView
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.states import PartitionState
from reconstruct.partitions.case import Case
from reconstruct.partitions.elections.judging import JudgedElection
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from reconstruct.time.instants import utc
from reconstruct.time.intervals import Interval

#: The controller works on the request at once, for at least this time, µs.
_AT_WORK_US: Final = 100_000
#: A state that was decided so long before the request is one that the controller knew then, µs.
_KNOWN_US: Final = 500_000
#: What a controller does about a broker that is gone it does within this time, µs.
_AT_ONCE_US: Final = 10_000_000
#: A broker that asked for its shutdown is gone within this time, or has given up, µs.
_GONE_US: Final = 120_000_000


def judge_shutdowns(case: Case, verdicts: Verdicts) -> None:
    """A leader that asked for a controlled shutdown, and whose next leader was elected only when it was gone.

    The leader epochs prove that no election came between; another live member of the ISR, that one was possible.
    """
    elections: dict[int, list[JudgedElection]] = {}
    for election in case.elections:
        elections.setdefault(election.leader_epoch, []).append(election)
    for before, after in pairwise(case.decided):
        broker = before.value.leader
        is_next = after.value.leader_epoch == before.value.leader_epoch + 1 and after.value.leader != broker
        if broker < 0 or not is_next:
            continue
        next_elections = elections.get(after.value.leader_epoch, ())
        requests = case.cluster.shutdown_requests.get(broker, ())
        first = max(before.start + _KNOWN_US + 1, after.start - _GONE_US)
        last = max((election.at for election in next_elections), default=first)
        for place in range(bisect_left(requests, (first,)), bisect_left(requests, (last,))):
            asked, evidence_id = requests[place]
            listed = _listed_gone(case.cluster, broker, asked)
            if listed is None or not _was_decided_after(next_elections, listed):
                continue
            others = [member for member in before.value.isr if member in listed.live and member != broker]
            asked_of = case.cluster.shutdown_controllers.get(evidence_id)
            if others and _was_at_work(case.cluster, before, asked, asked_of):
                verdicts.broken(_left_behind(case, before, after, broker, asked, (evidence_id, listed.evidence_id)))


def _listed_gone(cluster: ClusterView, broker: int, asked: int) -> LiveView | None:
    """The first list of live brokers after the request, where it lacks the broker."""
    view = cluster.first_list_after(asked)
    return None if view is None or broker in view.live else view


def _was_decided_after(elections: Sequence[JudgedElection], listed: LiveView) -> bool:
    """Whether the controller that logged the list decided one of them later, by its own clock, of a partition that had
    gone offline: a controlled shutdown moves one that is online."""
    return any(
        election.decision.from_state == PartitionState.OFFLINE
        and election.decision.is_own_clock
        and election.decision.controller_id == listed.controller_id
        and listed.at <= election.at <= listed.at + _AT_ONCE_US
        for election in elections
    )


def _was_at_work(cluster: ClusterView, before: Interval[LeaderAndIsrState], asked: int, asked_of: int | None) -> bool:
    """Whether the controller that was asked knew the state, and remained in office as long as it takes. A request in
    the log of another than the one in office has a wrong time."""
    tenure, decided_in = cluster.tenure_at(asked), before.value.controller_epoch
    if tenure is not None and asked_of not in (None, tenure.controller_id):
        return False
    is_known = tenure is not None and decided_in is not None and decided_in <= tenure.controller_epoch
    return is_known and tenure is not None and (tenure.end is None or tenure.end > asked + _AT_WORK_US)


def _left_behind(
    case: Case,
    before: Interval[LeaderAndIsrState],
    after: Interval[LeaderAndIsrState],
    broker: int,
    asked: int,
    evidence: tuple[str, ...],
) -> Finding:
    moved = next(_lines_of(case, before, after), None)
    severity = case.severity() if moved is None else "info"
    return Divergence(DivergenceType.STEP_MISSING, severity, after.start, broker_id=broker).explained(
        "the leadership moved to another live member of the ISR before the broker is gone",
        f"broker {broker} leader until it was gone",
        f"Broker {broker} asked for a controlled shutdown ({utc(asked)}). It led at leader epoch"
        f" {before.value.leader_epoch} with ISR {','.join(map(str, before.value.isr))}, and leader epoch"
        f" {after.value.leader_epoch} was decided when it was gone ({utc(after.start)}): nobody had moved it.",
        (*before.evidence[:1], *after.evidence[:1], *evidence),
    )


def _lines_of(
    case: Case, before: Interval[LeaderAndIsrState], after: Interval[LeaderAndIsrState]
) -> Iterator[Evidence]:
    """Lines that tell of the later leader epoch before its time."""
    return (
        fact
        for fact in case.facts
        if fact.leader_epoch == after.value.leader_epoch
        and fact.kind in (EventType.LEADER_AND_ISR_SENT, EventType.LEADER_AND_ISR_RECEIVED, EventType.METADATA_CACHED)
        and before.start < fact.at < after.start - _KNOWN_US
    )
