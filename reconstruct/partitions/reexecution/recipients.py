"""To whom a request goes: replicas of the partition, and since 2.2 only brokers that are registered; an UpdateMetadata
to all brokers that live (R15)."""

from __future__ import annotations

from typing import Final

from reconstruct.cluster.view import ClusterView
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Verdicts
from reconstruct.model.states import ReplicaState
from reconstruct.model.versions import BROKER_EPOCHS_SINCE, OFFLINE_LOG_DIRS_SINCE, REASSIGNMENT_IN_TOPIC_ZNODE_SINCE
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import ZNODE_ASSIGNMENT, Evidence
from reconstruct.partitions.reexecution.controller_log import (
    LEADER_AND_ISR,
    MARGIN_US,
    ONE_BATCH_US,
    PARTITION,
    RAISED,
    REPLICA,
    STOP_REPLICA,
    UPDATE_METADATA,
    is_whole,
    own_views,
    steady_brokers,
)
from reconstruct.partitions.reexecution.log_coverage import LogCoverage
from reconstruct.partitions.reexecution.model_runs import SentRequest
from reconstruct.partitions.reexecution.steps import Reexecuted, Step
from reconstruct.time.instants import utc

#: A broker that any list of live ones holds, logged this near, may have been live, µs.
_LISTED_US: Final = 2_000_000
#: A reassignment removes old replicas right after the election that ends it, µs.
REMOVED_WITHIN_US: Final = 30_000_000
#: Severity, what is expected, why the broker is a wrong one, and evidence besides the line.
_WrongRecipient = tuple[str, str, str, tuple[str, ...]]


def judge_recipients(coverage: LogCoverage, step: Step, replicas: frozenset[int], verdicts: Verdicts) -> None:
    """LeaderAndIsr and StopReplica of one block; a broker that any line calls a replica may be told."""
    for line in step.block.requests:
        if line.kind not in (LEADER_AND_ISR, STOP_REPLICA):
            continue
        for broker in line.to_broker_ids or ():
            if replicas and broker not in replicas:
                wrong: _WrongRecipient | None = _stranger(coverage, step, line, replicas)
            else:
                wrong = _dead(coverage, step, line, broker)
            if wrong is None:
                continue
            severity, expected, why, more = wrong
            name = "LeaderAndIsr" if line.kind == LEADER_AND_ISR else "StopReplica"
            verdicts.broken(
                Divergence(
                    DivergenceType.REQUEST_TO_WRONG_BROKER, coverage.severity(severity), line.at, broker_id=broker
                ).explained(
                    expected,
                    f"{name} to broker {broker}",
                    f"Controller {step.log.controller_id} (epoch {step.log.controller_epoch}) sent {name} to broker"
                    f" {broker} ({utc(line.at)}), {why}.",
                    (line.evidence_id, *more),
                )
            )


def names_all_recipients(cluster: ClusterView) -> bool:
    """Whether each line of an UpdateMetadata about a partition names all brokers that live: since 1.0 one line names
    all to whom it goes; since 2.2 brokers that started are told by themselves (KafkaController.onBrokerStartup)."""
    return cluster.version.is_since(OFFLINE_LOG_DIRS_SINCE) and cluster.version.is_before(BROKER_EPOCHS_SINCE)


def judge_metadata_recipients(coverage: LogCoverage, step: Step, verdicts: Verdicts) -> None:
    """UpdateMetadata of one block, whatever asked for it, goes to every broker that the controller lists as live."""
    log, cluster = step.log, coverage.case.cluster
    if not names_all_recipients(cluster):
        return
    for line in step.block.sent(UPDATE_METADATA):
        left_out = steady_brokers(cluster, log, line.at) - set(line.to_broker_ids or ())
        if not left_out and line.to_broker_ids:
            verdicts.kept("R15")
        recipients = ", ".join(map(str, sorted(line.to_broker_ids or ())))
        for broker in sorted(left_out):
            is_received = coverage.was_received(log, SentRequest(UPDATE_METADATA, broker), line.at, [line])
            if is_received or not is_whole(log, cluster, line.at, line.at, 0):
                verdicts.unjudged("R15")
                continue
            # the controller's own broker has its clock, and receives what was sent after it was
            begins = line.at if broker == log.controller_id else line.at - MARGIN_US
            would_be_logged = cluster.logs_all(broker, begins, line.at + MARGIN_US)
            verdicts.broken(
                Divergence(
                    DivergenceType.REQUEST_NOT_SENT,
                    coverage.severity("error" if would_be_logged else "warning"),
                    line.at,
                    broker_id=broker,
                ).explained(
                    f"UpdateMetadata to broker {broker}",
                    f"no UpdateMetadata to broker {broker}",
                    f"Controller {log.controller_id} (epoch {log.controller_epoch}) sent UpdateMetadata to brokers"
                    f" {recipients} ({utc(line.at)}). Kafka {cluster.version}"
                    f" sends it to every live broker; broker {broker}, which the controller held for live, is left out"
                    f"{', and its own log shows none' if would_be_logged else ''}.",
                    (line.evidence_id,),
                )
            )


def raised_epochs(step: Step) -> list[Reexecuted]:
    """The leader epoch that a reassignment raises is told to every replica of the assignment that is sent with it, and
    to those that it removes next (KafkaController.updateLeaderEpochAndSendRequest, until 2.3)."""
    return [
        Reexecuted(
            line,
            frozenset(SentRequest(LEADER_AND_ISR, broker) for broker in {*line.replicas, *_removed_next(step, line)}),
        )
        for line in step.block.others
        if line.kind == RAISED and line.replicas and line.leader_epoch is not None
    ]


def _removed_next(step: Step, line: Evidence) -> frozenset[int]:
    """The replicas that the assignment sent before has beyond this one, and that the controller then takes offline."""
    raised = [other for other in step.log.lines if other.kind == RAISED and other.file == line.file]
    before = [other for other in raised if other.offset < line.offset][-1:]
    until = min((other.offset for other in raised if other.offset > line.offset), default=None)
    if not before or not set(line.replicas or ()) < set(before[0].replicas or ()):
        return frozenset()
    offline = {
        other.replica_id
        for other in step.log.lines
        if other.kind == REPLICA
        and other.file == line.file
        and other.from_state == ReplicaState.ONLINE
        and other.to_state == ReplicaState.OFFLINE
        and other.offset > line.offset
        and (until is None or other.offset < until)
        and other.at <= line.at + REMOVED_WITHIN_US
    }
    return frozenset(set(before[0].replicas or ()) - set(line.replicas or ())) & offline


def named_replicas(case: Case) -> frozenset[int]:
    """Every broker that was ever a replica, by any line; empty where no assignment is known."""
    facts = case.facts
    if not any(fact.replicas and fact.kind in (PARTITION, ZNODE_ASSIGNMENT) for fact in facts):
        return frozenset()
    named = {broker for fact in facts for broker in (*(fact.replicas or ()), *(fact.isr or ()))}
    named |= {fact.replica_id for fact in facts if fact.replica_id is not None}
    named |= {broker for fact in facts for broker in (*(fact.adding_replicas or ()), *(fact.removing_replicas or ()))}
    return frozenset(named)


def _stranger(coverage: LogCoverage, step: Step, line: Evidence, replicas: frozenset[int]) -> _WrongRecipient:
    # since 2.4 the request itself names all replicas, those that a reassignment adds or removes among them
    is_stated = bool(line.replicas) and coverage.case.cluster.version.is_since(REASSIGNMENT_IN_TOPIC_ZNODE_SINCE)
    severity = "error" if is_stated or coverage.is_whole(step.log, line.at, line.at) else "info"
    known = ", ".join(map(str, sorted(replicas)))
    why = f"which no line ever calls a replica of the partition; replicas were {known}"
    return severity, f"a replica of the partition: {known}", why, ()


def _dead(coverage: LogCoverage, step: Step, line: Evidence, broker: int) -> _WrongRecipient | None:
    """From 2.2 a request to a broker that is not registered is not even logged; before, it is logged and not sent."""
    cluster = coverage.case.cluster
    if cluster.version.may_be_before(BROKER_EPOCHS_SINCE):
        return None
    batch = step.block.batch()
    metadata = [other for other in batch if other.kind == UPDATE_METADATA and other.at - line.at <= ONE_BATCH_US]
    if line in batch and metadata:
        live, severity = frozenset(broker for other in metadata for broker in other.to_broker_ids or ()), "error"
        evidence: tuple[str, ...] = (metadata[0].evidence_id,)
    else:
        views = own_views(cluster, step.log)
        listed = [view.live for view in views if abs(view.at - line.at) <= _LISTED_US]
        last = [view.live for view in views if view.at < line.at - _LISTED_US][-1:]
        if not last:
            return None
        live, severity, evidence = frozenset[int]().union(*last, *listed), "warning", ()
    if broker in live or coverage.was_received(step.log, SentRequest(line.kind, broker, bool(line.is_delete)), line.at):
        return None
    if not coverage.is_whole(step.log, line.at, line.at):
        severity = "info"
    listed_brokers = ", ".join(map(str, sorted(live)))
    why = f"which it did not hold for live then (live were {listed_brokers})"
    return severity, f"a broker that the controller holds for live: {listed_brokers}", why, evidence
