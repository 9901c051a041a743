"""The controller's two state machines, as tables.

A partition is *New* once it has an assignment, *Online* once a leader was decided, *Offline* when that leader is gone;
a replica is *New* when created, *Online* while its broker is, *Offline* when its broker is gone or the replica is to be
stopped, and goes through three deletion states before it is forgotten. The controller refuses a transition whose
previous state is not in the target's set: it logs an error, and **nothing changes**.

The machines live in the memory of one controller: a new controller starts them again from ZooKeeper, without logging
it (:func:`initial_partition_state`, :func:`initial_replica_state`), so two lines may be compared only within one
tenure. The tables changed twice in Kafka's life: 0.8.1 (topic deletion) and 2.3 (Offline to Ineligible).

Sources: kafka.controller.PartitionStateMachine and ReplicaStateMachine of 0.8.0, 0.8.1, 1.1.0, 2.2.0, 2.3.0, 3.9.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, TypeVar

from reconstruct.model.versions import OFFLINE_TO_INELIGIBLE_SINCE, TOPIC_DELETION_SINCE, VersionRange

#: The leader of a partition that has none (``LeaderAndIsr.NoLeader``).
NO_LEADER: Final = -1
#: The leader that UpdateMetadata names for a partition of a topic being deleted (``LeaderAndIsr.LeaderDuringDelete``).
LEADER_DURING_DELETE: Final = -2
#: The leader epochs that StopReplica carries where there is none, and since 2.6 where the topic is being deleted.
NO_EPOCH: Final = -1
EPOCH_DURING_DELETE: Final = -2


class PartitionState(StrEnum):
    """Kafka's spelling, so that data reads as the log does."""

    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"
    NON_EXISTENT = "NonExistentPartition"


class ReplicaState(StrEnum):
    """Kafka's spelling."""

    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"
    NON_EXISTENT = "NonExistentReplica"


State = TypeVar("State", PartitionState, ReplicaState)

#: Target state: states it may be entered from (0.8.1 to 4.0).
VALID_PREVIOUS_PARTITION_STATES: Final[Mapping[PartitionState, frozenset[PartitionState]]] = {
    PartitionState.NEW: frozenset({PartitionState.NON_EXISTENT}),
    PartitionState.ONLINE: frozenset({PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}),
    PartitionState.OFFLINE: frozenset({PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}),
    PartitionState.NON_EXISTENT: frozenset({PartitionState.OFFLINE}),
}

#: The same in 0.8.0, which had no way from Offline to Offline.
VALID_PREVIOUS_PARTITION_STATES_0_8_0: Final[Mapping[PartitionState, frozenset[PartitionState]]] = {
    **VALID_PREVIOUS_PARTITION_STATES,
    PartitionState.OFFLINE: frozenset({PartitionState.NEW, PartitionState.ONLINE}),
}

#: Target state: states it may be entered from (2.3 to 4.0).
VALID_PREVIOUS_REPLICA_STATES: Final[Mapping[ReplicaState, frozenset[ReplicaState]]] = {
    ReplicaState.NEW: frozenset({ReplicaState.NON_EXISTENT}),
    ReplicaState.ONLINE: frozenset(
        {ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.OFFLINE, ReplicaState.DELETION_INELIGIBLE}
    ),
    ReplicaState.OFFLINE: frozenset(
        {ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.OFFLINE, ReplicaState.DELETION_INELIGIBLE}
    ),
    ReplicaState.DELETION_STARTED: frozenset({ReplicaState.OFFLINE}),
    ReplicaState.DELETION_SUCCESSFUL: frozenset({ReplicaState.DELETION_STARTED}),
    ReplicaState.DELETION_INELIGIBLE: frozenset({ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED}),
    ReplicaState.NON_EXISTENT: frozenset({ReplicaState.DELETION_SUCCESSFUL}),
}

#: The same from 0.8.1 to 2.2: no way from Offline to Ineligible.
VALID_PREVIOUS_REPLICA_STATES_0_8_1: Final[Mapping[ReplicaState, frozenset[ReplicaState]]] = {
    **VALID_PREVIOUS_REPLICA_STATES,
    ReplicaState.DELETION_INELIGIBLE: frozenset({ReplicaState.DELETION_STARTED}),
}

#: The same in 0.8.0, before topic deletion.
VALID_PREVIOUS_REPLICA_STATES_0_8_0: Final[Mapping[ReplicaState, frozenset[ReplicaState]]] = {
    ReplicaState.NEW: frozenset({ReplicaState.NON_EXISTENT}),
    ReplicaState.ONLINE: frozenset({ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.OFFLINE}),
    ReplicaState.OFFLINE: frozenset({ReplicaState.NEW, ReplicaState.ONLINE}),
    ReplicaState.NON_EXISTENT: frozenset({ReplicaState.OFFLINE}),
}


def partition_tables(version: VersionRange) -> tuple[Mapping[PartitionState, frozenset[PartitionState]], ...]:
    """The transition tables that a cluster of that version range may have used."""
    tables = []
    if version.may_be_since(TOPIC_DELETION_SINCE):
        tables.append(VALID_PREVIOUS_PARTITION_STATES)
    if version.may_be_before(TOPIC_DELETION_SINCE):
        tables.append(VALID_PREVIOUS_PARTITION_STATES_0_8_0)
    return tuple(tables)


def replica_tables(version: VersionRange) -> tuple[Mapping[ReplicaState, frozenset[ReplicaState]], ...]:
    """The transition tables that a cluster of that version range may have used."""
    tables = []
    if version.may_be_since(OFFLINE_TO_INELIGIBLE_SINCE):
        tables.append(VALID_PREVIOUS_REPLICA_STATES)
    if version.may_be_before(OFFLINE_TO_INELIGIBLE_SINCE) and version.may_be_since(TOPIC_DELETION_SINCE):
        tables.append(VALID_PREVIOUS_REPLICA_STATES_0_8_1)
    if version.may_be_before(TOPIC_DELETION_SINCE):
        tables.append(VALID_PREVIOUS_REPLICA_STATES_0_8_0)
    return tuple(tables)


def is_legal_partition_transition(from_state: str, to_state: str, version: VersionRange) -> bool:
    """Whether any version in the range allows it; False for a name that is no state."""
    return _is_legal(partition_tables(version), from_state, to_state)


def is_legal_replica_transition(from_state: str, to_state: str, version: VersionRange) -> bool:
    """Whether any version in the range allows it; False for a name that is no state."""
    return _is_legal(replica_tables(version), from_state, to_state)


def _is_legal(tables: Iterable[Mapping[State, frozenset[State]]], from_state: str, to_state: str) -> bool:
    return any(from_state in previous for table in tables for target, previous in table.items() if target == to_state)


def initial_partition_state(has_state: bool, leader_is_live: bool) -> PartitionState:
    """The state a new controller gives a partition (``initializePartitionState``)."""
    if not has_state:
        return PartitionState.NEW
    return PartitionState.ONLINE if leader_is_live else PartitionState.OFFLINE


def initial_replica_state(broker_is_live: bool, version: VersionRange) -> ReplicaState:
    """The state a new controller gives a replica (``initializeReplicaState``); before 0.8.1 a dead one is Offline."""
    if broker_is_live:
        return ReplicaState.ONLINE
    return ReplicaState.OFFLINE if version.is_before(TOPIC_DELETION_SINCE) else ReplicaState.DELETION_INELIGIBLE
