"""Records that name many partitions give aligned lists."""

from __future__ import annotations

import pytest

from ingest.shapes import SHAPES, match
from ingest.shapes.partition_lists import ALIGNED, ALIGNED_LISTS

KC = "kafka.controller.KafkaController"
LISTS = [
    (
        "kafka.controller.PartitionStateMachine",
        "[Partition state machine on Controller 1]: After leader election, leader cache is updated to Map([orders,4] "
        "-> (Leader:2,ISR:2,3,LeaderEpoch:6,ControllerEpoch:11), [a-b,0] -> "
        "(Leader:-1,ISR:,LeaderEpoch:7,ControllerEpoch:12))",
        {
            "topic_partitions": "orders-4,a-b-0",
            "leaders": "2,-1",
            "isrs": "2;3|",
            "leader_epochs": "6,7",
            "state_controller_epochs": "11,12",
        },
    ),
    (
        "kafka.controller.ZkPartitionStateMachine",
        "[PartitionStateMachine controllerId=1] Started partition state machine with initial state -> HashMap(a.b-0 -> "
        "OnlinePartition, orders-4 -> OfflinePartition)",
        {"topic_partitions": "a.b-0,orders-4", "states": "OnlinePartition,OfflinePartition"},
    ),
    (
        "kafka.controller.ZkReplicaStateMachine",
        "[ReplicaStateMachine controllerId=1] Started replica state machine with initial state -> "
        "HashMap([Topic=orders,Partition=4,Replica=1] -> OnlineReplica, [Topic=orders,Partition=4,Replica=2] -> "
        "OfflineReplica)",
        {"topic_partitions": "orders-4,orders-4", "replica_ids": "1,2", "states": "OnlineReplica,OfflineReplica"},
    ),
    (
        KC,
        "[Controller id=1] New topics: [Set(t)], deleted topics: [HashSet()], new partition replica assignment "
        "[Set(TopicIdReplicaAssignment(t,Some(Fk3SYnmFQoGlW6AtDmbJzw),Map(t-0 -> ReplicaAssignment(replicas=1,2, "
        "addingReplicas=, removingReplicas=), t-1 -> ReplicaAssignment(replicas=2,3, addingReplicas=3, "
        "removingReplicas=))))]",
        {
            "new_topics": "t",
            "deleted_topics": "",
            "topic_partitions": "t-0,t-1",
            "topic_ids": "Fk3SYnmFQoGlW6AtDmbJzw,Fk3SYnmFQoGlW6AtDmbJzw",
            "assignments": "1;2|2;3",
            "adding_assignments": "|3",
            "removing_assignments": "|",
        },
    ),
    (
        KC,
        "[Controller id=1] New partitions to be added Map(payments-2 -> Vector(1, 3))",
        {"topic_partitions": "payments-2", "assignments": "1;3"},
    ),
    (
        "kafka.controller.PartitionStateMachine$AddPartitionsListener",
        '[AddPartitionsListener on 1]: Add Partition triggered {"version": 1, "partitions": {"1": [3, 2], "0": [1]}} '
        "for path /brokers/topics/a-b",
        {"path": "/brokers/topics/a-b", "topic": "a-b", "topic_partitions": "a-b-1,a-b-0", "assignments": "3;2|1"},
    ),
    (
        "kafka.controller.PartitionsReassignedListener",
        "[PartitionsReassignedListener on 1]: Partitions reassigned listener fired for path "
        '/admin/reassign_partitions. Record partitions to be reassigned {"version": 1, "partitions": [{"topic": "t", '
        '"partition": 0, "replicas": [3, 1]}]}',
        {"path": "/admin/reassign_partitions", "topic_partitions": "t-0", "assignments": "3;1"},
    ),
    (
        KC,
        "[Controller id=1] Delete topic callback invoked for StopReplicaResponse(responses={t-0=NONE, "
        "t-1=KAFKA_STORAGE_ERROR}, error=NONE)",
        {"topic_partitions": "t-0,t-1", "errors": "NONE,KAFKA_STORAGE_ERROR", "response_error": "NONE"},
    ),
]


@pytest.mark.parametrize(("logger", "message", "fields"), LISTS)
def test_lists(logger: str, message: str, fields: dict[str, str]) -> None:
    found = match("controller_log", logger, message)
    assert found is not None
    assert {name: value for name, value in found.fields.items() if name != "controller_id"} == fields


def test_no_record_gives_a_list_and_its_single_field() -> None:
    for shape in SHAPES:
        for sample in [*shape.samples, *(message for _, message, _ in LISTS)]:
            found = match(shape.source_kind, shape.loggers[0], sample)
            fields = {} if found is None else found.fields
            assert [name for name, single in ALIGNED.items() if name in fields and single in fields] == []


def test_lists_have_the_length_of_the_partitions() -> None:
    for _, _, fields in LISTS:
        for name in ALIGNED:
            if name in fields:
                marks = fields[name].count("|" if name in ALIGNED_LISTS else ",")
                assert marks == fields["topic_partitions"].count(","), name


def test_a_list_of_a_whole_cluster_is_not_remembered_and_is_read() -> None:
    states = ", ".join(f"t-{number} -> OnlinePartition" for number in range(20_000))
    found = match(
        "controller_log",
        "kafka.controller.ZkPartitionStateMachine",
        f"[PartitionStateMachine controllerId=1] Started partition state machine with initial state -> Map({states})",
    )
    assert found is not None
    assert found.fields["topic_partitions"].count(",") == 19_999
