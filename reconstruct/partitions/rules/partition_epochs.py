"""The znode's versions (R03), and the ISR that must not be empty (R06)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.states import NO_LEADER
from reconstruct.model.versions import (
    ELIGIBLE_LEADER_REPLICAS_SINCE,
    LAST_ISR_MEMBER_KEPT_IF_CLEAN_SINCE,
    LAST_ISR_MEMBER_KEPT_SINCE,
)
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import METADATA_PARTITION, came_before
from reconstruct.partitions.rules.decided import all_sightings, states_by_version
from reconstruct.partitions.sightings import Rank, Sighting
from reconstruct.time.instants import utc


def judge_partition_epochs(case: Case, verdicts: Verdicts) -> None:
    """R03: one content for each version, and a higher version with each later write. A gap hides writes, no more."""
    states = states_by_version(case)
    for version, sightings in sorted(states.items()):
        distinct = _contents(sightings)
        if len(distinct) > 1:
            first, second = distinct[:2]
            verdicts.broken(
                _finding(
                    DivergenceType.PARTITION_EPOCH_REPEATED,
                    case,
                    first,
                    second,
                    f"one state at partition epoch {version}",
                    f"The state {_text_of(first)} and the state {_text_of(second)} are both shown at partition epoch"
                    f" {version}: each write of the znode adds one.",
                )
            )
    for before, after in itertools.pairwise(sorted(states)):
        if after == before + 1:
            verdicts.kept("R03")
        else:
            verdicts.unjudged("R03")
    for earlier, later in _out_of_order(case):
        verdicts.broken(
            _finding(
                DivergenceType.PARTITION_EPOCH_DECREASED,
                case,
                earlier,
                later,
                f"a partition epoch above {earlier.partition_epoch}",
                f"The state {_text_of(later)} was written after the state {_text_of(earlier)}, and its partition epoch"
                f" {later.partition_epoch} is not above {earlier.partition_epoch}.",
            )
        )


def _contents(sightings: Sequence[Sighting]) -> list[Sighting]:
    """The strongest sighting of each content; a leader's own line names no epoch, so only its ISR is compared."""
    found: list[Sighting] = []
    for sighting in sorted(sightings, key=Sighting.strength):
        if not any(_is_same(sighting, other) for other in found):
            found.append(sighting)
    return found


def _is_same(one: Sighting, other: Sighting) -> bool:
    if Rank.COMMITTED in (one.rank, other.rank):
        return one.members == other.members and one.leader == other.leader
    return (one.leader, one.leader_epoch, one.members) == (other.leader, other.leader_epoch, other.members)


def _out_of_order(case: Case) -> Iterator[tuple[Sighting, Sighting]]:
    """Neighbours, by another order than their versions, whose versions do not rise.

    The order is ZooKeeper's own (zxid) among znodes, that of its log among a controller's decisions, that of offsets
    among records of a quorum, which come after the znodes where it took over from ZooKeeper.
    """
    sightings = [s for s in all_sightings(case) if s.partition_epoch is not None]
    written = sorted(
        (s for s in sightings if s.rank is Rank.WRITTEN),
        key=lambda s: (s.fact.kind == METADATA_PARTITION, s.fact.offset, s.fact.order),
    )
    streams: dict[tuple[object, ...], list[Sighting]] = {}
    for sighting in sorted((s for s in sightings if s.rank is Rank.DECIDED), key=lambda s: (s.fact.offset, s.at)):
        fact = sighting.fact
        key = (fact.file, fact.broker_id, fact.controller_id, fact.controller_epoch)
        streams.setdefault(key, []).append(sighting)
    for stream in (written, *streams.values()):
        for earlier, later in itertools.pairwise(stream):
            is_proven = stream is written or came_before(earlier.fact, later.fact, case.cluster)
            if is_proven and (later.partition_epoch or 0) < (earlier.partition_epoch or 0):
                yield earlier, later


def _finding(
    divergence_type: DivergenceType, case: Case, first: Sighting, second: Sighting, expected: str, explanation: str
) -> Finding:
    return Divergence(divergence_type, case.severity(first, second), second.at).explained(
        expected,
        f"{_text_of(second)} at partition epoch {second.partition_epoch}",
        explanation,
        (first.fact.evidence_id, second.fact.evidence_id),
    )


def _text_of(sighting: Sighting) -> str:
    isr = ",".join(map(str, sighting.isr)) or "empty"
    return f"leader {sighting.leader}, leader epoch {sighting.leader_epoch}, ISR {isr}"


def judge_isr_not_empty(case: Case, verdicts: Verdicts) -> None:
    """R06: as written or decided.

    Up to 0.8.1 the last member leaves with the leader; 0.8.2 to 1.0 where unclean election is enabled; never since 1.1.
    With eligible leader replicas (KIP-966) those that left last may lead all the same: the metadata log names them, or
    who led last. Of a KRaft cluster whose log names nobody it cannot be judged.
    """
    judged: set[int] = set()
    for sighting in case.sightings:
        if sighting.rank > Rank.DECIDED or sighting.leader_epoch in judged:
            continue
        may_return = sighting.fact.elr or sighting.fact.last_known_elr
        if sighting.isr or (sighting.leader == NO_LEADER and may_return):
            verdicts.kept("R06")
            continue
        judged.add(sighting.leader_epoch)
        how = _severity_of_empty(case, sighting)
        if how is None:
            verdicts.unjudged("R06")
            continue
        note = (
            "Kafka of this version empties the ISR when its last member goes offline; any replica may lead next."
            if how == "info"
            else "Kafka of this version keeps the last member of the ISR."
        )
        verdicts.broken(
            Divergence(DivergenceType.ISR_EMPTY, how, sighting.at).explained(
                "an ISR with at least one member",
                f"leader {sighting.leader}, ISR empty at leader epoch {sighting.leader_epoch}",
                f"At leader epoch {sighting.leader_epoch} ({utc(sighting.at)}) the ISR was written empty. {note}",
                (sighting.fact.evidence_id,),
                known_issue="KAFKA-1028" if how == "info" else None,
            )
        )


def _severity_of_empty(case: Case, sighting: Sighting) -> str | None:
    """``error`` where no version in question allows it, ``info`` where all do; None where that is not known."""
    version = case.cluster.version
    may_be_emptied = {
        "always": version.may_be_before(LAST_ISR_MEMBER_KEPT_IF_CLEAN_SINCE),
        "if_unclean": version.may_be_since(LAST_ISR_MEMBER_KEPT_IF_CLEAN_SINCE)
        and version.may_be_before(LAST_ISR_MEMBER_KEPT_SINCE),
        "never": version.may_be_since(LAST_ISR_MEMBER_KEPT_SINCE),
    }
    if sighting.leader != NO_LEADER:
        return "error"
    if sighting.fact.kind == METADATA_PARTITION and version.may_be_since(ELIGIBLE_LEADER_REPLICAS_SINCE):
        return None
    setting = case.unclean_setting
    allowed = {
        "always": {True},
        "if_unclean": {True, False} if setting is None else {setting},
        "never": {False},
    }
    answers = {answer for era, may_be in may_be_emptied.items() if may_be for answer in allowed[era]}
    return None if len(answers) > 1 else "info" if answers == {True} else "error"
