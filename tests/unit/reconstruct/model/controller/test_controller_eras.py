"""Whole stories beyond Kafka's own cases: what each event ignores, and the eras."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconstruct.model.controller.outputs import (
    LeaderAndIsrRequest,
    Reason,
)
from reconstruct.model.controller.values import ReplicaAssignment, TopicPartition
from reconstruct.model.controller.zookeeper import TopicAssignment, topic_path
from reconstruct.model.versions import KafkaVersion, v
from reconstruct.model.znode_paths import (
    DELETE_TOPICS_PATH,
    REASSIGN_PARTITIONS_PATH,
)
from tests.oracles.controller import broker_changes, listeners
from tests.oracles.controller.cluster import Cluster
from tests.oracles.controller.outcomes import (
    RequestError,
    Result,
)
from tests.oracles.controller.reassignment import process_partition_reassignment
from tests.oracles.controller.replica_election import (
    ElectionType,
    Trigger,
    process_replica_leader_election,
)
from tests.oracles.controller.znodes import delete
from tests.support.loops import for_each
from tests.unit.reconstruct.model.controller.clusters import ERAS

TP, TP1 = TopicPartition("t", 0), TopicPartition("t", 1)


def assignment(cluster: Cluster, partition: TopicPartition = TP) -> ReplicaAssignment:
    found = cluster.zookeeper.topic_assignment(partition.topic)
    assert found is not None
    return found.partitions[partition.partition_id]


def test_each_listener_does_nothing_where_this_broker_is_not_the_controller() -> None:
    cluster = Cluster(2)
    cluster.create("t", {0: [0, 1]})
    idle = replace(cluster.context, is_active=False)
    zk = cluster.zookeeper.with_znodes(
        {
            topic_path("new"): TopicAssignment({0: ReplicaAssignment((0,))}),
            f"{DELETE_TOPICS_PATH}/t": None,
            REASSIGN_PARTITIONS_PATH: {TP: (1, 0)},
        }
    )
    for listener in (
        listeners.process_topic_change,
        listeners.process_topic_deletion,
        broker_changes.process_broker_change,
        process_partition_reassignment,
    ):
        assert listener(idle, zk) == Result(idle, zk)
    assert listeners.process_partition_modifications(idle, zk, "t") == Result(idle, zk)
    assert process_replica_leader_election(idle, zk).failures[0].reason is RequestError.NOT_CONTROLLER


def test_a_request_to_delete_an_unknown_topic_is_taken_away() -> None:
    cluster = Cluster(1)
    result = cluster.delete("nowhere")
    assert f"{DELETE_TOPICS_PATH}/nowhere" not in cluster.zookeeper.znodes
    assert result.context.topics_to_be_deleted == frozenset()


@pytest.mark.parametrize(("version", "is_removed"), [(v(0, 10, 1), False), (v(0, 10, 2), True)], ids=str)
def test_where_deletion_is_disabled_the_request_is_taken_away_since_0_10_2(
    version: KafkaVersion, is_removed: bool
) -> None:
    cluster = Cluster(1, version, delete_topic_enable=False)
    cluster.create("t", {0: [0]})
    cluster.delete("t")
    assert (f"{DELETE_TOPICS_PATH}/t" not in cluster.zookeeper.znodes) is is_removed


@pytest.mark.parametrize(("version", "left"), [(v(1, 1), {0, 1}), (v(2, 0), {0})], ids=str)
def test_partitions_added_to_a_topic_being_deleted(version: KafkaVersion, left: set[int]) -> None:
    cluster = Cluster(2, version)
    cluster.create("t", {0: [0, 1]})
    cluster.kill(1)
    cluster.delete("t")
    cluster.expand("t", {1: [0]})
    assert TP1 not in cluster.context.assignments
    found = cluster.zookeeper.topic_assignment("t")
    assert found is not None
    assert set(found.partitions) == left


def test_a_topic_that_vanished_is_forgotten() -> None:
    cluster = Cluster(1)
    cluster.create("t", {0: [0]})
    cluster.zookeeper, _ = delete(cluster.zookeeper, topic_path("t"))
    cluster.apply(listeners.process_topic_change)
    assert (cluster.context.assignments, cluster.context.leadership) == ({}, {})


def test_changed_replicas_of_a_known_partition_are_ignored() -> None:
    cluster = Cluster(2)
    cluster.create("t", {0: [0]})
    cluster.expand("t", {0: [1]})
    assert cluster.context.replicas(TP) == (0,)


@for_each(version=ERAS[1:])
def test_a_deletion_waits_for_a_dead_broker_and_ends(version: KafkaVersion) -> None:
    cluster = Cluster(3, version)
    cluster.create("t", {0: [0, 1, 2], 1: [1, 2, 0]})
    cluster.kill(2)
    cluster.delete("t")
    cluster.answer_deletions()
    assert topic_path("t") in cluster.zookeeper.znodes
    assert cluster.context.topics_ineligible_for_deletion == {"t"}
    cluster.start(2)
    cluster.answer_deletions()
    assert topic_path("t") not in cluster.zookeeper.znodes
    assert cluster.context.replica_states == {}


def test_a_deletion_that_failed_is_tried_again_when_a_broker_starts() -> None:
    cluster = Cluster(2)
    cluster.create("t", {0: [0, 1]})
    cluster.delete("t")
    cluster.answer_deletions(in_error=True)
    cluster.answer_deletions()
    assert topic_path("t") in cluster.zookeeper.znodes
    cluster.bounce(1)
    cluster.answer_deletions()
    assert topic_path("t") not in cluster.zookeeper.znodes


def test_a_new_deletion_is_not_held_up_by_a_reassignment_but_by_its_next_step() -> None:
    """Kafka marks a topic ineligible only where it is queued already, and looks before it queues."""
    cluster = Cluster(3)
    cluster.create("t", {0: [0]})
    cluster.kill(2)
    cluster.reassign({TP: [2]})
    cluster.delete("t")
    assert cluster.context.topics_with_deletion_started == {"t"}


@for_each(version=ERAS)
def test_one_dead_broker_raises_each_epoch_once(version: KafkaVersion) -> None:
    cluster = Cluster(3, version, unclean_leader_election_enable=False)
    cluster.create("t", {0: [0, 1], 1: [1, 2], 2: [1], 3: [0, 2]})
    cluster.kill(1)
    partitions = [TopicPartition("t", number) for number in range(4)]
    assert [cluster.leader_and_isr(p)[0] for p in partitions] == [0, 2, -1, 0]
    assert [cluster.leader_and_isr(p)[2] for p in partitions] == [1, 1, 1, 0]


@pytest.mark.parametrize(("version", "epoch"), [(v(2, 3), 0), (v(2, 4), 1)], ids=str)
def test_up_to_2_3_the_raise_of_a_reassignment_misses_the_cache(version: KafkaVersion, epoch: int) -> None:
    cluster = Cluster(3, version)
    cluster.create("t", {0: [0, 1]})
    cluster.reassign({TP: [0, 2]})
    assert cluster.leader_and_isr(TP)[2] == 1
    assert cluster.context.leadership[TP].leader_and_isr.leader_epoch == epoch


def test_a_reassignment_can_be_replaced_and_cancelled() -> None:
    from tests.oracles.controller.reassignment import alter_partition_reassignments

    cluster = Cluster(4)
    cluster.create("t", {0: [0, 1]})
    cluster.apply(alter_partition_reassignments, {TP: (0, 2)})
    assert assignment(cluster) == ReplicaAssignment((0, 2, 1), (2,), (1,))
    cluster.apply(alter_partition_reassignments, {TP: (0, 3)})
    assert assignment(cluster) == ReplicaAssignment((0, 3, 1), (3,), (1,))
    assert [r.replica_id for r in cluster.to_delete] == [2]
    cluster.apply(alter_partition_reassignments, {TP: None})
    assert assignment(cluster) == ReplicaAssignment((0, 1))
    assert cluster.context.partitions_being_reassigned == {}
    refused = cluster.apply(alter_partition_reassignments, {TP: None, TP1: (0, 1)})
    assert [failure.reason for failure in refused.failures] == [
        RequestError.NO_REASSIGNMENT_IN_PROGRESS,
        RequestError.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    invalid = cluster.apply(alter_partition_reassignments, {TP: (0, 9)})
    assert [failure.reason for failure in invalid.failures] == [RequestError.INVALID_REPLICA_ASSIGNMENT]


@pytest.mark.parametrize("version", [v(0, 8, 2), v(1, 1), v(2, 3), v(3, 9)], ids=str)
def test_a_zombie_aborts_its_reassignment(version: KafkaVersion) -> None:
    cluster = Cluster(3, version)
    cluster.create("t", {0: [0, 1]})
    zombie = cluster.context
    cluster.elect(1)
    cluster.kill(0)
    truth = cluster.state(TP)
    asked = cluster.zookeeper.with_znodes({REASSIGN_PARTITIONS_PATH: {TP: (1, 2)}})
    result = process_partition_reassignment(zombie, asked)
    assert result.zookeeper.partition_state(TP)[0] == truth
    assert result.failures
    assert not [request for request in result.requests if isinstance(request, LeaderAndIsrRequest)]


@pytest.mark.parametrize("version", [v(0, 10, 2), v(0, 11), v(3, 9)], ids=str)
def test_an_election_that_was_asked_for_gives_its_outcome(version: KafkaVersion) -> None:
    cluster = Cluster(2, version)
    cluster.create("t", {0: [1, 0]})
    cluster.kill(1)
    cluster.start(1)
    cluster.catch_up()
    assert cluster.prefer(TP).elected == {TP: cluster.state(TP).leader_and_isr}


def test_an_administrator_may_let_an_election_leave_the_isr() -> None:
    cluster = Cluster(3)
    cluster.create("t", {0: [1, 2]})
    cluster.change_isr(TP, [1])
    cluster.kill(1)
    asked = (process_replica_leader_election, [TP], ElectionType.UNCLEAN)
    assert cluster.apply(*asked, Trigger.AUTO).failures[0].reason is Reason.STATE_CHANGE_FAILED
    cluster.apply(*asked, Trigger.ADMIN_CLIENT)
    assert cluster.leader_and_isr(TP)[:2] == (2, (2,))
    assert cluster.apply(*asked, Trigger.ADMIN_CLIENT).failures[0].reason is Reason.ELECTION_NOT_NEEDED
