"""R35: what was committed stays; and where a replica silently kept what its leader does not have (R36)."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.known_issues import known_issue
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.states import NO_LEADER
from reconstruct.model.versions import FETCHES_ARE_FENCED_SINCE
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.clocks import DECISIONS
from reconstruct.offsets.evidence import LINE_TO_ACT_US, DecidedState, ReplicaEvent, ReplicaEventKind, TruncationCause
from reconstruct.offsets.losses import (
    SAME_LEADER,
    UNCLEAN_ELECTION,
    DivergingReplica,
    OffsetLoss,
)
from reconstruct.offsets.rules.case import Curves, Extreme, OffsetCase, names
from reconstruct.time.instants import utc

_HOW: Final = {
    UNCLEAN_ELECTION: "It was not in the ISR: an unclean election.",
    SAME_LEADER: "It led before and came back with a shorter log: its machine lost what was not flushed.",
}


def judge_losses(case: OffsetCase, verdicts: Verdicts) -> None:
    """R35, of every election: one whose epoch's begin is known and of which no loss was found keeps it."""
    lost = {loss.leader_epoch: loss for loss in case.losses}
    begun = {
        (s.replica_id, s.leader_epoch)
        for s in case.evidence.observations
        if s.offset_kind in (oe.EPOCH_START, oe.LOG_END_OFFSET) and s.leader_epoch is not None
    }
    for epoch, state in sorted(_elections(case).items()):
        loss = lost.get(epoch)
        if loss is not None and loss.lost_count_lower:
            verdicts.broken(_lost(case, loss))
        elif loss is None and (state.leader, epoch) in begun:
            verdicts.kept("R35")
        else:
            verdicts.unjudged("R35")
    for loss in case.losses:
        for kept in loss.diverging:
            verdicts.broken(_diverged(case, loss, kept))


def _elections(case: OffsetCase) -> dict[int, DecidedState]:
    """By leader epoch, but for the first: the state that it began with."""
    states = sorted(case.evidence.decided, key=lambda state: (state.leader_epoch, state.valid_from))
    first = {}
    for state in reversed(states):
        if state.leader != NO_LEADER:
            first[state.leader_epoch] = state
    first.pop(min(first, default=0), None)
    return first


def _lost(case: OffsetCase, loss: OffsetLoss) -> Finding:
    severity, issue = "warning", None
    if loss.cause not in _HOW:
        if case.version.may_be_before(FETCHES_ARE_FENCED_SINCE):
            issue = known_issue("KIP-101", case.version)
            if issue is None and _cut_to_high_watermark(case, loss):
                issue = known_issue("KAFKA-7415", case.version)
        elif _kept_running(case, loss):
            severity = "error"
    elif loss.cause == UNCLEAN_ELECTION and _is_forbidden(case, loss.event_at):
        severity = "error"
    upper = "" if loss.lost_count_upper is None else f", at most {loss.lost_count_upper}"
    how = _HOW.get(loss.cause, "It was in the ISR: a clean election.")
    return Divergence.of_replica(DivergenceType.COMMITTED_RECORDS_LOST, severity, loss.event_at, loss.leader).explained(
        f"a log of leader {loss.leader} that ends at {loss.lost_from_offset + loss.lost_count_lower} or higher",
        f"leader epoch {loss.leader_epoch} begins at {loss.lost_from_offset}",
        f"Leader {loss.previous_leader} had committed up to offset {loss.lost_to_offset_lower}; leader {loss.leader}"
        f" began leader epoch {loss.leader_epoch} at {loss.lost_from_offset}. Lost are at least {loss.lost_count_lower}"
        f" records{upper}, from offset {loss.lost_from_offset} on. {how}",
        names(loss.evidence),
        known_issue=issue,
    )


def _cut_to_high_watermark(case: OffsetCase, loss: OffsetLoss) -> bool:
    """Whether the new leader's own lines tell that, while the one before led, it cut its log to its high watermark."""
    states = [s for s in case.evidence.decided if s.leader == loss.previous_leader and s.valid_from < loss.event_at]
    since = min((s.valid_from for s in states), default=loss.event_at)
    cuts = case.events_of(loss.leader, ReplicaEventKind.TRUNCATED, ReplicaEventKind.TRUNCATION_DECIDED)
    return any(c.cause is TruncationCause.HIGH_WATERMARK and since <= c.at <= loss.event_at for c in cuts)


def _is_forbidden(case: OffsetCase, at: int) -> bool:
    """Whether no unclean election was allowed: a setting of brokers is the topic's only where its own are known."""
    return case.topic in case.view.settings.topics and case.view.unclean_election_allowed(case.topic, at) is False


def _kept_running(case: OffsetCase, loss: OffsetLoss) -> bool:
    """Whether the new leader neither started nor lacks its log from the last leader's election on."""
    states = [s for s in case.evidence.decided if s.leader == loss.previous_leader and s.valid_from < loss.event_at]
    since = min((s.valid_from for s in states), default=loss.event_at)
    return not _may_have_lost(case, loss.leader, since, loss.event_at)


def _diverged(case: OffsetCase, loss: OffsetLoss, kept: DivergingReplica) -> Finding:
    return Divergence.of_replica(
        DivergenceType.REPLICA_DIVERGED_SILENTLY, "warning", kept.since, kept.replica_id
    ).explained(
        f"replica {kept.replica_id} without records of its own from {kept.from_offset} on",
        f"it kept its own records {kept.from_offset} to {kept.to_offset - 1}",
        f"Leader epoch {loss.leader_epoch} of leader {loss.leader} begins at {kept.from_offset}. Replica"
        f" {kept.replica_id} came to follow it with a log of its own up to {kept.to_offset} and did not cut that:"
        f" offsets {kept.from_offset} to {kept.to_offset - 1} hold other records there than on the leader, and nothing"
        " in Kafka says so.",
        names(kept.evidence, loss.evidence),
        known_issue=known_issue("KIP-101", case.version),
    )


def judge_truncations(case: OffsetCase, verdicts: Verdicts) -> None:
    """R35: a replica that cuts its log below its own high watermark removes what was committed."""
    curves = case.curves
    for replica_id in case.judged_of(event.replica_id for event in case.evidence.events):
        for cut in case.events_of(replica_id, ReplicaEventKind.TRUNCATED):
            if cut.offset is None:
                continue
            instant = _before_cut(case, cut)
            known = None if instant is None else _reached(case, curves, replica_id, instant)
            if known is None:
                verdicts.unjudged("R35")
            elif known.offset <= cut.offset:
                verdicts.kept("R35")
            else:
                severity, why, known_issue = _why_cut(case, cut, known.offset)
                verdicts.broken(
                    Divergence.of_replica(
                        DivergenceType.COMMITTED_RECORDS_TRUNCATED, severity, cut.at, replica_id
                    ).explained(
                        f"a log cut to {known.offset} or higher",
                        f"cut to {cut.offset}",
                        f"Replica {replica_id} cut its log to {cut.offset} ({utc(cut.at)}), though its high watermark"
                        f" was {known.offset}: it removed {known.offset - cut.offset} records that were committed."
                        f" {why}",
                        names(known.evidence, (cut.evidence_id,)),
                        known_issue=known_issue,
                    )
                )


def _before_cut(case: OffsetCase, cut: ReplicaEvent) -> int | None:
    """The last instant at which the high watermark was surely not yet that of the leader for whom the log was cut.

    None where the broker started since: it then has a high watermark that only its checkpoint knows.
    """
    follows = [
        e.at for e in case.events_of(cut.replica_id, ReplicaEventKind.FOLLOWS) if e.at <= cut.at + LINE_TO_ACT_US
    ]
    began = max(follows, default=cut.at)
    instant = (min(began, cut.at) if cut.at - began <= LINE_TO_ACT_US else cut.at) - LINE_TO_ACT_US - 1
    starts = case.events_of(cut.replica_id, ReplicaEventKind.STARTED)
    return None if any(instant <= event.at <= cut.at for event in starts) else instant


def _reached(case: OffsetCase, curves: Curves, replica_id: int, instant: int) -> Extreme | None:
    """What the high watermark was at least at ``instant`` of its broker's clock.

    That is as much as it surely was at the earliest time this may have been, if it did not fall between.
    """
    slack = case.clocks.slack_us(replica_id)
    fell = [
        drop
        for drop in curves.drops.get((replica_id, oe.HIGH_WATERMARK), ())
        if drop.start + slack <= instant and drop.end >= instant - slack
    ]
    if slack and fell:
        return None
    return curves.least(replica_id, oe.HIGH_WATERMARK, instant - slack, instant - slack)


def _why_cut(case: OffsetCase, cut: ReplicaEvent, high_watermark: int) -> tuple[str, str, str | None]:
    assert cut.offset is not None
    for loss in case.losses:
        slack = case.clocks.between_us(cut.replica_id, DECISIONS)
        if loss.event_at - slack <= cut.at and loss.lost_from_offset <= high_watermark:
            word = "unclean election" if loss.cause == UNCLEAN_ELECTION else "election"
            why = f"The {word} of leader {loss.leader} (leader epoch {loss.leader_epoch}) had lost them already."
            return "warning", why, None
    if case.version.may_be_before(FETCHES_ARE_FENCED_SINCE):
        return (
            "warning",
            "Before 2.1 successive elections could bring that about.",
            known_issue("KIP-101", case.version),
        )
    if not _all_decided_clean(case, cut):
        return "warning", "Not every election before it is known to be clean.", None
    return "error", "No unclean election explains it.", None


def _all_decided_clean(case: OffsetCase, cut: ReplicaEvent) -> bool:
    """Whether every election up to the cut is known, epoch by epoch, and took its leader from the ISR before."""
    slack = LINE_TO_ACT_US + case.clocks.between_us(cut.replica_id, DECISIONS)
    states = sorted(
        (s for s in case.evidence.decided if s.valid_from <= cut.at + slack),
        key=lambda s: (s.leader_epoch, s.valid_from),
    )
    if not states or states[0].leader_epoch != 0:
        return False
    for before, after in pairwise(states):
        if after.leader_epoch - before.leader_epoch > 1:
            return False
        if after.leader_epoch != before.leader_epoch and after.leader not in (NO_LEADER, *before.isr):
            return False
    leaders = {state.leader for state in states} - {NO_LEADER}
    since = states[0].valid_from
    return not any(_may_have_lost(case, leader, since, cut.at + slack - LINE_TO_ACT_US) for leader in leaders)


def _may_have_lost(case: OffsetCase, replica_id: int, since: int, until: int) -> bool:
    """Whether the broker started between two decisions: a machine that went down takes with it what was not flushed."""
    starts, slack = case.events_of(replica_id, ReplicaEventKind.STARTED), case.clocks.between_us(replica_id, DECISIONS)
    return not case.is_covered(replica_id, since, until, DECISIONS) or any(
        since - slack <= event.at <= until + slack + LINE_TO_ACT_US for event in starts
    )
