"""The decided leader, leader epoch and ISR of one partition, from whatever shows it.

What was decided is what stood in the partition's state znode. Several sources show it, and none is complete:

* a znode snapshot shows one write exactly, with its version and time;
* the controller logs a decision when it made it (from 1.1 with the version written);
* the leader logs a change of the ISR that it asks for, before it knows the outcome (2.4 and later: also the outcome);
* requests, their receipts and the brokers' caches *restate* what a controller held true, late, again and, up to 2.2
  after a reassignment, with the epoch before (a restatement may not open an interval that other evidence rules out).

Order comes from Kafka's own counters, not from clocks: by leader epoch, within it by partition epoch where known, and
only then by the clock; restatements of one log keep the order of that log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from reconstruct.model.states import NO_LEADER
from reconstruct.model.versions import (
    ALTER_ISR_SINCE,
    REQUEST_RESTATES_CONTROLLER_EPOCH_SINCE,
    VersionRange,
)
from reconstruct.partitions.decided_chain import DecidedEntry, add_implied_removals, states_of_epoch
from reconstruct.partitions.evidence import Evidence, in_order
from reconstruct.partitions.sightings import (
    LEADER_SIDE,
    OF_A_RECORD,
    WRITTEN_FOR_LEADER,
    Rank,
    Sighting,
    direct_sightings,
    leader_side_sightings,
    sightings_of_changes,
    without_other_topics,
)
from reconstruct.time.intervals import Change


@dataclass(frozen=True, slots=True)
class LeaderAndIsrState:
    """One decided state; ``isr`` in the order written. None where the evidence does not say."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int | None = None
    partition_epoch: int | None = None
    leader_recovery_state: int | None = None
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    directories: tuple[str, ...] | None = None
    written_by: str | None = None


@dataclass(frozen=True, slots=True)
class LeaderAndIsrHistory:
    """The decided states in their order, and the sightings that were not believed, with the reason."""

    changes: tuple[Change[LeaderAndIsrState], ...]
    sightings: tuple[Sighting, ...]
    discarded: tuple[tuple[Sighting, str], ...]


def reconstruct_leader_and_isr(evidence: Iterable[Evidence], version: VersionRange) -> LeaderAndIsrHistory:
    """The states of one partition incarnation, from all its evidence in any order."""
    facts = without_other_topics(in_order(evidence))
    discarded: list[tuple[Sighting, str]] = []
    sightings = direct_sightings(facts)
    sightings += leader_side_sightings(facts, sightings, version, discarded)
    sightings += sightings_of_changes(facts, sightings)
    sightings.sort(key=lambda s: (s.leader_epoch, s.fact.order))
    epochs: dict[int, list[Sighting]] = {}
    for sighting in sightings:
        epochs.setdefault(sighting.leader_epoch, []).append(sighting)
    closed_at = _closed_at(epochs)
    chain: list[DecidedEntry] = []
    for leader_epoch in sorted(epochs):
        chain += states_of_epoch(epochs[leader_epoch], closed_at[leader_epoch], discarded)
    add_implied_removals(chain, facts, version)
    return LeaderAndIsrHistory(tuple(_changes(chain, version)), tuple(sightings), tuple(discarded))


def _closed_at(epochs: dict[int, list[Sighting]]) -> dict[int, int | None]:
    """By leader epoch the earliest instant at which a later one is seen."""
    found: dict[int, int | None] = {}
    earliest: int | None = None
    for epoch in sorted(epochs, reverse=True):
        found[epoch] = earliest
        began = min(s.at for s in epochs[epoch])
        earliest = began if earliest is None else min(earliest, began)
    return found


def _changes(chain: Sequence[DecidedEntry], version: VersionRange) -> list[Change[LeaderAndIsrState]]:
    changes: list[Change[LeaderAndIsrState]] = []
    previous: LeaderAndIsrState | None = None
    versions = _partition_epochs(chain)
    for entry, partition_epoch in zip(chain, versions, strict=True):
        best = entry.best
        is_first = previous is None or previous.leader_epoch != best.leader_epoch
        state = LeaderAndIsrState(
            leader=NO_LEADER if best.leader is None else best.leader,
            leader_epoch=best.leader_epoch,
            isr=best.isr,
            partition_epoch=partition_epoch,
            leader_recovery_state=best.fact.leader_recovery_state,
            elr=best.fact.elr,
            last_known_elr=best.fact.last_known_elr,
            directories=best.fact.directories,
        )
        state = replace(
            state,
            written_by=_written_by(entry, state, previous, is_first),
            controller_epoch=_controller_epoch(entry, previous, is_first, version),
        )
        ids = tuple(dict.fromkeys(s.fact.evidence_id for s in sorted(entry.sightings, key=Sighting.strength)))
        changes.append(Change(entry.at, state, ids[:_EVIDENCE_KEPT], _inferred_from(entry)))
        previous = state
    return changes


def _partition_epochs(chain: Sequence[DecidedEntry]) -> list[int | None]:
    """Known versions, and those that follow from them: each write adds one, so a gap just filled is numbered."""
    versions = [entry.partition_epoch for entry in chain]
    known = [(index, version) for index, version in enumerate(versions) if version is not None]
    for (start, first), (end, last) in pairwise(known):
        if last - first == end - start:
            versions[start:end] = range(first, last)
    return versions


#: Restatements repeat; the strongest sightings of a state are kept as its evidence.
_EVIDENCE_KEPT: Final = 8


def _inferred_from(entry: DecidedEntry) -> str | None:
    if entry.rank <= Rank.COMMITTED:
        return entry.best.fact.inferred_from
    return {Rank.PROPOSED: "isr_proposal", Rank.IMPLIED: "unlogged_transition"}.get(entry.rank, "request_sent")


def _written_by(
    entry: DecidedEntry, state: LeaderAndIsrState, previous: LeaderAndIsrState | None, is_first: bool
) -> str | None:
    """The controller raises the leader epoch, an ISR change that the leader asked for keeps it (R10)."""
    ranks = {s.rank for s in entry.sightings}
    if ranks & set(LEADER_SIDE) or any(s.fact.kind in WRITTEN_FOR_LEADER for s in entry.sightings):
        return "leader"
    if entry.best.fact.kind in OF_A_RECORD and not is_first:
        return None  # an AlterPartition of the leader, or a step of the controller: the record does not tell
    if not is_first:
        return "leader"
    if ranks & {Rank.DECIDED, Rank.IMPLIED} or state.leader == NO_LEADER:
        return "controller"
    if state.leader_epoch == 0 and state.partition_epoch == 0:
        return "controller"
    if previous is not None and previous.partition_epoch is not None and state.partition_epoch is not None:
        return "controller" if state.partition_epoch == previous.partition_epoch + 1 else None
    return None


def _controller_epoch(
    entry: DecidedEntry, previous: LeaderAndIsrState | None, is_first: bool, version: VersionRange
) -> int | None:
    """As stored; from a request or a cache line only where the version does not restate it under a later controller."""
    for sighting in sorted(entry.sightings, key=Sighting.strength):
        if sighting.rank is Rank.WRITTEN:
            return sighting.fact.state_controller_epoch
        if sighting.rank is Rank.DECIDED and is_first and sighting.fact.controller_epoch is not None:
            return sighting.fact.controller_epoch
        if sighting.rank >= Rank.SENT and version.is_before(REQUEST_RESTATES_CONTROLLER_EPOCH_SINCE):
            return sighting.fact.state_controller_epoch
    if not is_first and previous is not None and version.is_before(ALTER_ISR_SINCE):
        return previous.controller_epoch
    return None
