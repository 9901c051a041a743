"""The brokers' metadata caches against each other (R22) and against what was decided (R24).

A cache holds what an UpdateMetadata carried (MetadataCache.updateCache). Up to 0.8.2 nothing informs a controller of a
leader's ISR change, and up to 2.6 it learns it late: ISRs are compared only where both lines print the partition epoch.
The stored controller epoch is not compared: since 1.1 a controller restates an unchanged state with its own
(ReplicaStateMachine.removeReplicasFromIsr).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ingest.shapes.event_types import EventType
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.states import LEADER_DURING_DELETE, PartitionState
from reconstruct.model.value_class import value_class
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.processes import is_between, shows_no_loss
from reconstruct.partitions.rules.beliefs import Decided, decided_leaders
from reconstruct.partitions.sightings import Rank, Sighting
from reconstruct.time.instants import utc


@value_class
class _Line:
    """A line that says what a broker cached; a deletion's leader -2 is no state."""

    fact: Evidence
    broker_id: int
    leader: int
    leader_epoch: int

    @property
    def members(self) -> frozenset[int]:
        return frozenset(self.fact.isr or ())

    @property
    def cached(self) -> str:
        isr = f", ISR {','.join(map(str, self.fact.isr))}" if self.fact.isr is not None else ""
        version = f", partition epoch {self.fact.partition_epoch}" if self.fact.partition_epoch is not None else ""
        return f"leader {self.leader} at leader epoch {self.leader_epoch}{isr}{version}"


def _lines(facts: Iterable[Evidence]) -> list[_Line]:
    return [
        _Line(fact, fact.broker_id, fact.leader, fact.leader_epoch)
        for fact in facts
        if fact.kind == EventType.METADATA_CACHED
        and fact.broker_id is not None
        and fact.leader is not None
        and fact.leader != LEADER_DURING_DELETE
        and fact.leader_epoch is not None
    ]


def judge_caches_agree(case: Case, verdicts: Verdicts) -> None:
    """R22: one leader for each leader epoch, one state for each partition epoch, whichever broker cached it."""
    disagreements: dict[str, Finding] = {}
    states = [sighting for sighting in case.sightings if sighting.rank <= Rank.DECIDED]
    by_epoch: dict[tuple[str, int], dict[object, list[_Line]]] = {}
    for line in _lines(case.facts):
        of_epoch = by_epoch.setdefault(("leader epoch", line.leader_epoch), {})
        of_epoch.setdefault(line.leader, []).append(line)
        if line.fact.partition_epoch is not None and line.fact.isr is not None:
            of_version = by_epoch.setdefault(("partition epoch", line.fact.partition_epoch), {})
            of_version.setdefault((line.leader, line.leader_epoch, line.members), []).append(line)
    for (name, epoch), values in sorted(by_epoch.items()):
        brokers = {line.broker_id for lines in values.values() for line in lines}
        if len(values) == 1:
            (verdicts.kept if len(brokers) > 1 else verdicts.unjudged)("R22")
            continue
        usual, odd = _usual_and_odd(list(values.values()))
        # what was decided twice (R02, R03) was told as it was decided
        is_decided = all(_is_decided(lines[0], name, epoch, states) for lines in values.values())
        if is_decided or is_between(case.recreated_at, usual.fact.at, odd.fact.at):
            verdicts.unjudged("R22")
        elif odd.fact.evidence_id not in disagreements:
            disagreements[odd.fact.evidence_id] = _disagree(case, f"{name} {epoch}", usual, odd)
    for finding in disagreements.values():
        verdicts.broken(finding)


def _is_decided(line: _Line, name: str, epoch: int, states: Sequence[Sighting]) -> bool:
    """Whether a controller decided, at that epoch, what the cache holds."""
    if name == "leader epoch":
        return any((state.leader, state.leader_epoch) == (line.leader, epoch) for state in states)
    return any(state.partition_epoch == epoch and _is_same(line, state) for state in states)


def _usual_and_odd(values: Sequence[Sequence[_Line]]) -> tuple[_Line, _Line]:
    """A line of the state that most brokers hold, and of the one that the fewest do; the two nearest in time."""
    ranked = sorted(values, key=lambda lines: (-len({line.broker_id for line in lines}), lines[0].fact.order))
    odd = ranked[-1][0]
    return min(ranked[0], key=lambda line: (abs(line.fact.at - odd.fact.at), line.fact.order)), odd


def _disagree(case: Case, at_epoch: str, usual: _Line, odd: _Line) -> Finding:
    return Divergence(DivergenceType.CACHES_DISAGREE, case.severity(), odd.fact.at, broker_id=odd.broker_id).explained(
        f"{usual.cached} at {at_epoch}",
        f"{odd.cached} at {at_epoch}",
        f"At {at_epoch} the metadata cache of broker {odd.broker_id} held {odd.cached} ({utc(odd.fact.at)}), that of"
        f" broker {usual.broker_id} {usual.cached} ({utc(usual.fact.at)}): one epoch stands for one decision.",
        (odd.fact.evidence_id, usual.fact.evidence_id),
    )


def judge_caches_decided(case: Case, verdicts: Verdicts) -> None:
    """R24: a cache holds nothing that the cluster never decided."""
    decided = decided_leaders(case)
    written = _written(case)
    judged: set[tuple[object, ...]] = set()
    for line in _lines(case.facts):
        key = (line.broker_id, line.leader, line.leader_epoch, line.members, line.fact.partition_epoch)
        if key in judged:
            continue
        judged.add(key)
        states = written.get(line.fact.partition_epoch, [])
        leaders = decided.get(line.leader_epoch)
        if states and not any(_is_same(line, state) for state in states):
            verdicts.broken(_never_decided(case, line, states[-1]))
        elif leaders and line.leader not in leaders:
            verdicts.broken(_never_decided(case, line, next(iter(leaders.values()))))
        elif leaders:
            verdicts.kept("R24")
        elif _is_in_no_other_line(case, line, decided):
            verdicts.broken(_never_decided(case, line, None))
        else:
            verdicts.unjudged("R24")


def _written(case: Case) -> Mapping[int | None, Sequence[Sighting]]:
    """By partition epoch what was written or decided: several states where the epoch repeats, of which R03 tells."""
    found: dict[int | None, list[Sighting]] = {}
    for sighting in case.sightings:
        if sighting.rank <= Rank.DECIDED and sighting.partition_epoch is not None:
            found.setdefault(sighting.partition_epoch, []).append(sighting)
    return found


def _is_same(line: _Line, state: Sighting) -> bool:
    is_same_isr = line.fact.isr is None or line.members == state.members
    return (line.leader, line.leader_epoch) == (state.leader, state.leader_epoch) and is_same_isr


def _is_in_no_other_line(case: Case, line: _Line, decided: Decided) -> bool:
    """Whether the line alone shows a leader epoch higher than all that were decided, which follow each other from 0,
    and the logs of all controllers are given whole from the partition's creation to the line."""
    at = line.fact.at
    created = next((fact.at for fact in case.facts if fact.to_state == PartitionState.NEW), None)
    follow_each_other = sorted(decided) == list(range(len(decided)))
    if created is None or not decided or not follow_each_other or line.leader_epoch < len(decided):
        return False
    if any(
        fact.leader_epoch == line.leader_epoch
        and (fact.kind != EventType.METADATA_CACHED or fact.broker_id != line.broker_id)
        for fact in case.facts
    ):
        return False
    tenures = [t for t in case.cluster.tenures if t.start <= at and (t.end is None or t.end >= created)]
    are_given = all(case.cluster.logs_all(t.controller_id, created, min(at, t.end or at)) for t in tenures)
    writers = {line.broker_id, *(t.controller_id for t in tenures)}
    return bool(tenures) and are_given and all(shows_no_loss(case, writer, line.fact) for writer in writers)


def _never_decided(case: Case, line: _Line, state: Sighting | None) -> Finding:
    if state is None:
        expected = "a leader epoch that a controller decided"
        decided = f"no controller decided leader epoch {line.leader_epoch}, as their logs show, which are whole"
        proof: tuple[str, ...] = ()
    else:
        expected = f"leader {state.leader} at leader epoch {state.leader_epoch}, ISR {','.join(map(str, state.isr))}"
        decided = f"decided was {expected} ({utc(state.at)})"
        proof = (state.fact.evidence_id,)
    return Divergence(
        DivergenceType.CACHE_NEVER_DECIDED, case.severity(), line.fact.at, broker_id=line.broker_id
    ).explained(
        expected,
        line.cached,
        f"The metadata cache of broker {line.broker_id} held {line.cached} ({utc(line.fact.at)}), as controller"
        f" {line.fact.controller_id} (epoch {line.fact.controller_epoch}) told it; {decided}.",
        (line.fact.evidence_id, *proof),
    )
