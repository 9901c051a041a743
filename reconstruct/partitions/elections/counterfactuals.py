"""Which other input would have given what was elected: the first of those that most often go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, permutations
from typing import Final

from reconstruct.model.elections import ElectionKind
from reconstruct.partitions.elections.controller_view import BrokerStatus
from reconstruct.partitions.elections.inputs import NEW_PARTITION, ElectionInputs, Outcome

_OCCASIONS: Final = {
    ElectionKind.OFFLINE_PARTITION: "the partition had been offline",
    ElectionKind.CONTROLLED_SHUTDOWN: "a controlled shutdown had been the occasion",
    ElectionKind.PREFERRED_REPLICA: "the preferred replica had been asked for",
    ElectionKind.REASSIGNED_PARTITION: "a reassignment had been the occasion",
}
_HAD_BEEN: Final = {
    BrokerStatus.GONE: "had not been live",
    BrokerStatus.LIVE: "had been live",
    BrokerStatus.LEAVING: "had been shutting down",
}
#: Of more replicas not every ISR or order is tried.
_MOST_REPLICAS: Final = 5


def what_would_explain(inputs: ElectionInputs, observed: Outcome) -> str:
    """A sentence: brokers first, then the ISR, the assignment, the occasion."""
    for words, other in _others(inputs):
        if observed in other.outcomes():
            return f"It would be right if {words}."
    return "No other input alone explains it."


def _others(inputs: ElectionInputs) -> Iterator[tuple[str, ElectionInputs]]:
    for replica in inputs.replicas:
        for status in (BrokerStatus.GONE, BrokerStatus.LIVE, BrokerStatus.LEAVING):
            if status not in inputs.statuses[replica]:
                yield f"broker {replica} {_HAD_BEEN[status]}", inputs.with_statuses({replica: frozenset({status})})
    replicas = inputs.replicas[:_MOST_REPLICAS]
    if NEW_PARTITION not in inputs.kinds:
        for size in range(1, len(replicas) + 1):
            for isr in combinations(replicas, size):
                if frozenset(isr) != frozenset(inputs.isr):
                    yield f"the ISR had been {_listed(isr)}", replace(inputs, isr=isr)
    for assigned in inputs.assignments:
        for order in permutations(assigned[:_MOST_REPLICAS]):
            if order != assigned and len(order) == len(assigned):
                changed = replace(inputs, assignments=(order,), targets=(order,) if inputs.targets else ())
                yield f"the assignment had been {_listed(order)}", changed
    for kind, words in _OCCASIONS.items():
        if kind not in inputs.kinds and NEW_PARTITION not in inputs.kinds:
            yield words, replace(inputs, kinds=(kind,))


def _listed(replicas: tuple[int, ...]) -> str:
    return ",".join(map(str, replicas))
