"""Why a transition failed, from the first line of the stack trace."""

from __future__ import annotations

import json
import lzma

import pytest

from ingest.shapes import SHAPES, match_cause
from tests.support.loops import for_each
from tests.unit.ingest.shapes.catalogue import DATA

with lzma.open(DATA / "message-templates.jsonl.xz", "rt", encoding="utf-8") as lines:
    EXCEPTIONS = [entry for entry in map(json.loads, lines) if entry["kind"] == "exception_line"]
SHAPE_OF = {template: shape for shape in SHAPES if shape.source_kind == "exception" for template in shape.templates}


@for_each(template=EXCEPTIONS)
def test_every_exception_of_the_catalogue_has_its_shape(template: dict[str, str]) -> None:
    shape = SHAPE_OF[template["id"]]
    for text in (template["example"], "Caused by: " + template["example"], template["example"] + "  \n\tat kafka.X"):
        found = match_cause(text)
        assert found is not None
        assert (found.shape_id, found.event_type) == (shape.id, shape.event_type)
        assert found.fields["exception_class"] == template["example"].split(":")[0]


def test_there_are_twenty() -> None:
    assert len(EXCEPTIONS) == 20


TP = {"topic": "orders", "partition_id": "4"}
FAILED = "kafka.common.StateChangeFailedException"

CAUSES = [
    (
        "java.lang.IllegalStateException: Replica [Topic=orders,Partition=4,Replica=3] should be in the "
        "ReplicaDeletionStarted states before moving to ReplicaDeletionIneligible state. Instead it is in "
        "OfflineReplica state",
        "illegal_transition",
        {
            **TP,
            "replica_id": "3",
            "valid_states": "ReplicaDeletionStarted",
            "to_state": "ReplicaDeletionIneligible",
            "from_state": "OfflineReplica",
        },
    ),
    (
        "kafka.common.NoReplicaOnlineException: No replica for partition [orders,4] is alive. Live brokers are: "
        "[Set(4, 5)], Assigned replicas are: [List(1, 2, 3)]",
        "no_replica_online",
        {**TP, "live_broker_ids": "4,5", "replicas": "1,2,3"},
    ),
    (
        f"{FAILED}: Failed to elect leader for partition orders-4 under strategy "
        "OfflinePartitionLeaderElectionStrategy(false)",
        "no_replica_online",
        {**TP, "election_strategy": "OfflinePartitionLeaderElectionStrategy(false)"},
    ),
    (
        f"{FAILED}: Leader and isr path written by another controller. This probablymeans the current controller with "
        "epoch 12 went through a soft failure and another controller was elected with epoch 13. Aborting state change "
        "by this controller",
        "stale_controller_epoch",
        {"controller_epoch": "12", "known_controller_epoch": "13"},
    ),
    (
        "org.apache.kafka.common.errors.ControllerMovedException: [Broker id=3] Received update metadata request with "
        "correlation id 87 from an old controller 1 with epoch 11. Latest known controller epoch is 12",
        "stale_controller_epoch",
        {
            "broker_id": "3",
            "correlation_id": "87",
            "request_controller_id": "1",
            "request_controller_epoch": "11",
            "known_controller_epoch": "12",
        },
    ),
    (
        "org.apache.zookeeper.KeeperException$BadVersionException: KeeperErrorCode = BadVersion for "
        "/brokers/topics/orders/partitions/4/state",
        "zookeeper_error",
        {**TP, "error": "BadVersion", "path": "/brokers/topics/orders/partitions/4/state"},
    ),
]


@pytest.mark.parametrize(("text", "event_type", "fields"), CAUSES)
def test_causes(text: str, event_type: str, fields: dict[str, str]) -> None:
    found = match_cause(text)
    assert found is not None
    assert (found.event_type, found.fields) == (event_type, {"exception_class": text.split(":")[0], **fields})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\tat kafka.controller.KafkaController.run(KafkaController.scala:12)",
        "java.lang.NullPointerException",
        "java.io.IOException: something nobody knows",
        "Partition orders-4 should be in one of A states before moving to B state. Instead it is in C state",
    ],
)
def test_what_is_no_known_exception_gives_nothing(text: str) -> None:
    assert match_cause(text) is None
