"""What the fields of a controller's lines in state-change.log say, written out by hand for every struct and era."""

from __future__ import annotations

import pytest

from ingest.shapes import match

TP = {"topic": "orders", "partition_id": "4"}
CONTROLLER = {"controller_id": "1", "controller_epoch": "12"}
STATE = {"leader": "2", "leader_epoch": "6", "isr": "2,3"}
REQUEST = {**CONTROLLER, "correlation_id": "87"}

NEW = "[Controller id=1 epoch=12] "
OLD = "Controller 1 epoch 12 "

STATE_CHANGE = [
    # 0.8.0: short names in the place of states
    (
        OLD + "changed partition [orders,4] state from NotExists to New with assigned replicas 1,2,3",
        "partition_state_change",
        {**CONTROLLER, **TP, "from_state": "NonExistentPartition", "to_state": "NewPartition", "replicas": "1,2,3"},
    ),
    # 0.8.0: the previous state is a fixed text
    (
        OLD + "changed partition [orders,4] state from Online to Offline",
        "partition_state_change",
        {**CONTROLLER, **TP, "to_state": "OfflinePartition"},
    ),
    (
        OLD + "changed partition [orders,4] from NewPartition to OnlinePartition with leader 2",
        "partition_state_change",
        {**CONTROLLER, **TP, "from_state": "NewPartition", "to_state": "OnlinePartition", "leader": "2"},
    ),
    # a topic whose name holds a hyphen and digits, in both spellings
    (
        OLD + "elected leader 2 for Offline partition [a-1.b_2-3,0]",
        "leader_elected",
        {**CONTROLLER, "leader": "2", "topic": "a-1.b_2-3", "partition_id": "0"},
    ),
    (
        NEW + "Elected leader 2 for Offline partition a-1.b_2-3-0",
        "leader_elected",
        {**CONTROLLER, "leader": "2", "topic": "a-1.b_2-3", "partition_id": "0"},
    ),
    # LeaderAndIsr: 0.8.0, 0.8.1, 1.1, 3.2, 3.5, 4.0
    (
        OLD + "encountered error while changing partition [orders,4]'s state from New to Online since LeaderAndIsr "
        'path already exists with value { "ISR":"2,3", "leader":"2", "leaderEpoch":"6" } and controller epoch 11',
        "partition_state_change_failed",
        {**CONTROLLER, **TP, **STATE, "state_controller_epoch": "11"},
    ),
    (
        OLD + "encountered error while changing partition [orders,4]'s state from New to Online since LeaderAndIsr "
        'path already exists with value {"leader":2,"leader_epoch":6,"isr":[2,3]} and controller epoch 11',
        "partition_state_change_failed",
        {**CONTROLLER, **TP, **STATE, "state_controller_epoch": "11"},
    ),
    (
        NEW + "Changed partition orders-4 from NewPartition to OnlinePartition with state "
        "LeaderAndIsr(leader=2, leaderEpoch=6, isr=List(2, 3), zkVersion=11)",
        "partition_state_change",
        {
            **CONTROLLER,
            **TP,
            **STATE,
            "from_state": "NewPartition",
            "to_state": "OnlinePartition",
            "partition_epoch": "11",
        },
    ),
    (
        NEW + "Changed partition orders-4 from OfflinePartition to OnlinePartition with state "
        "LeaderAndIsr(leader=2, leaderEpoch=6, isr=List(2), leaderRecoveryState=RECOVERING, zkVersion=11)",
        "partition_state_change",
        {
            **CONTROLLER,
            **TP,
            **STATE,
            "isr": "2",
            "from_state": "OfflinePartition",
            "to_state": "OnlinePartition",
            "partition_epoch": "11",
            "leader_recovery_state": "1",
        },
    ),
    (
        NEW + "Changed partition orders-4 from NewPartition to OnlinePartition with state LeaderAndIsr(leader=-1, "
        "leaderEpoch=6, isrWithBrokerEpoch=List(BrokerState(brokerId=2, brokerEpoch=-1), "
        "BrokerState(brokerId=3, brokerEpoch=77)), leaderRecoveryState=RECOVERED, partitionEpoch=11)",
        "partition_state_change",
        {
            **CONTROLLER,
            **TP,
            **STATE,
            "leader": "-1",
            "from_state": "NewPartition",
            "to_state": "OnlinePartition",
            "partition_epoch": "11",
            "leader_recovery_state": "0",
        },
    ),
    (
        NEW + "Changed partition orders-4 from NewPartition to OnlinePartition with state LeaderAndIsr(leader=2, "
        "leaderEpoch=6, isrWithBrokerEpoch=[BrokerState(brokerId=2, brokerEpoch=-1), "
        "BrokerState(brokerId=3, brokerEpoch=-1)], leaderRecoveryState=RECOVERED, partitionEpoch=11)",
        "partition_state_change",
        {
            **CONTROLLER,
            **TP,
            **STATE,
            "from_state": "NewPartition",
            "to_state": "OnlinePartition",
            "partition_epoch": "11",
            "leader_recovery_state": "0",
        },
    ),
    # LeaderIsrAndControllerEpoch: plain, with ZkVersion, with recovery state; an empty ISR
    (
        OLD + "sending become-leader LeaderAndIsr request (Leader:2,ISR:2,3,LeaderEpoch:6,ControllerEpoch:11) with "
        "correlationId 87 to broker 2 for partition [orders,4]",
        "leader_and_isr_sent",
        {
            **REQUEST,
            **TP,
            **STATE,
            "state_controller_epoch": "11",
            "to_broker_id": "2",
            "become_type": "become-leader",
        },
    ),
    (
        OLD + "sending UpdateMetadata request (Leader:-2,ISR:,LeaderEpoch:0,ControllerEpoch:3) to brokers Set(1, 2) "
        "for partition orders-4",
        "update_metadata_sent",
        {
            **CONTROLLER,
            **TP,
            "leader": "-2",
            "isr": "",
            "leader_epoch": "0",
            "state_controller_epoch": "3",
            "to_broker_ids": "1,2",
        },
    ),
    (
        NEW + "Partition orders-4 state changed to (Leader:2,ISR:2,3,LeaderRecoveryState:RECOVERED,LeaderEpoch:6,"
        "ZkVersion:11,ControllerEpoch:12) after removing replica 1 from the ISR as part of transition to "
        "OfflineReplica",
        "isr_shrunk_by_controller",
        {
            **CONTROLLER,
            **TP,
            **STATE,
            "partition_epoch": "11",
            "state_controller_epoch": "12",
            "leader_recovery_state": "0",
            "replica_id": "1",
        },
    ),
    (
        NEW + "Sent LeaderAndIsr request (Leader:2,ISR:2,3,LeaderEpoch:6,ZkVersion:11,ControllerEpoch:12) with new "
        "replica assignment ReplicaAssignment(replicas=1,2,3,4, addingReplicas=4, removingReplicas=) to leader 2 for "
        "partition being reassigned orders-4",
        "reassignment_leader_and_isr_sent",
        {
            **CONTROLLER,
            **TP,
            **STATE,
            "partition_epoch": "11",
            "state_controller_epoch": "12",
            "replicas": "1,2,3,4",
            "adding_replicas": "4",
            "removing_replicas": "",
        },
    ),
    (
        NEW + "Sending UpdateMetadata request PartitionState(controllerEpoch=11, leader=2, leaderEpoch=6, isr=[2, 3], "
        "zkVersion=11, replicas=[3, 1, 2], offlineReplicas=[1]) to brokers Set(1, 2, 3) for partition orders-4",
        "update_metadata_sent",
        {
            **CONTROLLER,
            **TP,
            **STATE,
            "state_controller_epoch": "11",
            "partition_epoch": "11",
            "replicas": "3,1,2",
            "offline_replicas": "1",
            "to_broker_ids": "1,2,3",
        },
    ),
    (
        NEW + "Sending StopReplica request StopReplicaPartitionState(partitionIndex=4, leaderEpoch=7, "
        "deletePartition=true) to broker 2 for partition orders-4",
        "stop_replica_sent",
        {**CONTROLLER, **TP, "leader_epoch": "7", "delete": "true", "to_broker_id": "2"},
    ),
    # responses and brokers
    (
        OLD + "received response LeaderAndIsrResponse(87,Map((orders,4) -> 0, (orders,5) -> 6),0) for a request sent "
        "to broker id:2,host:kafka2,port:9092",
        "response_received",
        {
            **REQUEST,
            "api": "LEADER_AND_ISR",
            "response_error": "0",
            "partition_errors": "orders-5:6",
            "to_broker_id": "2",
        },
    ),
    (
        OLD + "received response UpdateMetadataResponse(87,11) for a request sent to broker id:2,host:kafka2,port:9092",
        "response_received",
        {**REQUEST, "api": "UPDATE_METADATA", "response_error": "11", "to_broker_id": "2"},
    ),
    (
        OLD + "received response {error_code=0} for a request sent to broker Node(2, kafka2, 9092)",
        "response_received",
        {**CONTROLLER, "response_error": "0", "to_broker_id": "2"},
    ),
    (
        NEW + "Received response {error_code=0,partitions=[{topic=orders,partition=4,error_code=9}]} for request "
        "STOP_REPLICA with correlation id 87 sent to broker kafka2:9092 (id: 2 rack: r1)",
        "response_received",
        {
            **REQUEST,
            "api": "STOP_REPLICA",
            "response_error": "0",
            "partition_errors": "orders-4:9",
            "to_broker_id": "2",
        },
    ),
    (
        NEW + "Sending UpdateMetadata request to brokers HashSet(1, 2, 3) for 40 partitions",
        "request_batch_sent",
        {**CONTROLLER, "to_broker_ids": "1,2,3", "n_partitions": "40", "api": "UPDATE_METADATA"},
    ),
    (
        "[Controller id=1] Mark replicas a-b-4,orders-5 on broker 2 as offline",
        "replicas_marked_offline",
        {"controller_id": "1", "topic_partitions": "a-b-4,orders-5", "to_broker_id": "2"},
    ),
    (
        "Adding brokers Set(4), removing brokers Set().",
        "migration",
        {"added_broker_ids": "4", "deleted_broker_ids": ""},
    ),
    (
        "Adding brokers Set(3 : (EndPoint(127.0.0.1,21063,ListenerName(PLAINTEXT),PLAINTEXT)) : null : Features{}),"
        " removing brokers Set(1 : (EndPoint(127.0.0.1,21061,ListenerName(PLAINTEXT),PLAINTEXT)) : null : Features{},"
        " 2 : (EndPoint(127.0.0.1,21062,ListenerName(PLAINTEXT),PLAINTEXT)) : null : Features{}).",
        "migration",
        {"added_broker_ids": "3", "deleted_broker_ids": "1,2"},
    ),
]


@pytest.mark.parametrize(("message", "event_type", "fields"), STATE_CHANGE)
def test_state_change_log(message: str, event_type: str, fields: dict[str, str]) -> None:
    found = match("state_change_log", "state.change.logger", message)
    assert found is not None
    assert found.event_type == event_type
    assert found.fields == fields
