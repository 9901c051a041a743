"""One replica for tests of its state machine: its states, one move, and what brokers are told of it."""

from __future__ import annotations

from reconstruct.model.controller.outputs import (
    LeaderAndIsrRequest,
    StopReplicaRequest,
)
from reconstruct.model.controller.values import (
    LeaderIsrAndControllerEpoch,
)
from reconstruct.model.states import ReplicaState
from tests.oracles.controller.context import ControllerContext
from tests.oracles.controller.outcomes import (
    Result,
)
from tests.oracles.controller.replica_state_machine import handle_state_changes
from tests.oracles.controller.zookeeper import ZooKeeper
from tests.unit.reconstruct.model.controller.clusters import (
    BROKER,
    REPLICA,
    controller,
    zookeeper,
)

NEW, ONLINE, OFFLINE = ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.OFFLINE
STARTED, SUCCESSFUL = ReplicaState.DELETION_STARTED, ReplicaState.DELETION_SUCCESSFUL
INELIGIBLE, NON_EXISTENT = ReplicaState.DELETION_INELIGIBLE, ReplicaState.NON_EXISTENT
OTHER = BROKER + 1


def in_state(state: ReplicaState, **kwargs: object) -> ControllerContext:
    return controller(replica_states={REPLICA: state}, **kwargs)  # type: ignore[arg-type]


def move(context: ControllerContext, target: ReplicaState, zk: ZooKeeper | None = None) -> Result:
    return handle_state_changes(context, zk or zookeeper(context), [REPLICA], target)


def state_of(result: Result) -> ReplicaState:
    return result.context.replica_state(REPLICA)


def leader_and_isr_told(result: Result) -> dict[int, tuple[LeaderIsrAndControllerEpoch, tuple[int, ...], bool]]:
    """Broker: what its LeaderAndIsr request says of the partition."""
    return {
        request.broker_id: (entry.info, entry.assignment.replicas, entry.is_new)
        for request in result.requests
        if isinstance(request, LeaderAndIsrRequest)
        for entry in request.partitions
    }


def stopped(result: Result) -> list[tuple[int, bool, int]]:
    """(broker, whether to delete, leader epoch) of each StopReplica for the partition."""
    return [
        (request.broker_id, entry.delete_partition, entry.leader_epoch)
        for request in result.requests
        if isinstance(request, StopReplicaRequest)
        for entry in request.partitions
    ]
