"""R38: a replica that leaves the ISR and joins it again and again, while the ISR stays under min.insync.replicas."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.known_issues import known_issue
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.versions import HIGH_WATERMARK_NEEDS_MIN_ISR_SINCE
from reconstruct.offsets.clocks import DECISIONS, earlier
from reconstruct.offsets.rules.case import IsrMove, IsrMoveKind, OffsetCase, names
from reconstruct.time.instants import utc

#: So many departures within this time are flapping.
_TIMES: Final = 3
_WITHIN_US: Final = 600_000_000


def judge_flaps(case: OffsetCase, verdicts: Verdicts) -> None:
    """Since 3.7 the high watermark stands still under min.insync.replicas: a replica reaches it and joins though it is
    far from the leader's log end, and is taken out for lag at the next check."""
    if case.version.may_be_before(HIGH_WATERMARK_NEEDS_MIN_ISR_SINCE):
        return
    departures: dict[tuple[int, int], list[IsrMove]] = {}
    for move in case.moves_of(IsrMoveKind.LEFT):
        departures.setdefault((move.leader, move.member), []).append(move)
    for (leader, member), moves in sorted(departures.items()):
        for first, last in zip(moves, moves[_TIMES - 1 :], strict=False):
            if last.at - first.at <= _WITHIN_US and _is_under_min_isr(case, leader, first.at, last.at):
                verdicts.broken(_finding(case, member, [m for m in moves if first.at <= m.at <= last.at]))
                break


def _is_under_min_isr(case: OffsetCase, leader: int, start: int, end: int) -> bool:
    """Whether the ISR was too small in every state from ``start`` to ``end``, with the replica and without."""
    required = case.min_insync_replicas(leader, start, end)
    if required is None:
        return False
    slack = case.clocks.between_us(leader, DECISIONS)
    begun = bisect_right(case.decided_in_order, end + slack, key=lambda state: state.valid_from)
    # one after the other: those that were over by then come first
    after = takewhile(lambda state: earlier(state.end, -slack) >= start, reversed(case.decided_in_order[:begun]))
    sizes = [len(state.isr) for state in after]
    return bool(sizes) and max(sizes) < required


def _finding(case: OffsetCase, member: int, moves: Sequence[IsrMove]) -> Finding:
    leader, first, last = moves[0].leader, moves[0].at, moves[-1].at
    return Divergence(
        DivergenceType.ISR_FLAPS_UNDER_MIN_ISR, "warning", first, broker_id=leader, replica_id=member
    ).explained(
        "a replica that joins the ISR once it has caught up with its leader's log end",
        f"{len(moves)} departures from {utc(first)} to {utc(last)}",
        f"Leader {leader} took replica {member} out of the ISR {len(moves)} times from {utc(first)} to {utc(last)} and"
        " in again between, while the ISR was smaller than min.insync.replicas: the high watermark stands still then,"
        " so that a replica far behind the log's end reaches it.",
        names([move.evidence_id for move in moves]),
        known_issue("KAFKA-19996", case.version),
    )
