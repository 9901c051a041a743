"""The rules that a cluster's own timelines are judged by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ingest.lake.tables.silver import CONTROLLER_EPOCH_TIMELINE, REPLICA_STATE_TIMELINE
from reconstruct.cluster.bounces import judge_bounces, judge_listed_epochs, judge_registration_order
from reconstruct.cluster.brokers import RegistrationSpan
from reconstruct.cluster.controllers import TenureSpan, judge_controller_epochs
from reconstruct.cluster.evidence import BrokerFact, ControllerFact
from reconstruct.cluster.take_overs import TakeOver, judge_take_overs
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.rule import EvidenceKind, Rule
from reconstruct.findings.verdicts import Verdicts


class ClusterCase(NamedTuple):
    """The facts about controllers and brokers of one cluster, the timelines made of them, and its view."""

    controllers: Sequence[ControllerFact]
    brokers: Sequence[BrokerFact]
    tenures: Sequence[TenureSpan]
    registrations: Mapping[int, Sequence[RegistrationSpan]]
    take_overs: Sequence[TakeOver]
    view: ClusterView


def _judge_tenures(case: ClusterCase, verdicts: Verdicts) -> None:
    judge_controller_epochs(case.controllers, case.tenures, verdicts)


def _judge_registrations(case: ClusterCase, verdicts: Verdicts) -> None:
    judge_bounces(case.registrations, case.brokers, case.view, verdicts)
    judge_registration_order(case.brokers, verdicts)
    judge_listed_epochs(case.brokers, case.view, verdicts)
    judge_take_overs(case.tenures, case.take_overs, verdicts)


CONTROLLER_EPOCHS: Final = Rule(
    "R11",
    "the controller epoch rises by one at each election, and one broker holds each epoch",
    "kafka.controller.KafkaController.incrementControllerEpoch since 0.8.0",
    CONTROLLER_EPOCH_TIMELINE.full_name,
    needs=(EvidenceKind.CONTROLLER_LOG,),
    judges=(_judge_tenures,),
)
PROCEDURES: Final = Rule(
    "R16",
    "creation, deletion, broker failure and reassignment run their steps in order",
    "kafka.controller.KafkaController, TopicDeletionManager since 0.8.0",
    REPLICA_STATE_TIMELINE.full_name,
    needs=(EvidenceKind.STATE_CHANGE_LOG, EvidenceKind.CONTROLLER_LOG),
    reads_trace=True,
    reads_line_order=True,
    judges=(_judge_registrations,),
)
#: Their judges take (ClusterCase, Verdicts).
RULES: Final = (CONTROLLER_EPOCHS, PROCEDURES)
