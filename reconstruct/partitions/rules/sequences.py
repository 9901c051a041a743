"""The steps of creation, deletion, broker failure, broker start and reassignment, in their order (R16).

Each is read from one controller's log alone, in the order of its file, and only where that log is whole: a step that
another line proves to have been made is a missing line, not a missing step.

Sources: kafka.controller.KafkaController.onNewPartitionCreation, onBrokerFailure, onBrokerStartup,
onPartitionReassignment; TopicDeletionManager; 0.8.1 to 3.9.
"""

from __future__ import annotations

from reconstruct.findings.verdicts import Verdicts
from reconstruct.partitions.case import Case
from reconstruct.partitions.reexecution.broker_changes import judge_broker_changes
from reconstruct.partitions.reexecution.lifecycles import judge_creation, judge_deletion, judge_reassignment
from reconstruct.partitions.reexecution.standing import Standing


def judge_sequences(case: Case, verdicts: Verdicts) -> None:
    """R16: every procedure that a controller's log shows of this partition."""
    standing = Standing.of(case)
    for log in standing.logs:
        judge_creation(standing, log, verdicts)
        judge_deletion(standing, log, verdicts)
        judge_reassignment(standing, log, verdicts)
        judge_broker_changes(standing, log, verdicts)
