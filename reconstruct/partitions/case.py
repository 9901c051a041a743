"""All that is known of one partition incarnation when its rules are judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconstruct.cluster.view import ClusterView
from reconstruct.partitions.assignment import Assignment
from reconstruct.partitions.availability import Window
from reconstruct.partitions.elections.judging import JudgedElection
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.leader_and_isr import LeaderAndIsrHistory, LeaderAndIsrState
from reconstruct.partitions.roles import Role
from reconstruct.partitions.state_timelines import MachineState
from reconstruct.time.intervals import Interval


@dataclass(frozen=True, slots=True)
class Case:
    """One partition incarnation: its evidence in order, what was made of it, and its cluster."""

    topic: str
    facts: Sequence[Evidence]
    cluster: ClusterView
    history: LeaderAndIsrHistory
    decided: Sequence[Interval[LeaderAndIsrState]]
    assignments: Sequence[Interval[Assignment]]
    #: when a reassignment was under way.
    reassigning: Sequence[Window]
    elections: Sequence[JudgedElection]
    partition_states: Sequence[Interval[MachineState]]
    replica_states: Mapping[int, Sequence[Interval[MachineState]]]
    #: by broker: as what it acted, and what its metadata cache held.
    roles: Mapping[int, Sequence[Interval[Role]]]
    caches: Mapping[int, Sequence[Interval[Role]]]
    #: when the incarnation ended, µs since the epoch; None while it lasts.
    deleted_at: int | None = None
    is_only_incarnation: bool = True
