"""The rules that one partition's evidence can judge: each takes a :class:`~reconstruct.partitions.case.Case`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from reconstruct.findings.verdicts import Verdicts
from reconstruct.partitions.case import Case
from reconstruct.partitions.rules.assigned import judge_isr_is_assigned
from reconstruct.partitions.rules.at_rest import judge_at_rest
from reconstruct.partitions.rules.beliefs import judge_accepted_epochs, judge_roles
from reconstruct.partitions.rules.caches import judge_caches_agree, judge_caches_decided
from reconstruct.partitions.rules.controller_writes import judge_controller_epochs_of_writes, judge_leader_epoch_steps
from reconstruct.partitions.rules.decided import judge_leader_epochs, judge_leader_in_isr, judge_one_leader_per_epoch
from reconstruct.partitions.rules.elections import judge_elections, judge_unclean_elections
from reconstruct.partitions.rules.overlaps import judge_one_acting_leader
from reconstruct.partitions.rules.partition_epochs import judge_isr_not_empty, judge_partition_epochs
from reconstruct.partitions.rules.refusals import judge_refusals
from reconstruct.partitions.rules.requests import judge_requests
from reconstruct.partitions.rules.sequences import judge_sequences
from reconstruct.partitions.rules.stuck_leaders import judge_stuck_leaders
from reconstruct.partitions.rules.transitions import judge_transitions

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
