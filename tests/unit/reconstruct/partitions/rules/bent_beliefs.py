"""Real captures with one partition's evidence bent: what the rules about belief must find, and what they must not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reconstruct.cluster.view import ClusterView
from reconstruct.findings.verdicts import Finding
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import Evidence, in_order
from reconstruct.partitions.timeline import fold_partition
from tests.support.evidence.partitions import Partition, PlainCapture, plain_capture

Which = Callable[[Evidence], bool]

BELIEFS = ("R20", "R21", "R22", "R24", "R25")


def read(folder: Path) -> PlainCapture:
    """The capture by its logs alone."""
    return plain_capture(folder, znodes=False)


@dataclass(frozen=True)
class Subject:
    """One partition of a capture."""

    partition: Partition
    facts: list[Evidence]
    view: ClusterView

    @staticmethod
    def of(folder: Path, topic: str, number: int) -> Subject:
        capture = read(folder)
        return Subject((topic, number), in_order(capture.facts[topic, number]), capture.view)

    def fold(self, facts: Iterable[Evidence] | None = None, view: ClusterView | None = None) -> Case:
        return fold_partition(self.partition[0], self.facts if facts is None else facts, view or self.view)

    def found(self, facts: Iterable[Evidence] | None = None, view: ClusterView | None = None) -> list[Finding]:
        """What the rules about belief find."""
        return [f for f in self.fold(facts, view).verdicts.findings if f.rule_id in BELIEFS and f.severity != "info"]

    def lines(self, which: Which) -> list[Evidence]:
        found = [fact for fact in self.facts if which(fact)]
        assert found, "no line to bend"
        return found

    def bent(self, line: Evidence, **values: Any) -> list[Evidence]:
        """The evidence with other values in one line."""
        assert line in self.facts
        return [replace(fact, **values) if fact is line else fact for fact in self.facts]

    def without(self, which: Which) -> list[Evidence]:
        """The evidence without some lines."""
        kept = [fact for fact in self.facts if not which(fact)]
        assert len(kept) < len(self.facts), "no line to take out"
        return kept


def types(findings: Iterable[Finding]) -> set[str]:
    """The types of findings."""
    return {finding.divergence_type for finding in findings}


def is_line(kind: str, broker_id: int | None = None, **values: Any) -> Which:
    """A line of a broker, of a kind, with some values."""
    return lambda fact: (
        fact.kind == kind
        and broker_id in (None, fact.broker_id)
        and all(getattr(fact, name) == value for name, value in values.items())
    )
