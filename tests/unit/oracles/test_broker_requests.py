"""What brokers answer to a controller's requests, version by version."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconstruct.model import broker_requests as program
from reconstruct.model.states import EPOCH_DURING_DELETE, NO_EPOCH
from reconstruct.model.versions import KafkaVersion, v
from tests.oracles.broker_requests import (
    Answer,
    BrokerState,
    HostedReplica,
    LeaderAndIsrPartitionState,
    handle_leader_and_isr,
    handle_stop_replica,
    handle_update_metadata,
)

P = ("t", 0)
VERSIONS = [v(0, 8, 0), v(0, 8, 1), v(0, 8, 2), v(1, 1), v(2, 0, 1), v(2, 3), v(2, 6), v(3, 3), v(3, 4, 1), v(3, 9)]


def follower(leader_epoch: int = 4, **more: object) -> BrokerState:
    state = BrokerState(2, 3, {P: HostedReplica(1, leader_epoch, 7)}, frozenset({1, 2, 3}))
    return replace(state, **more)  # type: ignore[arg-type]


def told(leader: int, leader_epoch: int, partition_epoch: int = 8) -> LeaderAndIsrPartitionState:
    return LeaderAndIsrPartitionState(leader, leader_epoch, (1, 2, 3), partition_epoch)


@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_a_lower_controller_epoch_is_refused_as_a_whole_and_an_equal_one_taken(version: KafkaVersion) -> None:
    broker = follower()
    for handled in (
        handle_leader_and_isr(broker, 2, P, told(3, 9), version),
        handle_stop_replica(broker, 2, P, 9, True, version),
        handle_update_metadata(broker, 2),
    ):
        assert handled.answer is Answer.STALE_CONTROLLER_EPOCH
        assert handled.broker == broker
        assert handled.steps == ()
    assert handle_leader_and_isr(broker, 3, P, told(3, 9), version).answer is Answer.BECAME_FOLLOWER
    assert handle_update_metadata(broker, 5).broker.controller_epoch == 5


@pytest.mark.parametrize("version", VERSIONS, ids=str)
@pytest.mark.parametrize(("epoch", "answer"), [(3, Answer.LEADER_EPOCH_SMALLER), (4, Answer.LEADER_EPOCH_MATCHES)])
def test_only_a_higher_leader_epoch_is_taken(epoch: int, answer: Answer, version: KafkaVersion) -> None:
    handled = handle_leader_and_isr(follower(), 3, P, told(3, epoch), version)
    assert handled.answer is answer
    assert handled.broker.replicas == follower().replicas
    assert handle_leader_and_isr(follower(), 3, P, told(2, 5), version).answer is Answer.BECAME_LEADER


def test_who_is_not_assigned_says_so_since_0_8_1() -> None:
    elsewhere = LeaderAndIsrPartitionState(1, 9, (1, 3))
    assert handle_leader_and_isr(follower(), 3, P, elsewhere, v(0, 8, 1)).answer is Answer.NOT_ASSIGNED
    assert handle_leader_and_isr(follower(), 3, P, elsewhere, v(0, 8, 0)).answer is Answer.BECAME_FOLLOWER


@pytest.mark.parametrize(
    ("version", "epoch_after", "steps"),
    [
        (v(0, 8, 0), 4, ()),
        (v(0, 8, 1), 5, ("stop fetching", "truncate", "follow at the new epoch")),
        (v(0, 8, 2), 4, ()),
        (v(3, 9), 4, ()),
    ],
)
def test_a_follower_whose_new_leader_is_not_live(
    version: KafkaVersion, epoch_after: int, steps: tuple[str, ...]
) -> None:
    handled = handle_leader_and_isr(follower(live_brokers=frozenset({1, 2})), 3, P, told(3, 5), version)
    assert handled.answer is Answer.LEADER_UNAVAILABLE
    assert handled.broker.replicas[P].leader_epoch == epoch_after
    assert handled.steps == steps


def test_since_0_8_2_the_replica_of_a_leader_that_is_not_live_is_made() -> None:
    empty = BrokerState(2, 3, {}, frozenset({2}))
    old = handle_leader_and_isr(empty, 3, P, told(3, 5), v(0, 8, 0)).broker
    new = handle_leader_and_isr(empty, 3, P, told(3, 5), v(0, 8, 2)).broker
    assert P not in old.replicas
    assert new.replicas[P] == HostedReplica(None, NO_EPOCH, 8)
    live = replace(new, live_brokers=frozenset({2, 3}))
    assert handle_leader_and_isr(live, 3, P, told(3, 5), v(0, 8, 2)).answer is Answer.BECAME_FOLLOWER


@pytest.mark.parametrize(
    ("version", "epoch", "answer"),
    [
        (v(0, 8, 1), 5, Answer.BECAME_FOLLOWER),
        (v(0, 8, 2), 5, Answer.FOLLOWS_ON),
        (v(2, 0), 6, Answer.FOLLOWS_ON),
        (v(2, 0, 1), 5, Answer.FOLLOWS_ON),
        (v(2, 0, 1), 6, Answer.BECAME_FOLLOWER),
        (v(2, 1), 5, Answer.BECAME_FOLLOWER),
    ],
)
def test_a_follower_of_the_same_leader(version: KafkaVersion, epoch: int, answer: Answer) -> None:
    handled = handle_leader_and_isr(follower(), 3, P, told(1, epoch), version)
    assert handled.answer is answer
    assert handled.broker.replicas[P].leader_epoch == epoch
    assert ("truncate" in handled.steps) is (answer is Answer.BECAME_FOLLOWER)


def test_a_follower_that_shuts_down_does_not_fetch() -> None:
    handled = handle_leader_and_isr(follower(is_shutting_down=True), 3, P, told(3, 5), v(3, 9))
    assert handled.steps[-1] == "follow at the new epoch"
    assert handle_leader_and_isr(follower(), 3, P, told(3, 5), v(3, 9)).steps[-1] == "fetch from the new leader"


def test_an_older_partition_epoch_is_left_alone_since_3_3() -> None:
    assert handle_leader_and_isr(follower(), 3, P, told(3, 5, 6), v(3, 3)).answer is Answer.OLDER_PARTITION_EPOCH
    assert handle_leader_and_isr(follower(), 3, P, told(3, 5, 6), v(3, 2)).answer is Answer.BECAME_FOLLOWER


@pytest.mark.parametrize(
    ("version", "epoch", "answer"),
    [
        (v(2, 5), 1, Answer.STOPPED),
        (v(2, 6), 3, Answer.LEADER_EPOCH_SMALLER),
        (v(2, 6), 4, Answer.LEADER_EPOCH_MATCHES),
        (v(3, 4), 4, Answer.LEADER_EPOCH_MATCHES),
        (v(3, 4, 1), 4, Answer.STOPPED),
        (v(2, 6), 5, Answer.STOPPED),
        (v(2, 6), NO_EPOCH, Answer.STOPPED),
        (v(2, 6), EPOCH_DURING_DELETE, Answer.STOPPED),
    ],
)
def test_a_stop_replica(version: KafkaVersion, epoch: int, answer: Answer) -> None:
    handled = handle_stop_replica(follower(), 3, P, epoch, False, version)
    assert handled.answer is answer
    assert (P in handled.broker.replicas) is (answer is not Answer.STOPPED)


def test_a_deletion_deletes_also_what_is_not_held() -> None:
    handled = handle_stop_replica(BrokerState(2), 1, P, EPOCH_DURING_DELETE, True, v(3, 9))
    assert handled.answer is Answer.DELETED
    assert handled.steps[-1] == "delete the log"


@given(
    requests=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6), st.integers(1, 3)), max_size=12),
    version=st.sampled_from(VERSIONS),
)
def test_a_broker_never_goes_back(requests: list[tuple[int, int, int]], version: KafkaVersion) -> None:
    broker = BrokerState(2, 0, {}, frozenset({1, 2, 3}))
    for controller_epoch, leader_epoch, leader in requests:
        handled = handle_leader_and_isr(broker, controller_epoch, P, told(leader, leader_epoch), version)
        assert handled.broker.controller_epoch >= broker.controller_epoch
        held = broker.replicas.get(P)
        if held is not None:
            assert handled.broker.replicas[P].leader_epoch >= held.leader_epoch
        assert bool(handled.steps) <= (handled.broker != broker)
        broker = handled.broker


@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_the_program_takes_and_refuses_what_the_oracle_does(version: KafkaVersion) -> None:
    refused = {answer.value for answer in program.Answer} - {program.Answer.TAKEN}
    for epoch in range(-2, 7):
        pairs = [
            (program.answer_by_controller_epoch(epoch, 3), handle_update_metadata(follower(), epoch)),
            (
                program.answer_to_stop_replica(epoch, 4, version),
                handle_stop_replica(follower(), 3, P, epoch, True, version),
            ),
            (
                program.answer_to_leader_and_isr(epoch, 4),
                handle_leader_and_isr(follower(), 3, P, told(2, epoch), version),
            ),
        ]
        for answer, handled in pairs:
            assert (answer.value if answer is not program.Answer.TAKEN else None) == (
                handled.answer.value if handled.answer.value in refused else None
            )
