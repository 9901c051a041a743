"""Why an election gives what it gives: each candidate in the order the version takes them, and what speaks for it.

The choice itself is :func:`reconstruct.model.elections.elect`; these are the rounds that it makes, in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reconstruct.model.elections import (
    Brokers,
    Elected,
    ElectionFailure,
    ElectionKind,
    PartitionView,
    Round,
    elect,
    names,
    rounds,
)
from reconstruct.model.versions import KafkaVersion


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The questions and answers in their order, and what the election gave."""

    steps: tuple[str, ...]
    result: Elected | ElectionFailure


def reasons(
    kind: ElectionKind, partition: PartitionView, brokers: Brokers, unclean_enabled: bool, version: KafkaVersion
) -> Reasoning:
    """The election of :func:`~reconstruct.model.elections.elect` with the same arguments, step by step."""
    result = elect(kind, partition, brokers, unclean_enabled, version)
    asked = rounds(kind, partition, brokers, unclean_enabled, version)
    if result is ElectionFailure.NOT_NEEDED:
        return Reasoning((*asked[0].says, f"{partition.leader}: it leads already.", _outcome(result)), result)
    return Reasoning((*_steps(asked), _outcome(result)), result)


def _steps(asked: list[Round]) -> Iterator[str]:
    """What each round says, and a line for each candidate up to the first that is all that is wanted."""
    for each in asked:
        yield from each.says
        for replica in each.candidates:
            lacking = each.lacking(replica)
            if not lacking:
                yield f"{replica}: {' and '.join(each.wanted) or 'the first'}. It leads."
                return
            yield f"{replica}: not {lacking[0]}."


def _outcome(result: Elected | ElectionFailure) -> str:
    if isinstance(result, ElectionFailure):
        return f"No leader is elected ({result.value})."
    unclean = ", uncleanly" if result.is_unclean else ""
    return (
        f"Leader {result.leader}{unclean}, ISR {names(result.isr)}, leader epoch {result.leader_epoch};"
        f" told: {names(result.recipients)}."
    )
