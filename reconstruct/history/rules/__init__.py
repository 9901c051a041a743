"""The rules that one partition's evidence can judge: each takes a :class:`~reconstruct.history.case.Case`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from reconstruct.findings import Verdicts
from reconstruct.history.case import Case
from reconstruct.history.rules.assigned import judge_isr_is_assigned
from reconstruct.history.rules.beliefs import judge_roles
from reconstruct.history.rules.decided import judge_leader_epochs, judge_leader_in_isr, judge_one_leader_per_epoch
from reconstruct.history.rules.elections import judge_unclean_elections
from reconstruct.history.rules.transitions import judge_transitions

#: In this order: findings of one partition are listed so.
JUDGES: Final[tuple[Callable[[Case, Verdicts], None], ...]] = (
    judge_leader_epochs,
    judge_one_leader_per_epoch,
    judge_isr_is_assigned,
    judge_leader_in_isr,
    judge_transitions,
    judge_roles,
    judge_unclean_elections,
)
