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
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.model.states import NO_LEADER, ReplicaState
from reconstruct.model.versions import (
    ALTER_ISR_SINCE,
    LAST_ISR_MEMBER_KEPT_SINCE,
    REQUEST_RESTATES_CONTROLLER_EPOCH_SINCE,
    TOPIC_DELETION_SINCE,
    VersionRange,
)
from reconstruct.partitions.evidence import Evidence, in_order
from reconstruct.partitions.sightings import (
    LEADER_SIDE,
    WRITTEN_FOR_LEADER,
    Rank,
    Sighting,
    direct_sightings,
    leader_side_sightings,
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
    written_by: str | None = None


@dataclass(slots=True)
class _Entry:
    """A state under construction: all sightings that show it."""

    sightings: list[Sighting] = field(default_factory=list)

    @property
    def best(self) -> Sighting:
        return min(self.sightings, key=lambda s: (s.rank, s.fact.order))

    @property
    def members(self) -> frozenset[int]:
        return self.best.members

    @property
    def partition_epoch(self) -> int | None:
        known = [s for s in self.sightings if s.partition_epoch is not None]
        return min(known, key=lambda s: (s.rank, s.fact.order)).partition_epoch if known else None

    @property
    def at(self) -> int:
        """The write's own time where a znode shows it, else the earliest sighting."""
        written = [s.at for s in self.sightings if s.rank is Rank.WRITTEN]
        return min(written) if written else min(s.at for s in self.sightings)

    @property
    def rank(self) -> Rank:
        return self.best.rank


@dataclass(frozen=True, slots=True)
class LeaderAndIsrHistory:
    """The decided states in their order, and the sightings that were not believed, with the reason."""

    changes: tuple[Change[LeaderAndIsrState], ...]
    sightings: tuple[Sighting, ...]
    discarded: tuple[tuple[Sighting, str], ...]


def reconstruct_leader_and_isr(evidence: Iterable[Evidence], version: VersionRange) -> LeaderAndIsrHistory:
    """The states of one partition incarnation, from all its evidence in any order."""
    facts = in_order(evidence)
    discarded: list[tuple[Sighting, str]] = []
    sightings = direct_sightings(facts)
    sightings += leader_side_sightings(facts, sightings, version, discarded)
    sightings.sort(key=lambda s: (s.leader_epoch, s.fact.order))
    epochs: dict[int, list[Sighting]] = {}
    for sighting in sightings:
        epochs.setdefault(sighting.leader_epoch, []).append(sighting)
    starts = _epoch_starts(epochs)
    chain: list[_Entry] = []
    for leader_epoch in sorted(epochs):
        closed_at = min((at for epoch, at in starts.items() if epoch > leader_epoch), default=None)
        chain += _states_of_epoch(epochs[leader_epoch], closed_at, discarded)
    _add_implied_removals(chain, facts, version)
    return LeaderAndIsrHistory(tuple(_changes(chain, version)), tuple(sightings), tuple(discarded))


def _epoch_starts(epochs: dict[int, list[Sighting]]) -> dict[int, int]:
    """The earliest instant each leader epoch is seen at."""
    return {epoch: min(s.at for s in sightings) for epoch, sightings in epochs.items()}


def _states_of_epoch(
    sightings: Sequence[Sighting],
    closed_at: int | None,
    discarded: list[tuple[Sighting, str]],
) -> list[_Entry]:
    """The states of one leader epoch in their order."""
    leader = min(sightings, key=lambda s: (s.rank, s.fact.order)).leader
    believed = []
    for sighting in sightings:
        if sighting.leader == leader:
            believed.append(sighting)
        else:
            discarded.append((sighting, "another leader is decided for this leader epoch"))
    chain = _versioned_chain([s for s in believed if s.partition_epoch is not None], discarded)
    unversioned = [s for s in believed if s.partition_epoch is None]
    for sighting in (s for s in unversioned if s.rank <= Rank.PROPOSED):
        if sighting.rank is Rank.PROPOSED and closed_at is not None and sighting.at >= closed_at:
            discarded.append(
                (sighting, "the controller had decided a later leader epoch: the write cannot have succeeded")
            )
        else:
            _insert_by_time(chain, sighting)
    chain = _join_equal_neighbours(chain)
    for stream in _streams(s for s in unversioned if s.rank >= Rank.SENT):
        _align(chain, stream, closed_at, discarded)
    return _join_equal_neighbours(chain)


def _versioned_chain(sightings: Sequence[Sighting], discarded: list[tuple[Sighting, str]]) -> list[_Entry]:
    """One entry for each partition epoch, in its order."""
    entries: dict[int, _Entry] = {}
    for sighting in sorted(sightings, key=lambda s: (s.rank, s.fact.order)):
        assert sighting.partition_epoch is not None
        entry = entries.setdefault(sighting.partition_epoch, _Entry())
        if entry.sightings and entry.members != sighting.members:
            discarded.append((sighting, "another ISR is known for this partition epoch"))
        else:
            entry.sightings.append(sighting)
    return [entries[epoch] for epoch in sorted(entries)]


def _insert_by_time(chain: list[_Entry], sighting: Sighting) -> None:
    """Into the entry beside it in time that shows the same ISR, else as one of its own."""
    position = 0
    for index in range(len(chain)):
        # an entry is not later than any entry behind it: versions, not clocks, order the chain
        if min(entry.at for entry in chain[index:]) <= sighting.at:
            position = index + 1
    for neighbour in (position, position - 1):
        if 0 <= neighbour < len(chain) and chain[neighbour].members == sighting.members:
            chain[neighbour].sightings.append(sighting)
            return
    chain.insert(position, _Entry([sighting]))


def _streams(sightings: Iterable[Sighting]) -> list[list[Sighting]]:
    """Restatements by the log and the controller they come from, runs of the same ISR kept as their first."""
    streams: dict[tuple[int, int, int, int], list[Sighting]] = {}
    for sighting in sightings:
        fact = sighting.fact
        own = -1 if fact.broker_id is None else fact.broker_id
        source = (int(sighting.rank), fact.controller_epoch or 0, own, 0 if fact.kind.startswith("leader") else 1)
        stream = streams.setdefault(source, [])
        if not stream or stream[-1].members != sighting.members:
            stream.append(sighting)
    return [streams[source] for source in sorted(streams)]


def _align(
    chain: list[_Entry],
    stream: Sequence[Sighting],
    closed_at: int | None,
    discarded: list[tuple[Sighting, str]],
) -> None:
    """Match a stream to the chain in order; what the chain lacks is put where the stream saw it."""
    pointer = 0
    for sighting in stream:
        match = next((i for i in range(pointer, len(chain)) if _may_restate(sighting, chain[i])), None)
        if match is not None:
            chain[match].sightings.append(sighting)
            pointer = match
        elif chain and closed_at is not None and sighting.at >= closed_at:
            discarded.append((sighting, "a later leader epoch had been decided: a stale restatement"))
        elif any(entry.members == sighting.members for entry in chain[:pointer]):
            discarded.append((sighting, "restates an ISR that had been left"))
        else:
            position = max(pointer, sum(1 for entry in chain if entry.at <= sighting.at))
            chain.insert(position, _Entry([sighting]))
            pointer = position


def _may_restate(sighting: Sighting, entry: _Entry) -> bool:
    """A restatement shows the same ISR and is not older than the write, but for what two clocks may differ by."""
    return entry.members == sighting.members and entry.at <= sighting.at + _CLOCK_SLACK_US


def _add_implied_removals(chain: list[_Entry], facts: Sequence[Evidence], version: VersionRange) -> None:
    """Writes that no line shows, but that Kafka makes with a replica's transition to OfflineReplica.

    ``removeReplicaFromIsr``: the leader epoch rises by one and the replica leaves the ISR; the leader goes with it. Up
    to 2.5, for a topic being deleted, nothing else is logged. Since 1.1 the last member stays in the ISR.
    """
    if version.may_be_before(TOPIC_DELETION_SINCE):
        return
    for fact in facts:
        if (
            fact.kind != EventType.REPLICA_STATE_CHANGE
            or fact.to_state != ReplicaState.OFFLINE
            or fact.replica_id is None
        ):
            continue
        position = max((index for index, entry in enumerate(chain) if entry.at <= fact.at), default=None)
        if position is None:
            continue
        state = chain[position].best
        is_sighted = any(entry.best.leader_epoch == state.leader_epoch + 1 for entry in chain)
        if is_sighted or fact.replica_id not in state.isr or state.leader == NO_LEADER:
            continue
        remaining = tuple(replica for replica in state.isr if replica != fact.replica_id)
        if not remaining:
            if version.may_be_before(LAST_ISR_MEMBER_KEPT_SINCE):
                continue
            remaining = state.isr
        leader = NO_LEADER if state.leader == fact.replica_id else state.leader
        implied = Sighting(fact, Rank.IMPLIED, leader, state.leader_epoch + 1, remaining)
        after = sum(1 for entry in chain if entry.best.leader_epoch <= state.leader_epoch)
        chain.insert(after, _Entry([implied]))


def _join_equal_neighbours(chain: Sequence[_Entry]) -> list[_Entry]:
    """Neighbours with the same ISR are one state unless two versions tell them apart."""
    joined: list[_Entry] = []
    for entry in chain:
        previous = joined[-1] if joined else None
        if previous is not None and previous.members == entry.members:
            versions = {previous.partition_epoch, entry.partition_epoch} - {None}
            if len(versions) < 2:
                previous.sightings.extend(entry.sightings)
                continue
        joined.append(entry)
    return joined


def _changes(chain: Sequence[_Entry], version: VersionRange) -> list[Change[LeaderAndIsrState]]:
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
        )
        state = replace(
            state,
            written_by=_written_by(entry, state, previous, is_first),
            controller_epoch=_controller_epoch(entry, previous, is_first, version),
        )
        ids = tuple(
            dict.fromkeys(s.fact.evidence_id for s in sorted(entry.sightings, key=lambda s: (s.rank, s.fact.order)))
        )
        changes.append(Change(entry.at, state, ids[:_EVIDENCE_KEPT], _inferred_from(entry)))
        previous = state
    return changes


def _partition_epochs(chain: Sequence[_Entry]) -> list[int | None]:
    """Known versions, and those that follow from them: each write adds one, so a gap just filled is numbered."""
    versions = [entry.partition_epoch for entry in chain]
    known = [(index, version) for index, version in enumerate(versions) if version is not None]
    for (start, first), (end, last) in pairwise(known):
        if last - first == end - start:
            versions[start:end] = range(first, last)
    return versions


#: How far the clocks of two machines may differ before a restatement is taken for another state.
_CLOCK_SLACK_US: Final = 1_000_000
#: Restatements repeat; the strongest sightings of a state are kept as its evidence.
_EVIDENCE_KEPT: Final = 8


def _inferred_from(entry: _Entry) -> str | None:
    if entry.rank <= Rank.COMMITTED:
        return None
    return {Rank.PROPOSED: "isr_proposal", Rank.IMPLIED: "unlogged_transition"}.get(entry.rank, "request_sent")


def _written_by(
    entry: _Entry, state: LeaderAndIsrState, previous: LeaderAndIsrState | None, is_first: bool
) -> str | None:
    """The controller raises the leader epoch, an ISR change that the leader asked for keeps it (R10)."""
    ranks = {s.rank for s in entry.sightings}
    if ranks & set(LEADER_SIDE) or any(s.fact.kind in WRITTEN_FOR_LEADER for s in entry.sightings):
        return "leader"
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
    entry: _Entry, previous: LeaderAndIsrState | None, is_first: bool, version: VersionRange
) -> int | None:
    """As stored; from a request or a cache line only where the version does not restate it under a later controller."""
    for sighting in sorted(entry.sightings, key=lambda s: (s.rank, s.fact.order)):
        if sighting.rank is Rank.WRITTEN:
            return sighting.fact.state_controller_epoch
        if sighting.rank is Rank.DECIDED and is_first and sighting.fact.controller_epoch is not None:
            return sighting.fact.controller_epoch
        if sighting.rank >= Rank.SENT and version.is_before(REQUEST_RESTATES_CONTROLLER_EPOCH_SINCE):
            return sighting.fact.state_controller_epoch
    if not is_first and previous is not None and version.is_before(ALTER_ISR_SINCE):
        return previous.controller_epoch
    return None
