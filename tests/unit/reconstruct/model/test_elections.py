"""Leader elections: Kafka's own list of cases under its own names, and what each era did otherwise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconstruct.model.elections import (
    Brokers,
    Elected,
    ElectionFailure,
    ElectionKind,
    PartitionView,
    elect,
    select_leader,
)
from reconstruct.model.versions import KafkaVersion, v

OFFLINE, REASSIGNED = ElectionKind.OFFLINE_PARTITION, ElectionKind.REASSIGNED_PARTITION
PREFERRED, SHUTDOWN = ElectionKind.PREFERRED_REPLICA, ElectionKind.CONTROLLED_SHUTDOWN


def brokers(live: set[int], shutting_down: set[int] | None = None) -> Brokers:
    return Brokers(frozenset(live), frozenset(shutting_down or ()))


def leader(
    kind: ElectionKind,
    assignment: list[int],
    isr: list[int],
    live: set[int],
    shutting_down: set[int] | None = None,
    *,
    unclean_enabled: bool = False,
) -> int | None:
    """Whom the algorithm of 3.9 chooses."""
    view = PartitionView(tuple(assignment), tuple(isr), leader=-1, leader_epoch=0)
    result = select_leader(kind, view, brokers(live, shutting_down), unclean_enabled, v(3, 9))
    return result.leader if isinstance(result, Elected) else None


# kafka.controller.PartitionLeaderElectionAlgorithmsTest of 3.9: 13 cases, by name.


def test_offline_partition_leader_election() -> None:
    assert leader(OFFLINE, [2, 4], [2, 4], {4}, unclean_enabled=False) == 4


def test_offline_partition_leader_election_last_isr_offline_unclean_leader_election_disabled() -> None:
    assert leader(OFFLINE, [2, 4], [2], {4}, unclean_enabled=False) is None


def test_offline_partition_leader_election_last_isr_offline_unclean_leader_election_enabled() -> None:
    assert leader(OFFLINE, [2, 4], [2], {4}, unclean_enabled=True) == 4


def test_reassign_partition_leader_election() -> None:
    assert leader(REASSIGNED, [2, 4], [2, 4], {4}) == 4


def test_reassign_partition_leader_election_with_no_live_isr() -> None:
    assert leader(REASSIGNED, [2, 4], [2], set()) is None


def test_reassign_partition_leader_election_with_empty_isr() -> None:
    assert leader(REASSIGNED, [2, 4], [], {2}) is None


def test_preferred_replica_partition_leader_election() -> None:
    assert leader(PREFERRED, [2, 4], [2, 4], {2, 4}) == 2


def test_preferred_replica_partition_leader_election_preferred_replica_in_isr_not_live() -> None:
    assert leader(PREFERRED, [2, 4], [2], set()) is None


def test_preferred_replica_partition_leader_election_preferred_replica_not_in_isr_live() -> None:
    assert leader(PREFERRED, [2, 4], [4], {2, 4}) is None


def test_preferred_replica_partition_leader_election_preferred_replica_not_in_isr_not_live() -> None:
    assert leader(PREFERRED, [2, 4], [], set()) is None


def test_controlled_shutdown_partition_leader_election() -> None:
    assert leader(SHUTDOWN, [2, 4], [2, 4], {2, 4}, {2}) == 4


def test_controlled_shutdown_partition_leader_election_last_isr_shutting_down() -> None:
    assert leader(SHUTDOWN, [2, 4], [2], {2, 4}, {2}) is None


def test_controlled_shutdown_partition_leader_election_all_isr_simultaneously_shutdown() -> None:
    assert leader(SHUTDOWN, [2, 4], [2, 4], {2, 4}, {2, 4}) is None


@pytest.mark.parametrize(("version", "leader"), [(v(0, 8, 1, 1), 3), (v(0, 8, 2), 2), (v(3, 9), 2)])
def test_the_order_of_an_offline_election_changed_with_0_8_2(version: KafkaVersion, leader: int) -> None:
    partition = PartitionView(assignment=(1, 2, 3), isr=(1, 3, 2), leader=1, leader_epoch=4)
    result = elect(OFFLINE, partition, brokers({2, 3}), False, version)
    assert result == Elected(leader, 5, (3, 2), (2, 3))


@pytest.mark.parametrize(
    ("version", "allowed", "leader"),
    [(v(0, 8, 1), False, 2), (v(0, 8, 2), True, 2), (v(0, 8, 2), False, None), (v(3, 9), False, None)],
)
def test_an_unclean_election_must_be_allowed_from_0_8_2(
    version: KafkaVersion, allowed: bool, leader: int | None
) -> None:
    partition = PartitionView(assignment=(1, 2), isr=(1,), leader=1, leader_epoch=4)
    result = elect(OFFLINE, partition, brokers({2}), allowed, version)
    expected = (
        ElectionFailure.NO_REPLICA_ONLINE if leader is None else Elected(leader, 5, (leader,), (2,), is_unclean=True)
    )
    assert result == expected


def test_0_8_0_elected_for_a_reassignment_outside_the_isr() -> None:
    partition = PartitionView(assignment=(1, 2), isr=(1,), leader=1, leader_epoch=4, target=(3, 4))
    assert elect(REASSIGNED, partition, brokers({3, 4}), False, v(0, 8, 0)) == Elected(
        3, 5, (1,), (3, 4), is_unclean=True
    )
    assert elect(REASSIGNED, partition, brokers({3, 4}), False, v(0, 8, 1)) is ElectionFailure.NO_REPLICA_ONLINE


@pytest.mark.parametrize(
    ("version", "is_repeated"), [(v(1, 0), False), (v(1, 1), True), (v(2, 1), True), (v(2, 2), False)]
)
def test_a_preferred_leader_is_elected_again_only_from_1_1_to_2_1(version: KafkaVersion, is_repeated: bool) -> None:
    partition = PartitionView(assignment=(1, 2), isr=(2, 1), leader=1, leader_epoch=4)
    result = elect(PREFERRED, partition, brokers({1, 2}), False, version)
    assert result == (Elected(1, 5, (2, 1), (1, 2)) if is_repeated else ElectionFailure.NOT_NEEDED)


@pytest.mark.parametrize(("version", "leader"), [(v(0, 8, 2), 3), (v(0, 10), 2), (v(3, 9), 2)])
def test_the_order_of_a_controlled_shutdown_changed_with_0_10(version: KafkaVersion, leader: int) -> None:
    partition = PartitionView(assignment=(1, 2, 3), isr=(1, 3, 2), leader=1, leader_epoch=4)
    result = elect(SHUTDOWN, partition, brokers({1, 2, 3}, {1}), False, version)
    assert result == Elected(leader, 5, (3, 2), (1, 2, 3))


def test_a_shutdown_that_takes_the_whole_isr_changes_nothing() -> None:
    partition = PartitionView(assignment=(1, 2), isr=(1,), leader=1, leader_epoch=4)
    for version in (v(0, 8, 0), v(0, 8, 2), v(0, 10), v(3, 9)):
        assert elect(SHUTDOWN, partition, brokers({1, 2}, {1}), True, version) is ElectionFailure.STATE_CHANGE_FAILED


ids = st.integers(1, 6)
id_lists = st.lists(ids, unique=True, max_size=5).map(tuple)
versions = st.sampled_from([v(0, 8, 0), v(0, 8, 1), v(0, 8, 2), v(0, 10), v(1, 0), v(1, 1), v(2, 2), v(3, 9)])


@given(st.sampled_from(ElectionKind), id_lists, id_lists, id_lists, st.sets(ids), st.booleans(), versions)
def test_whatever_is_elected_is_sound(
    kind: ElectionKind,
    assignment: tuple[int, ...],
    isr: tuple[int, ...],
    live: tuple[int, ...],
    shutting_down: set[int],
    unclean: bool,
    version: KafkaVersion,
) -> None:
    partition = PartitionView(assignment, isr, leader=9, leader_epoch=7)
    result = elect(kind, partition, Brokers(frozenset(live), frozenset(shutting_down)), unclean, version)
    if isinstance(result, ElectionFailure):
        return
    assert result.leader_epoch == 8
    assert result.is_unclean == (result.leader not in isr)
    if result.is_unclean:
        assert kind is OFFLINE or version < v(0, 8, 1)
        assert unclean or version < v(0, 8, 2)
    if kind is OFFLINE:
        assert set(result.isr) <= set(live) - shutting_down
        assert result.leader in result.isr
