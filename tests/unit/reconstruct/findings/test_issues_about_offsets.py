"""Known bugs of Kafka that offsets show: a history of each, and one near it that is not named so."""

from __future__ import annotations

from collections.abc import Sequence

from reconstruct.cluster.view import ClusterView
from reconstruct.findings.verdicts import Finding, Verdicts
from reconstruct.model.versions import KafkaVersion, VersionRange, v
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_AFTER
from reconstruct.offsets.evidence import (
    DecidedState,
    OffsetEvidence,
    OffsetObservation,
    ReplicaEvent,
    ReplicaEventKind,
    TruncationCause,
)
from reconstruct.offsets.rules import IsrMove, IsrMoveKind, OffsetCase, judge_offsets

SECOND = 1_000_000
LEADS = ReplicaEvent(1, ReplicaEventKind.LEADS, SECOND, None, 1, 0, "leads")
FOLLOWS = ReplicaEvent(2, ReplicaEventKind.FOLLOWS, SECOND, None, 1, 0, "follows")
IN_SYNC = DecidedState(SECOND, None, 1, 0, (1, 2))


def seen(replica: int, kind: str, offset: int, at: float) -> OffsetObservation:
    start = round(at * SECOND)
    name = f"{replica}-{kind}-{at:g}"
    return OffsetObservation(replica, kind, offset, start, start + SECOND // 10, source=oe.PROBE, evidence_id=name)


def event(
    replica: int, kind: ReplicaEventKind, at: float, offset: int | None = None, cause: TruncationCause | None = None
) -> ReplicaEvent:
    return ReplicaEvent(replica, kind, round(at * SECOND), offset, evidence_id=f"{kind}-{at:g}", cause=cause)


def issues(
    kind: str,
    version: KafkaVersion,
    observations: Sequence[OffsetObservation],
    *events: ReplicaEvent,
    decided: Sequence[DecidedState] = (IN_SYNC,),
    moves: Sequence[IsrMove] = (),
) -> list[str | None]:
    """What the findings of one type name."""
    covered = {broker: [(0, EVER_AFTER)] for broker in (1, 2)}
    evidence = OffsetEvidence(list(observations), [LEADS, FOLLOWS, *events], list(decided), covered)
    verdicts = Verdicts()
    judge_offsets(OffsetCase("t", ClusterView("c", VersionRange.exactly(version)), evidence, isr_moves=moves), verdicts)
    found: list[Finding] = [finding for finding in verdicts.findings if finding.divergence_type == kind]
    return [finding.known_issue for finding in found]


# --- KAFKA-5634: retention deletes above the high watermark

ABOVE = "log_start_above_high_watermark"
RISES = [seen(1, oe.LOG_START_OFFSET, 5, 3), seen(1, oe.LOG_START_OFFSET, 12, 6)]
STANDS = [seen(1, oe.HIGH_WATERMARK, 10, 2), seen(1, oe.HIGH_WATERMARK, 10, 8)]


def test_a_leader_s_log_start_that_rises_above_its_high_watermark() -> None:
    assert issues(ABOVE, v(0, 10, 2), [*RISES, *STANDS]) == ["KAFKA-5634 (fixed in 0.11.0.1)"]
    assert issues(ABOVE, v(2, 0), [*RISES, *STANDS]) == [None]


def test_one_that_was_above_it_since_the_leader_began_did_not_rise_so() -> None:
    assert issues(ABOVE, v(0, 10, 2), [RISES[1], *STANDS]) == [None]
    below = [seen(1, oe.LOG_START_OFFSET, 5, 3), seen(1, oe.LOG_START_OFFSET, 9, 6), *STANDS]
    assert issues(ABOVE, v(0, 10, 2), below) == []


# --- KAFKA-9491: a full truncation that leaves the high watermark

EMPTIED = event(2, ReplicaEventKind.TRUNCATION_DECIDED, 5, 12, TruncationCause.LEADER_LOG_START)
BEHIND = [seen(2, oe.LOG_START_OFFSET, 12, 6), seen(2, oe.HIGH_WATERMARK, 10, 4), seen(2, oe.HIGH_WATERMARK, 10, 8)]


def test_a_follower_whose_log_began_anew_above_its_high_watermark() -> None:
    assert issues(ABOVE, v(2, 4), BEHIND, EMPTIED) == ["KAFKA-9491 (since 2.4, fixed in 2.4.1)"]
    assert issues(ABOVE, v(2, 5), BEHIND, EMPTIED) == [None]


def test_a_follower_whose_log_did_not_begin_anew_is_not_it() -> None:
    assert issues(ABOVE, v(2, 4), BEHIND) == [None]
    cut = event(2, ReplicaEventKind.TRUNCATION_DECIDED, 5, 12, TruncationCause.LEADER_EPOCH)
    assert issues(ABOVE, v(2, 4), BEHIND, cut) == [None]


# --- KAFKA-15221: a rebooted follower that joins by its last fetch

EARLY = [seen(1, oe.HIGH_WATERMARK, 10, 40), seen(2, oe.LOG_END_OFFSET, 8, 44)]
JOINS = [IsrMove(1, 2, IsrMoveKind.JOINED, 42 * SECOND, None, "expand")]
ALONE = [DecidedState(SECOND, None, 1, 0, (1,))]


def joins(version: KafkaVersion, *events: ReplicaEvent) -> list[str | None]:
    return issues("isr_join_too_early", version, EARLY, *events, decided=ALONE, moves=JOINS)


def test_a_follower_that_joins_too_early_just_after_its_start() -> None:
    assert joins(v(3, 6), event(2, ReplicaEventKind.STARTED, 40)) == ["KAFKA-15221 (fixed in 3.7)"]
    assert joins(v(3, 7), event(2, ReplicaEventKind.STARTED, 40)) == [None]


def test_one_that_had_not_just_started_joined_for_another_reason() -> None:
    assert joins(v(3, 6)) == [None]
    assert joins(v(3, 6), event(2, ReplicaEventKind.STARTED, 5)) == [None]
    assert joins(v(3, 6), event(1, ReplicaEventKind.STARTED, 0.5)) == [None]


# --- KAFKA-7128: a member of the ISR without what is committed


def behind(version: KafkaVersion, log_end: int) -> list[str | None]:
    shown = [seen(1, oe.HIGH_WATERMARK, 10, 4), seen(2, oe.LOG_END_OFFSET, log_end, 8)]
    return issues("isr_member_behind_high_watermark", version, shown)


def test_a_member_of_the_isr_that_lacks_what_is_committed() -> None:
    assert behind(v(1, 1), 8) == ["KAFKA-7128 (fixed in 2.1)"]
    assert behind(v(2, 1), 8) == [None]
    assert behind(v(1, 1), 10) == []


# --- KAFKA-6361: an epoch that begins elsewhere on each replica


def lineages(version: KafkaVersion, *begins: Sequence[tuple[int, int]]) -> list[str | None]:
    entries = [
        OffsetObservation(
            replica,
            oe.EPOCH_START,
            offset,
            SECOND,
            leader_epoch=epoch,
            source="leader_epoch_checkpoint",
            evidence_id=f"{replica}-{epoch}",
        )
        for replica, lineage in enumerate(begins, 1)
        for epoch, offset in lineage
    ]
    return issues("epoch_lineage_conflict", version, entries)


def test_an_epoch_that_begins_at_two_offsets() -> None:
    one, other = ((0, 0), (1, 10), (2, 20)), ((0, 0), (1, 14), (2, 20))
    assert lineages(v(1, 1), one, other) == ["KAFKA-6361 (since 0.11, fixed in 2.0)"]
    assert lineages(v(2, 0), one, other) == [None]
    assert lineages(v(1, 1), one, one) == []
    assert lineages(v(1, 1), one, one[1:]) == [], "the first entry of either may have moved"


def test_a_replica_that_has_the_epoch_or_had_nothing_of_it_did_not_miss_it() -> None:
    """KAFKA-7164."""
    one = ((0, 0), (1, 10), (2, 20), (3, 30))
    assert lineages(v(1, 1), one, ((0, 0), (2, 20), (3, 30))) == ["KAFKA-7164 (since 0.11, fixed in 2.1)"]
    assert lineages(v(1, 1), one, ((0, 0), (2, 10), (3, 30))) != ["KAFKA-7164 (since 0.11, fixed in 2.1)"]
    assert lineages(v(1, 1), ((0, 0), (1, 20), (2, 20), (3, 30)), ((0, 0), (2, 20), (3, 30))) == []
