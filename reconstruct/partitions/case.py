"""All that is known of one partition incarnation, and what its rules say of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.verdicts import Verdicts
from reconstruct.model.states import EPOCH_DURING_DELETE, LEADER_DURING_DELETE, PartitionState, ReplicaState
from reconstruct.partitions.assignment import Assignment, Window
from reconstruct.partitions.availability import Unavailability
from reconstruct.partitions.elections.judging import JudgedElection
from reconstruct.partitions.evidence import ZNODE_DELETION_REQUESTED, Evidence
from reconstruct.partitions.fetchers import Fetching, fetcher_timelines
from reconstruct.partitions.isr_flapping import IsrFlapping, isr_flapping
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from reconstruct.partitions.overlaps import LeadershipOverlap, leadership_overlaps
from reconstruct.partitions.roles import Role, RoleChange, by_broker, role_changes
from reconstruct.partitions.sightings import Rank, Sighting
from reconstruct.partitions.state_timelines import MachineState
from reconstruct.time.intervals import Interval


@dataclass(frozen=True)
class Case:
    """One partition incarnation: its evidence in order, its timelines, its cluster, and the verdicts of the rules."""

    topic: str
    facts: Sequence[Evidence]
    cluster: ClusterView
    #: what shows a decided state; and what was not believed, each with the reason.
    sightings: Sequence[Sighting]
    discarded: Sequence[tuple[Sighting, str]]
    decided: Sequence[Interval[LeaderAndIsrState]]
    assignments: Sequence[Interval[Assignment]]
    #: when a reassignment was under way.
    reassigning: Sequence[Window]
    #: unclean.leader.election.enable of the topic; None where it is not known.
    unclean_setting: bool | None
    #: those included that chose the leader there was.
    all_elections: Sequence[JudgedElection]
    partition_states: Sequence[Interval[MachineState]]
    replica_states: Mapping[int, Sequence[Interval[MachineState]]]
    #: by broker: as what it acted, and what its metadata cache held.
    roles: Mapping[int, Sequence[Interval[Role]]]
    caches: Mapping[int, Sequence[Interval[Role]]]
    availability: Sequence[Unavailability]
    #: when the incarnation ended, µs since the epoch; None while it lasts.
    deleted_at: int | None = None
    is_only_incarnation: bool = True
    partition_id: int | None = None
    verdicts: Verdicts = field(default_factory=Verdicts)

    @cached_property
    def elections(self) -> list[JudgedElection]:
        """The changes of leader, and the choice of the first, in their order."""
        return [election for election in self.all_elections if election.observed_leader != election.previous_leader]

    @cached_property
    def overlaps(self) -> list[LeadershipOverlap]:
        return leadership_overlaps(self.roles, self.facts, self.cluster)

    @cached_property
    def fetchers(self) -> dict[int, list[Fetching]]:
        """By broker: when it fetched the partition from whom."""
        return fetcher_timelines(self.topic, self.partition_id, self.facts, self.cluster)

    @cached_property
    def isr_flapping(self) -> list[IsrFlapping]:
        return isr_flapping(self.decided, self.assignments, self.facts)

    @cached_property
    def facts_of_brokers(self) -> dict[int, list[Evidence]]:
        """What each broker logged of the partition as a broker, in order; by broker, in the order of their ids."""
        return dict(sorted(by_broker(self.facts).items()))

    @cached_property
    def _tried_changes(self) -> list[RoleChange]:
        return role_changes(self.facts, self.cluster.process_starts)

    @cached_property
    def role_changes(self) -> list[RoleChange]:
        """Every completed become-leader and become-follower whose leader epoch the broker's log tells."""
        return [change for change in self._tried_changes if not change.is_failed]

    @cached_property
    def failed_changes(self) -> list[RoleChange]:
        """Those that a broker was asked for and could not make."""
        return [change for change in self._tried_changes if change.is_failed]

    @cached_property
    def reassignment_targets(self) -> list[tuple[int, ...]]:
        """What a controller's lines of a reassignment that it began name, in order."""
        return [f.replicas for f in self.facts if f.kind == EventType.REASSIGNMENT_STARTED and f.replicas]

    @cached_property
    def recreated_at(self) -> list[int]:
        """The instants at which a line tells of the topic's deletion or creation: its epochs may begin anew."""
        ends = (PartitionState.NEW, PartitionState.NON_EXISTENT)
        return sorted(
            fact.at
            for fact in self.facts
            if fact.kind == EventType.METADATA_DELETED
            or (fact.kind == EventType.PARTITION_STATE_CHANGE and fact.to_state in ends)
        )

    @cached_property
    def _highest_epochs(self) -> tuple[list[int], list[tuple[int, int]]]:
        """The instants of the facts, and the two highest leader epochs that facts name until each."""
        epochs = (fact.leader_epoch or 0 for fact in self.facts)
        return [fact.at for fact in self.facts], list(accumulate(epochs, _two_highest, initial=(_NO_EPOCH, _NO_EPOCH)))

    def names_epoch(self, at_least: int, until: int, but: Evidence) -> bool:
        """Whether another fact than ``but``, of ``until`` at the latest, names a leader epoch as high."""
        instants, highest = self._highest_epochs
        is_its_own = but.at <= until and (but.leader_epoch or 0) >= at_least
        return highest[bisect_right(instants, until)][is_its_own] >= at_least

    @cached_property
    def deletion_hint(self) -> int | None:
        """The first instant at which something tells that the topic is being deleted; None where nothing does."""
        is_moving = bool(self.reassigning) or any(fact.kind.startswith("reassignment_") for fact in self.facts)
        found = [fact.at for fact in self.facts if _shows_deletion(fact, is_moving)]
        return min(found if self.deleted_at is None else [*found, self.deleted_at], default=None)

    def severity(self, *sightings: Sighting) -> str:
        """Where a topic has several incarnations, a line is told to one of them by its clock, which may be wrong; a
        znode is not."""
        is_certain = bool(sightings) and all(sighting.rank is Rank.WRITTEN for sighting in sightings)
        return "error" if self.is_only_incarnation or is_certain else "warning"


#: Lower than any that text can name.
_NO_EPOCH: Final = -(1 << 64)


def _two_highest(before: tuple[int, int], epoch: int) -> tuple[int, int]:
    highest, second = before
    return max(highest, epoch), max(second, min(highest, epoch))


def _shows_deletion(fact: Evidence, is_moving: bool) -> bool:
    if fact.kind in (ZNODE_DELETION_REQUESTED, EventType.TOPIC_DELETION_RESPONSE, EventType.METADATA_DELETED):
        return True
    if fact.kind == EventType.STOP_REPLICA_SENT and fact.leader_epoch == EPOCH_DURING_DELETE:
        return True
    if fact.kind == EventType.UPDATE_METADATA_SENT and fact.leader == LEADER_DURING_DELETE:
        return True
    if fact.kind == EventType.REPLICA_STATE_CHANGE and fact.to_state == ReplicaState.DELETION_STARTED:
        return not is_moving
    is_end = fact.to_state in (ReplicaState.DELETION_INELIGIBLE, PartitionState.NON_EXISTENT)
    return fact.kind in (EventType.PARTITION_STATE_CHANGE, EventType.REPLICA_STATE_CHANGE) and is_end
