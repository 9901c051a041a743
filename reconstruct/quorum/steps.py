"""What makes the state of a quorum another: its control records, and what its nodes say of an epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconstruct.metadata_log.evidence import KRAFT_VERSION, LEADER_CHANGE, VOTERS, ClusterLog, LogRow, voters_of
from reconstruct.model.metadata_log.commitment import Commitment
from reconstruct.quorum.evidence import QuorumFact, QuorumFactKind, resigned

METADATA_LOG: Final = "metadata_log"
#: What an epoch goes through: an election, a leader, and what comes while there is one.
ELECTION, LEADER, LATER = range(3)


@dataclass(frozen=True, slots=True)
class Step:
    """What makes the state another: ``given`` are the fields of :class:`QuorumState` that it tells."""

    epoch: int
    phase: int
    at: int
    evidence: tuple[str, ...]
    began_by: str
    source: str
    given: dict[str, object]
    inferred_from: str | None = None

    @property
    def order(self) -> tuple[int, int, int, int]:
        offset = self.given.get("offset")
        return self.epoch, self.phase, self.at, offset if isinstance(offset, int) else -1


def steps_of(facts: Sequence[QuorumFact], log: ClusterLog) -> Iterator[Step]:
    """All of one cluster, in no order; ``facts`` in that of their times."""
    yield from _of_records(log)
    by_epoch: dict[int, list[QuorumFact]] = {}
    for fact in facts:
        if fact.epoch is not None and fact.epoch > 0:
            by_epoch.setdefault(fact.epoch, []).append(fact)
    recorded = {row.epoch: row for row in records_of(log, LEADER_CHANGE)}
    first_epochs: dict[int | None, int] = {}
    for fact in facts:
        if fact.epoch is not None:
            first_epochs.setdefault(fact.node_id, fact.epoch)
    has_resigned = resigned(facts)
    for epoch, of_epoch in by_epoch.items():
        row = recorded.get(epoch)
        leader = None if row is not None else _leader_of(epoch, of_epoch)
        if leader is not None:
            yield leader
        elected_at = row.at if row is not None else None if leader is None else leader.at
        yield from _election_of(epoch, of_epoch, elected_at, first_epochs)
        yield from _resigned(of_epoch, has_resigned)
        yield from _described(of_epoch)


def records_of(log: ClusterLog, record_type: str) -> list[LogRow]:
    """The records of one type that the logs of the nodes hold, by offset; of an election also one that was cut off."""
    found = (row for row in log.rows if row.record_type == record_type and row.snapshot_end is None and row.fields)
    return sorted(found, key=lambda row: (row.epoch, row.offset, row.evidence_id))


def _of_records(log: ClusterLog) -> Iterator[Step]:
    """The control records, those of one batch together (a new leader writes what the quorum is behind its first)."""
    yield from _of_base(log)
    batches: dict[tuple[int, int], list[LogRow]] = {}
    for record_type in (LEADER_CHANGE, KRAFT_VERSION, VOTERS):
        for row in records_of(log, record_type):
            if record_type == LEADER_CHANGE or log.is_followed(row):
                batch = row.offset if row.batch_offset is None else row.batch_offset
                batches.setdefault((row.epoch, batch), []).append(row)
    first = min(batches, default=None)
    is_whole = any(start == 0 for start, _ in log.lineage.runs)
    for key, rows in batches.items():
        given: dict[str, object] = {"offset": min(row.offset for row in rows)}
        if key == first and is_whole:
            # without a record of it, it is 0 (KRaftControlRecordStateMachine)
            given["kraft_version"] = 0
        for row in rows:
            given |= _told(row)
        types = {row.record_type for row in rows}
        is_elected = LEADER_CHANGE in types
        began_by = "voters_changed" if VOTERS in types else "kraft_version_changed"
        is_proven = is_elected or log.lineage.of(rows[0].offset, rows[0].epoch) is Commitment.COMMITTED
        yield Step(
            key[0],
            LEADER if is_elected else LATER,
            min(row.at for row in rows),
            tuple(row.evidence_id for row in rows),
            "leader_elected" if is_elected else began_by,
            METADATA_LOG,
            given,
            None if is_proven else "commit_not_proven",
        )


def _of_base(log: ClusterLog) -> Iterator[Step]:
    """What the first snapshot shows, where the log before it is gone."""
    base = min((start for start, _ in log.bases), default=0)
    source = log.base_snapshot(base) if base > 0 else None
    if source is None:
        return
    given: dict[str, object] = {"kraft_version": 0}
    evidence = [source.evidence_id]
    for row in log.rows:
        if (row.node_id, row.snapshot_end) == (source.node_id, base) and row.record_type in (KRAFT_VERSION, VOTERS):
            given |= _told(row)
            evidence.append(row.evidence_id)
    yield Step(
        source.epoch,
        ELECTION,
        source.at,
        tuple(dict.fromkeys(evidence)),
        "first_seen",
        METADATA_LOG,
        given,
        "retention_boundary",
    )


def _told(row: LogRow) -> dict[str, object]:
    fields = row.record.fields
    if row.record_type == KRAFT_VERSION:
        return {"kraft_version": fields.get("kRaftVersion")}
    told: dict[str, object] = {}
    if row.record_type == LEADER_CHANGE:
        told["leader_id"] = fields.get("leaderId")
        told["granted_by"] = tuple(sorted(voters_of({"voters": fields.get("grantingVoters")}))) or None
    listed = [one for one in fields.get("voters") or () if isinstance(one, dict)]
    directories = {one.get("voterId"): one.get("voterDirectoryId") for one in listed}
    voters = tuple(sorted(voters_of(fields)))
    if voters:
        told["voters"] = voters
        if all(directories.values()):
            told["voter_directory_ids"] = tuple(str(directories[voter]) for voter in voters)
    return told


def _leader_of(epoch: int, facts: Sequence[QuorumFact]) -> Step | None:
    """Who led, where no record says it. A node is *Resigned* only in an epoch that it had led."""
    for fact in facts:
        is_own = fact.kind is QuorumFactKind.ACTIVE or (fact.kind is QuorumFactKind.STATE and fact.state == "Leader")
        if is_own and fact.node_id is not None:
            return _elected(epoch, fact, fact.node_id, _voters_in(facts), None)
    for fact in facts:
        leader_id = fact.node_id if fact.state == "Resigned" else fact.leader_id
        if leader_id is not None and leader_id >= 0:
            return _elected(epoch, fact, leader_id, _voters_in(facts), "effect_logged")
    return None


def _elected(
    epoch: int, fact: QuorumFact, leader_id: int, voters: tuple[int, ...] | None, inferred_from: str | None
) -> Step:
    given: dict[str, object] = {"leader_id": leader_id} | ({} if voters is None else {"voters": voters})
    return Step(epoch, LEADER, fact.at, (fact.evidence_id,), "leader_elected", fact.source, given, inferred_from)


def _voters_in(facts: Sequence[QuorumFact]) -> tuple[int, ...] | None:
    return next((tuple(sorted(fact.voters)) for fact in facts if fact.voters), None)


def _election_of(
    epoch: int, facts: Sequence[QuorumFact], elected_at: int | None, first_epochs: Mapping[int | None, int]
) -> Iterator[Step]:
    """From the first node on that came into an epoch of which there was no leader yet: as a candidate, or because it
    heard of one. A node that starts comes into the epoch that it was in; ``first_epochs`` are the nodes' first."""
    for fact in facts:
        if fact.is_first or fact.leader_id is not None:
            continue
        knew = first_epochs.get(fact.node_id, epoch) if fact.previous_epoch is None else fact.previous_epoch
        is_told = fact.kind is QuorumFactKind.NAMED or fact.state in ("Candidate", "Unattached", "Voted")
        if is_told and knew < epoch:
            if elected_at is None or fact.at < elected_at:
                given: dict[str, object] = {"leader_id": None}
                if fact.voters:
                    given["voters"] = tuple(sorted(fact.voters))
                evidence = (fact.evidence_id,)
                yield Step(epoch, ELECTION, fact.at, evidence, "election_started", fact.source, given)
            return


def _resigned(facts: Sequence[QuorumFact], has_resigned: Mapping[str, bool | None]) -> Iterator[Step]:
    """A leader that resigned, or that started again in the epoch that it had led (``QuorumState.initialize``)."""
    for fact in facts:
        if fact.evidence_id in has_resigned and fact.epoch is not None:
            given: dict[str, object] = {"leader_id": None, "granted_by": None}
            inferred_from = None if has_resigned[fact.evidence_id] else "effect_logged"
            evidence = (fact.evidence_id,)
            yield Step(fact.epoch, LATER, fact.at, evidence, "leader_resigned", fact.source, given, inferred_from)
            return


def _described(facts: Sequence[QuorumFact]) -> Iterator[Step]:
    """What answers to DescribeQuorum say of voters and observers."""
    for fact in facts:
        if fact.kind is not QuorumFactKind.DESCRIBED or fact.epoch is None:
            continue
        given: dict[str, object] = {}
        if fact.voters:
            given["voters"] = tuple(sorted(fact.voters))
        if fact.observers is not None:
            given["observers"] = tuple(sorted(fact.observers))
        yield Step(fact.epoch, LATER, fact.at, (fact.evidence_id,), "members_described", fact.source, given)
