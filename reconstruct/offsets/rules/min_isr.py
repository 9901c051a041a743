"""R39 and R34: when writes with acks=all could not succeed, and that the high watermark stood still meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Verdicts
from reconstruct.model.states import NO_LEADER
from reconstruct.model.versions import HIGH_WATERMARK_NEEDS_MIN_ISR_SINCE
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.clocks import DECISIONS, earlier
from reconstruct.offsets.evidence import LINE_TO_ACT_US, DecidedState
from reconstruct.offsets.rules.case import OffsetCase, names
from reconstruct.time.instants import utc

#: By then a broker has heard of a setting that was changed, if it lives.
_HEARD_BY_US: Final = 60_000_000


@dataclass(frozen=True, slots=True)
class _Span:
    """Consecutive states under ``min_isr``; ``end`` None while it lasts."""

    start: int
    end: int | None
    min_isr: int
    states: tuple[DecidedState, ...]


def judge_acks_all(case: OffsetCase, verdicts: Verdicts) -> None:
    """R39: the spans in which the ISR was smaller than ``min.insync.replicas``: the leader refused acks=all."""
    for state in case.evidence.decided:
        required = case.min_insync_replicas(state.leader, state.valid_from, state.valid_to)
        if required is None and state.leader != NO_LEADER:
            verdicts.unjudged("R39")
        elif required is not None and len(state.isr) >= required:
            verdicts.kept("R39")
    for span in _spans_under_min_isr(case):
        lasted = (
            "and was at the end of the evidence" if span.end is None else f"for {(span.end - span.start) / 1e6:.3f} s"
        )
        smallest = min(span.states, key=lambda state: len(state.isr))
        verdicts.broken(
            Divergence(
                DivergenceType.ACKS_ALL_UNAVAILABLE,
                "warning",
                span.start,
                broker_id=smallest.leader if smallest.leader != NO_LEADER else None,
            ).explained(
                f"an ISR of {span.min_isr} or more",
                f"ISR {list(smallest.isr)} (leader epoch {smallest.leader_epoch}) from {utc(span.start)} on",
                f"From {utc(span.start)} on the ISR was smaller than min.insync.replicas {span.min_isr}, {lasted}:"
                " writes with acks=all were refused (NotEnoughReplicas), those with fewer acks were not.",
                _evidence(case, span),
            )
        )


def _evidence(case: OffsetCase, span: _Span) -> tuple[str, ...]:
    """What says that the ISR was so small: of each state."""
    return names(*(case.decided_evidence.get((state.valid_from, state.leader_epoch), ()) for state in span.states))


def _spans_under_min_isr(case: OffsetCase) -> Iterator[_Span]:
    run: list[DecidedState] = []
    min_isr = 0
    for state in case.decided_in_order:
        required = (
            case.min_insync_replicas(state.leader, state.valid_from, state.valid_to)
            if state.leader != NO_LEADER
            else (min_isr if run else None)
        )
        is_under = required is not None and required > 1 and len(state.isr) < required
        if is_under and required is not None:
            min_isr = required
            run.append(state)
        elif run:
            yield _Span(run[0].valid_from, run[-1].valid_to, min_isr, tuple(run))
            run = []
    if run:
        yield _Span(run[0].valid_from, run[-1].valid_to, min_isr, tuple(run))


def judge_high_watermark_stands(case: OffsetCase, verdicts: Verdicts) -> None:
    """R34 since 3.7 (KIP-966): the high watermark does not move while the ISR is smaller than min.insync.replicas."""
    curves = case.curves
    if case.version.may_be_before(HIGH_WATERMARK_NEEDS_MIN_ISR_SINCE):
        return
    for state in case.evidence.decided:
        required = case.min_insync_replicas(state.leader, state.valid_from, state.valid_to)
        if required is None or len(state.isr) >= required:
            continue
        # the leader knows of the change within this; its log, where it is complete, tells when the ISR grew again
        slack = case.clocks.slack_us(DECISIONS)
        start, end = state.valid_from + slack + LINE_TO_ACT_US, earlier(state.end, slack) - LINE_TO_ACT_US
        changes = case.view.settings.changes(case.topic, of_running=True)
        start = max([start, *(at + _HEARD_BY_US for at in changes if at <= start)])
        values = [
            value
            for value in curves.of(state.leader, oe.HIGH_WATERMARK)
            if start <= value.earliest
            and value.latest <= end
            and case.is_covered(state.leader, state.valid_from, value.latest, DECISIONS)
            and curves.leading(state.leader, value.earliest, value.latest) is not None
        ]
        for first, value in pairwise(values):
            if value.offset <= first.offset or value.earliest < first.latest:
                verdicts.kept("R34")
                continue
            verdicts.broken(
                Divergence.of_replica(
                    DivergenceType.HIGH_WATERMARK_MOVED_UNDER_MIN_ISR, "warning", value.earliest, state.leader
                ).explained(
                    f"high watermark {first.offset}",
                    f"high watermark {value.offset}",
                    f"Leader {state.leader}'s high watermark rose from {first.offset} to {value.offset} by"
                    f" {utc(value.latest)}, while its ISR was {list(state.isr)} and min.insync.replicas {required}:"
                    " since 3.7 it stands still then. A leader that had not heard of the setting yet could do that.",
                    names(first.evidence, value.evidence),
                )
            )
            break
