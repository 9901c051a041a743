"""How often a cluster was created again in the same folders: controller epochs start at 1 again, its id is another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

#: ``/controller_epoch`` of a new cluster after its first election.
FIRST_EPOCH: Final = 1
#: In less time no cluster is stopped, created again and through several elections, µs.
RECREATION_US: Final = 30_000_000


@dataclass(frozen=True, slots=True)
class GenerationFact:
    """An election of a controller (its epoch) or a statement of the cluster's id by ``broker_id``, NULL where nothing
    says by whom; ``at`` in microseconds."""

    at: int
    evidence_id: str
    controller_epoch: int | None = None
    stated_cluster_id: str | None = None
    broker_id: int | None = None


class GenerationStart(NamedTuple):
    """When a cluster began again, at the latest, and the record that says so."""

    at: int
    evidence_id: str


def generation_starts(facts: Iterable[GenerationFact]) -> list[GenerationStart]:
    """The starts of all generations but the first, in order.

    A cluster began again where its first epoch is elected after a higher one, where it states an id that it never had,
    or where a broker states another than it did before; one recreation may show both ways, and by several brokers.
    """
    starts: list[GenerationStart] = []
    highest = 0
    current: str | None = None  # the id that this generation stated
    known: set[str] = set()
    said: dict[int, str] = {}  # by broker, the id that it stated last
    for fact in sorted(facts, key=lambda f: (f.at, f.evidence_id)):
        begins_again = fact.controller_epoch == FIRST_EPOCH and highest > FIRST_EPOCH
        if begins_again:
            current = None
        stated = fact.stated_cluster_id
        if stated is not None:
            before = None if fact.broker_id is None else said.get(fact.broker_id)
            is_another = stated != before if before is not None else stated not in known
            known.add(stated)
            if fact.broker_id is not None:
                said[fact.broker_id] = stated
            if is_another and stated != current:
                begins_again = begins_again or current is not None
                current = stated
        if begins_again:
            starts.append(GenerationStart(fact.at, fact.evidence_id))
            highest = 0
        highest = max(highest, fact.controller_epoch or 0)
    return starts
