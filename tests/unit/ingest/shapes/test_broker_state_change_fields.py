"""What the fields of a broker's lines in state-change.log say, written out by hand for every struct and era."""

from __future__ import annotations

import pytest

from ingest.shapes import match

TP = {"topic": "orders", "partition_id": "4"}
CONTROLLER = {"controller_id": "1", "controller_epoch": "12"}
STATE = {"leader": "2", "leader_epoch": "6", "isr": "2,3"}
REQUEST = {**CONTROLLER, "correlation_id": "87"}

STATE_CHANGE = [
    # PartitionStateInfo, its parentheses unbalanced
    (
        "Broker 3 received LeaderAndIsr request (LeaderAndIsrInfo:(Leader:2,ISR:2,3,LeaderEpoch:6,ControllerEpoch:11),"
        "ReplicationFactor:3),AllReplicas:3,1,2) correlation id 87 from controller 1 epoch 12 for partition [orders,4]",
        "leader_and_isr_received",
        {**REQUEST, **TP, **STATE, "broker_id": "3", "state_controller_epoch": "11", "replicas": "3,1,2"},
    ),
    # the same from 0.10 on comes from a Java set; and a Scala set of five has no order either
    (
        "Broker 3 cached leader info (LeaderAndIsrInfo:(Leader:2,ISR:2,3,LeaderEpoch:6,ControllerEpoch:11),"
        "ReplicationFactor:3),AllReplicas:1,2,3) for partition orders-4 in response to UpdateMetadata request sent by "
        "controller 1 epoch 12 with correlation id 87",
        "metadata_cached",
        {**REQUEST, **TP, **STATE, "broker_id": "3", "state_controller_epoch": "11", "replica_set": "1,2,3"},
    ),
    (
        "Broker 3 cached leader info (LeaderAndIsrInfo:(Leader:2,ISR:2,3,LeaderEpoch:6,ControllerEpoch:11),"
        "ReplicationFactor:5),AllReplicas:5,1,2,3,4) for partition [orders,4] in response to UpdateMetadata request "
        "sent by controller 1 epoch 12 with correlation id 87",
        "metadata_cached",
        {**REQUEST, **TP, **STATE, "broker_id": "3", "state_controller_epoch": "11", "replica_set": "5,1,2,3,4"},
    ),
    # PartitionState: 0.10.0.0, 0.10.0.1, 0.11, 1.0 of either request
    (
        "Broker 3 received LeaderAndIsr request org.apache.kafka.common.requests.LeaderAndIsrRequest$PartitionState"
        "@5b2d7f1a correlation id 87 from controller 1 epoch 12 for partition [orders,4]",
        "leader_and_isr_received",
        {**REQUEST, **TP, "broker_id": "3"},
    ),
    (
        "Broker 3 received LeaderAndIsr request PartitionState(controllerEpoch=11, leader=2, leaderEpoch=6, "
        "isr=[2, 3], zkVersion=11, replicas=[2, 1, 3]) correlation id 87 from controller 1 epoch 12 for partition "
        "[orders,4]",
        "leader_and_isr_received",
        {
            **REQUEST,
            **TP,
            **STATE,
            "broker_id": "3",
            "state_controller_epoch": "11",
            "partition_epoch": "11",
            "replica_set": "2,1,3",
        },
    ),
    (
        "Broker 3 received LeaderAndIsr request PartitionState(controllerEpoch=11, leader=2, leaderEpoch=6, isr=2,3, "
        "zkVersion=11, replicas=3,1,2) correlation id 87 from controller 1 epoch 12 for partition [orders,4]",
        "leader_and_isr_received",
        {
            **REQUEST,
            **TP,
            **STATE,
            "broker_id": "3",
            "state_controller_epoch": "11",
            "partition_epoch": "11",
            "replicas": "3,1,2",
        },
    ),
    (
        "[Broker id=3] Received LeaderAndIsr request PartitionState(controllerEpoch=11, leader=2, leaderEpoch=6, "
        "isr=2,3, zkVersion=11, replicas=3,1,2, isNew=true) correlation id 87 from controller 1 epoch 12 for partition "
        "orders-4",
        "leader_and_isr_received",
        {
            **REQUEST,
            **TP,
            **STATE,
            "broker_id": "3",
            "state_controller_epoch": "11",
            "partition_epoch": "11",
            "replicas": "3,1,2",
            "is_new": "true",
        },
    ),
    # generated structs: topic and partition inside
    (
        "[Broker id=3] Received LeaderAndIsr request LeaderAndIsrPartitionState(topicName='orders', partitionIndex=4, "
        "controllerEpoch=11, leader=2, leaderEpoch=6, isr=[2, 3], partitionEpoch=11, replicas=[3, 1, 2], "
        "addingReplicas=[3], removingReplicas=[], isNew=false, leaderRecoveryState=0) correlation id 87 from "
        "controller 1 epoch 12",
        "leader_and_isr_received",
        {
            **REQUEST,
            **TP,
            **STATE,
            "broker_id": "3",
            "state_controller_epoch": "11",
            "partition_epoch": "11",
            "replicas": "3,1,2",
            "adding_replicas": "3",
            "removing_replicas": "",
            "is_new": "false",
            "leader_recovery_state": "0",
        },
    ),
    # 2.8 KRaft preview: a positional struct
    (
        "[Broker id=3] Metadata batch 210: locally changed: MetadataPartition(orders,4,2,6,[3, 1, 2],[2, 3],11,[1],[],"
        "[])",
        "metadata_record",
        {
            **TP,
            **STATE,
            "broker_id": "3",
            "metadata_offset": "210",
            "partition_epoch": "11",
            "replicas": "3,1,2",
            "offline_replicas": "1",
            "adding_replicas": "",
            "removing_replicas": "",
        },
    ),
    (
        "[Broker id=3] Apply deferred leader partition a-b-4: completed the become-leader state change.",
        "become_leader_completed",
        {"broker_id": "3", "topic": "a-b", "partition_id": "4"},
    ),
    # stale requests; 0.8.0 swaps the two numbers, 0.8.1 prints the same text with them right
    (
        "Broker 3 received LeaderAndIsr request correlation id 11 with an old controller epoch 87. Latest known "
        "controller epoch is 12",
        "leader_and_isr_ignored",
        {
            "broker_id": "3",
            "correlation_id": "87",
            "request_controller_epoch": "11",
            "known_controller_epoch": "12",
        },
    ),
    (
        "Broker 3 received LeaderAndIsr request correlation id 87 with an old controller epoch 11. Latest known "
        "controller epoch is 12",
        "leader_and_isr_ignored",
        {
            "broker_id": "3",
            "correlation_id": "87",
            "request_controller_epoch": "11",
            "known_controller_epoch": "12",
        },
    ),
    (
        "Broker 3 received LeaderAndIsr request correlation id 7 with an old controller epoch 11. Latest known "
        "controller epoch is 12",
        "leader_and_isr_ignored",
        {"broker_id": "3", "known_controller_epoch": "12"},
    ),
    # 0.8.0 to 0.9.0.1: a literal %d
    (
        "Broker 3 received stop replica request from an old controller epoch 11. Latest known controller epoch is %d "
        "12",
        "stop_replica_ignored",
        {"broker_id": "3", "request_controller_epoch": "11", "known_controller_epoch": "12"},
    ),
    # up to 0.11 these two print the partition's controller epoch, not the request's
    (
        "Broker 3 skipped the become-follower state change after marking its partition as follower with correlation id "
        "87 from controller 1 epoch 11 for partition [orders,4] since the new leader 2 is the same as the old leader",
        "become_follower_skipped",
        {
            **TP,
            "broker_id": "3",
            "controller_id": "1",
            "correlation_id": "87",
            "state_controller_epoch": "11",
            "leader": "2",
        },
    ),
    (
        "[Broker id=3] Received LeaderAndIsrRequest with correlation id 87 from controller 1 epoch 12 for partition "
        "orders-4 (last update controller epoch 11) but cannot become follower since the new leader 2 is unavailable.",
        "become_follower_failed",
        {**REQUEST, **TP, "broker_id": "3", "state_controller_epoch": "11", "leader": "2"},
    ),
    (
        "Broker 3 ignored the become-follower state change with correlation id 87 controller 1 epoch 12 for partition "
        "Topic: orders; Partition: 4; Leader: Some(2); AssignedReplicas: 1,2,3; InSyncReplicas: 2,3 since the "
        "designated leader 2 cannot be found in live or shutting down brokers id:2,host:kafka2,port:9092,"
        "id:3,host:kafka3,port:9092",
        "become_follower_skipped",
        {**REQUEST, **TP, "broker_id": "3", "leader": "2", "live_broker_ids": "2,3"},
    ),
    (
        "Error on broker 3 while processing LeaderAndIsr request correlationId 87 received from controller 1 epoch 12 "
        "for partition (orders,4)",
        "leader_and_isr_failed",
        {**REQUEST, **TP, "broker_id": "3"},
    ),
    # leader epochs: 2.6, 3.3, 3.6
    (
        "[Broker id=3] Leader orders-4 starts at leader epoch 6 from offset 1523 with high watermark 1500 ISR [2,3] "
        "addingReplicas [] removingReplicas []. Previous leader epoch was 5.",
        "leader_epoch_started",
        {
            **TP,
            "broker_id": "3",
            "role": "leader",
            "leader_epoch": "6",
            "leader_epoch_start_offset": "1523",
            "high_watermark": "1500",
            "isr": "2,3",
            "adding_replicas": "",
            "removing_replicas": "",
            "previous_leader_epoch": "5",
        },
    ),
    (
        "[Broker id=3] Leader orders-4 with topic id Some(Fk3SYnmFQoGlW6AtDmbJzw) starts at leader epoch 6 from offset "
        "1523 with partition epoch 12, high watermark 1500, ISR [2,3], adding replicas [4] and removing replicas [1] . "
        "Previous leader Some(1) and previous leader epoch was 5.",
        "leader_epoch_started",
        {
            **TP,
            "broker_id": "3",
            "role": "leader",
            "topic_id": "Fk3SYnmFQoGlW6AtDmbJzw",
            "leader_epoch": "6",
            "leader_epoch_start_offset": "1523",
            "partition_epoch": "12",
            "high_watermark": "1500",
            "isr": "2,3",
            "adding_replicas": "4",
            "removing_replicas": "1",
            "under_min_isr": "false",
            "previous_leader": "1",
            "previous_leader_epoch": "5",
        },
    ),
    # 3.6 and later print the new leader and epoch as the previous ones of a follower
    (
        "[Broker id=3] Follower orders-4 starts at leader epoch 6 from offset 1523 with partition epoch 12 and high "
        "watermark 1500. Current leader is 2. Previous leader Some(2) and previous leader epoch was 6.",
        "leader_epoch_started",
        {
            **TP,
            "broker_id": "3",
            "role": "follower",
            "leader_epoch": "6",
            "log_end_offset": "1523",
            "partition_epoch": "12",
            "high_watermark": "1500",
            "leader": "2",
        },
    ),
    (
        "[Broker id=3] Started fetcher to new leader as part of become-follower request from controller 1 epoch 12 "
        "with correlation id 87 for partition orders-4 with leader BrokerEndPoint(id=2, host=kafka2:9092)",
        "fetcher_started",
        {**REQUEST, **TP, "broker_id": "3", "leader": "2"},
    ),
]


@pytest.mark.parametrize(("message", "event_type", "fields"), STATE_CHANGE)
def test_state_change_log(message: str, event_type: str, fields: dict[str, str]) -> None:
    found = match("state_change_log", "state.change.logger", message)
    assert found is not None
    assert found.event_type == event_type
    assert found.fields == fields
