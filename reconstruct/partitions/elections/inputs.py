"""What an election was given, as far as the evidence goes, and every outcome that the rules then allow.

Each input is a set of possibilities. ``outcomes`` is the union over all of them, so that what is missing makes it
larger, never wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Final

from reconstruct.model.elections import Brokers, Elected, ElectionKind, PartitionView, elect
from reconstruct.model.versions import (
    ASSIGNMENT_ORDER_SINCE,
    ASYNC_CONTROLLER_SINCE,
    PREFERRED_NOT_REPEATED_SINCE,
    REASSIGNMENT_NEEDS_ISR_SINCE,
    SHUTDOWN_IN_ASSIGNMENT_ORDER_SINCE,
    KafkaVersion,
    VersionRange,
)
from reconstruct.partitions.elections.controller_view import BrokerStatus

NEW_PARTITION: Final = "new_partition"
UNKNOWN_KIND: Final = "unknown"
#: More combinations of unknown brokers than this, and any assigned replica is taken to be possible.
_MOST_VIEWS: Final = 64
_ELECTIONS_CHANGED: Final = (
    REASSIGNMENT_NEEDS_ISR_SINCE,
    ASSIGNMENT_ORDER_SINCE,
    SHUTDOWN_IN_ASSIGNMENT_ORDER_SINCE,
    ASYNC_CONTROLLER_SINCE,
    PREFERRED_NOT_REPEATED_SINCE,
)

#: A leader and the ISR it is given.
Outcome = tuple[int, frozenset[int]]


@dataclass(frozen=True, slots=True)
class ElectionInputs:
    """The possible inputs of one election.

    ``kinds`` holds :data:`NEW_PARTITION` or values of ``ElectionKind``; ``assignments`` the replicas assigned, in their
    order; ``targets`` those of a reassignment; ``statuses`` what each broker was to the controller; ``unclean`` the
    settings of unclean.leader.election.enable.
    """

    kinds: tuple[str, ...]
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    assignments: tuple[tuple[int, ...], ...]
    targets: tuple[tuple[int, ...], ...]
    statuses: Mapping[int, frozenset[BrokerStatus]]
    unclean: tuple[bool, ...]
    versions: tuple[KafkaVersion, ...]

    @property
    def replicas(self) -> tuple[int, ...]:
        """Every replica that any assignment, and the ISR, names; the first assignment's order first."""
        return tuple(dict.fromkeys((*(r for assigned in self.assignments for r in assigned), *self.isr)))

    @property
    def are_too_many(self) -> bool:
        """Whether so little is known of the brokers that every outcome is possible."""
        return prod(len(self.statuses[replica]) for replica in self.replicas) > _MOST_VIEWS

    def with_statuses(self, statuses: Mapping[int, frozenset[BrokerStatus]]) -> ElectionInputs:
        """The same with other views of some brokers."""
        return replace(self, statuses={**self.statuses, **statuses})

    def outcomes(self) -> frozenset[Outcome]:
        """Every leader and ISR that some possible input gives."""
        return frozenset(
            outcome
            for brokers in self.possible_brokers()
            for assigned in self.assignments
            for kind in self.kinds
            for outcome in self._outcomes_of(kind, assigned, brokers)
        )

    def possible_brokers(self) -> Iterator[Brokers]:
        """Every view of the brokers that the evidence allows."""
        replicas = self.replicas
        for chosen in product(*(sorted(self.statuses[replica], key=lambda one: one.value) for replica in replicas)):
            status = dict(zip(replicas, chosen, strict=True))
            yield Brokers(
                frozenset(replica for replica in replicas if status[replica] is not BrokerStatus.GONE),
                frozenset(replica for replica in replicas if status[replica] is BrokerStatus.LEAVING),
            )

    def _outcomes_of(self, kind: str, assigned: tuple[int, ...], brokers: Brokers) -> Iterator[Outcome]:
        if kind == NEW_PARTITION:
            live = [replica for replica in assigned if replica in brokers.live - brokers.shutting_down]
            if live:
                yield live[0], frozenset(live)
            return
        is_reassigned = kind == ElectionKind.REASSIGNED_PARTITION
        is_offline = kind == ElectionKind.OFFLINE_PARTITION
        for target in self.targets or (assigned,) if is_reassigned else (assigned,):
            view = PartitionView(assigned, self.isr, self.leader, self.leader_epoch, target)
            for version in self.versions:
                for is_unclean in self.unclean if is_offline else (False,):
                    result = elect(ElectionKind(kind), view, brokers, is_unclean, version)
                    if isinstance(result, Elected):
                        yield result.leader, frozenset(result.isr)


def versions_to_ask(version: VersionRange) -> tuple[KafkaVersion, ...]:
    """One of each era of the elections that the cluster may be of."""
    changed = (v for v in _ELECTIONS_CHANGED if version.low < v <= version.high)
    return tuple(dict.fromkeys((version.low, *changed)))


def distinct(lists: Iterable[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Without repetition, and without the empty one."""
    return tuple(dict.fromkeys(tuple(found) for found in lists if found))
