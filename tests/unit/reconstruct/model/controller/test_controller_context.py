"""The controller's cache: Kafka's own cases by name (ControllerContextTest of 3.9)."""

from __future__ import annotations

import pytest

from reconstruct.model.controller.values import ReplicaAssignment, TopicPartition
from reconstruct.model.versions import KafkaVersion, v
from tests.oracles.controller import questions
from tests.oracles.controller.context import ControllerContext, Settings
from tests.oracles.controller.context_changes import (
    is_being_reassigned,
    queue_topic_deletion,
    reassign_to,
    remove_topics,
    with_leadership,
)
from tests.unit.reconstruct.model.controller.clusters import controller, decided

TP1, TP2, TP3 = TopicPartition("A", 0), TopicPartition("A", 1), TopicPartition("B", 0)


@pytest.fixture
def context() -> ControllerContext:
    return controller([1, 2, 3], assigned={TP1: [1, 2, 3], TP2: [2, 3, 1], TP3: [3, 1, 2]})


def test_update_partition_full_replica_assignment_updates_replica_assignment(context: ControllerContext) -> None:
    first = context.with_assignments({TP1: ReplicaAssignment((4,))})
    assert first.assignment(TP1) == ReplicaAssignment((4,), (), ())
    second = ReplicaAssignment((3,), (1,), (2,))
    assert first.with_assignments({TP1: second}).assignment(TP1) == second


def test_partition_replica_assignment_returns_empty_seq_if_topic_or_partition_does_not_exist(
    context: ControllerContext,
) -> None:
    assert context.replicas(TopicPartition("NONEXISTENT", 0)) == ()
    assert context.replicas(TopicPartition("A", 100)) == ()


def test_partition_full_replica_assignment_returns_empty_assignment_if_topic_or_partition_does_not_exist(
    context: ControllerContext,
) -> None:
    assert context.assignment(TopicPartition("NONEXISTENT", 0)) == ReplicaAssignment((), (), ())
    assert context.assignment(TopicPartition("A", 100)) == ReplicaAssignment((), (), ())


def test_partition_replica_assignment_for_topic_returns_empty_map_if_topic_does_not_exist(
    context: ControllerContext,
) -> None:
    assert questions.partitions_for_topics(context, ("NONEXISTENT",)) == ()
    assert questions.replicas_for_topics(context, ("NONEXISTENT",)) == ()


def test_partition_replica_assignment_for_topic_returns_expected_replica_assignments(
    context: ControllerContext,
) -> None:
    found = {p: context.replicas(p) for p in questions.partitions_for_topics(context, ("A",))}
    assert found == {TP1: (1, 2, 3), TP2: (2, 3, 1)}


def test_partition_replica_assignment() -> None:
    moving = ReplicaAssignment((1, 2, 3, 4, 5, 6), (2, 3, 4), (1, 5, 6))
    assert is_being_reassigned(moving)
    assert moving.target_replicas == (2, 3, 4)
    assert ReplicaAssignment((1, 2, 3, 4), (), (1, 4)).target_replicas == (2, 3)
    assert ReplicaAssignment((1, 2, 3, 4), (4,), (2,)).target_replicas == (1, 3, 4)
    at_rest = ReplicaAssignment((1, 2, 3, 4, 5, 6))
    assert (is_being_reassigned(at_rest), at_rest.target_replicas) == (False, (1, 2, 3, 4, 5, 6))
    fourth = reassign_to(ReplicaAssignment((1, 2, 3, 4)), (4, 2, 5, 3))
    assert fourth == ReplicaAssignment((4, 2, 5, 3, 1), (5,), (1,))
    assert fourth.target_replicas == (4, 2, 5, 3)
    fifth = reassign_to(ReplicaAssignment((1, 2, 3)), (4, 5, 6))
    assert fifth == ReplicaAssignment((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
    reordered = reassign_to(ReplicaAssignment((1, 2, 3)), (3, 1, 2))
    assert (reordered, is_being_reassigned(reordered)) == (ReplicaAssignment((3, 1, 2)), False)


def test_reassign_to_idempotence() -> None:
    for assignment in (
        ReplicaAssignment((1, 2, 3)),
        ReplicaAssignment((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3)),
        ReplicaAssignment((4, 2, 3, 1), (4,), (1,)),
    ):
        assert reassign_to(assignment, assignment.target_replicas) == assignment


def test_reassign_to() -> None:
    assignment = ReplicaAssignment((1, 2, 3))
    first = reassign_to(assignment, (4, 5, 6))
    assert first == ReplicaAssignment((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
    second = ReplicaAssignment((7, 8, 9, 1, 2, 3), (7, 8, 9), (1, 2, 3))
    assert reassign_to(first, (7, 8, 9)) == second
    assert reassign_to(assignment, (7, 8, 9)) == second
    assert reassign_to(first, (1, 2, 3)) == assignment


def test_preferred_replica_imbalance_metric(context: ControllerContext) -> None:
    count = questions.preferred_replica_imbalance_count
    even = context.with_assignments(dict.fromkeys((TP1, TP2, TP3), ReplicaAssignment((1, 2, 3))))
    assert count(even) == 0
    led = with_leadership(even, {TP1: decided(1, [1, 2, 3], controller_epoch=0)})
    assert count(led) == 0
    led = with_leadership(led, {TP2: decided(2, [2, 3, 1])})
    assert count(led) == 1
    led = with_leadership(led, {TP3: decided(3, [3, 1, 2])})
    assert count(led) == 2
    turned = led.with_assignments(dict.fromkeys((TP1, TP2), ReplicaAssignment((2, 3, 1))))
    assert count(turned) == 2
    queued = queue_topic_deletion(turned, ["B"])
    assert count(queued) == 1
    assert count(with_leadership(queued, {TP3: decided(1, [3, 1, 2])})) == 1
    assert count(remove_topics(queued, ["A", "B"])) == 0


def test_preferred_replica_imbalance_metric_on_concurrent_topic_deletion() -> None:
    a, b = TopicPartition("A", 0), TopicPartition("B", 0)
    context = queue_topic_deletion(controller([1, 2, 3], assigned={a: [1, 2, 3], b: [1, 2, 3]}), ["A"])
    context = with_leadership(context, {a: decided(-1, [1, 2, 3])})
    assert questions.preferred_replica_imbalance_count(context) == 0
    assert questions.preferred_replica_imbalance_count(queue_topic_deletion(context, ["A", "B"])) == 0


# Beyond Kafka's list.


def test_a_preferred_replica_that_is_being_added_is_not_expected_to_lead() -> None:
    moving = ReplicaAssignment((4, 1), (4,), ())
    assert questions.has_preferred_leader(moving, decided(1, [1]))
    assert not questions.has_preferred_leader(moving, decided(1, [1, 4]))
    assert questions.has_preferred_leader(ReplicaAssignment(), decided(1, [1]))


@pytest.mark.parametrize(
    ("version", "broker", "topic", "expected"),
    [
        (v(0, 8, 1), False, None, True),
        (v(0, 8, 2), None, None, True),
        (v(0, 8, 2), False, None, False),
        (v(0, 11), None, None, False),
        (v(3, 9), None, True, True),
        (v(3, 9), True, False, False),
    ],
    ids=str,
)
def test_whether_an_election_may_leave_the_isr(
    version: KafkaVersion, broker: bool | None, topic: bool | None, expected: bool
) -> None:
    settings = Settings(
        version, unclean_leader_election_enable=broker, topic_unclean={} if topic is None else {"t": topic}
    )
    assert settings.is_unclean_allowed("t") is expected


def test_a_broker_that_shuts_down_is_there_and_does_not_count(context: ControllerContext) -> None:
    leaving = controller([1, 2], shutting_down=[2])
    assert leaving.live_broker_ids == (1,)
    assert leaving.live_or_shutting_down_broker_ids == (1, 2)
    assert not leaving.is_replica_online(2, TP1)
    assert leaving.is_replica_online(2, TP1, include_shutting_down_brokers=True)


def test_the_leader_epoch_of_a_stop_replica() -> None:
    context = controller(led={TP1: decided(1, [1], 7)})
    assert context.stop_replica_leader_epoch(TP1) == 7
    assert context.stop_replica_leader_epoch(TP3) == -1
    assert queue_topic_deletion(context, ["A"]).stop_replica_leader_epoch(TP1) == -2
