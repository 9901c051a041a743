"""Becoming controller: the order of the steps in each era, what is read, who is stopped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconstruct.model.controller.outputs import (
    LeaderAndIsrRequest,
    Output,
    PartitionTransition,
    Reason,
    ReplicaTransition,
    UpdateMetadataRequest,
)
from reconstruct.model.controller.values import TopicPartition
from reconstruct.model.controller.zookeeper import Code, topic_path
from reconstruct.model.states import PartitionState, ReplicaState
from reconstruct.model.versions import KafkaVersion, v
from reconstruct.model.znode_paths import CONTROLLER_PATH, DELETE_TOPICS_PATH, REASSIGN_PARTITIONS_PATH
from tests.oracles.controller import broker_changes, failover
from tests.oracles.controller.cluster import Cluster
from tests.oracles.controller.context import ControllerContext, Settings
from tests.oracles.controller.context_changes import remove_live_brokers, reset
from tests.oracles.controller.outcomes import (
    Result,
    Step,
)
from tests.oracles.controller.znodes import children, controller_id, delete
from tests.oracles.controller.zookeeper import ZooKeeper
from tests.support.loops import for_each
from tests.unit.reconstruct.model.controller.clusters import ERAS

TP = TopicPartition("t", 0)


def kinds(outputs: tuple[Output, ...]) -> list[str]:
    """The outputs by kind, runs of one kind once."""
    found: list[str] = []
    for output in outputs:
        name = output.text if isinstance(output, Step) else type(output).__name__
        if not found or found[-1] != name:
            found.append(name)
    return found


def test_the_first_controller_has_epoch_1_and_each_next_one_more() -> None:
    cluster = Cluster(3)
    assert cluster.context.epoch == 1
    for number, broker in enumerate((1, 2, 0), start=2):
        cluster.elect(broker)
        assert cluster.context.epoch == number
        assert controller_id(cluster.zookeeper) == broker


def test_nobody_is_elected_while_somebody_serves() -> None:
    cluster = Cluster(2)
    idle = ControllerContext(settings=Settings(broker_id=1), is_active=False)
    result = failover.elect(idle, cluster.zookeeper)
    assert (result.context, result.zookeeper, result.writes) == (idle, cluster.zookeeper, ())


@for_each(version=ERAS)
def test_brokers_hear_of_each_other_before_or_after_the_machines_start(version: KafkaVersion) -> None:
    cluster = Cluster(2, version)
    cluster.create("t", {0: [0, 1]})
    result = cluster.elect(1)
    steps = list(result.steps)
    told, machines = steps.index("Sending update metadata request"), steps.index("Initializing replica state")
    assert (told < machines) is (version >= v(0, 10, 2))
    assert machines < steps.index("Initializing partition state")
    assert steps.index("Initializing controller context") < machines


@for_each(version=ERAS)
def test_everything_is_read_from_zookeeper(version: KafkaVersion) -> None:
    cluster = Cluster(3, version)
    cluster.create("t", {0: [0, 1, 2], 1: [1, 2, 0]})
    cluster.shut_down(2)
    before = cluster.context
    cluster.elect(1)
    after = cluster.context
    assert after.assignments == before.assignments
    assert after.live_broker_epochs == before.live_broker_epochs
    assert after.shutting_down_broker_ids == frozenset()
    assert set(after.partition_states.values()) == {PartitionState.ONLINE}
    assert set(after.replica_states.values()) == {ReplicaState.ONLINE}
    assert {p: info.leader_and_isr for p, info in after.leadership.items()} == {
        p: cluster.state(p).leader_and_isr for p in after.assignments
    }


@pytest.mark.parametrize(("version", "epoch", "leader"), [(v(2, 2), 1, 0), (v(2, 3), 2, 0), (v(3, 9), 2, 0)], ids=str)
def test_a_leader_that_died_with_the_controller(version: KafkaVersion, epoch: int, leader: int) -> None:
    """Since 2.3 the dead replicas leave the ISR, which raises the epoch once more before the election does."""
    cluster = Cluster(3, version)
    cluster.create("t", {0: [1, 0]})
    cluster.zookeeper, _ = delete(cluster.zookeeper, "/brokers/ids/1")
    result = cluster.elect(0)
    assert cluster.leader_and_isr(TP) == (leader, (0,), epoch)
    replicas = [t.to_state for t in result.transitions if isinstance(t, ReplicaTransition)]
    assert (ReplicaState.OFFLINE in replicas) is (version >= v(2, 3))


def test_the_replica_machine_starts_before_the_partition_machine() -> None:
    cluster = Cluster(2)
    cluster.create("t", {0: [1, 0]})
    cluster.zookeeper, _ = delete(cluster.zookeeper, "/brokers/ids/1")
    result = cluster.elect(0)
    seen = [type(t) for t in result.transitions]
    assert seen.index(PartitionTransition) > max(n for n, kind in enumerate(seen) if kind is ReplicaTransition)
    order = kinds(result.outputs)
    assert order.index("UpdateMetadataRequest") < order.index("LeaderAndIsrRequest")


@for_each(version=ERAS)
def test_what_was_under_way_is_taken_up(version: KafkaVersion) -> None:
    cluster = Cluster(4, version)
    cluster.create("moving", {0: [0, 1]})
    moving = TopicPartition("moving", 0)
    cluster.reassign({moving: [2, 3]})
    if version >= v(0, 8, 1):
        cluster.create("gone", {0: [0, 1]})
        cluster.delete("gone")
    cluster.to_delete.clear()
    cluster.elect(1)
    assert set(cluster.context.partitions_being_reassigned) == {moving}
    cluster.catch_up()
    assert cluster.leader_and_isr(moving)[:2] == (2, (2, 3))
    assert REASSIGN_PARTITIONS_PATH not in cluster.zookeeper.znodes
    if version >= v(0, 8, 1):
        cluster.answer_deletions()
        assert topic_path("gone") not in cluster.zookeeper.znodes
        assert f"{DELETE_TOPICS_PATH}/gone" not in cluster.zookeeper.znodes


@for_each(version=ERAS[1:])
def test_topics_with_a_dead_replica_are_ineligible_from_the_start(version: KafkaVersion) -> None:
    cluster = Cluster(3, version)
    cluster.create("t", {0: [0, 2]})
    cluster.kill(2)
    cluster.delete("t")
    cluster.elect(1)
    assert cluster.context.topics_ineligible_for_deletion == {"t"}
    cluster.start(2)
    cluster.answer_deletions()
    assert topic_path("t") not in cluster.zookeeper.znodes


@for_each(version=ERAS)
def test_a_zombie_may_write_what_no_newer_controller_has_touched_until_2_1(version: KafkaVersion) -> None:
    cluster = Cluster(3, version)
    cluster.create("t", {0: [0, 1, 2]})
    zombie = cluster.context
    cluster.elect(1)
    truth = cluster.state(TP)
    less = remove_live_brokers(zombie, [0])
    result = broker_changes.on_broker_failure(less, cluster.zookeeper, (0,))
    written, _ = result.zookeeper.partition_state(TP)
    assert (written == truth) is (version >= v(2, 1))
    assert result.has_moved is (version >= v(2, 1))
    if result.has_moved:
        assert failover.maybe_resign(result).context == reset(zombie)


@for_each(version=ERAS)
def test_a_zombie_is_stopped_by_what_a_newer_controller_wrote(version: KafkaVersion) -> None:
    cluster = Cluster(3, version)
    cluster.create("t", {0: [0, 1, 2]})
    zombie = cluster.context
    cluster.elect(1)
    cluster.kill(0)
    truth = cluster.state(TP)
    result = broker_changes.process_broker_change(zombie, cluster.zookeeper)
    assert result.zookeeper.partition_state(TP) == (truth, Code.OK)
    assert {failure.reason for failure in result.failures} <= {Reason.STATE_CHANGE_FAILED, Reason.CONTROLLER_MOVED}
    assert result.failures
    assert [r for r in result.requests if isinstance(r, LeaderAndIsrRequest)] == []


def test_a_controller_that_sees_another_in_its_place_resigns() -> None:
    cluster = Cluster(2)
    cluster.create("t", {0: [0, 1]})
    elsewhere = cluster.zookeeper.with_znodes({CONTROLLER_PATH: 1})
    resigned = failover.maybe_resign(Result(cluster.context, elsewhere))
    assert resigned.context == reset(cluster.context)
    assert resigned.steps == ("Resigned",)
    assert failover.maybe_resign(Result(cluster.context, cluster.zookeeper)).context == cluster.context


def test_notifications_of_the_past_are_cleared() -> None:
    cluster = Cluster(1)
    cluster.zookeeper = cluster.zookeeper.with_znodes({"/isr_change_notification/isr_change_0000000001": None})
    cluster.elect(0)
    assert children(cluster.zookeeper, "/isr_change_notification") == ()


def test_a_cluster_without_topics_still_hears_of_its_brokers() -> None:
    """Since 0.9; before, there was nothing to tell."""
    for version, brokers in ((v(0, 8, 2), []), (v(0, 9), [0, 1]), (v(3, 9), [0, 1])):
        cluster = Cluster(2, version)
        assert [r.broker_id for r in cluster.sent(UpdateMetadataRequest)] == brokers


def test_nothing_in_zookeeper_is_no_reason_to_fail() -> None:
    result = failover.elect(ControllerContext(settings=Settings(broker_id=7), is_active=False), ZooKeeper())
    assert (result.context.epoch, result.failures) == (1, ())
    assert result.context.is_active
    assert replace(result.context, epoch=0, epoch_zk_version=0).assignments == {}
