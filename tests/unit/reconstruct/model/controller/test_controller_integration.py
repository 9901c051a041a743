"""Whole stories: Kafka's integration cases by name, where they need no network (ControllerIntegrationTest of 3.9)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconstruct.model.controller.outputs import (
    LeaderAndIsrRequest,
    Reason,
    UpdateMetadataRequest,
)
from reconstruct.model.controller.values import ReplicaAssignment, TopicPartition
from reconstruct.model.controller.zookeeper import TopicAssignment
from reconstruct.model.versions import KafkaVersion, v
from reconstruct.model.znode_paths import (
    CONTROLLER_EPOCH_PATH,
    CONTROLLER_PATH,
    PREFERRED_REPLICA_ELECTION_PATH,
    REASSIGN_PARTITIONS_PATH,
)
from tests.oracles.controller import broker_changes
from tests.oracles.controller.cluster import Cluster
from tests.oracles.controller.outcomes import (
    RequestError,
    Result,
)
from tests.oracles.controller.replica_election import (
    check_and_trigger_auto_leader_rebalance,
)
from tests.oracles.controller.znodes import controller_id, delete
from tests.support.loops import for_each
from tests.unit.reconstruct.model.controller.clusters import ERAS

TP, TP1 = TopicPartition("t", 0), TopicPartition("t", 1)


def assignment(cluster: Cluster, partition: TopicPartition = TP) -> ReplicaAssignment:
    found = cluster.zookeeper.topic_assignment(partition.topic)
    assert found is not None
    return found.partitions[partition.partition_id]


def test_empty_cluster() -> None:
    cluster = Cluster(1)
    assert controller_id(cluster.zookeeper) == 0
    assert cluster.zookeeper.controller_epoch() == (1, 0)


def test_controller_epoch_persists_when_all_brokers_down() -> None:
    cluster = Cluster(1)
    cluster.kill(0)
    cluster.zookeeper, _ = delete(cluster.zookeeper, CONTROLLER_PATH)
    assert cluster.zookeeper.controller_epoch() == (1, 0)


def test_controller_move_increments_controller_epoch() -> None:
    cluster = Cluster(2)
    cluster.elect(1)
    assert (cluster.context.epoch, cluster.context.epoch_zk_version) == (2, 1)


def test_metadata_propagation_on_broker_change() -> None:
    cluster = Cluster(3)
    cluster.create("t", {0: [0, 2], 1: [0, 1]})
    cluster.requests.clear()
    cluster.kill(2)
    told = {(r.broker_id, e.partition): e for r in cluster.sent(UpdateMetadataRequest) for e in r.partitions}
    for broker in (0, 1):
        assert told[broker, TP].offline_replicas == (2,)
        assert told[broker, TP].info.isr == (0,)
        assert (broker, TP1) not in told
    cluster.requests.clear()
    cluster.start(2)
    last = [(r.broker_id, e) for r in cluster.sent(UpdateMetadataRequest) for e in r.partitions]
    assert {(broker, entry.partition) for broker, entry in last} >= {(2, TP), (2, TP1)}
    assert {entry.offline_replicas for _, entry in last} == {()}


def test_metadata_propagation_for_offline_replicas() -> None:
    cluster = Cluster(3)
    cluster.create("t", {0: [1]})
    cluster.kill(2)
    cluster.kill(1)
    cluster.kill(0)
    for broker in (0, 2):
        cluster.requests.clear()
        if broker == 0:
            cluster.start(0)
            cluster.elect(0)
        else:
            cluster.start(broker)
        entries = [e for r in cluster.sent(UpdateMetadataRequest) if r.broker_id == broker for e in r.partitions]
        assert {(e.info.leader, e.info.isr, e.offline_replicas, e.assignment.replicas) for e in entries} == {
            (-1, (1,), (1,), (1,))
        }


def test_metadata_propagation_on_broker_shutdown_with_no_replicas() -> None:
    cluster = Cluster(3)
    cluster.create("t", {0: [1]})
    cluster.kill(1)
    cluster.requests.clear()
    cluster.kill(2)
    assert [(r.broker_id, r.live_broker_ids) for r in cluster.sent(UpdateMetadataRequest)] == [(0, (0,))]


def test_topic_creation() -> None:
    cluster = Cluster(1)
    cluster.create("t", {0: [0]})
    assert cluster.leader_and_isr(TP) == (0, (0,), 0)
    assert cluster.state(TP).controller_epoch == 1


def test_topic_creation_with_offline_replica() -> None:
    cluster = Cluster(2)
    cluster.kill(1)
    cluster.create("t", {0: [1, 0]})
    assert cluster.leader_and_isr(TP) == (0, (0,), 0)


def test_topic_partition_expansion() -> None:
    cluster = Cluster(1)
    cluster.create("t", {0: [0]})
    cluster.expand("t", {1: [0]})
    assert cluster.leader_and_isr(TP1) == (0, (0,), 0)
    assert cluster.leader_and_isr(TP) == (0, (0,), 0)


def test_topic_partition_expansion_with_offline_replica() -> None:
    cluster = Cluster(2)
    cluster.create("t", {0: [1, 0]})
    cluster.kill(1)
    cluster.expand("t", {1: [1, 0]})
    assert cluster.leader_and_isr(TP1) == (0, (0,), 0)


@for_each(version=ERAS)
def test_partition_reassignment(version: KafkaVersion) -> None:
    cluster = Cluster(2, version)
    cluster.create("t", {0: [0]})
    cluster.reassign({TP: [1]})
    assert cluster.leader_and_isr(TP) == (0, (0,), 1)
    cluster.catch_up()
    assert cluster.leader_and_isr(TP) == (1, (1,), 3)
    assert assignment(cluster) == ReplicaAssignment((1,))
    assert REASSIGN_PARTITIONS_PATH not in cluster.zookeeper.znodes
    assert cluster.context.partitions_being_reassigned == {}
    assert cluster.failures == []


def test_partition_reassignment_to_broker_with_offline_log_dir() -> None:
    """A failed directory for another partition does not keep the new replica out."""
    cluster = Cluster(2)
    filler = TopicPartition("filler", 0)
    cluster.create("filler", {0: [1]})
    cluster.apply(broker_changes.process_leader_and_isr_response, 1, (), (filler,))
    assert cluster.leader_and_isr(filler) == (-1, (1,), 1)
    cluster.create("t", {0: [0]})
    cluster.reassign({TP: [1]})
    new = [
        e.is_new
        for r in cluster.sent(LeaderAndIsrRequest)
        if r.broker_id == 1
        for e in r.partitions
        if e.partition == TP
    ]
    assert new == [True, True]
    cluster.catch_up()
    assert cluster.leader_and_isr(TP) == (1, (1,), 3)


def test_partition_reassignment_with_offline_replica_halting_progress() -> None:
    cluster = Cluster(2)
    cluster.create("t", {0: [0]})
    cluster.kill(1)
    cluster.reassign({TP: [1]})
    assert cluster.leader_and_isr(TP) == (0, (0,), 1)
    assert REASSIGN_PARTITIONS_PATH in cluster.zookeeper.znodes


def test_partition_reassignment_resumes_after_replica_comes_online() -> None:
    cluster = Cluster(2)
    cluster.create("t", {0: [0]})
    cluster.kill(1)
    cluster.reassign({TP: [1]})
    cluster.start(1)
    cluster.catch_up()
    assert cluster.leader_and_isr(TP) == (1, (1,), 4)
    assert assignment(cluster) == ReplicaAssignment((1,))
    assert REASSIGN_PARTITIONS_PATH not in cluster.zookeeper.znodes


def prefer_again(cluster: Cluster, epoch: int) -> None:
    cluster.kill(1)
    assert cluster.leader_and_isr(TP) == (0, (0,), epoch + 1)
    cluster.start(1)
    cluster.catch_up()
    cluster.prefer(TP)
    assert PREFERRED_REPLICA_ELECTION_PATH not in cluster.zookeeper.znodes
    assert cluster.leader_and_isr(TP) == (1, (0, 1), epoch + 2)


def test_preferred_replica_leader_election() -> None:
    cluster = Cluster(2)
    cluster.create("t", {0: [1, 0]})
    prefer_again(cluster, 0)


def test_back_to_back_preferred_replica_leader_elections() -> None:
    cluster = Cluster(2)
    cluster.create("t", {0: [1, 0]})
    prefer_again(cluster, 0)
    prefer_again(cluster, 2)


def test_preferred_replica_leader_election_with_offline_preferred_replica() -> None:
    cluster = Cluster(2)
    cluster.create("t", {0: [1, 0]})
    cluster.kill(1)
    result = cluster.prefer(TP)
    assert result.elected == {TP: result.failures[0]}
    assert PREFERRED_REPLICA_ELECTION_PATH not in cluster.zookeeper.znodes
    assert cluster.leader_and_isr(TP) == (0, (0,), 1)
    assert [failure.reason for failure in result.failures] == [Reason.STATE_CHANGE_FAILED]


def test_auto_preferred_replica_leader_election() -> None:
    cluster = Cluster(2)
    cluster.create("t", {0: [1, 0]})
    cluster.kill(1)
    cluster.start(1)
    cluster.apply(check_and_trigger_auto_leader_rebalance)
    assert cluster.leader_and_isr(TP)[2] == 1
    cluster.catch_up()
    cluster.apply(check_and_trigger_auto_leader_rebalance)
    assert cluster.leader_and_isr(TP) == (1, (0, 1), 2)


def test_auto_preferred_replica_leader_election_with_other_reassigning_partitions() -> None:
    for version, leader in ((v(3, 3), 0), (v(3, 4), 1)):
        cluster = Cluster(3, version)
        cluster.create("t", {0: [1, 0]})
        cluster.create("moving", {0: [0]})
        cluster.kill(1)
        cluster.kill(2)
        cluster.reassign({TopicPartition("moving", 0): [2]})
        cluster.start(1)
        cluster.catch_up()
        cluster.apply(check_and_trigger_auto_leader_rebalance)
        assert cluster.leader_and_isr(TP)[0] == leader
        cluster.start(2)
        cluster.catch_up()
        assert cluster.leader_and_isr(TopicPartition("moving", 0)) == (2, (2,), 4)


def test_auto_preferred_replica_leader_election_with_same_partition_being_reassigned() -> None:
    cluster = Cluster(3)
    cluster.create("t", {0: [0, 1]})
    cluster.kill(2)
    cluster.reassign({TP: [1, 0, 2]})
    cluster.apply(check_and_trigger_auto_leader_rebalance)
    assert cluster.leader_and_isr(TP) == (1, (0, 1), 2)
    cluster.start(2)
    assert cluster.leader_and_isr(TP)[2] == 3
    cluster.catch_up()
    assert assignment(cluster) == ReplicaAssignment((1, 0, 2))
    assert REASSIGN_PARTITIONS_PATH not in cluster.zookeeper.znodes


def test_leader_and_isr_when_entire_isr_offline_and_unclean_leader_election_disabled() -> None:
    cluster = Cluster(2, unclean_leader_election_enable=False)
    cluster.create("t", {0: [1]})
    cluster.kill(1)
    assert cluster.leader_and_isr(TP) == (-1, (1,), 1)


def test_leader_and_isr_when_entire_isr_offline_and_unclean_leader_election_enabled() -> None:
    cluster = Cluster(2, unclean_leader_election_enable=True)
    cluster.create("t", {0: [1]})
    cluster.kill(1)
    assert cluster.leader_and_isr(TP) == (-1, (1,), 1)


def test_controlled_shutdown() -> None:
    cluster = Cluster(3)
    cluster.create("t", {0: [0, 1, 2]})
    for broker, isr in ((2, (0, 1)), (1, (0,))):
        result = cluster.shut_down(broker)
        assert broker_changes.remaining_leaders(result.context, broker) == ()
        assert cluster.leader_and_isr(TP)[:2] == (0, isr)
    result = cluster.shut_down(0)
    assert broker_changes.remaining_leaders(result.context, 0) == (TP,)
    assert cluster.leader_and_isr(TP)[:2] == (0, (0,))


def test_controller_reject_controlled_shutdown_request_with_stale_broker_epoch() -> None:
    cluster = Cluster(2)
    before = cluster.context
    epoch = before.live_broker_epochs[1]
    result = cluster.apply(broker_changes.controlled_shutdown, 1, epoch - 1)
    assert [failure.reason for failure in result.failures] == [RequestError.STALE_BROKER_EPOCH]
    assert cluster.context == before


def deposed(cluster: Cluster) -> Cluster:
    """Another broker was elected, and this controller has not heard of it."""
    cluster.zookeeper = cluster.zookeeper.with_znodes({CONTROLLER_EPOCH_PATH: cluster.context.epoch + 1})
    return cluster


def check_resigned(cluster: Cluster, result: Result) -> None:
    assert Reason.CONTROLLER_MOVED in {failure.reason for failure in result.failures}
    assert not cluster.context.is_active
    assert cluster.context.assignments == {}
    assert result.steps[-1] == "Resigned"


def test_controller_move_on_topic_creation() -> None:
    cluster = deposed(Cluster(1))
    check_resigned(cluster, cluster.create("t", {0: [0]}))


def test_controller_move_on_topic_deletion() -> None:
    cluster = Cluster(1)
    cluster.create("t", {0: [0]})
    check_resigned(deposed(cluster), cluster.delete("t"))


def test_controller_move_on_preferred_replica_election() -> None:
    cluster = Cluster(1)
    cluster.create("t", {0: [0]})
    check_resigned(deposed(cluster), cluster.prefer(TP))


def test_controller_move_on_partition_reassignment() -> None:
    cluster = Cluster(1)
    cluster.create("t", {0: [0]})
    check_resigned(deposed(cluster), cluster.reassign({TP: [0]}))


@pytest.mark.parametrize(("version", "is_seen"), [(v(2, 1), False), (v(2, 2), True), (v(3, 9), True)], ids=str)
def test_controller_detects_bounced_brokers(version: KafkaVersion, is_seen: bool) -> None:
    cluster = Cluster(2, version)
    cluster.create("t", {0: [0, 1]})
    cluster.requests.clear()
    cluster.bounce(1)
    told = [e.info.isr for r in cluster.sent(LeaderAndIsrRequest) if r.broker_id == 1 for e in r.partitions]
    assert bool(told) is is_seen
    assert cluster.leader_and_isr(TP) == (0, (0,) if is_seen else (0, 1), 1 if is_seen else 0)


def test_topic_ids_are_added() -> None:
    cluster = Cluster(1)
    for topic in ("t1", "t2"):
        cluster.create(topic, {0: [0]})
    assert cluster.context.topic_ids == {"t1": "id-t1", "t2": "id-t2"}
    found = cluster.zookeeper.topic_assignment("t1")
    assert found is not None
    assert found.topic_id == "id-t1"


def test_topic_ids_are_not_added() -> None:
    for cluster in (Cluster(1, inter_broker_protocol=v(2, 7)), Cluster(1, v(2, 7))):
        cluster.create("t", {0: [0]})
        found = cluster.zookeeper.topic_assignment("t")
        assert found is not None
        assert (found.topic_id, cluster.context.topic_ids) == (None, {})


def test_topic_id_created_on_upgrade() -> None:
    cluster = Cluster(1, inter_broker_protocol=v(2, 7))
    cluster.create("t", {0: [0]})
    cluster.settings = replace(cluster.settings, inter_broker_protocol=None)
    cluster.elect(0)
    assert cluster.context.topic_ids == {"t": "id-t"}


def test_topic_id_persists_through_controller_reelection() -> None:
    cluster = Cluster(2)
    cluster.create("t", {0: [0]})
    cluster.elect(1)
    assert cluster.context.topic_ids == {"t": "id-t"}


def test_topic_id_upgrade_after_reassigning_partitions() -> None:
    cluster = Cluster(2)
    cluster.create("t", {0: [0]})
    cluster.reassign({TP: [1]})
    cluster.catch_up()
    found = cluster.zookeeper.topic_assignment("t")
    assert found == TopicAssignment({0: ReplicaAssignment((1,))}, "id-t")


def test_no_topic_id_persists_through_controller_reelection() -> None:
    cluster = Cluster(2, inter_broker_protocol=v(2, 7))
    cluster.create("t", {0: [0]})
    cluster.elect(1)
    assert cluster.context.topic_ids == {}


def test_topic_id_persists_through_controller_restart() -> None:
    cluster = Cluster(1)
    cluster.create("t", {0: [0]})
    cluster.kill(0)
    cluster.start(0)
    cluster.elect(0)
    assert cluster.context.topic_ids == {"t": "id-t"}
