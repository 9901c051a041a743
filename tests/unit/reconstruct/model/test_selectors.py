"""The five selectors of 0.8: leader, epoch, ISR, replicas to be told, or the failure."""

from __future__ import annotations

import pytest

from reconstruct.model.elections import (
    Brokers,
    Elected,
    ElectionFailure,
    ElectionKind,
    PartitionView,
    elect,
    select_leader,
    select_no_op,
)
from reconstruct.model.versions import KafkaVersion, v

OFFLINE, REASSIGNED = ElectionKind.OFFLINE_PARTITION, ElectionKind.REASSIGNED_PARTITION
PREFERRED, SHUTDOWN = ElectionKind.PREFERRED_REPLICA, ElectionKind.CONTROLLED_SHUTDOWN
ARTICLE = v(0, 8, 2)


def brokers(*live: int, leaving: tuple[int, ...] = ()) -> Brokers:
    return Brokers(frozenset(live), frozenset(leaving))


def select(
    kind: ElectionKind, view: PartitionView, seen: Brokers, unclean: bool = False, version: KafkaVersion = ARTICLE
) -> Elected | ElectionFailure:
    return select_leader(kind, view, seen, unclean, version)


def test_no_op_returns_what_is() -> None:
    view = PartitionView(assignment=(1, 2, 3), isr=(2, 1), leader=2, leader_epoch=7)
    assert select_no_op(view) == Elected(2, 7, (2, 1), (1, 2, 3))


def test_offline_partition_takes_the_live_isr_first() -> None:
    view = PartitionView(assignment=(1, 2, 3), isr=(1, 2), leader=1, leader_epoch=7)
    assert select(OFFLINE, view, brokers(2, 3), unclean=True) == Elected(2, 8, (2,), (2, 3))


def test_offline_partition_reduces_the_isr_to_an_unclean_leader() -> None:
    view = PartitionView(assignment=(1, 2, 3), isr=(1,), leader=1, leader_epoch=7)
    assert select(OFFLINE, view, brokers(2, 3), unclean=True) == Elected(2, 8, (2,), (2, 3), is_unclean=True)
    assert select(OFFLINE, view, brokers(2, 3)) is ElectionFailure.NO_REPLICA_ONLINE
    assert select(OFFLINE, view, brokers(), unclean=True) is ElectionFailure.NO_REPLICA_ONLINE


def test_reassigned_partition_takes_the_first_of_the_new_that_is_live_and_in_sync_and_tells_the_new() -> None:
    view = PartitionView(assignment=(1, 2), isr=(1, 4), leader=1, leader_epoch=7, target=(3, 4))
    assert select(REASSIGNED, view, brokers(1, 3, 4)) == Elected(4, 8, (1, 4), (3, 4))
    assert select(REASSIGNED, view, brokers(1, 3)) is ElectionFailure.NO_REPLICA_ONLINE


def test_preferred_replica_must_not_lead_already_and_must_be_live_and_in_sync() -> None:
    view = PartitionView(assignment=(1, 2), isr=(2, 1), leader=2, leader_epoch=7)
    assert select(PREFERRED, view, brokers(1, 2)) == Elected(1, 8, (2, 1), (1, 2))
    assert select(PREFERRED, view, brokers(2)) is ElectionFailure.STATE_CHANGE_FAILED
    led = PartitionView(assignment=(1, 2), isr=(1, 2), leader=1, leader_epoch=7)
    assert select(PREFERRED, led, brokers(1, 2)) is ElectionFailure.NOT_NEEDED


def test_controlled_shutdown_takes_another_of_the_isr_and_tells_every_live_replica() -> None:
    view = PartitionView(assignment=(1, 2, 3), isr=(1, 3), leader=1, leader_epoch=7)
    assert select(SHUTDOWN, view, brokers(1, 2, 3, leaving=(1,))) == Elected(3, 8, (3,), (1, 2, 3))
    assert select(SHUTDOWN, view, brokers(1, 2, 3, leaving=(1, 3))) is ElectionFailure.STATE_CHANGE_FAILED


@pytest.mark.parametrize(
    ("version", "told"), [(v(1, 0), (1, 2)), (v(1, 1), (2,)), (v(2, 0), (2,)), (v(2, 1), (1, 2))], ids=str
)
def test_from_1_1_to_2_0_the_brokers_that_shut_down_are_not_told(version: KafkaVersion, told: tuple[int, ...]) -> None:
    view = PartitionView(assignment=(1, 2), isr=(1, 2), leader=1, leader_epoch=7)
    assert select(SHUTDOWN, view, brokers(1, 2, leaving=(1,)), version=version) == Elected(2, 8, (2,), told)


@pytest.mark.parametrize(
    ("version", "by_itself", "by_its_caller"),
    [(v(1, 0), False, False), (v(1, 1), True, True), (v(2, 1), True, True), (v(2, 2), True, False)],
    ids=str,
)
def test_who_leaves_a_preferred_leader_alone(version: KafkaVersion, by_itself: bool, by_its_caller: bool) -> None:
    """Up to 1.0 the selector, since 2.2 its caller."""
    view = PartitionView(assignment=(1, 2), isr=(1, 2), leader=1, leader_epoch=7)
    assert isinstance(select_leader(PREFERRED, view, brokers(1, 2), False, version), Elected) is by_itself
    assert isinstance(elect(PREFERRED, view, brokers(1, 2), False, version), Elected) is by_its_caller
