"""Sightings: the pieces of evidence that show a decided leader and ISR, and how much each proves."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from enum import IntEnum
from itertools import accumulate
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.model.states import LEADER_DURING_DELETE
from reconstruct.model.value_class import value_class
from reconstruct.model.versions import ISR_COMMIT_LOGGED_AT_INFO_SINCE, VersionRange
from reconstruct.partitions.evidence import METADATA_PARTITION, ZNODE_STATE, Evidence


class Rank(IntEnum):
    """How much a sighting proves, the strongest first."""

    WRITTEN = 0  # the znode itself, or the record of the metadata log
    DECIDED = 1  # the controller logs its own write
    COMMITTED = 2  # the leader logs a write with the version it got
    PROPOSED = 3  # the leader logs what it asks for
    SENT = 4  # a request restates the controller's cache
    RECEIVED = 5  # a broker restates a request
    IMPLIED = 6  # a logged replica transition that Kafka makes together with this write


RANKS: Final = {
    ZNODE_STATE: Rank.WRITTEN,
    METADATA_PARTITION: Rank.WRITTEN,
    EventType.PARTITION_STATE_CHANGE: Rank.DECIDED,
    EventType.ISR_SHRUNK_BY_CONTROLLER: Rank.DECIDED,
    EventType.REASSIGNMENT_LEADER_AND_ISR_SENT: Rank.DECIDED,
    "isr_update_committed_for_leader": Rank.DECIDED,  # AlterIsr: the controller writes what the leader asked for
    EventType.REASSIGNMENT_ISR_CHANGE: Rank.DECIDED,  # 0.8: the znode, as the controller's listener read it
    EventType.ISR_UPDATE_COMMITTED: Rank.COMMITTED,
    EventType.ISR_SHRINK_PROPOSED: Rank.PROPOSED,
    EventType.ISR_EXPAND_PROPOSED: Rank.PROPOSED,
    EventType.LEADER_AND_ISR_SENT: Rank.SENT,
    EventType.UPDATE_METADATA_SENT: Rank.SENT,
    EventType.LEADER_AND_ISR_RECEIVED: Rank.RECEIVED,
    EventType.METADATA_CACHED: Rank.RECEIVED,
    EventType.LEADER_EPOCH_STARTED: Rank.RECEIVED,
    EventType.BECOME_LEADER_SKIPPED: Rank.RECEIVED,  # KRaft: with the state that the broker had learned of
    EventType.BECOME_FOLLOWER_SKIPPED: Rank.RECEIVED,
    # KRaft: when it has replayed the record, as each controller does, at its start all that it has
    EventType.PARTITION_CREATED: Rank.RECEIVED,
    EventType.PARTITION_CHANGED: Rank.RECEIVED,
}
LEADER_SIDE: Final = (Rank.COMMITTED, Rank.PROPOSED)
#: Lines of a broker's own log that show when it learned that it leads.
_LEADERSHIP_RECEIVED: Final = (EventType.LEADER_AND_ISR_RECEIVED, EventType.LEADER_EPOCH_STARTED)
#: A controller's lines about writes that the leader asked for.
WRITTEN_FOR_LEADER: Final = ("isr_update_committed_for_leader", EventType.REASSIGNMENT_ISR_CHANGE)
#: What tells of a record of a quorum's metadata log, but not for whom it was written.
OF_A_RECORD: Final = (
    METADATA_PARTITION,
    EventType.PARTITION_CHANGED,
    EventType.BECOME_LEADER_SKIPPED,
    EventType.BECOME_FOLLOWER_SKIPPED,
)

#: What only a cluster without ZooKeeper says of a partition.
OF_QUORUM: Final = (*OF_A_RECORD, EventType.PARTITION_CREATED)


@value_class
class Sighting:
    """One piece of evidence that shows a state, its leader epoch made out."""

    fact: Evidence
    rank: Rank
    leader: int | None
    leader_epoch: int
    isr: tuple[int, ...]

    @property
    def members(self) -> frozenset[int]:
        return frozenset(self.isr)

    @property
    def at(self) -> int:
        return self.fact.at

    @property
    def partition_epoch(self) -> int | None:
        return self.fact.partition_epoch

    def strength(self) -> tuple[Rank, tuple[int, str, int, str]]:
        """To sort by: what proves most first, then the earliest."""
        return self.rank, self.fact.order


def direct_sightings(facts: Sequence[Evidence]) -> list[Sighting]:
    """Sightings that name their leader epoch and an ISR themselves."""
    result = []
    for fact in facts:
        rank = RANKS.get(fact.kind)
        if rank is None or rank in LEADER_SIDE or fact.leader_epoch is None or fact.isr is None:
            continue
        leader = fact.leader
        if fact.kind == EventType.LEADER_EPOCH_STARTED:
            leader = fact.broker_id if fact.role == "leader" else fact.leader
        if leader == LEADER_DURING_DELETE or leader is None:
            continue
        result.append(Sighting(fact, rank, leader, fact.leader_epoch, fact.isr))
    return result


def without_other_topics(facts: Sequence[Evidence]) -> list[Evidence]:
    """Without a KRaft controller's lines about another topic of the name: at its start it replays all records, those of
    topics that were deleted too. Which id the topic has, its replicas' lines say."""
    ids = {f.topic_id for f in facts if f.kind == EventType.LEADER_EPOCH_STARTED and f.topic_id is not None}
    return [
        f
        for f in facts
        if f.kind not in (EventType.PARTITION_CREATED, EventType.PARTITION_CHANGED) or not ids or f.topic_id in ids
    ]


def sightings_of_changes(facts: Sequence[Evidence], known: Sequence[Sighting]) -> list[Sighting]:
    """What a KRaft controller logs of a change names what became another: the rest is as the partition epoch before
    has it, where that is known."""
    states: dict[int, Sighting] = {}
    for sighting in sorted(known, key=Sighting.strength):
        if sighting.partition_epoch is not None:
            states.setdefault(sighting.partition_epoch, sighting)
    result = []
    changes = [f for f in facts if f.kind == EventType.PARTITION_CHANGED and f.partition_epoch is not None]
    for fact in sorted(changes, key=lambda f: (f.partition_epoch or 0, f.order)):
        assert fact.partition_epoch is not None
        before = states.get(fact.partition_epoch - 1)
        if before is None or (fact.leader_epoch is not None and fact.isr is not None and fact.leader is not None):
            continue
        changed = Sighting(
            fact,
            RANKS[fact.kind],
            before.leader if fact.leader is None else fact.leader,
            before.leader_epoch if fact.leader_epoch is None else fact.leader_epoch,
            before.isr if fact.isr is None else fact.isr,
        )
        states.setdefault(fact.partition_epoch, changed)
        result.append(changed)
    return result


def leader_side_sightings(
    facts: Sequence[Evidence],
    known: Sequence[Sighting],
    version: VersionRange,
    discarded: list[tuple[Sighting, str]],
) -> list[Sighting]:
    """ISR changes as their leaders logged them: they name no epoch; it is the one the broker led at."""
    by_broker: dict[int, list[Evidence]] = {}
    for fact in facts:
        is_isr_line = RANKS.get(fact.kind) in LEADER_SIDE or fact.kind == EventType.ISR_UPDATE_FAILED
        if is_isr_line and fact.broker_id is not None:
            by_broker.setdefault(fact.broker_id, []).append(fact)
    versioned = _Versioned(known)
    result: list[Sighting] = []
    for broker_id, lines in sorted(by_broker.items()):
        led = _LedEpochs(_led_epochs(broker_id, facts, known))
        commits_are_logged = version.is_since(ISR_COMMIT_LOGGED_AT_INFO_SINCE) or any(
            line.kind == EventType.ISR_UPDATE_COMMITTED for line in lines
        )
        epochs = [_epoch_of(line, led, versioned) for line in lines]
        for line, epoch, following in zip(lines, epochs, _following_in_epoch(lines, epochs), strict=True):
            if line.kind == EventType.ISR_UPDATE_FAILED or line.isr is None or epoch is None:
                continue
            sighting = Sighting(line, RANKS[line.kind], broker_id, epoch, line.isr)
            reason = None
            if sighting.rank is Rank.PROPOSED:
                reason = _why_not_committed(line, following, commits_are_logged)
            if reason is None:
                result.append(sighting)
            else:
                discarded.append((sighting, reason))
    return result


def _following_in_epoch(lines: Sequence[Evidence], epochs: Sequence[int | None]) -> list[Evidence | None]:
    """Of each line the next one of its leader epoch."""
    following: list[Evidence | None] = []
    next_of: dict[int | None, Evidence] = {}
    for line, epoch in zip(reversed(lines), reversed(epochs), strict=True):
        following.append(next_of.get(epoch))
        next_of[epoch] = line
    return following[::-1]


class _Versioned:
    """Sightings by their partition epochs."""

    def __init__(self, known: Sequence[Sighting]) -> None:
        strongest: dict[int, Sighting] = {}
        for sighting in known:
            epoch = sighting.partition_epoch
            if epoch is not None and (epoch not in strongest or sighting.rank < strongest[epoch].rank):
                strongest[epoch] = sighting
        self._epochs = sorted(strongest)
        self._strongest = strongest

    def nearest(self, partition_epoch: int) -> Sighting | None:
        """Of that partition epoch, else of the last before it that is known."""
        index = bisect_right(self._epochs, partition_epoch)
        return self._strongest[self._epochs[index - 1]] if index else None


class _LedEpochs:
    """The leader epochs at which a broker led, by when."""

    def __init__(self, led: Mapping[int, int]) -> None:
        began = sorted((at, epoch) for epoch, at in led.items())
        self._instants = [at for at, _ in began]
        self._latest = list(accumulate((epoch for _, epoch in began), max))

    def last_until(self, at: int) -> int | None:
        """The highest that had begun."""
        index = bisect_right(self._instants, at)
        return self._latest[index - 1] if index else None


def _epoch_of(line: Evidence, led: _LedEpochs, versioned: _Versioned) -> int | None:
    """The leader epoch a line belongs to: by its version where it has one, else the last that its broker led at."""
    if line.partition_epoch is not None:
        nearest = versioned.nearest(line.partition_epoch)
        if nearest is not None and nearest.leader == line.broker_id:
            return nearest.leader_epoch
    return led.last_until(line.at)


def _led_epochs(broker_id: int, facts: Sequence[Evidence], known: Sequence[Sighting]) -> dict[int, int]:
    """Leader epochs at which the broker led: epoch -> earliest instant, by its own log, else by what was decided."""
    decided: dict[int, int] = {}
    for sighting in known:
        if sighting.leader == broker_id:
            decided[sighting.leader_epoch] = min(sighting.at, decided.get(sighting.leader_epoch, sighting.at))
    requested: dict[int, int] = {}
    for fact in facts:
        if fact.kind in _LEADERSHIP_RECEIVED and fact.broker_id == broker_id and fact.leader_epoch is not None:
            is_leader = (
                fact.role == "leader" if fact.kind == EventType.LEADER_EPOCH_STARTED else fact.leader == broker_id
            )
            if is_leader:
                requested[fact.leader_epoch] = min(fact.at, requested.get(fact.leader_epoch, fact.at))
    # the broker's own log shares the clock of its ISR lines, and it acts by an epoch only once it heard of it
    return decided | requested


def _why_not_committed(line: Evidence, following: Evidence | None, commits_are_logged: bool) -> str | None:
    """None where nothing speaks against the commit; ``following``: the broker's next line in that epoch."""
    if commits_are_logged:
        return "this version logs the commit, and no commit followed"
    if following is None:
        return None
    if following.kind == EventType.ISR_UPDATE_FAILED:
        return "the write failed: the cached version was not the znode's"
    if following.old_isr is not None and line.old_isr is not None and line.isr is not None:
        still_before = frozenset(following.old_isr) == frozenset(line.old_isr)
        if still_before and frozenset(line.isr) != frozenset(line.old_isr):
            return "the leader's next change starts from the same ISR again"
    return None
