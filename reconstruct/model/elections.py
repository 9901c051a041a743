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

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from reconstruct.model.value_class import value_class
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


@value_class
class Elected:
    """The new state and the replicas that are sent it."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    recipients: tuple[int, ...]
    is_unclean: bool = False


@value_class
class PartitionView:
    """What the controller knows of a partition when it elects; ``target`` is a reassignment's, else the assignment."""

    assignment: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    target: tuple[int, ...] | None = None


@value_class
class Brokers:
    """Live brokers and those shutting down (which are among the live ones until they are gone)."""

    live: frozenset[int]
    shutting_down: frozenset[int] = frozenset()


class Round(NamedTuple):
    """One pass of an election over candidates: the first in their order that is among all that are ``wanted`` leads.

    ``says`` are sentences about it, the candidates left out.
    """

    says: tuple[str, ...]
    candidates: Sequence[int]
    wanted: Mapping[str, Collection[int]]

    def lacking(self, replica: int) -> list[str]:
        """What the candidate is not, of what is wanted."""
        return [name for name, members in self.wanted.items() if replica not in members]


def elect(
    kind: ElectionKind, partition: PartitionView, brokers: Brokers, unclean_enabled: bool, version: KafkaVersion
) -> Elected | ElectionFailure:
    """What the version's own election gives. ``brokers.live`` includes those shutting down, as Kafka's
    ``liveOrShuttingDownBrokerIds``; the other elections leave those out, as its ``liveBrokerIds``."""
    is_filtered_before = kind is ElectionKind.PREFERRED_REPLICA and version >= PREFERRED_NOT_REPEATED_SINCE
    if is_filtered_before and _leads_already(partition):
        return ElectionFailure.NOT_NEEDED
    return select_leader(kind, partition, brokers, unclean_enabled, version)


def select_leader(
    kind: ElectionKind, partition: PartitionView, brokers: Brokers, unclean_enabled: bool, version: KafkaVersion
) -> Elected | ElectionFailure:
    """The selector or algorithm itself: the same, but for partitions that since 2.2 are left out before it is asked."""
    if kind is ElectionKind.PREFERRED_REPLICA and version < ASYNC_CONTROLLER_SINCE and _leads_already(partition):
        return ElectionFailure.NOT_NEEDED
    asked = (
        replica
        for each in rounds(kind, partition, brokers, unclean_enabled, version)
        for replica in each.candidates
        if not each.lacking(replica)
    )
    leader = next(asked, None)
    if leader is None:
        return _failure(kind, version)
    is_unclean = leader not in partition.isr
    assignment, isr, live = partition.assignment, partition.isr, brokers.live - brokers.shutting_down
    recipients: Iterable[int] = assignment
    if kind is ElectionKind.OFFLINE_PARTITION:
        isr = (leader,) if is_unclean else tuple(replica for replica in isr if replica in live)
        recipients = (replica for replica in assignment if replica in live)
    elif kind is ElectionKind.REASSIGNED_PARTITION:
        recipients = _target(partition)
    elif kind is ElectionKind.CONTROLLED_SHUTDOWN:
        isr = _staying(partition, brokers, version)
        if not ASYNC_CONTROLLER_SINCE <= version < SHUTTING_DOWN_BROKERS_SENT_AGAIN_SINCE:
            live = brokers.live
        recipients = (replica for replica in assignment if replica in live)
    return Elected(leader, partition.leader_epoch + 1, isr, tuple(recipients), is_unclean)


def select_no_op(partition: PartitionView) -> Elected:
    """``NoOpLeaderSelector``, up to 1.0: the present state again, told to every assigned replica. It is the default of
    transitions that elect nobody, and warns where it is asked all the same."""
    return Elected(partition.leader, partition.leader_epoch, partition.isr, partition.assignment)


def rounds(
    kind: ElectionKind, partition: PartitionView, brokers: Brokers, unclean_enabled: bool, version: KafkaVersion
) -> list[Round]:
    """Who is asked, in which order, and what each must be: the whole of the version's choice of a leader."""
    if kind is ElectionKind.OFFLINE_PARTITION:
        return _offline(partition, brokers, unclean_enabled, version)
    live = brokers.live - brokers.shutting_down
    if kind is ElectionKind.REASSIGNED_PARTITION:
        target = _target(partition)
        wanted: dict[str, Collection[int]] = {"live": live}
        if version >= REASSIGNMENT_NEEDS_ISR_SINCE:
            wanted["in the ISR"] = partition.isr
        return [
            Round(
                (f"The replicas that the reassignment leads to are asked in their order: {names(target)}.",),
                target,
                wanted,
            )
        ]
    if kind is ElectionKind.PREFERRED_REPLICA:
        first = partition.assignment[:1]
        says = f"Only the preferred replica is asked, the first of the assignment: {names(first)}."
        return [Round((says,), first, {"live": live, "in the ISR": partition.isr})]
    staying = _staying(partition, brokers, version)
    leaving = {*brokers.shutting_down, *((partition.leader,) if version < REASSIGNMENT_NEEDS_ISR_SINCE else ())}
    without = f"Without those that shut down ({names(sorted(leaving))}) the ISR is {names(staying)}."
    if version < SHUTDOWN_IN_ASSIGNMENT_ORDER_SINCE:
        return [
            Round(
                (without, f"Up to Kafka 0.9 its first member leads, in its own order: {names(staying)}."), staying, {}
            )
        ]
    wanted = {"in the ISR that stays": staying}
    if version >= ASYNC_CONTROLLER_SINCE:
        wanted = {"live": brokers.live} | wanted
    return [Round((without, _in_order(partition)), partition.assignment, wanted)]


def names(replicas: Sequence[int]) -> str:
    """``1,2,3``, or that there is none."""
    return ",".join(map(str, replicas)) or "none"


def _offline(partition: PartitionView, brokers: Brokers, unclean_enabled: bool, version: KafkaVersion) -> list[Round]:
    live = brokers.live - brokers.shutting_down
    if version < ASSIGNMENT_ORDER_SINCE:
        says = f"Up to Kafka 0.8.1 the members of the ISR are asked in its own order: {names(partition.isr)}."
        clean, why = Round((says,), partition.isr, {"live": live}), "that is not configurable"
    else:
        clean = Round((_in_order(partition),), partition.assignment, {"live": live, "in the ISR": partition.isr})
        why = "unclean.leader.election.enable is true"
        if not unclean_enabled:
            says = "No live replica is in the ISR, and unclean.leader.election.enable is false: nobody may lead."
            return [clean, Round((says,), (), {})]
    says = f"No live replica is in the ISR; {why}: any live assigned replica may lead, and is the ISR then."
    return [clean, Round((says,), partition.assignment, {"live": live})]


def _in_order(partition: PartitionView) -> str:
    return f"The assigned replicas are asked in their order: {names(partition.assignment)}."


def _failure(kind: ElectionKind, version: KafkaVersion) -> ElectionFailure:
    is_offline = kind is ElectionKind.OFFLINE_PARTITION
    says_so = REASSIGNMENT_NEEDS_ISR_SINCE <= version < ASYNC_CONTROLLER_SINCE
    if is_offline or (kind is ElectionKind.REASSIGNED_PARTITION and says_so):
        return ElectionFailure.NO_REPLICA_ONLINE
    return ElectionFailure.STATE_CHANGE_FAILED


def _leads_already(partition: PartitionView) -> bool:
    return partition.assignment[:1] == (partition.leader,)


def _target(partition: PartitionView) -> tuple[int, ...]:
    return partition.assignment if partition.target is None else partition.target


def _staying(partition: PartitionView, brokers: Brokers, version: KafkaVersion) -> tuple[int, ...]:
    """The ISR that a controlled shutdown leaves."""
    is_leader_gone = version < REASSIGNMENT_NEEDS_ISR_SINCE
    return tuple(
        replica
        for replica in partition.isr
        if replica not in brokers.shutting_down and not (is_leader_gone and replica == partition.leader)
    )
