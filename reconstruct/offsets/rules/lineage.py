"""R36: the (leader epoch, start offset) lineages of the replicas, each in itself and against each other.

An epoch belongs to one leader, so its first record has one offset, on every replica that holds it. Two things move an
entry up without harm: deleting old records rewrites the first one to the new log start, and a replica that fetched a
compacted log knows an epoch from the first batch that is left. None moves it below where the epoch's leader began.

Where an epoch began only its leader's first line at that epoch says. A broker that starts again goes on leading at the
same epoch and says where its log ends by then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise

from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.known_issues import known_issue
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.versions import EPOCH_ASSIGNED_AT_ELECTION_SINCE
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.evidence import OffsetObservation, ReplicaEventKind
from reconstruct.offsets.rules.case import OffsetCase, names

#: One replica's lineage as one copy of its file has it: by epoch.
Lineage = Mapping[int, OffsetObservation]


def judge_lineages(case: OffsetCase, verdicts: Verdicts) -> None:
    """R36, of every copy of every replica's ``leader-epoch-checkpoint``."""
    leads = {(e.replica_id, e.evidence_id) for e in case.evidence.events if e.kind is ReplicaEventKind.LEADS}
    began: dict[int | None, OffsetObservation] = {
        s.leader_epoch: s
        for s in sorted(case.evidence.observations, key=lambda s: (s.observed_at, s.evidence_id), reverse=True)
        if s.offset_kind == oe.LOG_END_OFFSET and s.leader_epoch is not None and (s.replica_id, s.evidence_id) in leads
    }  # a follower's line prints the epoch too, and where its own log ended
    _judge_begun_once(case, verdicts)
    latest: dict[int, Lineage] = {}
    for replica_id, entries in _copies(case):
        lineage = {entry.leader_epoch or 0: entry for entry in entries}
        if lineage != latest.get(replica_id):
            _judge_order(case, replica_id, entries, verdicts)
            _judge_begins(case, replica_id, lineage, began, verdicts)
        latest[replica_id] = lineage
    reported: set[tuple[int, int, int]] = set()
    for one, other in combinations(sorted(latest), 2):
        _judge_pair(case, latest[one], latest[other], reported, verdicts)
        _judge_gaps(case, latest[one], latest[other], verdicts)
        _judge_gaps(case, latest[other], latest[one], verdicts)


def _copies(case: OffsetCase) -> list[tuple[int, list[OffsetObservation]]]:
    """(replica, the entries of one copy by epoch), in the order of the copies; of those without a time, the lineage
    that goes on longest is the last."""
    found: dict[tuple[int, int, str], set[OffsetObservation]] = {}
    for observation in case.evidence.observations:
        if observation.offset_kind == oe.EPOCH_START and observation.leader_epoch is not None:
            copy = (observation.observed_at, observation.replica_id, observation.copy)
            found.setdefault(copy, set()).add(observation)
    copies = [
        (at, replica_id, sorted(entries, key=lambda s: (s.leader_epoch, s.offset, s.evidence_id)))
        for (at, replica_id, _), entries in sorted(found.items())
    ]
    copies.sort(key=lambda copy: (copy[0], copy[1], copy[2][-1].leader_epoch))
    return [(replica_id, entries) for _, replica_id, entries in copies]


def _observed_at(case: OffsetCase, *entries: OffsetObservation) -> int:
    """When the copies were made; where nothing says, the last instant that anything is known of the partition."""
    copied = max(entry.observed_at for entry in entries)
    if copied > 0:
        return copied
    known = [state.valid_from for state in case.evidence.decided] + [event.at for event in case.evidence.events]
    return max(known, default=0)


def _judge_begins(
    case: OffsetCase,
    replica_id: int,
    lineage: Lineage,
    began: Mapping[int | None, OffsetObservation],
    verdicts: Verdicts,
) -> None:
    """No replica's entry lies below where the epoch's leader began."""
    for epoch, entry in lineage.items():
        line = began.get(epoch)
        if line is None or not _is_first_of_its_epoch(case, line):
            verdicts.unjudged("R36")
        elif entry.offset >= line.offset:
            verdicts.kept("R36")
        else:
            text = (
                f"In replica {replica_id}'s leader-epoch-checkpoint leader epoch {epoch} begins at {entry.offset}; its"
                f" leader {line.replica_id} says in its log that it began at {line.offset}. Records from {entry.offset}"
                f" to {line.offset - 1} are of an older epoch on the leader: the two logs differ."
            )
            expected = f"leader epoch {epoch} begins at {line.offset} or higher"
            verdicts.broken(_conflict_in(case, entry, line, expected, f"it begins at {entry.offset}", text))


def _judge_begun_once(case: OffsetCase, verdicts: Verdicts) -> None:
    """A leader that goes on leading at one epoch, in one process, does not begin it again elsewhere.

    Its line says which epoch the process knew before (Partition.makeLeader, since 0.11): -1 is a process, or a replica,
    that began anew.
    """
    lines: dict[int, list[OffsetObservation]] = {}
    acts = (ReplicaEventKind.LEADS, ReplicaEventKind.FOLLOWS, ReplicaEventKind.STARTED, ReplicaEventKind.DELETED)
    for replica_id in sorted({event.replica_id for event in case.evidence.events}):
        before: OffsetObservation | None = None
        for event in case.events_of(replica_id, *acts):
            line = case.printed.get((event.evidence_id, replica_id), {}).get(oe.LOG_END_OFFSET)
            if event.kind is not ReplicaEventKind.LEADS:
                before = None
            elif line is not None and line.leader_epoch is not None:
                is_again = before is not None and before.leader_epoch == line.leader_epoch == event.previous_epoch
                if before is not None and is_again and before.offset != line.offset:
                    lines.setdefault(replica_id, []).extend((before, line))
                before = line
    for replica_id, (first, again, *_) in lines.items():
        is_loaded = any(
            s.replica_id == replica_id
            and s.offset_kind == oe.LOG_START_OFFSET
            and s.is_printed
            and first.observed_at < s.observed_at <= again.observed_at
            for s in case.evidence.observations
        )  # only a start loads logs
        if is_loaded or not case.is_covered(replica_id, first.observed_at, again.observed_at, replica_id):
            verdicts.unjudged("R36")
            continue
        verdicts.broken(
            Divergence.of_replica(DivergenceType.EPOCH_BEGAN_TWICE, "warning", again.observed_at, replica_id).explained(
                f"leader epoch {again.leader_epoch} begins at {first.offset}",
                f"it begins again at {again.offset}",
                f"Replica {replica_id} began to lead at leader epoch {again.leader_epoch} at offset {first.offset}, and"
                f" again at {again.offset} in the same process. A leader that is told of an epoch it has does nothing;"
                " one that begins it anew forgets its followers, and its lineage has the epoch begin too late.",
                names((first.evidence_id, again.evidence_id)),
                known_issue("KAFKA-13790", case.version),
            )
        )


def _is_first_of_its_epoch(case: OffsetCase, line: OffsetObservation) -> bool:
    """Whether the leader's log is complete since an older epoch was decided: then no line at this epoch is missing."""
    epoch = line.leader_epoch or 0
    older = [s.valid_from for s in case.evidence.decided if s.leader_epoch < epoch and s.valid_from <= line.observed_at]
    return bool(older) and case.is_covered(line.replica_id, max(older), line.observed_at, line.replica_id)


def _judge_order(case: OffsetCase, replica_id: int, entries: Sequence[OffsetObservation], verdicts: Verdicts) -> None:
    """Start offsets rise with the epochs; strictly since 2.0.1, before which an epoch without records had an entry."""
    is_strict = case.version.is_since(EPOCH_ASSIGNED_AT_ELECTION_SINCE)
    for entry, following in pairwise(entries):
        epoch, next_epoch = entry.leader_epoch, following.leader_epoch
        rises = following.offset > entry.offset or (following.offset == entry.offset and not is_strict)
        if rises and epoch != next_epoch:
            verdicts.kept("R36")
            continue
        expected, observed = (
            f"leader epoch {next_epoch} begins above {entry.offset}",
            f"it begins at {following.offset}",
        )
        text = (
            f"In replica {replica_id}'s leader-epoch-checkpoint leader epoch {epoch} begins at {entry.offset} and"
            f" the later epoch {next_epoch} at {following.offset}. Start offsets rise with the epochs."
        )
        verdicts.broken(_conflict_in(case, following, entry, expected, observed, text))


def _conflict_in(
    case: OffsetCase, entry: OffsetObservation, other: OffsetObservation, expected: str, observed: str, text: str
) -> Finding:
    """An entry of one replica's lineage that cannot be, because of ``other``."""
    at = _observed_at(case, entry)
    divergence = Divergence.of_replica(DivergenceType.EPOCH_LINEAGE_CONFLICT, "error", at, entry.replica_id)
    return divergence.explained(expected, observed, text, names((entry.evidence_id, other.evidence_id)))


def _conflict_between(
    case: OffsetCase,
    one: OffsetObservation,
    other: OffsetObservation,
    expected: str,
    observed: str,
    text: str,
    issue: str | None = None,
) -> Finding:
    """Entries of two replicas' lineages that only a compacted topic can both have."""
    at = _observed_at(case, one, other)
    divergence = Divergence(DivergenceType.EPOCH_LINEAGE_CONFLICT, "warning", at, replica_id=other.replica_id)
    return divergence.explained(expected, observed, text, names((one.evidence_id, other.evidence_id)), issue)


def _judge_pair(
    case: OffsetCase, one: Lineage, other: Lineage, reported: set[tuple[int, int, int]], verdicts: Verdicts
) -> None:
    """The epochs that both have: each begins at one offset, but for the first entry of either, which may have moved."""
    firsts = (min(one), min(other))
    for epoch in sorted(one.keys() & other.keys()):
        early, late = sorted((one[epoch], other[epoch]), key=lambda s: (s.offset, s.replica_id))
        if early.offset == late.offset:
            verdicts.kept("R36")
            continue
        if epoch in firsts:
            verdicts.unjudged("R36")
            continue
        subject = (epoch, early.offset, late.offset)
        if subject not in reported:
            reported.add(subject)
            expected = f"leader epoch {epoch} begins at one offset on all replicas"
            observed = f"{early.offset} on replica {early.replica_id}, {late.offset} on replica {late.replica_id}"
            text = (
                f"Leader epoch {epoch} begins at {early.offset} in replica {early.replica_id}'s leader-epoch-checkpoint"
                f" and at {late.offset} in replica {late.replica_id}'s. Offsets {early.offset} to {late.offset - 1} are"
                f" of epoch {epoch} on the one and of an older one on the other: unless the topic is compacted, the two"
                " logs differ there."
            )
            issue = known_issue("KAFKA-6361", case.version)
            verdicts.broken(_conflict_between(case, early, late, expected, observed, text, issue))


def _judge_gaps(case: OffsetCase, one: Lineage, other: Lineage, verdicts: Verdicts) -> None:
    """An epoch with records on ``one`` whose offsets ``other`` holds in the epoch before: records of its own."""
    for (epoch, entry), (_, following) in pairwise(one.items()):
        before = [e for e in other if e < epoch]
        after = [e for e in other if e > epoch]
        if epoch in other or not before or not after or following.offset <= entry.offset:
            continue
        own, until = other[before[-1]], other[after[0]]
        if own.offset > entry.offset or until.offset < following.offset:
            continue
        expected = f"leader epoch {epoch} from {entry.offset} on"
        observed = f"leader epoch {before[-1]} up to {until.offset}"
        text = (
            f"Replica {entry.replica_id}'s leader-epoch-checkpoint has leader epoch {epoch} from {entry.offset} to"
            f" {following.offset - 1}; in replica {own.replica_id}'s these offsets are of epoch {before[-1]}."
            " Unless the topic is compacted, the two logs differ there."
        )
        issue = known_issue("KAFKA-7164", case.version)
        verdicts.broken(_conflict_between(case, entry, own, expected, observed, text, issue))
