"""What is known of a quorum beside its own control records: its nodes' lines, answers about it, quorum-state files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class QuorumFactKind(StrEnum):
    """``STATE``: a node came into ``state``. ``ACTIVE``: its controller became the active one. ``NAMED``: it, or a file
    of it, names the leader of an epoch, or says that there is none. ``DESCRIBED``: an answer to DescribeQuorum.

    ``DOUBTED``: a voter's fetches from the leader timed out. ``MAJORITY_LOST``, ``FAILED``, ``STOPPING``: why a node
    gives its leadership up: a majority of the voters fetched no more, its controller failed, it shuts down.
    """

    STATE = "state"
    ACTIVE = "active"
    NAMED = "named"
    DESCRIBED = "described"
    HIGH_WATERMARK = "high_watermark"
    DOUBTED = "doubted"
    MAJORITY_LOST = "majority_lost"
    FAILED = "failed"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class QuorumFact:
    """One line of a node, answer or file, at ``at`` (µs). ``node_id`` is the node that says it.

    ``state`` is ``QuorumState``'s, without *State* at its end; ``is_first``: the node came into it by its start. The
    epoch before is None where the release does not print it.
    """

    kind: QuorumFactKind
    at: int
    evidence_id: str
    source: str
    node_id: int | None = None
    epoch: int | None = None
    leader_id: int | None = None
    voters: tuple[int, ...] | None = None
    observers: tuple[int, ...] | None = None
    high_watermark: int | None = None
    state: str | None = None
    is_first: bool = False
    previous_epoch: int | None = None


def resigned(facts: Iterable[QuorumFact]) -> dict[str, bool | None]:
    """Of each fact (by ``evidence_id``) that a node was in the state *Resigned* whether it resigned; else it began so
    again, as a leader whose process had ended. None where nothing tells: 3.3 and 3.4 print of no state what was before
    it, 3.5 of this one only where a node begins with it."""
    states = [fact for fact in facts if fact.kind is QuorumFactKind.STATE]
    telling = {fact.node_id for fact in states if fact.is_first or fact.previous_epoch is not None}
    return {
        fact.evidence_id: not fact.is_first if fact.node_id in telling else None
        for fact in states
        if fact.state == "Resigned"
    }
