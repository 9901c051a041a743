"""Rules and findings: what the cluster promised, and the points where the evidence shows otherwise.

A verdict has three values. A finding of severity ``error`` says that no behaviour the rules allow explains the
evidence; where evidence is missing, or a version allows it, the rule *cannot be judged* or the finding is milder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

KEPT: Final = "kept"
BROKEN: Final = "broken"
CANNOT_BE_JUDGED: Final = "cannot_be_judged"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its id in the rule book, what it promises, and where that comes from."""

    rule_id: str
    title: str
    source: str
    table: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One divergence and its case. ``at`` is microseconds since the epoch, UTC, of the cluster's time."""

    rule_id: str
    divergence_type: str
    severity: str
    at: int
    expected: str
    observed: str
    explanation: str
    evidence: tuple[str, ...]
    broker_id: int | None = None
    replica_id: int | None = None
    known_issue: str | None = None


@dataclass(slots=True)
class Verdicts:
    """Findings, and how often each rule was kept, broken, or could not be judged."""

    findings: list[Finding] = field(default_factory=list)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def kept(self, rule_id: str, times: int = 1) -> None:
        if times:
            self.counts[rule_id, KEPT] += times

    def unjudged(self, rule_id: str, times: int = 1) -> None:
        if times:
            self.counts[rule_id, CANNOT_BE_JUDGED] += times

    def broken(self, finding: Finding) -> None:
        self.findings.append(finding)
        self.counts[finding.rule_id, BROKEN] += 1


_RULES: Final = (
    Rule(
        "R01",
        "the leader epoch never decreases within a topic incarnation",
        "KIP-101; TLA+ KafkaReplication; kafka.controller.KafkaController since 0.8.0",
        "silver.leader_and_isr_timeline",
    ),
    Rule(
        "R02",
        "at most one leader for each leader epoch",
        "KIP-101; kafka.controller.PartitionStateMachine since 0.8.0",
        "silver.leader_and_isr_timeline",
    ),
    Rule(
        "R04",
        "the ISR is a subset of the assigned replicas",
        "kafka.cluster.Partition since 0.8.0; KAFKA-9672",
        "silver.leader_and_isr_timeline",
    ),
    Rule(
        "R05",
        "the leader is a member of the ISR, or there is none",
        "TLA+ LeaderInIsr; kafka.controller.PartitionLeaderSelector since 0.8.1",
        "silver.leader_and_isr_timeline",
    ),
    Rule(
        "R08",
        "a clean election takes the leader from the ISR; an unclean one must be allowed",
        "kafka.controller.PartitionLeaderSelector since 0.8.0; KAFKA-1028, KIP-106; the first article, section 1",
        "gold.leader_elections",
    ),
    Rule(
        "R11",
        "the controller epoch rises by one at each election, and one broker holds each epoch",
        "kafka.controller.KafkaController.incrementControllerEpoch since 0.8.0",
        "silver.controller_epoch_timeline",
    ),
    Rule(
        "R13",
        "partition state transitions are legal",
        "kafka.controller.PartitionStateMachine; the first article, section 2",
        "silver.partition_state_timeline",
    ),
    Rule(
        "R14",
        "replica state transitions are legal",
        "kafka.controller.ReplicaStateMachine; the first article, section 3",
        "silver.replica_state_timeline",
    ),
    Rule(
        "R20",
        "a broker becomes leader or follower as was decided: the same leader at the same leader epoch",
        "kafka.server.ReplicaManager.becomeLeaderOrFollower since 0.8.0",
        "silver.replica_role_timeline",
    ),
)

#: The rules that are judged, by id.
RULES: Final[Mapping[str, Rule]] = {rule.rule_id: rule for rule in _RULES}
