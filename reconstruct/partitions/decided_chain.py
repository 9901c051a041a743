"""The chain of decided states of one partition: its sightings in the order of Kafka's own counters, each with the state
that it shows.

By partition epoch where it is known, else by time; restatements (requests, receipts, caches) are matched to the chain
in the order of the log that they are from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.model.states import NO_LEADER, ReplicaState
from reconstruct.model.versions import LAST_ISR_MEMBER_KEPT_SINCE, TOPIC_DELETION_SINCE, VersionRange
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.sightings import Rank, Sighting

#: How far the clocks of two machines may differ before a restatement is taken for another state.
_CLOCK_SLACK_US: Final = 1_000_000


@dataclass(slots=True)
class DecidedEntry:
    """A state under construction: all sightings that show it."""

    sightings: list[Sighting] = field(default_factory=list)

    @property
    def best(self) -> Sighting:
        return min(self.sightings, key=Sighting.strength)

    @property
    def members(self) -> frozenset[int]:
        return self.best.members

    @property
    def partition_epoch(self) -> int | None:
        known = [s for s in self.sightings if s.partition_epoch is not None]
        return min(known, key=Sighting.strength).partition_epoch if known else None

    @property
    def at(self) -> int:
        """The write's own time where a znode shows it, else the earliest sighting."""
        written = [s.at for s in self.sightings if s.rank is Rank.WRITTEN]
        return min(written) if written else min(s.at for s in self.sightings)

    @property
    def rank(self) -> Rank:
        return self.best.rank


def states_of_epoch(
    sightings: Sequence[Sighting],
    closed_at: int | None,
    discarded: list[tuple[Sighting, str]],
) -> list[DecidedEntry]:
    """The states of one leader epoch in their order."""
    leader = min(sightings, key=Sighting.strength).leader
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


def _versioned_chain(sightings: Sequence[Sighting], discarded: list[tuple[Sighting, str]]) -> list[DecidedEntry]:
    """One entry for each partition epoch, in its order."""
    entries: dict[int, DecidedEntry] = {}
    for sighting in sorted(sightings, key=Sighting.strength):
        assert sighting.partition_epoch is not None
        entry = entries.setdefault(sighting.partition_epoch, DecidedEntry())
        if entry.sightings and entry.members != sighting.members:
            discarded.append((sighting, "another ISR is known for this partition epoch"))
        else:
            entry.sightings.append(sighting)
    return [entries[epoch] for epoch in sorted(entries)]


def _insert_by_time(chain: list[DecidedEntry], sighting: Sighting) -> None:
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
    chain.insert(position, DecidedEntry([sighting]))


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
    chain: list[DecidedEntry],
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
            chain.insert(position, DecidedEntry([sighting]))
            pointer = position


def _may_restate(sighting: Sighting, entry: DecidedEntry) -> bool:
    """A restatement shows the same ISR and is not older than the write, but for what two clocks may differ by."""
    return entry.members == sighting.members and entry.at <= sighting.at + _CLOCK_SLACK_US


def _join_equal_neighbours(chain: Sequence[DecidedEntry]) -> list[DecidedEntry]:
    """Neighbours with the same ISR are one state unless two versions tell them apart."""
    joined: list[DecidedEntry] = []
    for entry in chain:
        previous = joined[-1] if joined else None
        if previous is not None and previous.members == entry.members:
            versions = {previous.partition_epoch, entry.partition_epoch} - {None}
            if len(versions) < 2:
                previous.sightings.extend(entry.sightings)
                continue
        joined.append(entry)
    return joined


def add_implied_removals(chain: list[DecidedEntry], facts: Sequence[Evidence], version: VersionRange) -> None:
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
        chain.insert(after, DecidedEntry([implied]))
