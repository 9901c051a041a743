"""The rules that each request of a controller is judged by."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.gold import PROPAGATION_DELAYS
from reconstruct.findings.rule import EvidenceKind, Rule
from reconstruct.partitions.rules.book import ACCEPTED_EPOCHS, STALE_CONTROLLERS
from reconstruct.requests.rules.acceptance import judge_acceptance
from reconstruct.requests.rules.propagation import judge_propagation

#: Their judges take (Request, ClusterView, Verdicts).
RULES: Final = (
    Rule(
        "R23",
        "each request of a controller is received, handled and answered",
        "kafka.controller.ControllerChannelManager.RequestSendThread since 0.8.0",
        PROPAGATION_DELAYS.full_name,
        needs=(EvidenceKind.STATE_CHANGE_LOG,),
        reads_trace=True,
        reads_line_order=True,
        judges=(judge_propagation,),
    ),
    STALE_CONTROLLERS.judged_by(judge_acceptance),
    ACCEPTED_EPOCHS.judged_by(judge_acceptance),
)
