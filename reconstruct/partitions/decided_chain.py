"""The chain of decided states of one partition: its sightings in the order of Kafka's own counters, each with the state
that it shows.

By partition epoch where it is known, else by time; restatements (requests, receipts, caches) are matched to the chain
in the order of the log that they are from.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.model.states import NO_LEADER, ReplicaState
from reconstruct.model.versions import LAST_ISR_MEMBER_KEPT_SINCE, TOPIC_DELETION_SINCE, VersionRange
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.sightings import Rank, Sighting

#: How far the clocks of two machines may differ before a restatement is taken for another state.
_CLOCK_SLACK_US: Final = 1_000_000


class DecidedEntry:
    """A state under construction: all sightings that show it, which are of one ISR."""

    __slots__ = ("_earliest", "_versioned", "_written", "best", "members", "sightings")

    def __init__(self, sighting: Sighting) -> None:
        self.sightings: list[Sighting] = []
        self.best = sighting
        self.members = sighting.members
        self._earliest = sighting.at
        self._written: int | None = None
        self._versioned: Sighting | None = None
        self.add(sighting)

    def add(self, sighting: Sighting) -> None:
        """One more that shows it."""
        self.sightings.append(sighting)
        self._earliest = min(self._earliest, sighting.at)
        if sighting.rank is Rank.WRITTEN:
            self._written = sighting.at if self._written is None else min(self._written, sighting.at)
        if sighting.strength() < self.best.strength():
            self.best = sighting
        if sighting.partition_epoch is not None and (
            self._versioned is None or sighting.strength() < self._versioned.strength()
        ):
            self._versioned = sighting

    @property
    def partition_epoch(self) -> int | None:
        return None if self._versioned is None else self._versioned.partition_epoch

    @property
    def at(self) -> int:
        """The write's own time where a znode shows it, else the earliest sighting."""
        return self._earliest if self._written is None else self._written

    @property
    def rank(self) -> Rank:
        return self.best.rank


class _Chain:
    """Entries in their order, in which places are found by time without going through all of them."""

    def __init__(self, entries: list[DecidedEntry]) -> None:
        self.entries = entries
        self._times = sorted(entry.at for entry in entries)
        #: of each entry the earliest time of it and of all behind it: versions, not clocks, order the chain.
        self._not_before = list(accumulate((entry.at for entry in reversed(entries)), min))[::-1]

    def behind(self, at: int) -> int:
        """Behind the last entry that is not later."""
        return bisect_right(self._not_before, at)

    def count_until(self, at: int) -> int:
        """How many entries are not later."""
        return bisect_right(self._times, at)

    def add(self, index: int, sighting: Sighting) -> None:
        """One more sighting of an entry."""
        entry = self.entries[index]
        before = entry.at
        entry.add(sighting)
        if entry.at != before:
            del self._times[bisect_left(self._times, before)]
            insort(self._times, entry.at)
            self._bring_up_to_date(index)

    def insert(self, position: int, sighting: Sighting) -> None:
        """An entry of its own."""
        self.entries.insert(position, DecidedEntry(sighting))
        insort(self._times, sighting.at)
        self._not_before.insert(position, sighting.at)
        self._not_before[position] = self._least_from(position)
        self._bring_up_to_date(position - 1)

    def _least_from(self, index: int) -> int:
        return min([self.entries[index].at, *self._not_before[index + 1 : index + 2]])

    def _bring_up_to_date(self, index: int) -> None:
        while index >= 0 and self._not_before[index] != (least := self._least_from(index)):
            self._not_before[index] = least
            index -= 1


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
    chain = _Chain(_versioned_chain([s for s in believed if s.partition_epoch is not None], discarded))
    unversioned = [s for s in believed if s.partition_epoch is None]
    for sighting in (s for s in unversioned if s.rank <= Rank.PROPOSED):
        if sighting.rank is Rank.PROPOSED and closed_at is not None and sighting.at >= closed_at:
            discarded.append(
                (sighting, "the controller had decided a later leader epoch: the write cannot have succeeded")
            )
        else:
            _insert_by_time(chain, sighting)
    chain = _Chain(_join_equal_neighbours(chain.entries))
    for stream in _streams(s for s in unversioned if s.rank >= Rank.SENT):
        _align(chain, stream, closed_at, discarded)
    return _join_equal_neighbours(chain.entries)


def _versioned_chain(sightings: Sequence[Sighting], discarded: list[tuple[Sighting, str]]) -> list[DecidedEntry]:
    """One entry for each partition epoch, in its order."""
    entries: dict[int, DecidedEntry] = {}
    for sighting in sorted(sightings, key=Sighting.strength):
        assert sighting.partition_epoch is not None
        entry = entries.get(sighting.partition_epoch)
        if entry is None:
            entries[sighting.partition_epoch] = DecidedEntry(sighting)
        elif entry.members != sighting.members:
            discarded.append((sighting, "another ISR is known for this partition epoch"))
        else:
            entry.add(sighting)
    return [entries[epoch] for epoch in sorted(entries)]


def _insert_by_time(chain: _Chain, sighting: Sighting) -> None:
    """Into the entry beside it in time that shows the same ISR, else as one of its own."""
    position = chain.behind(sighting.at)
    for neighbour in (position, position - 1):
        if 0 <= neighbour < len(chain.entries) and chain.entries[neighbour].members == sighting.members:
            chain.add(neighbour, sighting)
            return
    chain.insert(position, sighting)


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
    chain: _Chain,
    stream: Sequence[Sighting],
    closed_at: int | None,
    discarded: list[tuple[Sighting, str]],
) -> None:
    """Match a stream to the chain in order; what the chain lacks is put where the stream saw it.

    A restatement shows the same ISR and is not older than the write, but for what two clocks may differ by.
    """
    pointer = 0
    left: set[frozenset[int]] = set()  # the ISRs of the entries before the pointer
    for sighting in stream:
        until = sighting.at + _CLOCK_SLACK_US
        candidates = range(pointer, chain.behind(until))
        found = (i for i in candidates if _restates(sighting, chain.entries[i], until))
        position = next(found, None)
        if position is not None:
            chain.add(position, sighting)
        elif chain.entries and closed_at is not None and sighting.at >= closed_at:
            discarded.append((sighting, "a later leader epoch had been decided: a stale restatement"))
            continue
        elif sighting.members in left:
            discarded.append((sighting, "restates an ISR that had been left"))
            continue
        else:
            position = max(pointer, chain.count_until(sighting.at))
            chain.insert(position, sighting)
        left.update(entry.members for entry in chain.entries[pointer:position])
        pointer = position


def _restates(sighting: Sighting, entry: DecidedEntry, until: int) -> bool:
    return entry.members == sighting.members and entry.at <= until


def _join_equal_neighbours(chain: Sequence[DecidedEntry]) -> list[DecidedEntry]:
    """Neighbours with the same ISR are one state unless two versions tell them apart."""
    joined: list[DecidedEntry] = []
    for entry in chain:
        previous = joined[-1] if joined else None
        if previous is not None and previous.members == entry.members:
            versions = {previous.partition_epoch, entry.partition_epoch} - {None}
            if len(versions) < 2:
                for sighting in entry.sightings:
                    previous.add(sighting)
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
    by_time = _Chain(chain)
    sighted = {entry.best.leader_epoch for entry in chain}
    for fact in facts:
        if (
            fact.kind != EventType.REPLICA_STATE_CHANGE
            or fact.to_state != ReplicaState.OFFLINE
            or fact.replica_id is None
        ):
            continue
        position = by_time.behind(fact.at)
        if position == 0:
            continue
        state = chain[position - 1].best
        is_sighted = state.leader_epoch + 1 in sighted
        if is_sighted or fact.replica_id not in state.isr or state.leader == NO_LEADER:
            continue
        remaining = tuple(replica for replica in state.isr if replica != fact.replica_id)
        if not remaining:
            if version.may_be_before(LAST_ISR_MEMBER_KEPT_SINCE):
                continue
            remaining = state.isr
        leader = NO_LEADER if state.leader == fact.replica_id else state.leader
        implied = Sighting(fact, Rank.IMPLIED, leader, state.leader_epoch + 1, remaining)
        by_time.insert(bisect_right(chain, state.leader_epoch, key=lambda entry: entry.best.leader_epoch), implied)
        sighted.add(implied.leader_epoch)
