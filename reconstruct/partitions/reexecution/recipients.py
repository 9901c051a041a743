"""To whom a request goes: replicas of the partition, and since 2.2 only brokers that are registered (R15)."""

from __future__ import annotations

from typing import Final

from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.versions import BROKER_EPOCHS_SINCE
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import ZNODE_ASSIGNMENT, Evidence
from reconstruct.partitions.reexecution.controller_log import (
    LEADER_AND_ISR,
    PARTITION,
    STOP_REPLICA,
    UPDATE_METADATA,
    ControllerLog,
)
from reconstruct.partitions.reexecution.log_coverage import LogCoverage
from reconstruct.partitions.reexecution.model_runs import SentRequest
from reconstruct.partitions.reexecution.reexecution import Step
from reconstruct.partitions.reexecution.surroundings import own_views
from reconstruct.time.instants import utc

#: Requests of one batch are logged within this time.
_ONE_BATCH_US: Final = 1_000_000
#: A broker that any list of live ones holds, logged this near, may have been live, µs.
_LISTED_US: Final = 2_000_000


def judge_recipients(coverage: LogCoverage, step: Step, replicas: frozenset[int], verdicts: Verdicts) -> None:
    """LeaderAndIsr and StopReplica of one block; a broker that any line calls a replica may be told."""
    for line in step.block.requests:
        if line.kind not in (LEADER_AND_ISR, STOP_REPLICA):
            continue
        for broker in line.to_broker_ids or ():
            if replicas and broker not in replicas:
                _judge_stranger(coverage, step.log, line, broker, replicas, verdicts)
            else:
                _judge_dead(coverage, step, line, broker, verdicts)


def named_replicas(case: Case) -> frozenset[int]:
    """Every broker that was ever a replica, by any line; empty where no assignment is known."""
    facts = case.facts
    if not any(fact.replicas and fact.kind in (PARTITION, ZNODE_ASSIGNMENT) for fact in facts):
        return frozenset()
    named = {broker for fact in facts for broker in (*(fact.replicas or ()), *(fact.isr or ()))}
    named |= {fact.replica_id for fact in facts if fact.replica_id is not None}
    named |= {broker for fact in facts for broker in (*(fact.adding_replicas or ()), *(fact.removing_replicas or ()))}
    return frozenset(named)


def _judge_stranger(
    coverage: LogCoverage, log: ControllerLog, line: Evidence, broker: int, replicas: frozenset[int], verdicts: Verdicts
) -> None:
    severity = "error" if coverage.is_whole(log, line.at, line.at) else "info"
    known = ", ".join(map(str, sorted(replicas)))
    verdicts.broken(
        _finding(
            coverage,
            log,
            line,
            broker,
            severity,
            f"a replica of the partition: {known}",
            f"which no line ever calls a replica of the partition; replicas were {known}",
            (),
        )
    )


def _judge_dead(coverage: LogCoverage, step: Step, line: Evidence, broker: int, verdicts: Verdicts) -> None:
    """From 2.2 a request to a broker that is not registered is not even logged; before, it is logged and not sent."""
    cluster = coverage.case.cluster
    if cluster.version.may_be_before(BROKER_EPOCHS_SINCE):
        return
    metadata = [
        other
        for other in step.block.batch()
        if other.kind == UPDATE_METADATA and line in step.block.batch() and other.at - line.at <= _ONE_BATCH_US
    ]
    live, severity = frozenset(broker for other in metadata for broker in other.to_broker_ids or ()), "error"
    if not metadata:
        listed = [view.live for view in own_views(cluster, step.log) if abs(view.at - line.at) <= _LISTED_US]
        last = [view.live for view in own_views(cluster, step.log) if view.at < line.at - _LISTED_US][-1:]
        if not last:
            return
        live, severity = frozenset[int]().union(*last, *listed), "warning"
    if broker in live or coverage.was_received(step.log, SentRequest(line.kind, broker, bool(line.is_delete)), line.at):
        return
    if not coverage.is_whole(step.log, line.at, line.at):
        severity = "info"
    listed_brokers = ", ".join(map(str, sorted(live)))
    verdicts.broken(
        _finding(
            coverage,
            step.log,
            line,
            broker,
            severity,
            f"a broker that the controller holds for live: {listed_brokers}",
            f"which it did not hold for live then (live were {listed_brokers})",
            tuple(other.evidence_id for other in metadata[:1]),
        )
    )


def _finding(
    coverage: LogCoverage,
    log: ControllerLog,
    line: Evidence,
    broker: int,
    severity: str,
    expected: str,
    why: str,
    more: tuple[str, ...],
) -> Finding:
    name = "LeaderAndIsr" if line.kind == LEADER_AND_ISR else "StopReplica"
    return Divergence(
        DivergenceType.REQUEST_TO_WRONG_BROKER, coverage.severity(severity), line.at, broker_id=broker
    ).explained(
        expected,
        f"{name} to broker {broker}",
        f"Controller {log.controller_id} (epoch {log.controller_epoch}) sent {name} to broker {broker}"
        f" ({utc(line.at)}), {why}.",
        (line.evidence_id, *more),
    )
