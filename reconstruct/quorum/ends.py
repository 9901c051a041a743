"""Why the leader of a quorum led no more."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from reconstruct.quorum.evidence import QuorumFact, QuorumFactKind, resigned

#: Doubts that are further apart, or further from the end, do not belong together.
_DOUBTS_APART_US: Final = 60_000_000
#: The end may be by another node's clock.
_SKEW_US: Final = 1_000_000
_OWN_REASONS: Final = {
    QuorumFactKind.MAJORITY_LOST: "majority_lost",
    QuorumFactKind.FAILED: "controller_failed",
    QuorumFactKind.STOPPING: "shut_down",
}


@dataclass(frozen=True, slots=True)
class LeadershipEnd:
    """``end_reason`` is None while it goes on. ``doubted_at`` (µs): since when, until the end, voters gave the leader
    up for lost."""

    end_reason: str | None = None
    doubted_at: int | None = None
    evidence: tuple[str, ...] = ()


class Endings:
    """How leaderships of one cluster's quorum ended: by what the leader says itself; else by a record that takes it out
    of the voters; else by its voters, who heard no more of it.

    ``facts`` in the order of their times; ``removals`` are when voters were set, by which record, to whom.
    """

    def __init__(self, facts: Sequence[QuorumFact], removals: Iterable[tuple[int, str, frozenset[int]]]) -> None:
        self._of_node: dict[int | None, list[QuorumFact]] = {}
        for fact in facts:
            self._of_node.setdefault(fact.node_id, []).append(fact)
        self._doubts = [fact for fact in facts if fact.kind is QuorumFactKind.DOUBTED]
        self._removals = list(removals)
        self._resigned = resigned(facts)

    def of(self, leader_id: int, epoch: int, start: int, end: int) -> LeadershipEnd:
        """Of the leader of an epoch, from ``start`` to ``end``."""
        doubted_at, doubt = self._doubted(leader_id, start, end)
        reason, evidence = self._by_itself(leader_id, epoch, start, end)
        if reason in (None, "resigned"):
            for at, evidence_id, voters in self._removals:
                if start <= at <= end and voters and leader_id not in voters:
                    return LeadershipEnd("removed", doubted_at, (evidence_id,))
        if reason is not None:
            return LeadershipEnd(reason, doubted_at, evidence)
        return LeadershipEnd("voters_timed_out" if doubt else "superseded", doubted_at, doubt)

    def _by_itself(self, leader_id: int, epoch: int, start: int, end: int) -> tuple[str | None, tuple[str, ...]]:
        """What its own lines say before it is in a later epoch. A node that starts as *Resigned* had led the epoch when
        its process ended (``QuorumState.initialize``)."""
        own = self._of_node.get(leader_id, [])
        for fact in own[bisect_left(own, start, key=lambda one: one.at) :]:
            is_in_time = fact.at <= end + _SKEW_US
            if fact.kind in _OWN_REASONS and is_in_time:
                return _OWN_REASONS[fact.kind], (fact.evidence_id,)
            if fact.kind is QuorumFactKind.STATE and fact.epoch is not None:
                if fact.epoch > epoch:
                    break
                has_resigned = self._resigned.get(fact.evidence_id)
                if has_resigned is False:
                    return "process_ended", (fact.evidence_id,)
                if has_resigned and is_in_time:
                    return "resigned", (fact.evidence_id,)
        return None, ()

    def _doubted(self, leader_id: int, start: int, end: int) -> tuple[int | None, tuple[str, ...]]:
        """The first of those that go on until the end."""
        found: QuorumFact | None = None
        last = end
        for fact in reversed(self._doubts[: bisect_right(self._doubts, end, key=lambda one: one.at)]):
            if fact.at < start or last - fact.at > _DOUBTS_APART_US:
                break
            if fact.node_id != leader_id:
                found, last = fact, fact.at
        return (None, ()) if found is None else (found.at, (found.evidence_id,))
