"""What is said of a capture of which one broker's clock was wrong, once its clocks are solved."""

from __future__ import annotations

from collections import Counter

from reconstruct.partitions.case import Case
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from tests.support.evidence.lines import Partition

#: A finding above info: partition, rule, type, severity, broker, what was observed.
Accusation = tuple[Partition, str, str, str, int | None, str]
#: What was decided, without its instants.
Decided = tuple[int, int, frozenset[int], int | None, int | None, str | None]


def accusations(histories: dict[Partition, Case]) -> Counter[Accusation]:
    return Counter(
        (partition, f.rule_id, f.divergence_type, f.severity, f.broker_id, f.observed)
        for partition, history in histories.items()
        for f in history.verdicts.findings
        if f.severity != "info"
    )


def decided(histories: dict[Partition, Case]) -> dict[Partition, list[Decided | None]]:
    return {
        partition: [_decided(interval.value) for interval in history.decided]
        for partition, history in histories.items()
    }


def _decided(state: LeaderAndIsrState | None) -> Decided | None:
    if state is None:
        return None
    return (
        state.leader,
        state.leader_epoch,
        frozenset(state.isr),
        state.controller_epoch,
        state.partition_epoch,
        state.written_by,
    )
