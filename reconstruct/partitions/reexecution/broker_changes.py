"""A broker that leaves or joins the controller's list of live brokers: its replicas go Offline or Online (R16)."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from reconstruct.cluster.spans import LiveView
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.states import ReplicaState
from reconstruct.partitions.reexecution.controller_log import (
    FAILED,
    LEADER_AND_ISR,
    REPLICA,
    STOP_REPLICA,
    TRANSITIONS,
    ControllerLog,
    logs_every_transition,
    own_views,
)
from reconstruct.partitions.reexecution.log_coverage import LogCoverage
from reconstruct.time.instants import utc
from reconstruct.time.intervals import as_of

#: What a controller does about a broker it does at once; this long, and nothing, is never, µs.
_AT_ONCE_US: Final = 10_000_000
#: The list is logged just before; the two logs round their times.
_BEFORE_US: Final = 5_000
_STARTS: Final = (ReplicaState.ONLINE, ReplicaState.OFFLINE)
_ANSWERS: Final = (*TRANSITIONS, *FAILED, LEADER_AND_ISR, STOP_REPLICA)


def judge_broker_changes(coverage: LogCoverage, log: ControllerLog, verdicts: Verdicts) -> None:
    """One verdict for each replica whose broker left or joined in the tenure."""
    cluster = coverage.case.cluster
    if not logs_every_transition(cluster, log.controller_epoch):
        return
    deleted_from = coverage.case.deletion_hint
    for before, view in pairwise(own_views(cluster, log)):
        if deleted_from is not None and view.at >= deleted_from - _AT_ONCE_US:
            continue
        for broker in (*sorted(before.live - view.live), *sorted(view.live - before.live)):
            if _is_assigned(coverage, broker, view.at):
                _judge(coverage, log, view, broker, broker in before.live, verdicts)


def _is_assigned(coverage: LogCoverage, broker: int, at: int) -> bool:
    """Before and after: an assignment that changes just then is another matter."""
    around = [as_of(coverage.case.assignments, instant) for instant in (at - _AT_ONCE_US, at, at + _AT_ONCE_US)]
    return all(found is not None and found.inferred_from is None and broker in found.value.replicas for found in around)


def _judge(
    coverage: LogCoverage, log: ControllerLog, view: LiveView, broker: int, is_gone: bool, verdicts: Verdicts
) -> None:
    changed = _next_change(coverage, log, view, broker, is_gone)
    end = view.at + _AT_ONCE_US if changed is None else min(view.at + _AT_ONCE_US, changed - _BEFORE_US)
    window = [line for line in log.lines if view.at - _BEFORE_US <= line.at <= end]
    if any(line.replica_id == broker and line.kind in (*TRANSITIONS, *FAILED) for line in window):
        verdicts.kept("R16")
        return
    stays = _stays(log, view.at, changed, broker, is_gone)
    is_silent = (
        any(line.kind in _ANSWERS for line in window)
        or not _must_move(log, view, broker, is_gone)
        or not coverage.is_whole(log, view.at, end)
        or (not stays and coverage.was_anything_received(log, view.at, end))
    )
    if is_silent:
        verdicts.unjudged("R16")
    else:
        verdicts.broken(_missing(coverage, log, view, broker, is_gone, stays))


def _next_change(coverage: LogCoverage, log: ControllerLog, view: LiveView, broker: int, is_gone: bool) -> int | None:
    """When the controller's list of live brokers next changed for the broker."""
    views = own_views(coverage.case.cluster, log)
    return next((after.at for after in views if after.at > view.at and (broker in after.live) == is_gone), None)


def _stays(log: ControllerLog, at: int, changed: int | None, broker: int, is_gone: bool) -> bool:
    """Whether the replica's next line starts from the state before, and belongs to the list's next change of the
    broker: then no line of the step is missing."""
    own = (line for line in log.lines if line.kind == REPLICA and line.replica_id == broker and line.at > at)
    following = next(own, None)
    if following is None or changed is None or following.at > changed + _AT_ONCE_US:
        return False
    return following.from_state == (ReplicaState.ONLINE if is_gone else ReplicaState.OFFLINE)


def _must_move(log: ControllerLog, view: LiveView, broker: int, is_gone: bool) -> bool:
    """Whether the controller knew a leader of the partition (up to 1.1 without one a replica moves in silence), had the
    replica in the opposite state, and logs no such move at another time: then the two logs have not one clock."""
    earlier = [line for line in log.lines if line.at < view.at]
    own = [line for line in log.lines if line.kind == REPLICA and line.replica_id == broker]
    target, opposite = (ReplicaState.OFFLINE, ReplicaState.ONLINE) if is_gone else _STARTS
    last = next((line.to_state for line in reversed(own) if line.at < view.at), None)
    moves = [line for line in own if line.to_state == target and line.from_state != target]
    return last == opposite and not moves and any(line.kind == LEADER_AND_ISR for line in earlier)


def _missing(
    coverage: LogCoverage, log: ControllerLog, view: LiveView, broker: int, is_gone: bool, stays: bool
) -> Finding:
    procedure, target = ("Broker failure", "OfflineReplica") if is_gone else ("Broker start", "OnlineReplica")
    last = next((line for line in reversed(log.lines) if line.at < view.at), None)
    severity = "error" if stays else "warning"
    return Divergence(
        DivergenceType.STEP_MISSING,
        coverage.severity(severity),
        view.at,
        broker_id=log.controller_id,
        replica_id=broker,
    ).explained(
        f"replica {broker} becomes {target}",
        f"no transition of replica {broker}, nor of anything else",
        f"{procedure} by controller {log.controller_id} (epoch {log.controller_epoch}): its list of live brokers"
        f" {'lost' if is_gone else 'gained'} broker {broker} ({utc(view.at)}), and its log, which is whole there, shows"
        f" nothing of the partition for 10 s. Replica {broker} must become {target}.",
        (view.evidence_id, *((last.evidence_id,) if last is not None else ())),
    )
