"""All that is known of one partition incarnation when its rules are judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconstruct.history.assignment import Assignment
from reconstruct.history.availability import Window
from reconstruct.history.cluster import ClusterView
from reconstruct.history.elections.judging import Election
from reconstruct.history.evidence import Evidence
from reconstruct.history.intervals import Interval
from reconstruct.history.leader_and_isr import LeaderAndIsr, LeaderAndIsrHistory
from reconstruct.history.roles import Role
from reconstruct.history.state_timelines import MachineState


@dataclass(frozen=True, slots=True)
class Case:
    """One partition incarnation: its evidence in order, what was made of it, and its cluster."""

    topic: str
    facts: Sequence[Evidence]
    cluster: ClusterView
    history: LeaderAndIsrHistory
    decided: Sequence[Interval[LeaderAndIsr]]
    assignments: Sequence[Interval[Assignment]]
    #: when a reassignment was under way.
    reassigning: Sequence[Window]
    elections: Sequence[Election]
    partition_states: Sequence[Interval[MachineState]]
    replica_states: Mapping[int, Sequence[Interval[MachineState]]]
    #: by broker: as what it acted, and what its metadata cache held.
    roles: Mapping[int, Sequence[Interval[Role]]]
    caches: Mapping[int, Sequence[Interval[Role]]]
    #: when the incarnation ended, µs since the epoch; None while it lasts.
    deleted_at: int | None = None
    is_only_incarnation: bool = True
