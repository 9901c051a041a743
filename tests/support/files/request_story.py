"""What two brokers log of requests of a controller, in the words of three eras: for tests of propagation.

A story is a list of :class:`Said`; broker 1 is controller 1 with epoch 4 and speaks to broker 2. Each batch is a
LeaderAndIsr and an UpdateMetadata request for partition t-0, and takes twelve milliseconds from decision to answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

STATE_0_8: Final = "(Leader:2,ISR:2,LeaderEpoch:{epoch},ControllerEpoch:4)"
INFO_0_8: Final = (
    "(LeaderAndIsrInfo:(Leader:2,ISR:2,LeaderEpoch:{epoch},ControllerEpoch:4),ReplicationFactor:2),AllReplicas:2,1)"
)
STATE_1_1: Final = (
    "PartitionState(controllerEpoch=4, leader=2, leaderEpoch={epoch}, isr=2, zkVersion=6, replicas=2,1, isNew=false)"
)
CACHED_1_1: Final = (
    "PartitionState(controllerEpoch=4, leader=2, leaderEpoch={epoch}, isr=[2], zkVersion=6, replicas=[2, 1],"
    " offlineReplicas=[])"
)
STATE_3_9: Final = (
    "LeaderAndIsrPartitionState(topicName='t', partitionIndex=0, controllerEpoch=4, leader=2, leaderEpoch={epoch},"
    " isr=[2], partitionEpoch=6, replicas=[2, 1], addingReplicas=[], removingReplicas=[], isNew=false,"
    " leaderRecoveryState=0)"
)
CACHED_3_9: Final = (
    "UpdateMetadataPartitionState(topicName='t', partitionIndex=0, controllerEpoch=4, leader=2, leaderEpoch={epoch},"
    " isr=[2], zkVersion=6, replicas=[2, 1], offlineReplicas=[])"
)


@dataclass(frozen=True, slots=True)
class Said:
    """A line: whose log, when (milliseconds of the story), its level, a name by which a test finds it, its log."""

    broker_id: int
    at_ms: int
    text: str
    level: str = "TRACE"
    name: str = ""
    source_kind: str = "state_change_log"


def batch_0_8(at_ms: int, correlation: int, epoch: int) -> list[Said]:
    """0.8.2: one correlation id for the batch, printed where it is sent."""
    who, me = "Controller 1 epoch 4", "Broker 2"
    of = f"correlation id {correlation} from controller 1 epoch 4 for partition [t,0]"
    state, info = STATE_0_8.format(epoch=epoch), INFO_0_8.format(epoch=epoch)
    step = f"LeaderAndIsr request correlationId {correlation} from controller 1 epoch 4"
    said = [
        (1, 0, f"{who} changed partition [t,0] from OfflinePartition to OnlinePartition with leader 2", "decided"),
        (
            1,
            1,
            f"{who} sending become-leader LeaderAndIsr request {state} with correlationId {correlation} to broker 2"
            " for partition [t,0]",
            "sent",
        ),
        (
            1,
            2,
            f"{who} sending UpdateMetadata request {state} with correlationId {correlation} to broker 2 for"
            " partition [t,0]",
            "sent metadata",
        ),
        (2, 5, f"{me} received LeaderAndIsr request {info} {of}", "received"),
        (2, 6, f"{me} handling {step} starting the become-leader transition for partition [t,0]", "started"),
        (2, 8, f"{me} completed {step} for the become-leader transition for partition [t,0]", "completed"),
        (
            1,
            9,
            f"{who} received response LeaderAndIsrResponse({correlation},Map((t,0) -> 0),0) for a request sent to"
            " broker id:2,host:h,port:9092",
            "answered",
        ),
        (
            2,
            10,
            f"{me} cached leader info {info} for partition [t,0] in response to UpdateMetadata request sent by"
            f" controller 1 epoch 4 with correlation id {correlation}",
            "cached",
        ),
        (
            1,
            12,
            f"{who} received response UpdateMetadataResponse({correlation},0) for a request sent to broker"
            " id:2,host:h,port:9092",
            "answered metadata",
        ),
    ]
    return [Said(broker, at_ms + ms, text, name=name) for broker, ms, text, name in said]


def batch_1_1(at_ms: int, correlation: int, epoch: int) -> list[Said]:
    """1.1: the sender prints no correlation id; each request has its own."""
    who, me = "[Controller id=1 epoch=4]", "[Broker id=2]"
    state, cached = STATE_1_1.format(epoch=epoch), CACHED_1_1.format(epoch=epoch)
    step = f"LeaderAndIsr request correlationId {correlation} from controller 1 epoch 4"
    answer = "with correlation id {} sent to broker h:9092 (id: 2 rack: null)"
    said = [
        (
            1,
            0,
            f"{who} Changed partition t-0 from OfflinePartition to OnlinePartition with state LeaderAndIsr(leader=2,"
            f" leaderEpoch={epoch}, isr=List(2), zkVersion=6)",
            "decided",
        ),
        (1, 1, f"{who} Sending become-leader LeaderAndIsr request {state} to broker 2 for partition t-0", "sent"),
        (1, 2, f"{who} Sending UpdateMetadata request {cached} to brokers Set(2) for partition t-0", "sent metadata"),
        (
            2,
            5,
            f"{me} Received LeaderAndIsr request {state} correlation id {correlation} from controller 1 epoch 4 for"
            " partition t-0",
            "received",
        ),
        (2, 6, f"{me} Handling {step} starting the become-leader transition for partition t-0", "started"),
        (2, 8, f"{me} Completed {step} for the become-leader transition for partition t-0", "completed"),
        (
            1,
            9,
            f"{who} Received response {{error_code=0,partitions=[{{topic=t,partition=0,error_code=0}}]}} for request"
            f" LEADER_AND_ISR {answer.format(correlation)}",
            "answered",
        ),
        (
            2,
            10,
            f"{me} Cached leader info {cached} for partition t-0 in response to UpdateMetadata request sent by"
            f" controller 1 epoch 4 with correlation id {correlation + 1}",
            "cached",
        ),
        (
            1,
            12,
            f"{who} Received response {{error_code=0}} for request UPDATE_METADATA {answer.format(correlation + 1)}",
            "answered metadata",
        ),
    ]
    return [Said(broker, at_ms + ms, text, name=name) for broker, ms, text, name in said]


def batch_3_9(at_ms: int, correlation: int, epoch: int) -> list[Said]:
    """3.9: as 1.1, and lines of level INFO that count partitions; UpdateMetadata is sent with no others."""
    who, me = "[Controller id=1 epoch=4]", "[Broker id=2]"
    state, cached = STATE_3_9.format(epoch=epoch), CACHED_3_9.format(epoch=epoch)
    step = f"LeaderAndIsr request correlationId {correlation} from controller 1 epoch 4"
    update = f"in response to UpdateMetadata request sent by controller 1 epoch 4 with correlation id {correlation + 1}"
    answer = "with correlation id {} sent to broker h:9092 (id: 2 rack: null)"
    said = [
        (
            1,
            0,
            f"{who} Changed partition t-0 from OfflinePartition to OnlinePartition with state LeaderAndIsr(leader=2,"
            f" leaderEpoch={epoch}, isrWithBrokerEpoch=List(BrokerState(brokerId=2, brokerEpoch=-1)),"
            " leaderRecoveryState=RECOVERED, partitionEpoch=6)",
            "INFO",
            "decided",
        ),
        (
            1,
            1,
            f"{who} Sending become-leader LeaderAndIsr request {state} to broker 2 for partition t-0",
            "TRACE",
            "sent",
        ),
        (
            1,
            1,
            f"{who} Sending LeaderAndIsr request to broker 2 with 1 become-leader and 0 become-follower partitions",
            "INFO",
            "sent batch",
        ),
        (1, 2, f"{who} Sending UpdateMetadata request to brokers HashSet(2) for 1 partitions", "INFO", "sent metadata"),
        (
            2,
            5,
            f"{me} Handling LeaderAndIsr request correlationId {correlation} from controller 1 for 1 partitions",
            "INFO",
            "handling",
        ),
        (
            2,
            5,
            f"{me} Received LeaderAndIsr request {state} correlation id {correlation} from controller 1 epoch 4",
            "TRACE",
            "received",
        ),
        (2, 6, f"{me} Handling {step} starting the become-leader transition for partition t-0", "TRACE", "started"),
        (2, 8, f"{me} Completed {step} for the become-leader transition for partition t-0", "TRACE", "completed"),
        (
            2,
            8,
            f"{me} Finished LeaderAndIsr request in 3ms correlationId {correlation} from controller 1 for 1 partitions",
            "INFO",
            "finished",
        ),
        (
            1,
            9,
            f"{who} Received response LeaderAndIsrResponseData(errorCode=0, partitionErrors=[], topics=[]) for"
            f" request LEADER_AND_ISR {answer.format(correlation)}",
            "TRACE",
            "answered",
        ),
        (2, 10, f"{me} Cached leader info {cached} for partition t-0 {update}", "TRACE", "cached"),
        (2, 10, f"{me} Add 1 partitions and deleted 0 partitions from metadata cache {update}", "INFO", "cached batch"),
        (
            1,
            12,
            f"{who} Received response UpdateMetadataResponseData(errorCode=0) for request UPDATE_METADATA"
            f" {answer.format(correlation + 1)}",
            "TRACE",
            "answered metadata",
        ),
    ]
    return [Said(broker, at_ms + ms, text, level, name) for broker, ms, text, level, name in said]


def without(story: list[Said], *names: str) -> list[Said]:
    """The story without the lines of these names."""
    return [said for said in story if said.name not in names]


def at_info(story: list[Said]) -> list[Said]:
    """The story as a log of level INFO tells it."""
    return [said for said in story if said.level == "INFO"]


def bent(story: list[Said], name: str, old: str, new: str) -> list[Said]:
    """The story with ``old`` for ``new`` in the lines of that name."""
    assert any(said.name == name and old in said.text for said in story)
    return [replace(said, text=said.text.replace(old, new)) if said.name == name else said for said in story]


def later(story: list[Said], name: str, by_ms: int) -> list[Said]:
    """The story with the lines of that name so much later."""
    return [replace(said, at_ms=said.at_ms + by_ms) if said.name == name else said for said in story]
