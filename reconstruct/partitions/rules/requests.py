"""What each transition must tell, to whom, by re-execution: requests that were not sent (R15).

Each block of a controller's log is done again by the model; what every way of doing it sends, must stand in the log
behind it. See :mod:`reconstruct.partitions.reexecution`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.states import PartitionState, ReplicaState
from reconstruct.model.versions import OFFLINE_LOG_DIRS_SINCE, STOP_REPLICA_PER_PARTITION_SINCE
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.reexecution.contents import Contents
from reconstruct.partitions.reexecution.controller_log import (
    LEADER_AND_ISR,
    MARGIN_US,
    ONE_BATCH_US,
    PARTITION,
    RAISED,
    REPLICA,
    REQUESTS,
    STOP_REPLICA,
    UPDATE_METADATA,
    Block,
    ControllerLog,
    is_whole,
    steady_brokers,
)
from reconstruct.partitions.reexecution.log_coverage import LogCoverage
from reconstruct.partitions.reexecution.model_runs import SentRequest
from reconstruct.partitions.reexecution.recipients import (
    REMOVED_WITHIN_US,
    judge_metadata_recipients,
    judge_recipients,
    named_replicas,
    names_all_recipients,
    raised_epochs,
)
from reconstruct.partitions.reexecution.reexecution import BEFORE_DELETION_US, SHUTDOWN_US, reexecuted_steps
from reconstruct.partitions.reexecution.steps import Reexecuted, Step, decided_by, is_surely_live
from reconstruct.time.instants import utc

_NAMES: Final[Mapping[str, str]] = {
    LEADER_AND_ISR: "LeaderAndIsr",
    UPDATE_METADATA: "UpdateMetadata",
    STOP_REPLICA: "StopReplica",
}
#: A StopReplica that controller.log tells of stands at most this far from its transition, µs.
_STOP_WITHIN_US: Final = 2_000_000
#: A registration that ended so near a replica's transition may be the cause, if a clock was set about then, µs.
_FAILED_WITHIN_US: Final = 10_000_000


def judge_requests(case: Case, verdicts: Verdicts) -> None:
    """R15: what was sent against what the model sends, transition by transition and request by request."""
    coverage = LogCoverage(case)
    contents = Contents(coverage)
    replicas = named_replicas(case)
    for log in coverage.logs:
        contents.last = None
        for step in reexecuted_steps(case, log):
            for reexecuted in [*step.reexecuted, *raised_epochs(step)]:
                _judge_sent(coverage, step, reexecuted, verdicts)
            contents.judge(step, verdicts)
            judge_recipients(coverage, step, replicas, verdicts)
            judge_metadata_recipients(coverage, step, verdicts)


def _judge_sent(coverage: LogCoverage, step: Step, reexecuted: Reexecuted, verdicts: Verdicts) -> None:
    if reexecuted.required is None:
        verdicts.unjudged("R15")
        return
    required = set(reexecuted.required)
    if coverage.case.cluster.version.may_be_since(STOP_REPLICA_PER_PARTITION_SINCE):
        # not logged by partition from then on
        required = {expected for expected in required if expected.kind != UPDATE_METADATA}
    elif names_all_recipients(coverage.case.cluster) and step.block.sent(UPDATE_METADATA):
        # each of them is judged by itself
        required = {expected for expected in required if expected.kind != UPDATE_METADATA}
    elif any(expected.kind == UPDATE_METADATA for expected in required):
        # it goes to every broker that the controller lists as live
        live = steady_brokers(coverage.case.cluster, step.log, reexecuted.line.at)
        required |= {SentRequest(UPDATE_METADATA, broker) for broker in live}
    missing = sorted(expected for expected in required if not _is_sent(step.log, step.block, reexecuted.line, expected))
    if not missing:
        verdicts.kept("R15")
        return
    findings = [_not_sent(coverage, step, reexecuted.line, expected) for expected in missing]
    for finding in findings:
        if finding is not None:
            verdicts.broken(finding)
    if not any(findings):
        verdicts.unjudged("R15")


def _is_surely_live(coverage: LogCoverage, step: Step, line: Evidence, expected: SentRequest) -> bool:
    cluster = coverage.case.cluster
    if expected.kind == UPDATE_METADATA:
        return expected.broker_id in steady_brokers(cluster, step.log, line.at)
    return is_surely_live(cluster, step, line, expected.broker_id)


def _may_have_failed(coverage: LogCoverage, step: Step, line: Evidence, broker: int) -> bool:
    """Whether the broker's own failure would explain the transition: its replica went Offline with no other cause, or
    the partition that it led was offline."""
    if line.from_state == PartitionState.OFFLINE:
        return step.cached is not None and step.cached.leader == broker
    if line.to_state != ReplicaState.OFFLINE or line.replica_id != broker:
        return False
    case, hint = coverage.case, coverage.case.deletion_hint
    ends = (interval.end for interval in case.cluster.liveness.get(broker, ()) if interval.end is not None)
    if any(abs(end - line.at) <= _FAILED_WITHIN_US for end in ends):
        return True
    asked = case.cluster.shutdown_requests.get(broker, ())
    return not (
        case.reassigning
        or (hint is not None and line.at >= hint - BEFORE_DELETION_US)
        or any(line.at - SHUTDOWN_US <= at <= line.at for at, _ in asked)
    )


def _may_be_leaving(case: Case, step: Step, line: Evidence, expected: SentRequest) -> bool:
    """Whether the election may be one of the broker's controlled shutdown, for which it gets no LeaderAndIsr: its
    registration ended soon after, and the log, which begins there, does not say who led before."""
    is_blind = step.cached is None and line.from_state == line.to_state == PartitionState.ONLINE
    ends = (interval.end for interval in case.cluster.liveness.get(expected.broker_id, ()) if interval.end is not None)
    is_soon = any(line.at - BEFORE_DELETION_US <= end <= line.at + SHUTDOWN_US for end in ends)
    return expected.kind == LEADER_AND_ISR and is_blind and is_soon


def may_be_removed(coverage: LogCoverage, line: Evidence, broker: int) -> bool:
    """Whether a reassignment may have taken the broker's replica off before the election that ends it, or before it
    stops another replica: then the replica goes next, before any other is created."""
    stops_another = line.to_state == ReplicaState.OFFLINE and line.replica_id != broker
    if line.from_state != PartitionState.ONLINE and not stops_another:
        return False
    facts, until = coverage.case.facts, line.at + REMOVED_WITHIN_US
    created = [
        fact.at
        for fact in facts
        if fact.kind == REPLICA
        and fact.to_state == ReplicaState.NEW
        and fact.file == line.file
        and fact.offset > line.offset
        and fact.at >= line.at
    ]
    until = min([until, *created])
    return any(
        broker not in assigned.value.replicas and line.at < assigned.start <= until
        for assigned in coverage.case.assignments
    ) or any(
        fact.kind == REPLICA
        and fact.replica_id == broker
        and fact.to_state in (ReplicaState.DELETION_STARTED, ReplicaState.NON_EXISTENT)
        and line.at <= fact.at <= until
        for fact in facts
    )


def _is_sent(log: ControllerLog, block: Block, line: Evidence, expected: SentRequest) -> bool:
    requests, decided = block.requests, decided_by(line, block)
    if expected.kind == LEADER_AND_ISR and decided is not None:
        # a later one may be in the block, of an epoch that a reassignment raised
        requests = [request for request in requests if request.leader_epoch in (None, decided.leader_epoch)]
    if expected.kind == UPDATE_METADATA:
        # all of a batch stand together; what stands behind tells of a later one, but lines of one instant may be sorted
        batch = block.batch(most_us=None)
        behind = block.requests[len(batch) :]
        if not behind or behind[0].at > batch[-1].at:
            requests = [request for request in batch if request.kind == expected.kind] or requests
    if expected.kind == STOP_REPLICA and log.stops:
        requests = [stop for stop in log.stops if abs(stop.at - line.at) <= _STOP_WITHIN_US]
    return any(
        request.kind == expected.kind
        and expected.broker_id in (request.to_broker_ids or ())
        and (expected.kind != STOP_REPLICA or bool(request.is_delete) == expected.is_delete)
        and (line.kind != RAISED or request.leader_epoch == line.leader_epoch)
        for request in requests
    )


def _beside(block: Block, line: Evidence) -> list[Evidence]:
    """The requests of the same batch that were sent."""
    if line.kind == RAISED:
        return [r for r in block.sent(LEADER_AND_ISR) if r.leader_epoch == line.leader_epoch]
    return [r for r in block.batch() if r.offset > line.offset and r.at <= line.at + ONE_BATCH_US]


def _not_sent(coverage: LogCoverage, step: Step, line: Evidence, expected: SentRequest) -> Finding | None:
    """The finding; None where the silence proves nothing."""
    log, cluster = step.log, coverage.case.cluster
    after = _beside(step.block, line)
    end = max((request.at for request in after), default=line.at)
    is_to_all = expected.kind == UPDATE_METADATA
    is_begun = is_to_all and any(request.kind == UPDATE_METADATA for request in after)
    # since 1.0 one line of an UpdateMetadata names all to whom it goes
    is_left_out = is_begun and cluster.version.is_since(OFFLINE_LOG_DIRS_SINCE)
    is_past = is_left_out or _is_past(expected, after) or _was_followed(coverage, log, step.block, line, expected)
    is_silent = (
        (not is_begun and any(other.kind.endswith("_failed") for other in step.block.others))
        or not is_whole(log, cluster, line.at, end, 0 if is_past else MARGIN_US)
        or not (is_past or coverage.lives_on(log, after[-1] if after else line))
        or not _is_surely_live(coverage, step, line, expected)
        or _may_have_failed(coverage, step, line, expected.broker_id)
        or _may_be_leaving(coverage.case, step, line, expected)
        or (not is_to_all and may_be_removed(coverage, line, expected.broker_id))
    )
    if expected.kind == STOP_REPLICA and cluster.version.may_be_before(STOP_REPLICA_PER_PARTITION_SINCE):
        is_silent = is_silent or not coverage.controller_log_covers(log, line.at, end)
    if is_silent:
        return None
    would_be_logged = coverage.broker_logs_all(expected.broker_id, line.at, end)
    beside = [request for request in after if request.kind == expected.kind] or _of_the_same_state(
        line, after, expected
    )
    proof = _proof_of_loss(coverage, log, line, expected, beside)
    if proof is None and not (after or would_be_logged):
        return None
    # What a controller sends to its own broker, and what that receives, may be lost with one stretch of one log: the
    # broker may be done with it before the next kind of request is sent. Not so an UpdateMetadata since 1.0, whose line
    # is there and leaves the broker out.
    is_told_twice = would_be_logged and (is_left_out or expected.broker_id != log.controller_id)
    is_told_twice = is_told_twice and (expected.kind == STOP_REPLICA or not _is_overtaken(step.block, line))
    is_begun = bool(after) or _is_stopped_otherwise(coverage, log, line, expected)
    elsewhere = coverage.lacking_begins(log, line.at)
    if proof is None and coverage.lacks_sendings(log, line.at):
        elsewhere |= {log.controller_id}
    is_sure = is_begun and is_told_twice and not elsewhere
    severity = "info" if proof is not None else "error" if is_sure else "warning"
    name = _NAMES[expected.kind] + (" with deletion" if expected.is_delete else "")
    subject = f"replica {line.replica_id}" if line.replica_id is not None else "the partition"
    did = f"moved {subject} from {line.from_state} to {line.to_state}"
    if line.kind == RAISED:
        did = f"raised the leader epoch to {line.leader_epoch} for a reassignment"
    receipt = ", and the broker's own log shows none" if would_be_logged else ""
    if proof is None and elsewhere:
        receipt += f"; but the log of broker {min(elsewhere)} lacks lines of about then, and these may, too"
    if proof is not None:
        receipt = f"; but {proof}, so lines are missing from what was given"
    return Divergence(
        DivergenceType.REQUEST_NOT_SENT,
        coverage.severity(severity),
        line.at,
        broker_id=expected.broker_id,
        replica_id=line.replica_id,
    ).explained(
        f"{name} to broker {expected.broker_id}",
        f"no {name} to broker {expected.broker_id}",
        f"Controller {log.controller_id} (epoch {log.controller_epoch}) {did} ({utc(line.at)}). Kafka {cluster.version}"
        f" then sends {name} to broker {expected.broker_id}, which the controller held for live; its log, which covers"
        f" that time, shows none{receipt}.",
        (line.evidence_id, *(request.evidence_id for request in after[:3])),
    )


def _is_stopped_otherwise(coverage: LogCoverage, log: ControllerLog, line: Evidence, expected: SentRequest) -> bool:
    """Whether the broker received the other StopReplica of a removal, with deletion or without: its log holds what this
    controller asked of it about then."""
    other = expected._replace(is_delete=not expected.is_delete)
    return expected.kind == STOP_REPLICA and coverage.was_received(log, other, line.at)


def _is_overtaken(block: Block, line: Evidence) -> bool:
    """Whether the replica's next transition follows with no request between: then all of the batch is missing, and what
    stands behind is another's."""
    return line.kind == REPLICA and any(
        other.replica_id == line.replica_id and other.offset > line.offset for other in block.transitions
    )


def _of_the_same_state(line: Evidence, after: Sequence[Evidence], expected: SentRequest) -> list[Evidence]:
    """Requests of another kind that say what a LeaderAndIsr of the batch would have said: those of what was decided
    just then. A restated one may carry an epoch that a reassignment raised, and UpdateMetadata not (up to 2.3)."""
    if expected.kind != LEADER_AND_ISR or (line.kind != PARTITION and line.to_state != ReplicaState.OFFLINE):
        return []
    return [request for request in after if request.kind == UPDATE_METADATA]


def _is_past(expected: SentRequest, after: list[Evidence]) -> bool:
    """Whether the batch had come to requests of a later kind: all of the kind had been sent by then."""
    return any(REQUESTS.index(request.kind) > REQUESTS.index(expected.kind) for request in after)


def _was_followed(
    coverage: LogCoverage, log: ControllerLog, block: Block, line: Evidence, expected: SentRequest
) -> bool:
    """Whether a broker was told by an UpdateMetadata what the transition decided: then each LeaderAndIsr of the batch
    had been sent. Since 2.6 the controller's own lines do not name the partitions of an UpdateMetadata."""
    decided = decided_by(line, block) if expected.kind == LEADER_AND_ISR and line.kind == PARTITION else None
    return decided is not None and coverage.was_cached(log, decided.leader, decided.leader_epoch, decided.isr)


def _proof_of_loss(
    coverage: LogCoverage, log: ControllerLog, line: Evidence, expected: SentRequest, beside: Sequence[Evidence]
) -> str | None:
    """What shows that the request was sent, or that the logs lack lines; None where nothing does."""
    if coverage.was_received(log, expected, line.at, beside):
        return "a broker received it"
    if any(
        request.kind == expected.kind
        and request.at == line.at
        and expected.broker_id in (request.to_broker_ids or ())
        and (expected.kind != STOP_REPLICA or bool(request.is_delete) == expected.is_delete)
        for request in log.lines
        if request.offset < line.offset
    ):
        return "one stands before it at the same instant, as where a tool sorted the log"
    if expected.is_delete and coverage.was_answered(expected.broker_id, line.at):
        return "the broker answered it"
    if log.controller_epoch in coverage.holes:
        return "that log lacks other lines of the partition"
    if coverage.lacks_receipts(log, expected.broker_id, line.at):
        return f"the log of broker {expected.broker_id} lacks other requests"
    lacking = coverage.lacking_begins(log, line.at) & {log.controller_id, expected.broker_id}
    if lacking:
        return f"the log of broker {min(lacking)} lacks the begins of requests"
    return None
