"""The model's partition state machine; a procedure goes on with what it answers."""

from __future__ import annotations

from typing import Any

from reconstruct.model.controller import partition_state_machine as machine
from tests.oracles.controller.outcomes import Result

#: The election of partitions that are new or whose leader is gone.
OFFLINE_ELECTION = machine.OFFLINE_ELECTION


def handle_state_changes(*args: Any, **kwargs: Any) -> Result:
    """:func:`reconstruct.model.controller.partition_state_machine.handle_state_changes`."""
    return Result.of(machine.handle_state_changes(*args, **kwargs))
