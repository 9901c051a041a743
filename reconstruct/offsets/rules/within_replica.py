"""R31: log start offset <= high watermark <= log end offset, and recovery point <= log end offset, in one replica."""

from __future__ import annotations

from typing import Final

from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.known_issues import known_issue
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.versions import HIGH_WATERMARK_KEPT_IN_LOG_SINCE
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_AFTER
from reconstruct.offsets.evidence import ReplicaEventKind, TruncationCause
from reconstruct.offsets.rules.case import Curves, Extreme, OffsetCase, names
from reconstruct.offsets.timed_offsets import TimedOffset
from reconstruct.time.instants import utc

_WORDS: Final = {
    oe.HIGH_WATERMARK: "high watermark",
    oe.LOG_END_OFFSET: "log end offset",
    oe.LOG_START_OFFSET: "log start offset",
    oe.RECOVERY_POINT: "recovery point",
}
_ABOVE_HIGH_WATERMARK: Final = DivergenceType.LOG_START_ABOVE_HIGH_WATERMARK
#: (type of the divergence, lower quantity, upper quantity).
_ORDERS: Final = (
    (DivergenceType.HIGH_WATERMARK_ABOVE_LOG_END, oe.HIGH_WATERMARK, oe.LOG_END_OFFSET),
    (DivergenceType.RECOVERY_POINT_ABOVE_LOG_END, oe.RECOVERY_POINT, oe.LOG_END_OFFSET),
    (_ABOVE_HIGH_WATERMARK, oe.LOG_START_OFFSET, oe.HIGH_WATERMARK),
    (DivergenceType.LOG_START_ABOVE_LOG_END, oe.LOG_START_OFFSET, oe.LOG_END_OFFSET),
)


def judge_order_in_replica(case: OffsetCase, verdicts: Verdicts) -> None:
    """R31, of every replica: each value of the lower quantity against the most the upper one can have been then, and
    each of the upper one against the least that the lower one was."""
    curves = case.curves
    for replica_id in case.judged_of(replica for replica, _ in curves.values):
        for divergence_type, lower, upper in _ORDERS:
            found: tuple[TimedOffset, Extreme] | None = None
            for value in curves.of(replica_id, lower):
                if not _is_ordered(case, curves, replica_id, lower, upper, value):
                    continue
                limit = _most(curves, replica_id, upper, value)
                if limit is None:
                    verdicts.unjudged("R31")
                elif value.offset <= limit.offset:
                    verdicts.kept("R31")
                    found = None
                elif found is None:
                    found = (value, limit)
                    verdicts.broken(_finding(case, divergence_type, lower, upper, replica_id, value, limit))
            if found is None:
                _judge_upper(case, curves, replica_id, (lower, upper, divergence_type), verdicts)
    _judge_lines(case, verdicts)


def _judge_upper(
    case: OffsetCase, curves: Curves, replica_id: int, order: tuple[str, str, DivergenceType], verdicts: Verdicts
) -> None:
    lower, upper, divergence_type = order
    reported: Extreme | None = None
    for value in curves.of(replica_id, upper):
        if value.is_minimum or not _is_ordered(case, curves, replica_id, lower, upper, value):
            continue
        reached = curves.least(replica_id, lower, value.earliest, value.latest)
        if reached is not None and reached.offset > value.offset and reached != reported:
            reported = reached
            verdicts.broken(
                _finding(
                    case,
                    divergence_type,
                    lower,
                    upper,
                    replica_id,
                    TimedOffset(value.earliest, value.latest, reached.offset, evidence=reached.evidence),
                    Extreme(value.offset, value.evidence),
                )
            )


def _most(curves: Curves, replica_id: int, quantity: str, value: TimedOffset) -> Extreme | None:
    """By the replica's own sightings; of a log end also by its leader's, whose log a follower's never exceeds."""
    found = [curves.most(replica_id, quantity, value.earliest, value.latest)]
    if quantity == oe.LOG_END_OFFSET:
        role = curves.following(replica_id, value.earliest, value.latest)
        if role is not None:
            found.append(curves.most(role.leader, quantity, value.earliest, value.latest))
    return min((limit for limit in found if limit is not None), key=lambda limit: limit.offset, default=None)


def _is_ordered(case: OffsetCase, curves: Curves, replica_id: int, lower: str, upper: str, value: TimedOffset) -> bool:
    """Whether the version in question keeps the two in order all through the value's interval.

    Before 2.4 (KAFKA-8457) a high watermark was no part of the log: a truncation left it above the log's end until the
    next fetch, and a log that began anew left it below the log's start.
    """
    if oe.HIGH_WATERMARK not in (lower, upper) or case.version.is_since(HIGH_WATERMARK_KEPT_IN_LOG_SINCE):
        return True
    if curves.leading(replica_id, value.earliest, value.latest) is not None:
        return True
    role = curves.following(replica_id, value.earliest, value.latest)
    if role is None:
        return False
    cuts, slack = case.events_of(replica_id, ReplicaEventKind.TRUNCATED), case.clocks.slack_us(replica_id)
    return not any(role.proven_from <= cut.at + slack and cut.at - slack <= value.latest for cut in cuts)


def _finding(
    case: OffsetCase,
    divergence_type: DivergenceType,
    lower: str,
    upper: str,
    replica_id: int,
    value: TimedOffset,
    limit: Extreme,
) -> Finding:
    until = "" if value.latest >= EVER_AFTER else f" and {utc(value.latest)}"
    return Divergence.of_replica(divergence_type, "error", value.earliest, replica_id).explained(
        f"{_WORDS[lower]} at most the {_WORDS[upper]} {limit.offset}",
        f"{_WORDS[lower]} {value.offset}",
        f"At an instant between {utc(value.earliest)}{until}, replica {replica_id}'s {_WORDS[lower]} was"
        f" {value.offset}, while its {_WORDS[upper]} was at most {limit.offset} at every instant of that time.",
        names(value.evidence, limit.evidence),
        _bug(case, replica_id, value, limit) if divergence_type is _ABOVE_HIGH_WATERMARK else None,
    )


def _bug(case: OffsetCase, replica_id: int, value: TimedOffset, limit: Extreme) -> str | None:
    """Of a log start above the high watermark: of a leader, whose log start rose above it while it led; or of a
    follower whose log began anew at its leader's start."""
    curves = case.curves
    leads = curves.leading(replica_id, value.earliest, value.latest)
    if leads is not None:
        before = (one for one in curves.of(replica_id, oe.LOG_START_OFFSET) if leads.proven_from <= one.earliest)
        has_risen = any(one.latest < value.earliest and one.offset <= limit.offset for one in before)
        return known_issue("KAFKA-5634", case.version) if has_risen else None
    cuts = case.events_of(replica_id, ReplicaEventKind.TRUNCATION_DECIDED, ReplicaEventKind.TRUNCATED)
    is_anew = any(cut.cause is TruncationCause.LEADER_LOG_START and cut.at <= value.latest for cut in cuts)
    return known_issue("KAFKA-9491", case.version) if is_anew else None


def _judge_lines(case: OffsetCase, verdicts: Verdicts) -> None:
    """Offsets that one line prints are of one instant."""
    for (evidence_id, replica_id), printed in sorted(case.printed.items()):
        for divergence_type, lower, upper in _ORDERS:
            if lower not in printed or upper not in printed:
                continue
            if printed[lower].offset <= printed[upper].offset:
                verdicts.kept("R31")
                continue
            at = printed[lower].observed_at
            verdicts.broken(
                Divergence.of_replica(divergence_type, "error", at, replica_id).explained(
                    f"{_WORDS[lower]} at most the {_WORDS[upper]} {printed[upper].offset}",
                    f"{_WORDS[lower]} {printed[lower].offset}",
                    f"One line of broker {replica_id} ({utc(at)}) prints the {_WORDS[lower]} {printed[lower].offset}"
                    f" and the {_WORDS[upper]} {printed[upper].offset}, both as of one instant.",
                    (evidence_id,),
                )
            )
