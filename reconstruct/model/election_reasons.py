"""Why an election gives what it gives: each candidate in the order the version takes them, and what speaks for it.

The choice itself is :func:`reconstruct.model.elections.elect`; these are the questions it asks, in words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconstruct.model.elections import Brokers, Elected, ElectionFailure, ElectionKind, PartitionView, elect
from reconstruct.model.versions import (
    ASSIGNMENT_ORDER_SINCE,
    ASYNC_CONTROLLER_SINCE,
    PREFERRED_NOT_REPEATED_SINCE,
    REASSIGNMENT_NEEDS_ISR_SINCE,
    SHUTDOWN_IN_ASSIGNMENT_ORDER_SINCE,
    KafkaVersion,
)


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
    steps = _STEPS[kind](partition, brokers, unclean_enabled, version)
    return Reasoning((*steps, _outcome(result)), result)


def _offline(partition: PartitionView, brokers: Brokers, unclean: bool, version: KafkaVersion) -> Iterator[str]:
    live = brokers.live - brokers.shutting_down
    if version < ASSIGNMENT_ORDER_SINCE:
        yield f"Up to Kafka 0.8.1 the members of the ISR are asked in its own order: {_list(partition.isr)}."
        found = yield from _ask(partition.isr, {"live": live})
    else:
        yield f"The assigned replicas are asked in their order: {_list(partition.assignment)}."
        found = yield from _ask(partition.assignment, {"live": live, "in the ISR": partition.isr})
    if found is not None:
        return
    if version >= ASSIGNMENT_ORDER_SINCE and not unclean:
        yield "No live replica is in the ISR, and unclean.leader.election.enable is false: nobody may lead."
        return
    why = "unclean.leader.election.enable is true" if version >= ASSIGNMENT_ORDER_SINCE else "that is not configurable"
    yield f"No live replica is in the ISR; {why}: any live assigned replica may lead, and is the ISR then."
    yield from _ask(partition.assignment, {"live": live})


def _reassigned(partition: PartitionView, brokers: Brokers, _unclean: bool, version: KafkaVersion) -> Iterator[str]:
    target = partition.assignment if partition.target is None else partition.target
    live = brokers.live - brokers.shutting_down
    yield f"The replicas that the reassignment leads to are asked in their order: {_list(target)}."
    wanted: dict[str, Collection[int]] = {"live": live}
    if version >= REASSIGNMENT_NEEDS_ISR_SINCE:
        wanted["in the ISR"] = partition.isr
    yield from _ask(target, wanted)


def _preferred(partition: PartitionView, brokers: Brokers, _unclean: bool, version: KafkaVersion) -> Iterator[str]:
    preferred = partition.assignment[:1]
    yield f"Only the preferred replica is asked, the first of the assignment: {_list(preferred)}."
    asks_leader = version < ASYNC_CONTROLLER_SINCE or version >= PREFERRED_NOT_REPEATED_SINCE
    if asks_leader and preferred and partition.leader == preferred[0]:
        yield f"{preferred[0]}: it leads already."
        return
    yield from _ask(preferred, {"live": brokers.live - brokers.shutting_down, "in the ISR": partition.isr})


def _shutdown(partition: PartitionView, brokers: Brokers, _unclean: bool, version: KafkaVersion) -> Iterator[str]:
    leaving = set(brokers.shutting_down)
    if version < REASSIGNMENT_NEEDS_ISR_SINCE:
        leaving.add(partition.leader)
    staying = [replica for replica in partition.isr if replica not in leaving]
    yield f"Without those that shut down ({_list(sorted(leaving))}) the ISR is {_list(staying)}."
    if version < SHUTDOWN_IN_ASSIGNMENT_ORDER_SINCE:
        yield f"Up to Kafka 0.9 its first member leads, in its own order: {_list(staying)}."
        yield from _ask(staying, {})
        return
    yield f"The assigned replicas are asked in their order: {_list(partition.assignment)}."
    wanted: dict[str, Collection[int]] = {"in the ISR that stays": staying}
    if version >= ASYNC_CONTROLLER_SINCE:
        wanted = {"live": brokers.live} | wanted
    yield from _ask(partition.assignment, wanted)


def _ask(candidates: Sequence[int], wanted: Mapping[str, Collection[int]]) -> Generator[str, None, int | None]:
    """One line for each candidate up to the first that is all that is wanted; gives that one."""
    for replica in candidates:
        lacking = [name for name, members in wanted.items() if replica not in members]
        if not lacking:
            properties = " and ".join(wanted) or "the first"
            yield f"{replica}: {properties}. It leads."
            return replica
        yield f"{replica}: not {lacking[0]}."
    return None


def _outcome(result: Elected | ElectionFailure) -> str:
    if isinstance(result, ElectionFailure):
        return f"No leader is elected ({result.value})."
    unclean = ", uncleanly" if result.is_unclean else ""
    return (
        f"Leader {result.leader}{unclean}, ISR {_list(result.isr)}, leader epoch {result.leader_epoch};"
        f" told: {_list(result.recipients)}."
    )


def _list(replicas: Sequence[int]) -> str:
    return ",".join(map(str, replicas)) or "none"


_STEPS: Final[Mapping[ElectionKind, Callable[[PartitionView, Brokers, bool, KafkaVersion], Iterator[str]]]] = {
    ElectionKind.OFFLINE_PARTITION: _offline,
    ElectionKind.REASSIGNED_PARTITION: _reassigned,
    ElectionKind.PREFERRED_REPLICA: _preferred,
    ElectionKind.CONTROLLED_SHUTDOWN: _shutdown,
}
