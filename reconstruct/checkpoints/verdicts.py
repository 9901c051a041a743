"""The verdicts on one broker's checkpoints, each finding with the one replica it is about, where it is one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from reconstruct.checkpoints.evidence import Replica
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Verdicts

RULE: Final = "R37"
#: Evidence that a finding names: a file may have thousands of entries.
EVIDENCE_AT_MOST: Final = 12


@dataclass(slots=True)
class CheckpointVerdicts:
    """``verdicts`` with all findings; ``replicas`` the replica of each of them, None where it is about several."""

    broker_id: int
    verdicts: Verdicts = field(default_factory=Verdicts)
    replicas: list[Replica | None] = field(default_factory=list)
    #: (replica, start of the process): a finding says already what this start did to this replica.
    reported: set[tuple[Replica, int]] = field(default_factory=set)

    def report(
        self,
        divergence_type: DivergenceType,
        severity: str,
        at: int,
        expected: str,
        observed: str,
        explanation: str,
        evidence: Iterable[str],
        about: Iterable[Replica] = (),
        known_issue: str | None = None,
    ) -> None:
        """Enter a finding of R37 about the broker's replicas ``about``."""
        replicas = list(dict.fromkeys(about))
        ids = tuple(dict.fromkeys(name for name in evidence if name))[:EVIDENCE_AT_MOST]
        self.verdicts.broken(
            Divergence(
                divergence_type,
                severity,
                at,
                broker_id=self.broker_id,
                replica_id=self.broker_id if len(replicas) == 1 else None,
            ).explained(expected, observed, explanation, ids, known_issue=known_issue)
        )
        self.replicas.append(replicas[0] if len(replicas) == 1 else None)
