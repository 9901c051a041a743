"""What a step of the controller leaves behind besides its new state: effects as data, in the order they happen.

Requests say to whom and with what; znode writes say what ZooKeeper accepted; transitions are what state-change.log
tells (each era in its own words). A failure is an answer, never an exception: it names what was tried, why it was
refused, and it changed nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reconstruct.model.controller.context import ControllerContext
from reconstruct.model.controller.values import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
    TopicPartition,
)
from reconstruct.model.controller.zookeeper import Content, ZooKeeper
from reconstruct.model.states import PartitionState, ReplicaState
from reconstruct.model.value_class import value_class


@value_class
class LeaderAndIsrPartition:
    """One partition in a LeaderAndIsr or UpdateMetadata request."""

    partition: TopicPartition
    info: LeaderIsrAndControllerEpoch
    assignment: ReplicaAssignment
    #: LeaderAndIsr since 1.0: the replica may be created on any good log directory.
    is_new: bool = False
    #: UpdateMetadata since 1.0.
    offline_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ControllerRequest:
    """What every request of a controller to a broker says."""

    broker_id: int
    controller_id: int
    controller_epoch: int


@dataclass(frozen=True, slots=True)
class LeaderAndIsrRequest(ControllerRequest):
    """Tells a broker which of its replicas lead and whom the others follow."""

    partitions: tuple[LeaderAndIsrPartition, ...]


@dataclass(frozen=True, slots=True)
class UpdateMetadataRequest(ControllerRequest):
    """Tells a broker's metadata cache of partitions and of the brokers that live."""

    partitions: tuple[LeaderAndIsrPartition, ...]
    live_broker_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StopReplicaPartition:
    partition: TopicPartition
    delete_partition: bool
    #: Sent since 2.6; -1 where there is none, -2 where the topic is being deleted.
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class StopReplicaRequest(ControllerRequest):
    """Tells a broker to stop fetching, or to delete a replica; up to 2.5 all partitions of one are of one kind."""

    partitions: tuple[StopReplicaPartition, ...]


Request = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest


@dataclass(frozen=True, slots=True)
class ZnodeWrite:
    """A write that ZooKeeper accepted; content and version are None where the znode was deleted."""

    path: str
    content: Content
    version: int | None


@dataclass(frozen=True, slots=True)
class PartitionTransition:
    """``leader_and_isr`` where the target is OnlinePartition."""

    partition: TopicPartition
    from_state: PartitionState
    to_state: PartitionState
    leader_and_isr: LeaderAndIsr | None = None


@dataclass(frozen=True, slots=True)
class ReplicaTransition:
    """``is_logged`` is False for the one transition that up to 1.0 is made in silence."""

    partition: TopicPartition
    replica_id: int
    from_state: ReplicaState
    to_state: ReplicaState
    is_logged: bool = True


Output = Request | ZnodeWrite | PartitionTransition | ReplicaTransition


class Reason(StrEnum):
    """Why something was refused, by the exception Kafka throws."""

    ILLEGAL_STATE = "IllegalStateException"
    ILLEGAL_ARGUMENT = "IllegalArgumentException"
    STATE_CHANGE_FAILED = "StateChangeFailedException"
    NO_REPLICA_ONLINE = "NoReplicaOnlineException"
    ELECTION_NOT_NEEDED = "LeaderElectionNotNeededException"
    NODE_EXISTS = "NodeExistsException"
    NO_NODE = "NoNodeException"
    CONNECTION_LOSS = "ConnectionLossException"
    CONTROLLER_MOVED = "ControllerMovedException"


State = PartitionState | ReplicaState


@dataclass(frozen=True, slots=True)
class Failure:
    """What was refused: a partition, or one replica of it, on its way to a state where it was on the way to one.

    ``logged_to_state`` differs from ``to_state`` where Kafka since 1.1 logs another state than it tried for.
    """

    reason: StrEnum
    message: str
    partition: TopicPartition | None = None
    replica_id: int | None = None
    from_state: State | None = None
    to_state: State | None = None
    logged_to_state: State | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """The new context and ZooKeeper, what was done on the way, and what was refused.

    ``elected`` holds the outcome of each election asked for. ``has_moved`` is True once a newer controller was met:
    then nothing further is done, and the broker resigns.
    """

    context: ControllerContext
    zookeeper: ZooKeeper
    outputs: tuple[Output, ...] = ()
    failures: tuple[Failure, ...] = ()
    elected: Mapping[TopicPartition, LeaderAndIsr | Failure] = field(default_factory=dict)
    has_moved: bool = False

    @property
    def requests(self) -> tuple[Request, ...]:
        return tuple(output for output in self.outputs if isinstance(output, ControllerRequest))

    @property
    def transitions(self) -> tuple[PartitionTransition | ReplicaTransition, ...]:
        return tuple(o for o in self.outputs if isinstance(o, PartitionTransition | ReplicaTransition))
