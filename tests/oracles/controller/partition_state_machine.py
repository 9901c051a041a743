"""The model's partition state machine; a procedure goes on with what it answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reconstruct.model.controller import partition_state_machine as machine
from reconstruct.model.controller.outputs import Failure, Reason
from reconstruct.model.states import PartitionState
from tests.oracles.controller.context import ControllerContext
from tests.oracles.controller.outcomes import Result
from tests.oracles.controller.zookeeper import ZooKeeper
from tests.oracles.versions import SINGLE_THREADED_CONTROLLER_SINCE

#: The election of partitions that are new or whose leader is gone.
OFFLINE_ELECTION = machine.OFFLINE_ELECTION


def handle_state_changes(
    context: ControllerContext, zookeeper: ZooKeeper, partitions: Iterable[Any], target: PartitionState, *args: Any
) -> Result:
    """The model's own; up to 0.10.2 a machine that was not started refuses all work."""
    asked = tuple(dict.fromkeys(partitions))
    if context.version >= SINGLE_THREADED_CONTROLLER_SINCE or context.machines_started:
        return Result.of(machine.handle_state_changes(context, zookeeper, asked, target, *args))
    failures = []
    for partition in asked:
        message = f"{partition} cannot move to {target} because the partition state machine has not started"
        states = context.partition_state(partition), target, target
        failures.append(Failure(Reason.STATE_CHANGE_FAILED, message, partition, None, *states))
    return Result(context, zookeeper, failures=tuple(failures))
