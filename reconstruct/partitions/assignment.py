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
#: What a controller logs when it is told to delete a topic, or when it finds at its start that one is to be deleted.
_DELETION_LOGGED: Final = (EventType.TOPIC_DELETION_REQUESTED, EventType.TOPIC_DELETION_QUEUED)
#: From when to when (None while it lasts), µs since the epoch, and what shows it.
Window = tuple[int, int | None, tuple[str, ...]]


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


def assignment_timeline(evidence: Iterable[Evidence], gone_at: int | None) -> list[Interval[Assignment]]:
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
    if gone_at is not None and changes:
        changes = [change for change in changes if change.at < gone_at] or changes[:1]
        changes.append(Change(gone_at, None, ()))
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


def reassignment_windows(evidence: Iterable[Evidence], assignments: Sequence[Interval[Assignment]]) -> list[Window]:
    """When a reassignment was under way: by the topic's znode (2.4 and later), or by /admin/reassign_partitions."""
    windows: list[Window] = []
    for interval in assignments:
        if interval.value.adding or interval.value.removing:
            if windows and windows[-1][1] == interval.start:
                windows[-1] = (windows[-1][0], interval.end, windows[-1][2])
            else:
                windows.append((interval.start, interval.end, interval.evidence))
    return windows or _requested(evidence, ZNODE_REASSIGNMENT, ZNODE_REASSIGNMENT_DONE)


def logged_reassignments(evidence: Iterable[Evidence], known: Sequence[Window], gone_at: int | None) -> list[Window]:
    """Those that the controller logged (up to 2.3) and that are none of the ``known`` ones: of what happens between two
    snapshots no znode tells. None outlives its topic."""
    logged = _requested(evidence, EventType.REASSIGNMENT_STARTED, EventType.REASSIGNMENT_COMPLETED)
    ended = ((start, gone_at if end is None else end, ids) for start, end, ids in logged)
    return [window for window in ended if not any(_overlap(window[:2], (start, end)) for start, end, _ in known)]


def _overlap(one: tuple[int, int | None], other: tuple[int, int | None]) -> bool:
    return (one[1] is None or other[0] <= one[1]) and (other[1] is None or one[0] <= other[1])


def deletion_windows(evidence: Iterable[Evidence], gone_at: int | None) -> list[Window]:
    """From the request to delete the topic, by its znode or else by the controller's line, until it was gone."""
    facts = in_order(evidence)
    written = [fact for fact in facts if fact.kind == ZNODE_DELETION_REQUESTED]
    logged = [fact for fact in facts if fact.kind in _DELETION_LOGGED]
    if any(fact.kind == EventType.TOPIC_DELETION_DISABLED for fact in facts):
        logged = []
    requested = written or logged
    if not requested:
        return []
    start = requested[0].at
    end = None if gone_at is None else max(start, gone_at)
    return [(start, end, (requested[0].evidence_id,))]


def _requested(evidence: Iterable[Evidence], begun: str, done: str) -> list[Window]:
    windows: list[Window] = []
    for fact in in_order(evidence):
        is_open = bool(windows) and windows[-1][1] is None
        if fact.kind == begun and not is_open:
            windows.append((fact.at, None, (fact.evidence_id,)))
        elif fact.kind == done and is_open:
            windows[-1] = (windows[-1][0], fact.at, (*windows[-1][2], fact.evidence_id))
    return windows
