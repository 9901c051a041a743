"""Verdicts and findings: the points where the evidence shows what a rule does not allow.

A verdict has three values. A finding of severity ``error`` says that no behaviour the rules allow explains the
evidence; where evidence is missing, or a version allows it, the rule *cannot be judged* or the finding is milder.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from reconstruct.findings.divergences import HARM_OF_TYPE, DivergenceType, Harm

KEPT: Final = "kept"
BROKEN: Final = "broken"
CANNOT_BE_JUDGED: Final = "cannot_be_judged"


@dataclass(frozen=True, slots=True)
class Divergence:
    """What kind of divergence, how bad (``error``, ``warning``, ``info``), when, and of which broker and replica.

    ``at`` is microseconds since the epoch, UTC, of the cluster's time. ``rule_id`` is needed only where several rules
    have the type; ``harm`` only where the evidence says more than the type does. :meth:`explained` makes it a finding.
    """

    divergence_type: DivergenceType
    severity: str
    at: int
    broker_id: int | None = None
    replica_id: int | None = None
    rule_id: str = ""
    harm: Harm | None = None

    @classmethod
    def of_replica(cls, divergence_type: DivergenceType, severity: str, at: int, replica_id: int) -> Divergence:
        """Of a replica, and so of the broker of that id."""
        return cls(divergence_type, severity, at, replica_id, replica_id)

    def explained(
        self, expected: str, observed: str, explanation: str, evidence: tuple[str, ...], known_issue: str | None = None
    ) -> Finding:
        """The finding, with its words, the ids of the records that show it, and the bug of Kafka's behind it."""
        return Finding(
            self.divergence_type,
            self.severity,
            self.at,
            self.broker_id,
            self.replica_id,
            self.rule_id or self.divergence_type.rule_id,
            self.harm or HARM_OF_TYPE.get(self.divergence_type),
            expected=expected,
            observed=observed,
            explanation=explanation,
            evidence=evidence,
            known_issue=known_issue,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Divergence):
    """One divergence and its case, as a row of ``gold.divergences`` has them."""

    expected: str
    observed: str
    explanation: str
    evidence: tuple[str, ...]
    known_issue: str | None


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
