"""R38: what joins the ISR of a leader has all that is committed; by the leader's own lines, else by decided states."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Final

from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.known_issues import known_issue
from reconstruct.findings.verdicts import Verdicts
from reconstruct.model.versions import ALTER_ISR_SINCE, JOIN_NEEDS_EPOCH_START_SINCE
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_BEFORE
from reconstruct.offsets.clocks import DECISIONS
from reconstruct.offsets.evidence import LINE_TO_VALUE_US, ReplicaEvent, ReplicaEventKind
from reconstruct.offsets.rules.case import Extreme, IsrMove, IsrMoveKind, OffsetCase, names
from reconstruct.offsets.rules.isr_moves import broken_by, last_election, printed_log_end
from reconstruct.time.instants import at_of, utc
from reconstruct.time.spans import within

#: A leader's line of a join and the write of it lie within this.
_SAME_JOIN_US: Final = 5_000_000
#: A leader waits no longer than this for what it needs to answer a fetch (request timeouts), µs.
_STARTED_US: Final = 30_000_000
#: What may make another ISR of a leader's than its last line has.
_ROLE_CHANGES: Final = (ReplicaEventKind.LEADS, ReplicaEventKind.FOLLOWS, ReplicaEventKind.STARTED)


def judge_joins(case: OffsetCase, verdicts: Verdicts) -> None:
    """R38, of every replica that a leader took into the ISR: it has the leader's committed records, and since 2.0.1 all
    up to the begin of the leader's epoch."""
    curves = case.curves
    told = [*case.moves_of(IsrMoveKind.JOINED), *_written_joins(case)]
    joins = [(move, move.leader) for move in told] + [(move, DECISIONS) for move in _decided_joins(case, told)]
    for move, clock in joins:
        slack = case.clocks.slack_us(clock)
        start, end = move.at - LINE_TO_VALUE_US, move.at + LINE_TO_VALUE_US
        had = curves.most(move.member, oe.LOG_END_OFFSET, end - slack, end + slack)
        needed = curves.least(move.leader, oe.HIGH_WATERMARK, start - slack, start + slack)
        began = _epoch_begin(case, move)
        if began is not None and (needed is None or began.offset > needed.offset):
            needed = began
        if had is None or needed is None:
            verdicts.unjudged("R38")
        elif had.offset >= needed.offset:
            verdicts.kept("R38")
        else:
            verdicts.broken(
                broken_by(move, DivergenceType.ISR_JOIN_TOO_EARLY, is_proven=True).explained(
                    f"a log end offset of {needed.offset} or higher",
                    f"log end offset {had.offset} at most",
                    f"Leader {move.leader} took replica {move.member} into the ISR ({utc(move.at)}) while its log ended"
                    f" at {had.offset} at most; it had to reach {needed.offset}, the leader's high watermark"
                    f"{' or the begin of its epoch' if needed is began else ''}, first.",
                    names(had.evidence, needed.evidence, (move.evidence_id,)),
                    known_issue("KAFKA-15221", case.version) if _had_just_started(case, move) else None,
                )
            )


def _had_just_started(case: OffsetCase, move: IsrMove) -> bool:
    starts = case.events_of(move.member, ReplicaEventKind.STARTED)
    slack = case.clocks.between_us(move.member, move.leader)
    return any(move.at - _STARTED_US <= event.at <= move.at + slack for event in starts)


def _written_joins(case: OffsetCase) -> list[IsrMove]:
    """Those that a leader logs as written only ("ISR updated to"; since 2.8 it does not log that it asks for one): each
    line's replicas that were not in the ISR of its line before, or of the epoch that it began since.

    A replica that is asked for counts for the high watermark from then on: so when it is written it has what that
    covers, however long it took.
    """
    lines: dict[tuple[int, str, int], set[int]] = {}
    for move in case.moves_of(IsrMoveKind.WRITTEN):
        lines.setdefault((move.at, move.evidence_id, move.leader), set()).add(move.member)
    result: list[IsrMove] = []
    before: dict[int, tuple[int, set[int]]] = {}
    for (at, evidence_id, leader), isr in lines.items():
        since, known = before.get(leader, (EVER_BEFORE, None))
        began = within(case.events_of(leader, *_ROLE_CHANGES), since + 1, at)
        if began:
            since, known = began[-1].at, _first_isr(case, began)
        before[leader] = at, isr
        if known is not None and case.is_covered(leader, since, at, leader):
            result += [
                IsrMove(leader, member, IsrMoveKind.JOINED, at, evidence_id=evidence_id)
                for member in sorted(isr - known - {leader})
                if not case.has_moved(IsrMoveKind.JOINED, leader, member, at - _SAME_JOIN_US, at + _SAME_JOIN_US)
            ]
    return result


def _first_isr(case: OffsetCase, began: Sequence[ReplicaEvent]) -> set[int] | None:
    """That of the epoch which the last of a leader's lines begin; None where no decided state shows it. Of two lines
    that tell of one begin only one has the epoch."""
    leads = list(takewhile(lambda event: event.kind is ReplicaEventKind.LEADS, reversed(began)))
    epoch = next((event.leader_epoch for event in leads if event.leader_epoch is not None), None)
    own = [s for s in case.evidence.decided if (s.leader, s.leader_epoch) == (began[-1].replica_id, epoch)]
    return set(min(own, key=lambda state: state.valid_from).isr) if own else None


def _decided_joins(case: OffsetCase, told: Sequence[IsrMove]) -> list[IsrMove]:
    """Those that only a decided state shows, since the controller writes the ISR for the leader (2.7, KIP-497), and
    none of those that its leader's lines have ``told``."""
    if case.version.may_be_before(ALTER_ISR_SINCE):
        return []
    near = _SAME_JOIN_US + case.clocks.slack_us(DECISIONS)
    instants: dict[tuple[int, int], list[int]] = {}
    for move in sorted(told, key=at_of):
        instants.setdefault((move.leader, move.member), []).append(move.at)

    def is_told(leader: int, member: int, at: int) -> bool:
        known = instants.get((leader, member), ())
        return bisect_left(known, at - near) < bisect_right(known, at + near)

    decided = sorted(case.evidence.decided, key=lambda state: (state.leader_epoch, state.valid_from))
    return [
        IsrMove(after.leader, member, IsrMoveKind.JOINED, after.valid_from, evidence_id=evidence[0] if evidence else "")
        for before, after in pairwise(decided)
        if (before.leader, before.leader_epoch) == (after.leader, after.leader_epoch)
        for evidence in [case.decided_evidence.get((after.valid_from, after.leader_epoch), ())]
        for member in sorted(set(after.isr) - set(before.isr) - {after.leader})
        if not is_told(after.leader, member, after.valid_from)
    ]


def _epoch_begin(case: OffsetCase, move: IsrMove) -> Extreme | None:
    if case.version.may_be_before(JOIN_NEEDS_EPOCH_START_SINCE):
        return None
    elected = last_election(case, move)
    log_end = None if elected is None else printed_log_end(case, elected)
    return None if log_end is None else Extreme(log_end.offset, log_end.evidence)
