"""The controller's leader elections, as pure functions.

Up to 1.0 a *selector* reads the state and gives the new one, or fails with a reason; from 1.1 four *algorithms* choose
a leader and the caller makes the state. Both raise the leader epoch by one and keep the ISR's order. What changed over
the versions, and is a parameter here:

* offline: up to 0.8.1 the first live member in the **ISR's** order and an unclean choice always; from 0.8.2 the first
  in the **assignment's** order, and unclean only where the configuration allows it;
* reassigned: 0.8.0 did not ask whether the new leader was in the ISR;
* preferred: up to 1.0 a leader that is preferred already needs no election; 1.1 to 2.1 elect it again;
* controlled shutdown: up to 0.9 in the ISR's order, then in the assignment's; up to 1.0 liveness is not asked for; 1.1
  to 2.0 do not tell the brokers that are shutting down.

Sources: kafka.controller.PartitionLeaderSelector 0.8.0, 0.8.1, 0.8.2.2, 0.10.0, 1.0.0; PartitionStateMachine 1.1.0 and
Election 2.4 to 3.9.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from reconstruct.model.versions import (
    ASSIGNMENT_ORDER_SINCE,
    ASYNC_CONTROLLER_SINCE,
    PREFERRED_NOT_REPEATED_SINCE,
    REASSIGNMENT_NEEDS_ISR_SINCE,
    SHUTDOWN_IN_ASSIGNMENT_ORDER_SINCE,
    SHUTTING_DOWN_BROKERS_SENT_AGAIN_SINCE,
    KafkaVersion,
)


class ElectionKind(StrEnum):
    """Which election the controller ran."""

    OFFLINE_PARTITION = "offline_partition"
    REASSIGNED_PARTITION = "reassigned_partition"
    PREFERRED_REPLICA = "preferred_replica"
    CONTROLLED_SHUTDOWN = "controlled_shutdown"


class ElectionFailure(StrEnum):
    """Why an election gave no leader, by the exception Kafka throws."""

    NO_REPLICA_ONLINE = "NoReplicaOnlineException"
    NOT_NEEDED = "LeaderElectionNotNeededException"
    STATE_CHANGE_FAILED = "StateChangeFailedException"


@dataclass(frozen=True, slots=True)
class Elected:
    """The new state and the replicas that are sent it."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    recipients: tuple[int, ...]
    is_unclean: bool = False


@dataclass(frozen=True, slots=True)
class PartitionView:
    """What the controller knows of a partition when it elects; ``target`` is a reassignment's, else the assignment."""

    assignment: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    target: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Brokers:
    """Live brokers and those shutting down (which are among the live ones until they are gone)."""

    live: frozenset[int]
    shutting_down: frozenset[int] = frozenset()


def offline_partition_leader_election(
    assignment: Sequence[int], isr: Collection[int], live_replicas: Collection[int], unclean_enabled: bool
) -> int | None:
    """First assigned replica that is live and in the ISR; else, where unclean is allowed, the first live one."""
    clean = _first(replica for replica in assignment if replica in live_replicas and replica in isr)
    if clean is not None or not unclean_enabled:
        return clean
    return _first(replica for replica in assignment if replica in live_replicas)


def reassign_partition_leader_election(
    reassignment: Sequence[int], isr: Collection[int], live_replicas: Collection[int]
) -> int | None:
    """First replica of the new assignment that is live and in the ISR."""
    return _first(replica for replica in reassignment if replica in live_replicas and replica in isr)


def preferred_replica_partition_leader_election(
    assignment: Sequence[int], isr: Collection[int], live_replicas: Collection[int]
) -> int | None:
    """The first assigned replica, if it is live and in the ISR."""
    return _first(replica for replica in assignment[:1] if replica in live_replicas and replica in isr)


def controlled_shutdown_partition_leader_election(
    assignment: Sequence[int], isr: Collection[int], live_replicas: Collection[int], shutting_down: Collection[int]
) -> int | None:
    """First assigned replica that is live, in the ISR and not shutting down."""
    return _first(
        replica
        for replica in assignment
        if replica in live_replicas and replica in isr and replica not in shutting_down
    )


def elect(
    kind: ElectionKind, partition: PartitionView, brokers: Brokers, unclean_enabled: bool, version: KafkaVersion
) -> Elected | ElectionFailure:
    """What the version's own election gives. ``brokers.live`` includes those shutting down, as Kafka's
    ``liveOrShuttingDownBrokerIds``; the other elections leave those out, as its ``liveBrokerIds``."""
    is_filtered_before = kind is ElectionKind.PREFERRED_REPLICA and version >= PREFERRED_NOT_REPEATED_SINCE
    if is_filtered_before and partition.leader == _first(partition.assignment):
        return ElectionFailure.NOT_NEEDED
    return select_leader(kind, partition, brokers, unclean_enabled, version)


def select_leader(
    kind: ElectionKind, partition: PartitionView, brokers: Brokers, unclean_enabled: bool, version: KafkaVersion
) -> Elected | ElectionFailure:
    """The selector or algorithm itself: the same, but for partitions that since 2.2 are left out before it is asked."""
    return _ELECTIONS[kind](partition, brokers, unclean_enabled, version)


def select_no_op(partition: PartitionView) -> Elected:
    """``NoOpLeaderSelector``, up to 1.0: the present state again, told to every assigned replica. It is the default of
    transitions that elect nobody, and warns where it is asked all the same."""
    return Elected(partition.leader, partition.leader_epoch, partition.isr, partition.assignment)


def _offline(
    partition: PartitionView, brokers: Brokers, unclean_enabled: bool, version: KafkaVersion
) -> Elected | ElectionFailure:
    live = brokers.live - brokers.shutting_down
    recipients = tuple(replica for replica in partition.assignment if replica in live)
    live_isr = tuple(replica for replica in partition.isr if replica in live)
    if version < ASSIGNMENT_ORDER_SINCE:
        leader = _first(live_isr)
        if leader is None:
            leader = _first(recipients)
    else:
        leader = offline_partition_leader_election(partition.assignment, partition.isr, live, unclean_enabled)
    if leader is None:
        return ElectionFailure.NO_REPLICA_ONLINE
    is_unclean = leader not in partition.isr
    isr = (leader,) if is_unclean else live_isr
    return Elected(leader, partition.leader_epoch + 1, isr, recipients, is_unclean)


def _reassigned(
    partition: PartitionView, brokers: Brokers, _unclean: bool, version: KafkaVersion
) -> Elected | ElectionFailure:
    live = brokers.live - brokers.shutting_down
    target = partition.assignment if partition.target is None else partition.target
    if version < REASSIGNMENT_NEEDS_ISR_SINCE:
        leader = _first(replica for replica in target if replica in live)
        failure = ElectionFailure.STATE_CHANGE_FAILED
    else:
        leader = reassign_partition_leader_election(target, partition.isr, live)
        failure = (
            ElectionFailure.NO_REPLICA_ONLINE
            if version < ASYNC_CONTROLLER_SINCE
            else ElectionFailure.STATE_CHANGE_FAILED
        )
    if leader is None:
        return failure
    is_unclean = leader not in partition.isr
    return Elected(leader, partition.leader_epoch + 1, partition.isr, tuple(target), is_unclean)


def _preferred(
    partition: PartitionView, brokers: Brokers, _unclean: bool, version: KafkaVersion
) -> Elected | ElectionFailure:
    preferred = _first(partition.assignment)
    if partition.leader == preferred and version < ASYNC_CONTROLLER_SINCE:
        return ElectionFailure.NOT_NEEDED
    live = brokers.live - brokers.shutting_down
    leader = preferred_replica_partition_leader_election(partition.assignment, partition.isr, live)
    if leader is None:
        return ElectionFailure.STATE_CHANGE_FAILED
    return Elected(leader, partition.leader_epoch + 1, partition.isr, partition.assignment)


def _controlled_shutdown(
    partition: PartitionView, brokers: Brokers, _unclean: bool, version: KafkaVersion
) -> Elected | ElectionFailure:
    leaving = set(brokers.shutting_down)
    if version < REASSIGNMENT_NEEDS_ISR_SINCE:
        leaving.add(partition.leader)
    isr = tuple(replica for replica in partition.isr if replica not in leaving)
    if version < SHUTDOWN_IN_ASSIGNMENT_ORDER_SINCE:
        leader = _first(isr)
    elif version < ASYNC_CONTROLLER_SINCE:
        leader = _first(replica for replica in partition.assignment if replica in isr)
    else:
        leader = controlled_shutdown_partition_leader_election(
            partition.assignment, partition.isr, brokers.live, brokers.shutting_down
        )
    if leader is None:
        return ElectionFailure.STATE_CHANGE_FAILED
    informed = brokers.live
    if ASYNC_CONTROLLER_SINCE <= version < SHUTTING_DOWN_BROKERS_SENT_AGAIN_SINCE:
        informed = brokers.live - brokers.shutting_down
    recipients = tuple(replica for replica in partition.assignment if replica in informed)
    return Elected(leader, partition.leader_epoch + 1, isr, recipients)


def _first(replicas: Iterable[int]) -> int | None:
    return next(iter(replicas), None)


_ELECTIONS: Final = {
    ElectionKind.OFFLINE_PARTITION: _offline,
    ElectionKind.REASSIGNED_PARTITION: _reassigned,
    ElectionKind.PREFERRED_REPLICA: _preferred,
    ElectionKind.CONTROLLED_SHUTDOWN: _controlled_shutdown,
}
