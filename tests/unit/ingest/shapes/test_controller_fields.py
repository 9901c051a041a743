"""What the fields of controller.log say, written out by hand for every struct and era."""

from __future__ import annotations

import pytest

from ingest.shapes import match

TP = {"topic": "orders", "partition_id": "4"}
STATE = {"leader": "2", "leader_epoch": "6", "isr": "2,3"}

CONTROLLER_LOG = [
    (
        "kafka.controller.KafkaController",
        "[Controller id=1] 1 successfully elected as the controller. Epoch incremented to 12 and epoch zk version is "
        "now 12",
        "controller_elected",
        {"controller_id": "1", "controller_epoch": "12", "controller_epoch_zk_version": "12"},
    ),
    (
        "kafka.controller.KafkaController",
        "[Controller 1]: Controller 1 incremented epoch to 12",
        "controller_epoch_incremented",
        {"controller_id": "1", "controller_epoch": "12"},
    ),
    (
        "kafka.controller.KafkaController",
        "[Controller 1]: Broker 1 is ready to serve as the new controller with epoch 12",
        "controller_ready",
        {"controller_id": "1", "controller_epoch": "12"},
    ),
    (
        "kafka.controller.KafkaController",
        "[Controller id=1] Newly added brokers: 2, deleted brokers: , bounced brokers: 3, all live brokers: 1,2,3",
        "broker_change",
        {
            "controller_id": "1",
            "added_broker_ids": "2",
            "deleted_broker_ids": "",
            "bounced_broker_ids": "3",
            "live_broker_ids": "1,2,3",
        },
    ),
    (
        "kafka.controller.ReplicaStateMachine$BrokerChangeListener",
        "[BrokerChangeListener on Controller 1]: Newly added brokers: , deleted brokers: 2, all live brokers: 1,3",
        "broker_change",
        {"controller_id": "1", "added_broker_ids": "", "deleted_broker_ids": "2", "live_broker_ids": "1,3"},
    ),
    (
        "kafka.controller.KafkaController",
        "[Controller id=1] Shutting down broker 2",
        "controlled_shutdown_requested",
        {"controller_id": "1", "shutting_down_broker_ids": "2"},
    ),
    (
        "kafka.controller.KafkaController",
        "[Controller id=1] Successfully updated assignment of partition orders-4 to ReplicaAssignment(replicas=1,2,3, "
        "addingReplicas=3, removingReplicas=)",
        "reassignment_assignment_updated",
        {"controller_id": "1", **TP, "replicas": "1,2,3", "adding_replicas": "3", "removing_replicas": ""},
    ),
    (
        "kafka.controller.TopicDeletionManager",
        "[Topic Deletion Manager 1], Deletion successfully completed for replicas [Topic=orders,Partition=4,Replica=2],"
        "[Topic=orders,Partition=5,Replica=3]",
        "topic_deletion_replicas_deleted",
        {"controller_id": "1", "topic_partitions": "orders-4,orders-5", "replica_ids": "2,3"},
    ),
    # what the controller wrote for a leader since AlterIsr
    (
        "kafka.controller.KafkaController",
        "[Controller id=1] ISR for partition orders-4 updated to LeaderAndIsr(leader=2, leaderEpoch=6, "
        "isrWithBrokerEpoch=List(BrokerState(brokerId=2, brokerEpoch=-1), BrokerState(brokerId=3, brokerEpoch=-1)), "
        "leaderRecoveryState=RECOVERED, partitionEpoch=12).",
        "isr_update_committed",
        {"controller_id": "1", **TP, **STATE, "leader_recovery_state": "0", "partition_epoch": "12"},
    ),
    # up to 0.10 the state znode itself is printed
    (
        "kafka.controller.ReassignedPartitionsIsrChangeListener",
        "[ReassignedPartitionsIsrChangeListener on controller 1]: Reassigned partitions isr change listener fired for "
        "path /brokers/topics/orders/partitions/4/state with children "
        '{"controller_epoch":11,"leader":2,"version":1,"leader_epoch":6,"isr":[2,3]}',
        "reassignment_isr_change",
        {"controller_id": "1", **TP, **STATE, "state_controller_epoch": "11"},
    ),
    (
        "kafka.controller.ControllerBrokerRequestBatch",
        "The stop replica request (delete = true) sent to broker 2 is [Topic=orders,Partition=4,Replica=2]",
        "stop_replica_sent",
        {"to_broker_id": "2", "topic_partitions": "orders-4", "replica_ids": "2", "delete": "true"},
    ),
    (
        "kafka.controller.OfflinePartitionLeaderSelector",
        "[OfflinePartitionLeaderSelector]: No broker in ISR is alive for [orders,4]. Elect leader 2 from live brokers "
        "2,3. There's potential data loss.",
        "unclean_leader_selected",
        {**TP, "leader": "2", "live_broker_ids": "2,3"},
    ),
]


@pytest.mark.parametrize(("logger", "message", "event_type", "fields"), CONTROLLER_LOG)
def test_controller_log(logger: str, message: str, event_type: str, fields: dict[str, str]) -> None:
    found = match("controller_log", logger, message)
    assert found is not None
    assert (found.event_type, found.fields) == (event_type, fields)
    assert match("server_log", logger, message) == found


def test_the_leader_cache_gives_the_state_of_each_partition() -> None:
    found = match(
        "controller_log",
        "kafka.controller.KafkaController",
        "[Controller 1]: All leaders = [orders,4] -> (Leader:2,ISR:2,3,LeaderEpoch:6,ControllerEpoch:11),[a-b,0] -> "
        "(Leader:-1,ISR:,LeaderEpoch:7,ControllerEpoch:12)",
    )
    assert found is not None
    assert found.fields == {
        "controller_id": "1",
        "topic_partitions": "orders-4,a-b-0",
        "leaders": "2,-1",
        "isrs": "2;3|",
        "leader_epochs": "6,7",
        "state_controller_epochs": "11,12",
    }
