"""R32 and R33: a follower's high watermark against its leader's, and the ISR's logs against it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.known_issues import known_issue
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.versions import FETCHES_ARE_FENCED_SINCE, TRUNCATION_BY_LEADER_EPOCH_SINCE
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.clocks import DECISIONS, earlier
from reconstruct.offsets.evidence import LINE_TO_ACT_US, MAY_HAVE_LOST, DecidedState, ReplicaEventKind
from reconstruct.offsets.rules.case import Extreme, IsrMoveKind, OffsetCase, names
from reconstruct.offsets.timed_offsets import TimedOffset
from reconstruct.time.instants import utc


def judge_followers(case: OffsetCase, verdicts: Verdicts) -> None:
    """R32: once its first fetch is over, a follower's high watermark is one that its leader had already."""
    curves = case.curves
    for replica_id in case.judged_with(oe.HIGH_WATERMARK):
        is_reported = False
        for value in curves.of(replica_id, oe.HIGH_WATERMARK):
            role = curves.following(replica_id, value.earliest, value.latest)
            if role is None:
                continue
            limit = curves.most(role.leader, oe.HIGH_WATERMARK, value.earliest, value.latest)
            if limit is None:
                verdicts.unjudged("R32")
            elif value.offset <= limit.offset:
                verdicts.kept("R32")
                is_reported = False
            elif not is_reported:
                is_reported = True
                verdicts.broken(
                    Divergence.of_replica(
                        DivergenceType.FOLLOWER_HIGH_WATERMARK_ABOVE_LEADER, "error", value.earliest, replica_id
                    ).explained(
                        f"high watermark at most {limit.offset}",
                        f"high watermark {value.offset}",
                        f"Replica {replica_id} followed leader {role.leader} and had the high watermark {value.offset}"
                        f" at an instant between {utc(value.earliest)} and {utc(value.latest)}, in all of which its"
                        f" leader's was at most {limit.offset}. A follower takes its high watermark from its leader.",
                        names(value.evidence, limit.evidence),
                    )
                )


def judge_isr_members(case: OffsetCase, verdicts: Verdicts) -> None:
    """R33: a member of the ISR has every record below the leader's high watermark."""
    curves = case.curves
    states = case.decided_in_order
    slack = case.clocks.slack_us(DECISIONS)
    begins = [state.valid_from + slack for state in states]
    for replica_id in case.judged_with(oe.LOG_END_OFFSET):
        reported: DecidedState | None = None
        for value in curves.of(replica_id, oe.LOG_END_OFFSET):
            at = bisect_right(begins, value.earliest) - 1
            if at < 0 or value.is_minimum or not _is_member(case, states[at], replica_id, value):
                continue
            state = states[at]
            if curves.leading(state.leader, value.earliest, value.latest) is None:
                continue
            reached = curves.least(state.leader, oe.HIGH_WATERMARK, value.earliest, value.latest)
            if reached is None:
                verdicts.unjudged("R33")
            elif reached.offset <= value.offset:
                verdicts.kept("R33")
            elif state is not reported:
                reported = state
                verdicts.broken(
                    _behind(case, state, _in_isr_since(states[: at + 1], replica_id), replica_id, value, reached)
                )


def _is_member(case: OffsetCase, state: DecidedState, replica_id: int, value: TimedOffset) -> bool:
    """Whether ``replica_id`` was in the ISR of ``state``, of another's lead, all through the value's interval.

    A change of the ISR may be known only from a snapshot, later than it was: so the leader's own log must be complete
    from the state's begin on and show neither that it took the replica out nor that it began another epoch.
    """
    ends = earlier(state.end, case.clocks.slack_us(DECISIONS))
    if state.leader == replica_id or replica_id not in state.isr or ends <= value.latest:
        return False
    if not case.is_covered(state.leader, state.valid_from, value.latest, DECISIONS):
        return False
    slack = LINE_TO_ACT_US + case.clocks.between_us(state.leader, DECISIONS)
    since, until = state.valid_from - slack, value.latest + slack
    left = case.has_moved(IsrMoveKind.LEFT, state.leader, replica_id, since, until)
    later = case.events_of(state.leader, ReplicaEventKind.LEADS)
    return not left and not any(
        since <= event.at <= until and event.leader_epoch is not None and event.leader_epoch > state.leader_epoch
        for event in later
    )


def _in_isr_since(states: Sequence[DecidedState], replica_id: int) -> int:
    """Since when the replica was in the ISR without a break, of ``states`` the last of which has it."""
    since = states[-1].valid_from
    for state in reversed(states):
        if replica_id not in state.isr:
            break
        since = state.valid_from
    return since


def _behind(
    case: OffsetCase, state: DecidedState, since: int, replica_id: int, value: TimedOffset, reached: Extreme
) -> Finding:
    severity, why, known_issue = _how_bad(case, since, replica_id, value)
    return Divergence.of_replica(
        DivergenceType.ISR_MEMBER_BEHIND_HIGH_WATERMARK, severity, value.earliest, replica_id
    ).explained(
        f"log end offset {reached.offset} or higher",
        f"log end offset {value.offset}",
        f"Replica {replica_id} was in the ISR {list(state.isr)} of leader {state.leader} (leader epoch"
        f" {state.leader_epoch}), whose high watermark was at least {reached.offset} between {utc(value.earliest)} and"
        f" {utc(value.latest)}; its own log ended at {value.offset}. Elected now, it would"
        f" lose {reached.offset - value.offset} committed records. {why}",
        names(value.evidence, reached.evidence),
        known_issue=known_issue,
    )


def _how_bad(case: OffsetCase, since: int, replica_id: int, value: TimedOffset) -> tuple[str, str, str | None]:
    if case.version.may_be_before(TRUNCATION_BY_LEADER_EPOCH_SINCE):
        return (
            "info",
            "Up to 0.10 a follower cuts its log to its own high watermark while it is in the ISR.",
            known_issue("KIP-101", case.version),
        )
    if case.version.may_be_before(FETCHES_ARE_FENCED_SINCE):
        return (
            "warning",
            "Before 2.1 successive elections could leave that behind.",
            known_issue("KAFKA-7128", case.version),
        )
    lost = case.events_of(replica_id, *MAY_HAVE_LOST)
    slack = LINE_TO_ACT_US + case.clocks.between_us(replica_id, DECISIONS)
    if not case.is_covered(replica_id, since, value.latest, DECISIONS) or any(
        since - slack <= event.at <= value.latest + slack for event in lost
    ):
        return "warning", "It started or cut its log meanwhile: what was not flushed is lost with a machine.", None
    return "error", "It neither started nor cut its log meanwhile.", None
