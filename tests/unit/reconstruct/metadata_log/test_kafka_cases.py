"""The records that Kafka's own cases expect (PartitionChangeBuilderTest, 4.0): of each the state that it makes, that no
rule is broken by it, and which rules judge it. The test's name is Kafka's. What no leader asks for is left out
(``docs/kraft-cases.md``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from reconstruct.findings.verdicts import Verdicts
from reconstruct.metadata_log.choices import judge_choices
from reconstruct.metadata_log.evidence import ClusterLog, CopySpan, LogRow
from reconstruct.model.metadata_log.image import merged
from reconstruct.model.metadata_log.values import PartitionState

#: metadata.version of 3.5, 3.7 and 4.0.
OF_3_5, OF_3_7, OF_4_0 = 11, 19, 25
AT: Final = 50
FOO: Final = PartitionState((2, 1, 3), (2, 1, 3), 1, 100, 200)
BAR: Final = PartitionState((1, 2, 3, 4), (1, 2, 3), 1, 100, 200, (4,), (1,))
OFFLINE_WITHOUT_ELR: Final = PartitionState((2, 1, 3), (3,), -1, 100, 200)
OFFLINE_WITH_ELR: Final = PartitionState((2, 1, 3), (), -1, 100, 200, elr=(3,), last_known_elr=(2,))
OF_FOUR: Final = PartitionState((1, 2, 3, 4), (1, 2, 3, 4), 1, 100, 200)
UNCLEAN: Final = {"isr": [1], "leader": 1, "leaderRecoveryState": 1}


@dataclass(frozen=True)
class Case:
    """A record of a partition: ``active`` may lead; ``removed`` is taken away by what happened."""

    name: str
    before: PartitionState
    fields: dict[str, Any]
    kept: set[str] = field(default_factory=set)
    active: Sequence[int] = (1, 2, 4)
    removed: int | None = None
    by: str = "BrokerRegistrationChangeRecord"
    has_elr: bool = False
    min_isr: int = 2
    is_leveled: bool = True
    level: int = OF_3_7

    @property
    def log(self) -> ClusterLog:
        level = OF_4_0 if self.has_elr else self.level
        features = [{"name": "metadata.version", "minSupportedVersion": 1, "maxSupportedVersion": level}]
        rows = [("RegisterControllerRecord", {"controllerId": 9, "incarnationId": "c", "features": features})]
        if self.is_leveled:
            rows.append(("FeatureLevelRecord", {"name": "metadata.version", "featureLevel": level}))
        if self.has_elr:
            rows.append(("FeatureLevelRecord", {"name": "eligible.leader.replicas.version", "featureLevel": 1}))
        for one in range(6):
            given = {"brokerId": one, "incarnationId": "i", "brokerEpoch": 9 + one, "features": features}
            rows.append(("RegisterBrokerRecord", {**given, "fenced": one not in (*self.active, self.removed)}))
        made = [LogRow(f"b{at}", at, 1, kind, json.dumps(fields), 0, at) for at, (kind, fields) in enumerate(rows)]
        if self.removed is not None:
            gone = {"brokerId": self.removed, "brokerEpoch": 9 + self.removed, "fenced": 1}
            made.append(LogRow("gone", AT + 1, 1, self.by, json.dumps(gone), 0, AT))
        return ClusterLog("c", (CopySpan(9, 1, 0, 100),), (), tuple(made))


CASES: Final = (
    Case("testElectLeader: preferred", FOO, {"leader": 2}, {"R53", "R54", "R56"}),
    Case("testIsrChangeDoesntBumpLeaderEpoch", FOO, {"isr": [2, 1]}),
    Case("testNoLeaderEpochBumpOnIsrShrink", FOO, {"isr": [2, 1]}),
    Case("testLeaderEpochBumpOnIsrShrink", FOO, {"isr": [2, 1], "leader": 1}, level=OF_3_5),  # up to 3.5 it does
    Case(
        "testNoLeaderEpochBumpOnIsrExpansion",
        PartitionState((2, 1, 3), (2, 1), 1, 100, 200),
        {"isr": [2, 1, 3]},
        {"R53"},
        active=(1, 2, 3),
    ),
    Case("testLeaderEpochBumpOnNewReplicaSetDisjoint", FOO, {"replicas": [2, 1, 4], "isr": [2, 1], "leader": 1}),
    Case("testIsrChangeAndLeaderChange", FOO, {"isr": [2, 3], "leader": 2}, {"R53", "R54", "R56"}),
    Case("testReassignmentRearrangesReplicas", FOO, {"replicas": [3, 2, 1]}),
    Case(
        "testIsrEnlargementCompletesReassignment",
        BAR,
        {"replicas": [2, 3, 4], "isr": [2, 3, 4], "leader": 2, "removingReplicas": [], "addingReplicas": []},
        {"R53", "R54", "R56", "R57"},
    ),
    Case(
        "testRevertReassignment",
        BAR,
        {"replicas": [1, 2, 3], "leader": 1, "removingReplicas": [], "addingReplicas": []},
    ),
    Case("testRemovingReplicaReassignment", FOO, {"replicas": [1, 2], "isr": [2, 1], "leader": 1}),
    Case("testAddingReplicaReassignment", FOO, {"replicas": [1, 2, 3, 4], "addingReplicas": [4]}),
    Case("testUncleanLeaderElection", OFFLINE_WITHOUT_ELR, UNCLEAN, {"R58"}, active=[1]),
    Case(
        "testUncleanLeaderElection: ELR",
        OFFLINE_WITH_ELR,
        {**UNCLEAN, "eligibleLeaderReplicas": [], "lastKnownElr": []},
        {"R58"},
        active=[1],
        has_elr=True,
    ),
    Case(
        "testChangeInLeadershipDoesNotChangeRecoveryState: offline",
        PartitionState((1, 2, 3), (1,), 1, 100, 200, leader_recovery_state=1),
        {"leader": -1},
        active=[],
        removed=1,
    ),
    Case(
        "testChangeInLeadershipDoesNotChangeRecoveryState: online",
        PartitionState((1, 2, 3), (1,), -1, 101, 201, leader_recovery_state=1),
        {"leader": 1},
        {"R53", "R54", "R56"},
        active=[1, 2, 3],
    ),
    Case(
        "testUncleanSetsLeaderRecoveringState",
        PartitionState((1, 2, 3), (2, 3), -1, 100, 200),
        UNCLEAN,
        {"R58"},
        active=[1],
    ),
    Case(
        "testStoppedLeaderIsDemotedAfterReassignmentCompletesEvenIfNoNewEligibleLeaders",
        PartitionState((2, 3, 0, 1), (0, 1), 0, 0, 0, (2, 3), (0, 1)),
        {"replicas": [2, 3], "isr": [2, 3], "removingReplicas": [], "addingReplicas": [], "leader": -1},
        {"R57"},
        active=[],
        is_leveled=False,  # of 3.1, where the leader may take in whom it likes
    ),
    Case(
        "testEligibleLeaderReplicas_IsrShrinkBelowMinISR",
        OF_FOUR,
        {"isr": [1, 2], "eligibleLeaderReplicas": [3, 4]},
        {"R55"},
        has_elr=True,
        min_isr=3,
    ),
    Case(
        "testEligibleLeaderReplicas_IsrExpandAboveMinISR",
        PartitionState((1, 2, 3, 4), (1, 2), 1, 100, 200, elr=(3,), last_known_elr=(4,)),
        {"isr": [1, 2, 3], "eligibleLeaderReplicas": [], "lastKnownElr": []},
        {"R53"},
        active=[1, 2, 3, 4],  # whom the leader takes in is there
        has_elr=True,
        min_isr=3,
    ),
    Case(
        "testEligibleLeaderReplicas_IsrAddNewMemberNotInELR",
        PartitionState((1, 2, 3, 4), (1,), 1, 100, 200, elr=(3,), last_known_elr=(2,)),
        {"isr": [1, 4]},
        {"R53", "R55"},
        has_elr=True,
        min_isr=3,
    ),
    Case(
        "testEligibleLeaderReplicas_RemoveUncleanShutdownReplicasFromElr",
        PartitionState((1, 2, 3, 4), (1,), 1, 100, 200, elr=(2, 3)),
        {"eligibleLeaderReplicas": [2], "lastKnownElr": [3]},
        {"R55"},
        removed=3,
        by="RegisterBrokerRecord",
        has_elr=True,
        min_isr=3,
    ),
    Case(
        "testEligibleLeaderReplicas_ElrCanBeElected",
        PartitionState((1, 2, 3, 4), (1,), 1, 100, 200, elr=(3,)),
        {"isr": [3], "eligibleLeaderReplicas": [1], "leader": 3},
        {"R53", "R54", "R55", "R56"},
        active=[2, 3, 4],
        removed=1,
        has_elr=True,
        min_isr=3,
    ),
    Case(
        "testEligibleLeaderReplicas_IsrCanShrinkToZero",
        OF_FOUR,
        {"isr": [], "leader": -1, "eligibleLeaderReplicas": [1, 2, 3, 4], "lastKnownElr": [1]},
        {"R55"},
        active=[],
        removed=1,
        has_elr=True,
        min_isr=3,
    ),
    Case(
        "testEligibleLeaderReplicas_ElectLastKnownLeader",
        PartitionState((1, 2, 3, 4), (), -1, 100, 200, last_known_elr=(1,)),
        {**UNCLEAN, "lastKnownElr": []},
        {"R58"},
        active=[1, 2, 3, 4],
        has_elr=True,
        min_isr=3,
    ),
    Case(
        "testKeepsDirectoriesAfterReassignment",
        FOO,
        {"leader": 1, "replicas": [3, 1, 5, 4], "directories": ["c", "b", "e", "d"]},
        active=range(6),
    ),
    Case("testUpdateDirectories", FOO, {"directories": ["a", "AAAAAAAAAAAAAAAAAAAAAQ", "n"]}, active=range(6)),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_kafka_expects_breaks_no_rule(case: Case) -> None:
    after = merged(case.before, case.fields)
    assert after.leader_epoch - case.before.leader_epoch == ("leader" in case.fields)
    assert after.partition_epoch == case.before.partition_epoch + 1
    row = LogRow("r", AT, 1, "PartitionChangeRecord", json.dumps(case.fields), 0, AT)
    verdicts = Verdicts()
    judge_choices(case.before, after, row, case.log, verdicts, case.min_isr)
    assert [finding.explanation for finding in verdicts.findings] == []
    assert {rule for (rule, verdict) in verdicts.counts if verdict == "kept"} == case.kept
