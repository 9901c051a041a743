"""The rules that one partition's evidence can judge: each takes a :class:`~reconstruct.history.case.Case`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from reconstruct.findings import Verdicts
from reconstruct.history.case import Case
from reconstruct.history.rules.assigned import judge_isr_is_assigned
from reconstruct.history.rules.at_rest import judge_at_rest
from reconstruct.history.rules.beliefs import judge_accepted_epochs, judge_roles
from reconstruct.history.rules.caches import judge_caches_agree, judge_caches_decided
from reconstruct.history.rules.controller_writes import judge_controller_epochs_of_writes, judge_leader_epoch_steps
from reconstruct.history.rules.decided import judge_leader_epochs, judge_leader_in_isr, judge_one_leader_per_epoch
from reconstruct.history.rules.elections import judge_elections, judge_unclean_elections
from reconstruct.history.rules.overlaps import judge_one_acting_leader
from reconstruct.history.rules.partition_epochs import judge_isr_not_empty, judge_partition_epochs
from reconstruct.history.rules.refusals import judge_refusals
from reconstruct.history.rules.requests import judge_requests
from reconstruct.history.rules.sequences import judge_sequences
from reconstruct.history.rules.stuck_leaders import judge_stuck_leaders
from reconstruct.history.rules.transitions import judge_transitions

#: In this order: findings of one partition are listed so.
JUDGES: Final[tuple[Callable[[Case, Verdicts], None], ...]] = (
    judge_leader_epochs,
    judge_one_leader_per_epoch,
    judge_partition_epochs,
    judge_isr_is_assigned,
    judge_leader_in_isr,
    judge_isr_not_empty,
    judge_leader_epoch_steps,
    judge_controller_epochs_of_writes,
    judge_transitions,
    judge_requests,
    judge_sequences,
    judge_roles,
    judge_accepted_epochs,
    judge_refusals,
    judge_caches_agree,
    judge_caches_decided,
    judge_at_rest,
    judge_stuck_leaders,
    judge_one_acting_leader,
    judge_elections,
    judge_unclean_elections,
)
