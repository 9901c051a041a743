"""The UpdateMetadata that goes with each LeaderAndIsr, where the controller's lines only count partitions (R15).

A batch sends its LeaderAndIsr first and then one UpdateMetadata, to all live brokers, that tells of each partition of
any of them. A connection keeps that order, and numbers its requests. So the request that a broker receives next after a
LeaderAndIsr is the UpdateMetadata of the same batch; where the broker's log counts all lines of both and the second
does not name the partition, the broker was not told. No clock enters.

A LeaderAndIsr that the controller sends again, for want of an answer, has the next number, too, and the same contents.
It waits :data:`_RETRIED_US` before it does: another with the same contents that came sooner after the sending of the
first, where the controller's log has as many sendings as the broker's has receipts, is one of a batch of its own.

Source: kafka.controller.AbstractControllerBrokerRequestBatch.addLeaderAndIsrRequestForBrokers and
sendRequestsToBrokers, RequestSendThread, 2.6 to 3.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.versions import BATCHES_COUNTED_SINCE
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import Evidence
from reconstruct.time.instants import utc

_TOLD: Final = (EventType.METADATA_CACHED, EventType.METADATA_DELETED)
#: RequestSendThread waits so long before it sends a request again, µs.
_RETRIED_US: Final = 100_000


def judge_metadata_updates(case: Case, verdicts: Verdicts) -> None:
    """R15: each LeaderAndIsr that a broker received, and the request after it."""
    if case.cluster.version.is_before(BATCHES_COUNTED_SINCE):
        return
    for broker_id, facts in case.facts_of_brokers.items():
        received = {_number(fact): fact for fact in facts if fact.kind == EventType.LEADER_AND_ISR_RECEIVED}
        told = {_number(fact) for fact in facts if fact.kind in _TOLD}
        for (controller_id, epoch, correlation_id), fact in received.items():
            if controller_id is None or epoch is None or correlation_id is None:
                continue
            following = (controller_id, epoch, correlation_id + 1)
            if following in told:
                verdicts.kept("R15")
            elif following in received and _may_be_retried(case, broker_id, fact, received[following], facts):
                verdicts.unjudged("R15")
            elif _is_proven(case.cluster, broker_id, fact, correlation_id):
                verdicts.broken(_not_told(case, broker_id, fact, correlation_id))
            else:
                verdicts.unjudged("R15")


def _may_be_retried(case: Case, broker_id: int, one: Evidence, other: Evidence, facts: Sequence[Evidence]) -> bool:
    """Whether two receipts, one after the other, may be of one request that was sent again."""
    if _state(one) != _state(other):
        return False
    sent = [
        fact.at
        for fact in case.facts
        if fact.kind == EventType.LEADER_AND_ISR_SENT
        and broker_id in (fact.to_broker_ids or ())
        and fact.controller_epoch == one.controller_epoch
        and _state(fact) == _state(one)
    ]
    received = [
        fact
        for fact in facts
        if fact.kind == one.kind and fact.controller_epoch == one.controller_epoch and _state(fact) == _state(one)
    ]
    first = max((at for at in sent if at <= one.at), default=None)
    return first is None or len(sent) < len(received) or other.at - first >= _RETRIED_US


def _state(fact: Evidence) -> tuple[int | None, int | None, int | None, frozenset[int]]:
    return fact.leader, fact.leader_epoch, fact.partition_epoch, frozenset(fact.isr or ())


def _number(fact: Evidence) -> tuple[int | None, int | None, int | None]:
    return fact.controller_id, fact.controller_epoch, fact.correlation_id


def _is_proven(cluster: ClusterView, broker_id: int, fact: Evidence, correlation_id: int) -> bool:
    """Whether the broker's log has all lines of the request and of the next, both received by one process."""
    starts = [at for at, _ in cluster.process_starts.get(broker_id, ())]
    return cluster.logs_all(broker_id, fact.at, fact.at) and any(
        (run.controller_id, run.controller_epoch) == (fact.controller_id, fact.controller_epoch)
        and run.first_id <= correlation_id < run.last_id
        and run.start <= fact.at <= run.end
        and not any(run.start < at <= run.end for at in starts)
        for run in cluster.counted_requests.get(broker_id, ())
    )


def _not_told(case: Case, broker_id: int, fact: Evidence, correlation_id: int) -> Finding:
    """An error where other brokers were told of that state, so that it stood in the batch."""
    others = [
        other
        for other in case.facts
        if other.kind == EventType.METADATA_CACHED
        and other.broker_id != broker_id
        and (other.controller_id, other.controller_epoch) == (fact.controller_id, fact.controller_epoch)
        and _state(other) == _state(fact)
    ]
    named = sorted({other.broker_id for other in others if other.broker_id is not None})
    severity = "error" if named and case.is_only_incarnation else "warning"
    beside = f" Of that state it told broker {', '.join(map(str, named))}." if named else ""
    return Divergence(DivergenceType.REQUEST_NOT_SENT, severity, fact.at, broker_id=broker_id).explained(
        f"UpdateMetadata to broker {broker_id}",
        f"no UpdateMetadata to broker {broker_id}",
        f"Controller {fact.controller_id} (epoch {fact.controller_epoch}) sent LeaderAndIsr {correlation_id} about the"
        f" partition to broker {broker_id} ({utc(fact.at)}). An UpdateMetadata goes with each, as the next request of"
        f" that connection; that is request {correlation_id + 1}, of which broker {broker_id} logged as many lines as"
        f" it counts, and none of them names the partition.{beside}",
        (fact.evidence_id, *(other.evidence_id for other in others[:2])),
    )
