"""Who was controller when: from /controller_epoch and /controller, and from the controllers' own logs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import itemgetter
from typing import Final

from ingest.lake.tables.bronze import LOG_LEVELS
from reconstruct.cluster.evidence import ControllerFact
from reconstruct.cluster.generations import GenerationFact, GenerationStart, generation_starts
from reconstruct.cluster.spans import Tenure
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.log_files import RECREATION_US
from reconstruct.findings.verdicts import Divergence, Verdicts
from reconstruct.time.instants import utc
from reconstruct.time.spans import within

#: /controller is written before /controller_epoch is raised: how much later its time may be, one clock against another.
_SKEW_US: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class TenureSpan:
    """A tenure, and why it ended."""

    tenure: Tenure
    end_reason: str | None
    inferred_from: str | None


@dataclass(slots=True)
class _Epoch:
    number: int
    facts: list[ControllerFact] = field(default_factory=list)

    def of_kind(self, *kinds: str) -> list[ControllerFact]:
        return sorted((f for f in self.facts if f.kind in kinds), key=lambda f: (f.at, f.evidence_id))


def controller_tenures(facts: Iterable[ControllerFact]) -> list[TenureSpan]:
    """Tenures in their order. A cluster created again in the same folders begins another generation of epochs, and so
    does one whose controllers left ZooKeeper: those of a quorum count their own."""
    spans: list[TenureSpan] = []
    worlds = _worlds(facts)
    for taken_over_at, world in worlds:
        known = sorted((f for f in world if f.epoch != 0), key=lambda f: (f.at, f.kind, f.evidence_id))
        if spans:
            spans[-1] = _taken_over(spans[-1], taken_over_at)
        before = spans[-1].tenure.generation + 1 if spans else 0
        generations = _generations(known)
        for index, (begins, ends) in enumerate(generations):
            members = [f for f in known if begins <= f.at < ends]
            spans += _tenures_of(members, before + index, None if index + 1 == len(generations) else ends)
    return spans


def taken_over_at(facts: Iterable[ControllerFact]) -> int | None:
    """When a quorum's controller first named itself in ``/controller``: it took over from one of ZooKeeper's
    (KIP-866). None where none did."""
    known = list(facts)
    of_quorum = {fact.controller_id for fact in known if fact.is_of_quorum}
    named = (f.at for f in known if f.kind == "znode_controller" and f.controller_id in of_quorum)
    return min(named, default=None)


def _worlds(facts: Iterable[ControllerFact]) -> list[tuple[int, list[ControllerFact]]]:
    """The facts of one clock of epochs, from when on it counts: those of ZooKeeper, and behind a take-over those of the
    quorum, of which the one that took over began before."""
    known = list(facts)
    at = taken_over_at(known)
    if at is None:
        return [(0, known)]
    elected = [fact for fact in known if fact.is_of_quorum]
    begun = max((fact.at for fact in elected if fact.at <= at), default=at)
    of_quorum = [replace(fact, at=max(fact.at, at)) for fact in elected if fact.at >= begun]
    return [(0, [fact for fact in known if not fact.is_of_quorum and fact.at < at]), (at, of_quorum)]


def _taken_over(span: TenureSpan, at: int) -> TenureSpan:
    """The last tenure by ZooKeeper, which ended then at the latest."""
    if span.tenure.end is not None and span.tenure.end <= at:
        return span
    return replace(span, tenure=replace(span.tenure, end=at), end_reason="migrated")


def recreations(facts: Iterable[ControllerFact]) -> list[GenerationStart]:
    """When the cluster was created again in the same folders, in order."""
    return [start for _, world in _worlds(facts) for start in _recreations(world)]


def _recreations(facts: Iterable[ControllerFact]) -> list[GenerationStart]:
    shown = [
        GenerationFact(
            fact.at,
            fact.evidence_id,
            fact.epoch,
            fact.stated_cluster_id,
            fact.controller_id,
            fact.kind == "acted",
            fact.log_file,
            fact.kind == "set_back",
        )
        for fact in facts
        if fact.epoch != 0 and fact.kind in ("elected", "acted", "znode_epoch", "cluster_id", "started", "set_back")
    ]
    return generation_starts(shown)


def _generations(known: Sequence[ControllerFact]) -> list[tuple[int, int]]:
    """Half-open spans of time, one for each time that the cluster was created."""
    far = 2**62
    starts = [-far, *(start.at for start in _recreations(known))]
    return list(zip(starts, [*starts[1:], far], strict=True))


def _tenures_of(facts: Sequence[ControllerFact], generation: int, recreated_at: int | None) -> list[TenureSpan]:
    epochs: dict[int, _Epoch] = {}
    for fact in facts:
        if fact.epoch is not None:
            epochs.setdefault(fact.epoch, _Epoch(fact.epoch)).facts.append(fact)
    ordered = [epochs[number] for number in sorted(epochs)]
    starts = [_start(epoch) for epoch in ordered]
    #: of each, the first start of those behind it
    ends = [*list(accumulate(reversed(starts), min))[::-1][1:], recreated_at]
    of_znode = sorted(
        (f.at, f.evidence_id, f.controller_id)
        for f in facts
        if f.kind == "znode_controller" and f.controller_id is not None
    )
    resignations: dict[int | None, list[ControllerFact]] = {}
    for fact in facts:
        if fact.kind == "resigned":
            resignations.setdefault(fact.controller_id, []).append(fact)
    spans = []
    for index, (epoch, start, end) in enumerate(zip(ordered, starts, ends, strict=False)):
        is_last = index + 1 == len(ordered)
        reason = None if end is None else "cluster_recreated" if is_last else "superseded"
        controller_id = _controller_of(epoch, start, of_znode)
        raised = epoch.of_kind("znode_epoch", "elected")
        evidence = [f.evidence_id for f in raised or epoch.of_kind("acted")[:1]]
        of_tenure = within(resignations.get(controller_id, []), start, None if end is None else end - 1)
        resigned = next(iter(of_tenure), None)
        if resigned is not None:
            end, reason = resigned.at, "resigned"
            evidence.append(resigned.evidence_id)
        floors = [f.level_floor for f in epoch.of_kind("acted") if f.level_floor and f.controller_id == controller_id]
        floor = min(floors, key=LOG_LEVELS.index) if floors else None
        inferred = None if raised else "retention_boundary" if index == 0 else "log_gap"
        tenure = Tenure(controller_id, epoch.number, start, end, tuple(dict.fromkeys(evidence)), floor, generation)
        spans.append(TenureSpan(tenure, reason, inferred))
    return spans


def _start(epoch: _Epoch) -> int:
    by_kind = (epoch.of_kind(kind) for kind in ("znode_epoch", "elected", "acted"))
    return next((facts[0].at for facts in by_kind if facts), min(f.at for f in epoch.facts))


def _controller_of(epoch: _Epoch, start: int, of_znode: Sequence[tuple[int, str, int]]) -> int:
    """The broker that says so itself; else the one that /controller, ``of_znode``, named when the epoch was raised."""
    for fact in (*epoch.of_kind("elected"), *epoch.of_kind("acted")):
        if fact.controller_id is not None:
            return fact.controller_id
    known = bisect_right(of_znode, start + _SKEW_US, key=itemgetter(0))
    return of_znode[known - 1][2] if known else -1


def _claim_severity(epoch: int, first: ControllerFact, second: ControllerFact) -> str:
    """A cluster created again, of which the logs lack the first elections, explains claims that lie far apart."""
    return "error" if epoch > 1 and second.at - first.at <= RECREATION_US else "warning"


def judge_controller_epochs(facts: Iterable[ControllerFact], spans: Sequence[TenureSpan], verdicts: Verdicts) -> None:
    """R11: one broker for each epoch, and no epoch left out where /controller_epoch shows both its neighbours."""
    elected: dict[tuple[int, bool, int], dict[int, ControllerFact]] = {}
    epochs = {(s.tenure.generation, s.tenure.controller_epoch) for s in spans}
    starts = sorted({s.tenure.generation: s.tenure.start for s in reversed(spans)}.items())
    for fact in sorted(facts, key=lambda f: (f.at, f.evidence_id)):
        if fact.kind == "elected" and fact.epoch and fact.controller_id is not None:
            generation = max((g for g, at in starts if at <= fact.at + _SKEW_US), default=0)
            claim = (generation, fact.is_of_quorum, fact.epoch)
            elected.setdefault(claim, {}).setdefault(fact.controller_id, fact)
    for (_, _, epoch), claims in sorted(elected.items()):
        if len(claims) == 1:
            verdicts.kept("R11")
            continue
        first, second = list(claims.values())[:2]
        verdicts.broken(
            Divergence(
                DivergenceType.TWO_CONTROLLERS_FOR_ONE_EPOCH,
                _claim_severity(epoch, first, second),
                second.at,
                broker_id=second.controller_id,
            ).explained(
                f"one controller for controller epoch {epoch}",
                f"brokers {first.controller_id} and {second.controller_id}",
                f"Broker {first.controller_id} ({utc(first.at)}) and broker {second.controller_id} ({utc(second.at)})"
                f" both log that they became controller with epoch {epoch}.",
                (first.evidence_id, second.evidence_id),
            )
        )
    last = dict(sorted(epochs))
    for generation, epoch in epochs:
        if (generation, epoch + 1) not in epochs and epoch != last[generation]:
            verdicts.unjudged("R11")
