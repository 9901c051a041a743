"""The replica assignment of one partition over time, and when it was being reassigned or deleted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.partitions.evidence import (
    METADATA_PARTITION,
    ZNODE_ASSIGNMENT,
    ZNODE_DELETION_REQUESTED,
    ZNODE_REASSIGNMENT,
    ZNODE_REASSIGNMENT_DONE,
    Evidence,
    in_order,
)
from reconstruct.time.intervals import Change, Interval, close_intervals

_WRITTEN: Final = (ZNODE_ASSIGNMENT, METADATA_PARTITION)
_DECISIONS: Final = (
    EventType.PARTITION_STATE_CHANGE,
    EventType.REASSIGNMENT_LEADER_AND_ISR_SENT,
    EventType.REASSIGNMENT_ASSIGNMENT_UPDATED,
)
_RESTATEMENTS: Final = (
    EventType.LEADER_AND_ISR_SENT,
    EventType.LEADER_AND_ISR_RECEIVED,
    EventType.METADATA_CACHED,
    EventType.UPDATE_METADATA_SENT,
)


@dataclass(frozen=True, slots=True)
class Assignment:
    """Assigned replicas, the preferred leader first; ``adding`` and ``removing``: None where the version has none."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas without those still being added: what the partition's replication is measured by."""
        return tuple(replica for replica in self.replicas if replica not in (self.adding or ()))


def assignment_timeline(evidence: Iterable[Evidence], deleted_at: int | None) -> list[Interval[Assignment]]:
    """From znodes and the controller's decisions; from requests that restate it only where neither was given."""
    facts = in_order(evidence)
    shown = [fact for fact in facts if fact.replicas and fact.kind in (*_WRITTEN, *_DECISIONS)]
    if not shown:
        shown = [fact for fact in facts if fact.replicas and fact.kind in _RESTATEMENTS]
    changes: list[Change[Assignment]] = []
    for fact in shown:
        assert fact.replicas is not None
        assignment = Assignment(fact.replicas, fact.adding_replicas, fact.removing_replicas)
        previous = changes[-1].value if changes else None
        if previous is not None and _is_same(previous, assignment):
            continue
        inferred = fact.inferred_from if fact.kind in (*_WRITTEN, *_DECISIONS) else "request_sent"
        changes.append(Change(fact.at, assignment, (fact.evidence_id,), inferred))
    if deleted_at is not None and changes:
        changes = [change for change in changes if change.at < deleted_at] or changes[:1]
        changes.append(Change(deleted_at, None, ()))
    return close_intervals(changes)


def _is_same(before: Assignment, after: Assignment) -> bool:
    """None and empty say the same of adding and removing: nothing is under way."""
    return (before.replicas, before.adding or (), before.removing or ()) == (
        after.replicas,
        after.adding or (),
        after.removing or (),
    )


def assigned_intervals(assignments: Sequence[Interval[Assignment]]) -> dict[int, list[tuple[int, int | None]]]:
    """By replica: the intervals in which it was assigned, neighbours joined."""
    result: dict[int, list[tuple[int, int | None]]] = {}
    for interval in assignments:
        for replica in interval.value.replicas:
            spans = result.setdefault(replica, [])
            if spans and spans[-1][1] == interval.start:
                spans[-1] = (spans[-1][0], interval.end)
            else:
                spans.append((interval.start, interval.end))
    return result


def reassignment_windows(
    evidence: Iterable[Evidence], assignments: Sequence[Interval[Assignment]]
) -> list[tuple[int, int | None, tuple[str, ...]]]:
    """When a reassignment was under way: by the topic's znode (2.4 and later), or by /admin/reassign_partitions."""
    windows: list[tuple[int, int | None, tuple[str, ...]]] = []
    for interval in assignments:
        if interval.value.adding or interval.value.removing:
            if windows and windows[-1][1] == interval.start:
                windows[-1] = (windows[-1][0], interval.end, windows[-1][2])
            else:
                windows.append((interval.start, interval.end, interval.evidence))
    return windows or _requested(evidence, ZNODE_REASSIGNMENT, ZNODE_REASSIGNMENT_DONE)


def deletion_windows(
    evidence: Iterable[Evidence], deleted_at: int | None
) -> list[tuple[int, int | None, tuple[str, ...]]]:
    """From the request to delete the topic until it was gone."""
    requested = [fact for fact in in_order(evidence) if fact.kind == ZNODE_DELETION_REQUESTED]
    if not requested:
        return []
    start = requested[0].at
    end = None if deleted_at is None else max(start, deleted_at)
    return [(start, end, (requested[0].evidence_id,))]


def _requested(evidence: Iterable[Evidence], begun: str, done: str) -> list[tuple[int, int | None, tuple[str, ...]]]:
    windows: list[tuple[int, int | None, tuple[str, ...]]] = []
    for fact in in_order(evidence):
        is_open = bool(windows) and windows[-1][1] is None
        if fact.kind == begun and not is_open:
            windows.append((fact.at, None, (fact.evidence_id,)))
        elif fact.kind == done and is_open:
            windows[-1] = (windows[-1][0], fact.at, (*windows[-1][2], fact.evidence_id))
    return windows
