"""Leaders that hold a version of the state that is not ZooKeeper's, and go on (R24, KAFKA-2729)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.known_issues import known_issue
from reconstruct.findings.verdicts import Divergence, Verdicts
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import Evidence
from reconstruct.time.instants import utc

#: A deposed leader hears of its successor within seconds; one that fails for longer does not hear at all.
_STUCK_US: Final = 30_000_000
_HEARD: Final = (
    EventType.LEADER_AND_ISR_RECEIVED,
    EventType.LEADER_EPOCH_STARTED,
    EventType.BECOME_LEADER_COMPLETED,
    EventType.BECOME_FOLLOWER_COMPLETED,
    EventType.ISR_UPDATE_COMMITTED,
    EventType.STOP_REPLICA_HANDLED,
)


def judge_stuck_leaders(case: Case, verdicts: Verdicts) -> None:
    """R24: a leader whose changes of the ISR are refused again and again, for one version, and that hears nothing."""
    for run in _runs(case.facts):
        first, last = run[0], run[-1]
        if last.at - first.at < _STUCK_US:
            verdicts.kept("R24")
            continue
        assert first.broker_id is not None
        verdicts.broken(
            Divergence(
                DivergenceType.LEADER_STUCK_ON_STALE_VERSION, "warning", first.at, broker_id=first.broker_id
            ).explained(
                "a leader that learns of the state that stands in ZooKeeper, or of its successor",
                f"{len(run)} changes of the ISR refused for partition epoch {first.partition_epoch}",
                f"From {utc(first.at)} to {utc(last.at)} broker {first.broker_id} tried {len(run)} times to change the"
                f" ISR with partition epoch {first.partition_epoch}, which was not the znode's, and no LeaderAndIsr"
                " reached it in between: it goes on as a leader without knowing that it may be none.",
                tuple(fact.evidence_id for fact in (first, last)),
                known_issue=known_issue("KAFKA-2729", case.cluster.version),
            )
        )


def _runs(facts: Sequence[Evidence]) -> Iterator[list[Evidence]]:
    """By broker: failures for one version, with nothing heard between them."""
    open_runs: dict[int | None, list[Evidence]] = {}
    for fact in facts:
        run = open_runs.get(fact.broker_id, [])
        if fact.kind == EventType.ISR_UPDATE_FAILED and fact.partition_epoch is not None:
            if run and run[-1].partition_epoch != fact.partition_epoch:
                yield open_runs.pop(fact.broker_id)
            open_runs.setdefault(fact.broker_id, []).append(fact)
        elif fact.kind in _HEARD and run:
            yield open_runs.pop(fact.broker_id)
    yield from open_runs.values()
