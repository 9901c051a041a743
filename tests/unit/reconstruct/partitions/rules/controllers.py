"""Real captures, one partition at a time, for the rules that run a controller's log again (R13 to R16)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from reconstruct.cluster.view import ClusterView
from reconstruct.findings.verdicts import Finding
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.reexecution.continuity import has_holes
from reconstruct.partitions.reexecution.controller_log import controller_logs
from tests.support.evidence.partitions import Partition
from tests.unit.reconstruct.partitions.rules.bent_beliefs import Subject, Which

CONTROLLERS = ("R13", "R14", "R15", "R16")
REQUESTS = ("leader_and_isr_sent", "update_metadata_sent", "stop_replica_sent")


def findings(
    subject: Subject, facts: Iterable[Evidence] | None = None, view: ClusterView | None = None
) -> list[Finding]:
    """What the rules about controllers find."""
    return [f for f in subject.fold(facts, view).verdicts.findings if f.rule_id in CONTROLLERS]


def named(found: Iterable[Finding]) -> set[tuple[str, str]]:
    """Types and severities."""
    return {(finding.divergence_type, finding.severity) for finding in found}


def verdicts(subject: Subject) -> Counter[tuple[str, str]]:
    return subject.fold().verdicts.counts


def is_receipt_of(request: Evidence, broker_id: int) -> Which:
    """A line of the broker's own log about a request of the same controller, near it."""
    return lambda fact: (
        fact.broker_id == broker_id
        and fact.kind not in REQUESTS
        and fact.controller_epoch in (None, request.controller_epoch)
        and fact.kind.startswith(("leader_and_isr", "become", "leader_epoch", "stop_replica"))
        and abs(fact.at - request.at) < 2_000_000
    )


def with_proven_losses(view: ClusterView, capture: dict[Partition, list[Evidence]]) -> ClusterView:
    """The view, told which controllers' logs some partition proves to lack lines; no request is known to be whole."""
    lossy = set()
    for facts in capture.values():
        logs = controller_logs(facts)
        holes = has_holes(logs, view, facts)
        lossy |= {log.controller_id for log in logs if log.controller_epoch in holes}
    return replace(view, lossy_logs=frozenset(lossy), counted_requests={})
