"""The fold of a quorum: its control records and what its nodes say, to who led when, with which voters.

Epochs order everything (KIP-595): an epoch has at most one leader, and a node never goes back to a lower one. Within an
epoch there may be an election, then a leader, who may resign. The leader's own first record in the metadata log says
best that it was elected; its own log says it, too; that others name it says that it had been.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from reconstruct.metadata_log.evidence import VOTERS, ClusterLog, voters_of
from reconstruct.quorum.ends import Endings, LeadershipEnd
from reconstruct.quorum.evidence import QuorumFact
from reconstruct.quorum.steps import LATER, METADATA_LOG, Step, records_of, steps_of
from reconstruct.time.intervals import Change, Interval, close_intervals


@dataclass(frozen=True, slots=True)
class QuorumState:
    """What the quorum was from an instant on; None and NULL of a list: nothing says.

    ``leader_id`` is None while nobody leads; where ``began_by`` is ``first_seen``, nothing says who does.
    ``voter_directory_ids`` go with ``voters``. ``offset`` is that of the record that began it.
    """

    epoch: int
    began_by: str
    source: str
    leader_id: int | None = None
    voters: tuple[int, ...] | None = None
    voter_directory_ids: tuple[str, ...] | None = None
    observers: tuple[int, ...] | None = None
    kraft_version: int | None = None
    granted_by: tuple[int, ...] | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class QuorumSpan:
    """An interval of the timeline; ``end`` where its leader's leadership ended with it."""

    interval: Interval[QuorumState]
    leadership_end: LeadershipEnd
    high_watermark: int | None


def quorum_timeline(facts: Iterable[QuorumFact], log: ClusterLog) -> list[QuorumSpan]:
    """The intervals of one cluster's quorum in their order; ``facts`` in any, ``log`` with the rows of the quorum."""
    known = sorted(facts, key=lambda fact: (fact.at, fact.evidence_id, fact.kind))
    intervals = close_intervals(_changes(_in_time(steps_of(known, log))))
    removals = [(row.at, row.evidence_id, voters_of(row.record.fields)) for row in records_of(log, VOTERS)]
    endings = Endings(known, removals)
    highest = _high_watermarks(intervals, known)
    spans = []
    begun_at = 0
    for index, interval in enumerate(intervals):
        if index == 0 or _leadership(intervals[index - 1]) != _leadership(interval):
            begun_at = interval.start
        end = LeadershipEnd()
        leader_id, epoch = _leadership(interval)
        is_last = index + 1 == len(intervals) or _leadership(intervals[index + 1]) != (leader_id, epoch)
        if leader_id is not None and interval.end is not None and is_last:
            end = endings.of(leader_id, epoch, begun_at, interval.end)
        spans.append(QuorumSpan(interval, end, highest.get(index)))
    return spans


def _leadership(interval: Interval[QuorumState]) -> tuple[int | None, int]:
    return interval.value.leader_id, interval.value.epoch


def _changes(steps: Iterable[Step]) -> Iterator[Change[QuorumState]]:
    """The states that the steps make, in their order; one that changes nothing makes none."""
    state: QuorumState | None = None
    for step in steps:
        if state is None:
            before = QuorumState(step.epoch, "first_seen", step.source)
        elif step.epoch == state.epoch:
            before = state
        else:
            before = replace(state, epoch=step.epoch, leader_id=None, granted_by=None)
        made = replace(before, **{"offset": None, **step.given})  # type: ignore[arg-type]
        if made.voters != before.voters and "voter_directory_ids" not in step.given:
            made = replace(made, voter_directory_ids=None)
        if state is not None and _is_same(made, state):
            continue
        state = replace(made, began_by=step.began_by, source=step.source)
        yield Change(step.at, state, step.evidence, step.inferred_from)


def _in_time(steps: Iterable[Step]) -> list[Step]:
    """In order, without what was said of an epoch after the next one had begun: a leader that was paused resigns when
    others have led for long. A record of an epoch was appended before that."""
    found: list[Step] = []
    next_at: int | None = None
    earliest: int | None = None
    for step in sorted(steps, key=lambda step: step.order, reverse=True):
        if found and step.epoch < found[-1].epoch:
            next_at = earliest
        at = step.at
        if step.phase == LATER and next_at is not None and at > next_at:
            if step.source != METADATA_LOG:
                continue
            at = next_at
        found.append(replace(step, at=at))
        earliest = at if earliest is None else min(at, earliest)
    return found[::-1]


def _is_same(one: QuorumState, other: QuorumState) -> bool:
    """Whether only the origin of the two differs."""
    of = replace(one, began_by=other.began_by, source=other.source, offset=other.offset)
    return of == other


def _high_watermarks(intervals: Sequence[Interval[QuorumState]], facts: Iterable[QuorumFact]) -> dict[int, int]:
    """By the place of an interval the highest one that is stated in it, by the epoch that the statement names."""
    of_epoch: dict[int, list[int]] = {}
    for index, interval in enumerate(intervals):
        of_epoch.setdefault(interval.value.epoch, []).append(index)
    highest: dict[int, int] = {}
    for fact in facts:
        if fact.high_watermark is not None and fact.epoch in of_epoch:
            places = of_epoch[fact.epoch]
            place = places[max(0, bisect_right(places, fact.at, key=lambda one: intervals[one].start) - 1)]
            highest[place] = max(fact.high_watermark, highest.get(place, 0))
    return highest
