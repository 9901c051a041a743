"""The rules that a cluster's own timelines are judged by."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.silver import CONTROLLER_EPOCH_TIMELINE, REPLICA_STATE_TIMELINE
from reconstruct.cluster.bounces import judge_bounces
from reconstruct.cluster.controllers import judge_controller_epochs
from reconstruct.findings.rule import EvidenceKind, Rule

CONTROLLER_EPOCHS: Final = Rule(
    "R11",
    "the controller epoch rises by one at each election, and one broker holds each epoch",
    "kafka.controller.KafkaController.incrementControllerEpoch since 0.8.0",
    CONTROLLER_EPOCH_TIMELINE.full_name,
    needs=(EvidenceKind.CONTROLLER_LOG,),
    judges=(judge_controller_epochs,),
)
PROCEDURES: Final = Rule(
    "R16",
    "creation, deletion, broker failure and reassignment run their steps in order",
    "kafka.controller.KafkaController, TopicDeletionManager since 0.8.0",
    REPLICA_STATE_TIMELINE.full_name,
    needs=(EvidenceKind.STATE_CHANGE_LOG, EvidenceKind.CONTROLLER_LOG),
    reads_trace=True,
    reads_line_order=True,
    judges=(judge_bounces,),
)
RULES: Final = (CONTROLLER_EPOCHS, PROCEDURES)
