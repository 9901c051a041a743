"""The creation of one partition, as one controller's log shows its steps (R16)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconstruct.findings.verdicts import Verdicts
from reconstruct.model.states import PartitionState, ReplicaState
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.reexecution.controller_log import FAILED, LEADER_AND_ISR, PARTITION, REPLICA, ControllerLog
from reconstruct.partitions.reexecution.log_coverage import LogCoverage
from reconstruct.partitions.reexecution.procedures import EARLY, MISSING, WrongStep, settle, until_recreated


def judge_creation(coverage: LogCoverage, log: ControllerLog, verdicts: Verdicts) -> None:
    """The partition New, its replicas New, the partition Online, its replicas Online."""
    for number, line in enumerate(log.lines):
        if line.kind != PARTITION or line.to_state != PartitionState.NEW or not line.replicas:
            continue
        lines = [line, *until_recreated(log.lines[number + 1 :])]
        done = [other for other in lines if other.kind == REPLICA and other.from_state == ReplicaState.NEW]
        if done:
            settle(
                coverage,
                log,
                "Creation",
                [line, *done],
                _creation(lines, is_decided=bool(coverage.case.decided)),
                verdicts,
            )
        else:
            verdicts.unjudged("R16")


def _creation(lines: Sequence[Evidence], is_decided: bool) -> Iterator[WrongStep]:
    begun = lines[0]
    order = "partition NewPartition, replicas NewReplica, partition OnlinePartition, replicas OnlineReplica"
    later = lines[1:]
    decided = next((line for line in later if line.kind == PARTITION and line.from_state == PartitionState.NEW), None)
    tried = decided or next((line for line in lines if line.kind in FAILED), None)
    joined = [line for line in lines if line.kind == REPLICA and line.from_state == ReplicaState.NEW]
    recipients = {broker for line in lines if line.kind == LEADER_AND_ISR for broker in line.to_broker_ids or ()}
    if tried is None and (recipients or is_decided):
        return
    if tried is None:
        yield WrongStep(
            MISSING,
            order,
            "replicas became OnlineReplica, the partition neither OnlinePartition nor failed to",
            [begun, joined[0]],
        )
        return
    for replica_id in begun.replicas or ():
        own = [line for line in lines if line.kind == REPLICA and line.replica_id == replica_id]
        if not own:
            if replica_id not in recipients:
                yield WrongStep(
                    MISSING,
                    order,
                    f"the assigned replica {replica_id} never became NewReplica",
                    [begun, tried],
                    replica_id,
                )
            continue
        if own[0].to_state == ReplicaState.NEW and decided is not None and own[0].offset > decided.offset:
            yield WrongStep(
                EARLY,
                order,
                f"replica {replica_id} became NewReplica after the partition had become OnlinePartition",
                [decided, own[0]],
                replica_id,
            )
        online = next((line for line in own if line.from_state == ReplicaState.NEW), None)
        if online is not None and online.offset < tried.offset:
            yield WrongStep(
                EARLY,
                order,
                f"replica {replica_id} became {online.to_state} before a leader was decided",
                [online, tried],
                replica_id,
            )
