"""The model's replica state machine; a procedure goes on with what it answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reconstruct.model.controller import replica_state_machine as machine
from reconstruct.model.controller.outputs import Failure, Reason
from reconstruct.model.states import ReplicaState
from tests.oracles.controller.context import ControllerContext
from tests.oracles.controller.outcomes import Result
from tests.oracles.controller.zookeeper import ZooKeeper
from tests.oracles.versions import SINGLE_THREADED_CONTROLLER_SINCE


def handle_state_changes(
    context: ControllerContext, zookeeper: ZooKeeper, replicas: Iterable[Any], target: ReplicaState, *args: Any
) -> Result:
    """The model's own; up to 0.10.2 a machine that was not started refuses all work."""
    asked = tuple(dict.fromkeys(replicas))
    if context.version >= SINGLE_THREADED_CONTROLLER_SINCE or context.machines_started:
        return Result.of(machine.handle_state_changes(context, zookeeper, asked, target, *args))
    failures = []
    for replica in asked:
        message = f"{replica} cannot move to {target} because the replica state machine has not started"
        states = context.replica_state(replica), target, target
        failures.append(Failure(Reason.STATE_CHANGE_FAILED, message, *replica, *states))
    return Result(context, zookeeper, failures=tuple(failures))
