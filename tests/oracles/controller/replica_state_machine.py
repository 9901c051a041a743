"""The model's replica state machine; a procedure goes on with what it answers."""

from __future__ import annotations

from typing import Any

from reconstruct.model.controller import replica_state_machine as machine
from tests.oracles.controller.outcomes import Result


def handle_state_changes(*args: Any, **kwargs: Any) -> Result:
    """:func:`reconstruct.model.controller.replica_state_machine.handle_state_changes`."""
    return Result.of(machine.handle_state_changes(*args, **kwargs))
