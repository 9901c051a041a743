"""Real captures, and ways to bend what one partition's evidence says was decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reconstruct.cluster.view import ClusterView
from reconstruct.findings.verdicts import Finding
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import ZNODE_STATE, Evidence
from reconstruct.partitions.timeline import fold_partition
from tests.support.evidence.partitions import Partition, PlainCapture

DECIDED = ("R03", "R06", "R07", "R09", "R10", "R12")


@dataclass(frozen=True)
class Subject:
    """One partition of a capture; every bend gives another subject."""

    topic: str
    facts: Sequence[Evidence]
    view: ClusterView

    @staticmethod
    def of(capture: PlainCapture, partition: Partition) -> Subject:
        return Subject(partition[0], capture.facts[partition], capture.view)

    @property
    def history(self) -> Case:
        return fold_partition(self.topic, self.facts, self.view)

    @property
    def states(self) -> list[Evidence]:
        """What the znodes show, by version."""
        written = [fact for fact in self.facts if fact.kind == ZNODE_STATE]
        return sorted(written, key=lambda fact: (fact.partition_epoch or 0, fact.at))

    def findings(self, *rules: str) -> list[Finding]:
        return [f for f in self.history.verdicts.findings if f.rule_id in (rules or DECIDED)]

    def types(self, *rules: str) -> list[tuple[str, str, str]]:
        return [(f.rule_id, f.divergence_type, f.severity) for f in self.findings(*rules)]

    def counts(self, rule: str) -> dict[str, int]:
        return {verdict: n for (judged, verdict), n in self.history.verdicts.counts.items() if judged == rule}

    def bent(self, is_meant: Callable[[Evidence], bool], **values: Any) -> Subject:
        """With other values in every fact that is meant, of which there must be one."""
        assert any(map(is_meant, self.facts))
        return replace(self, facts=[replace(f, **values) if is_meant(f) else f for f in self.facts])

    def without(self, is_meant: Callable[[Evidence], bool]) -> Subject:
        assert any(map(is_meant, self.facts))
        return replace(self, facts=[fact for fact in self.facts if not is_meant(fact)])

    def elected_as(self, leader_epoch: int, leader: int, isr: tuple[int, ...]) -> Subject:
        """With another outcome of an election, wherever it is told of."""
        first = next(i.value for i in self.history.decided if i.value.leader_epoch == leader_epoch)

        def is_told(fact: Evidence) -> bool:
            return (fact.leader, fact.leader_epoch) == (first.leader, leader_epoch)

        # a later change of the ISR would show the ISR that it began with
        kept = [f for f in self.facts if not is_told(f) or frozenset(f.isr or ()) == frozenset(first.isr)]
        kept = [f for f in kept if f.kind != "isr_update_committed"]
        return replace(self, facts=kept).bent(is_told, leader=leader, isr=isr)

    def seen_live(self, live: frozenset[int], at: int) -> Subject:
        """With another list of live brokers in the last line before an instant, and registrations that agree."""
        views = list(self.view.live_views)
        index = max(i for i, view in enumerate(views) if view.at <= at)
        views[index] = replace(views[index], live=live)
        liveness = {
            broker: tuple(replace(i, end=None) if broker in live and i.end == views[index].at else i for i in intervals)
            for broker, intervals in self.view.liveness.items()
        }
        return replace(self, view=replace(self.view, live_views=tuple(views), liveness=liveness))
