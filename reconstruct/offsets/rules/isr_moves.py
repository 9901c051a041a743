"""R38 and R34: what a leader's own lines say of the replicas that it takes out of the ISR."""

from __future__ import annotations

from typing import Final

from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Verdicts
from reconstruct.model.versions import (
    FETCHES_WAIT_FOR_ISR_CHANGE_SINCE,
    LAG_COUNTS_FROM_ELECTION_SINCE,
    LAG_MAX_MESSAGES_UNTIL,
    LEADER_DROPS_REMOVED_REPLICAS_SINCE,
)
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.evidence import (
    LINE_TO_ACT_US,
    LINE_TO_VALUE_US,
    MAY_HAVE_LOST,
    OffsetObservation,
    ReplicaEvent,
    ReplicaEventKind,
)
from reconstruct.offsets.rules.case import IsrMove, IsrMoveKind, OffsetCase, names
from reconstruct.time.instants import utc

#: How much earlier than the records of its answer are in the follower's log a fetch may have reached the leader.
_FETCH_US: Final = 1_500_000


def judge_leaves(case: OffsetCase, verdicts: Verdicts) -> None:
    """R38 and R34, of every replica that a leader took out of the ISR."""
    for move in case.moves_of(IsrMoveKind.LEFT):
        if not _judge_printed_lag(case, move, verdicts):
            _judge_lag_time(case, move, verdicts)
        _judge_lag_messages(case, move, verdicts)
        line = case.printed.get((move.evidence_id, move.leader), {})
        log_end, high_watermark = line.get(oe.LOG_END_OFFSET), line.get(oe.HIGH_WATERMARK)
        if move.end_offset is None or log_end is None or high_watermark is None:
            verdicts.unjudged("R38")
            continue
        _judge_lag(case, move, move.end_offset, log_end.offset, verdicts)
        _judge_committed(case, move, move.end_offset, high_watermark.offset, verdicts)


def broken_by(move: IsrMove, divergence_type: DivergenceType, *, is_proven: bool) -> Divergence:
    return Divergence(divergence_type, "error" if is_proven else "warning", move.at, move.leader, move.member)


def _judge_lag(case: OffsetCase, move: IsrMove, end_offset: int, log_end: int, verdicts: Verdicts) -> None:
    """A replica whose log ends where the leader's does is in sync (2.1, KAFKA-7152; lines print both since 2.2)."""
    if end_offset < log_end:
        verdicts.kept("R38")
        return
    is_proven = end_offset > log_end or case.version.is_since(FETCHES_WAIT_FOR_ISR_CHANGE_SINCE)
    why = "" if is_proven else " Only a fetch between the decision and the line explains that."
    verdicts.broken(
        broken_by(move, DivergenceType.ISR_SHRINK_WITHOUT_REASON, is_proven=is_proven).explained(
            f"an end offset below {log_end} of a replica that leaves the ISR",
            f"end offset {end_offset}",
            f"Leader {move.leader} took replica {move.member} out of the ISR ({utc(move.at)}) and prints {end_offset}"
            f" as its end offset, {log_end} as its own: a replica that has all of the leader's log is in sync.{why}",
            names((move.evidence_id,)),
        )
    )


def _judge_printed_lag(case: OffsetCase, move: IsrMove, verdicts: Verdicts) -> bool:
    """A replica that was caught up within ``replica.lag.time.max.ms`` is in sync (ReplicaState.isCaughtUp); lines print
    when that was since 3.6. Whether that was broken."""
    limit = case.view.lag_time_us(move.leader, move.at)
    # before the line it was, unless the line's time is read by another zone
    if limit is None or move.lag_us is None or move.lag_us < 0:
        return False
    if move.lag_us > limit:
        verdicts.kept("R38")
        return False
    is_proven = case.version.is_since(FETCHES_WAIT_FOR_ISR_CHANGE_SINCE)
    why = "" if is_proven else " Only a fetch between the decision and the line explains that."
    verdicts.broken(
        broken_by(move, DivergenceType.ISR_SHRINK_WITHOUT_REASON, is_proven=is_proven).explained(
            f"a replica that was last caught up more than {limit // 1000} ms before",
            f"caught up {move.lag_us // 1000} ms before at the most",
            f"Leader {move.leader} took replica {move.member} out of the ISR ({utc(move.at)}) and prints that it was"
            f" caught up {move.lag_us // 1000} ms before at the most, where replica.lag.time.max.ms is {limit // 1000}:"
            f" such a replica is in sync.{why}",
            names((move.evidence_id,)),
        )
    )
    return True


def _judge_committed(case: OffsetCase, move: IsrMove, end_offset: int, high_watermark: int, verdicts: Verdicts) -> None:
    """The high watermark counts every member's log end as the leader knows it."""
    if high_watermark <= end_offset:
        verdicts.kept("R34")
        return
    lost = case.events_of(move.member, *MAY_HAVE_LOST)
    since = max((e.at for e in case.events_of(move.leader, ReplicaEventKind.LEADS) if e.at <= move.at), default=None)
    slack = case.clocks.between_us(move.member, move.leader)
    is_proven = (
        since is not None
        and case.is_covered(move.member, since, move.at, move.leader)
        and not any(since - LINE_TO_ACT_US - slack <= event.at <= move.at + slack for event in lost)
    )
    why = "It neither started nor cut its log" if is_proven else "It may have lost records, by a start or a truncation,"
    verdicts.broken(
        broken_by(move, DivergenceType.LEADER_HIGH_WATERMARK_ABOVE_ISR, is_proven=is_proven).explained(
            f"high watermark at most {end_offset}",
            f"high watermark {high_watermark}",
            f"Leader {move.leader} had the high watermark {high_watermark} while replica {move.member}, still in the"
            f" ISR, had fetched up to {end_offset} only ({utc(move.at)}): {high_watermark - end_offset} records counted"
            f" as committed that a member did not have. {why} while this leader led.",
            names((move.evidence_id,)),
        )
    )


def _judge_lag_time(case: OffsetCase, move: IsrMove, verdicts: Verdicts) -> None:
    """Whoever is in the ISR when a leader is elected may lag for ``replica.lag.time.max.ms`` from then on."""
    limit = case.view.lag_time_us(move.leader, move.at)
    elected = last_election(case, move)
    if limit is None or elected is None or case.version.may_be_before(LAG_COUNTS_FROM_ELECTION_SINCE):
        verdicts.unjudged("R38")
        return
    if move.end_offset is None and case.version.may_be_since(LEADER_DROPS_REMOVED_REPLICAS_SINCE):
        verdicts.unjudged("R38")
        return
    joined_since = case.has_moved(IsrMoveKind.JOINED, move.leader, move.member, elected.at, move.at - 1)
    if joined_since or move.at - elected.at >= limit:
        verdicts.kept("R38")
        return
    verdicts.broken(
        broken_by(move, DivergenceType.ISR_SHRINK_WITHOUT_REASON, is_proven=False).explained(
            f"no shrink for lag before {utc(elected.at + limit)}",
            f"replica {move.member} left at {utc(move.at)}",
            f"Leader {move.leader} began leader epoch {elected.leader_epoch} ({utc(elected.at)}) with replica"
            f" {move.member} in the ISR and took it out {(move.at - elected.at) // 1000} ms later, where"
            f" replica.lag.time.max.ms is {limit // 1000}: lag counts from the election on. A broker that stood still"
            " during the election could do that.",
            names((elected.evidence_id, move.evidence_id)),
        )
    )


def _judge_lag_messages(case: OffsetCase, move: IsrMove, verdicts: Verdicts) -> None:
    """Up to 0.8 a replica leaves that is more than ``replica.lag.max.messages`` behind, or has not fetched for
    ``replica.lag.time.max.ms`` (Partition.getOutOfSyncReplicas). One whose log grew within that time has fetched."""
    if case.version.may_be_since(LAG_MAX_MESSAGES_UNTIL):
        return
    limit, messages = case.view.lag_time_us(move.leader, move.at), case.view.lag_messages(move.leader, move.at)
    if limit is None or messages is None:
        return
    slack, curves = LINE_TO_VALUE_US + case.clocks.slack_us(move.leader), case.curves
    since, until = move.at - limit + _FETCH_US + slack, move.at - slack
    before = curves.most(move.member, oe.LOG_END_OFFSET, since, since) if since < until else None
    after = curves.least(move.member, oe.LOG_END_OFFSET, until, until)
    had = curves.least(move.member, oe.LOG_END_OFFSET, since - _FETCH_US, since - _FETCH_US)
    end = curves.most(move.leader, oe.LOG_END_OFFSET, until, move.at + slack)
    if before is None or after is None or had is None or end is None:
        verdicts.unjudged("R38")
        return
    if after.offset <= before.offset or end.offset - had.offset > messages:
        verdicts.kept("R38")
        return
    verdicts.broken(
        broken_by(move, DivergenceType.ISR_SHRINK_WITHOUT_REASON, is_proven=False).explained(
            f"a replica more than {messages} messages behind, or without a fetch for {limit // 1000} ms",
            f"replica {move.member} at most {end.offset - had.offset} behind, and fetching",
            f"Leader {move.leader} took replica {move.member} out of the ISR ({utc(move.at)}). Its log grew from"
            f" {before.offset} at most to {after.offset} within replica.lag.time.max.ms ({limit // 1000} ms), so"
            f" that it had fetched, and the leader's ended at {end.offset} at most, where replica.lag.max.messages is"
            f" {messages}.",
            names(before.evidence, after.evidence, had.evidence, end.evidence, (move.evidence_id,)),
        )
    )


def last_election(case: OffsetCase, move: IsrMove) -> ReplicaEvent | None:
    """The leader's own line that prints where its epoch begins, if it kept its role from then to ``move``."""
    events = case.events_of(move.leader, ReplicaEventKind.LEADS, ReplicaEventKind.FOLLOWS, ReplicaEventKind.STARTED)
    found: ReplicaEvent | None = None
    for event in events:
        if event.at > move.at:
            break
        if event.kind is not ReplicaEventKind.LEADS:
            found = None
        elif printed_log_end(case, event) is not None and event.leader_epoch is not None:
            found = event
    return found if found is not None and case.is_covered(move.leader, found.at, move.at, move.leader) else None


def printed_log_end(case: OffsetCase, event: ReplicaEvent) -> OffsetObservation | None:
    return case.printed.get((event.evidence_id, event.replica_id), {}).get(oe.LOG_END_OFFSET)
