"""From a partition's history and an instant to the explanation of what was decided then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reconstruct.explain.decisions import decisions
from reconstruct.explain.refusals import refusals
from reconstruct.explain.story import Chapter, text
from reconstruct.findings.verdicts import Finding
from reconstruct.model.states import NO_LEADER
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from reconstruct.time.instants import utc
from reconstruct.time.intervals import as_of

#: More decisions in the span that was asked for than this are counted, not listed.
_MOST_DECISIONS: Final = 6


@dataclass(frozen=True, slots=True)
class Span:
    """The instants that a time as people write it may mean: [``start``, ``end``), µs since the epoch."""

    start: int
    end: int


def explanation(
    heading: str,
    history: Case,
    span: Span,
    of_no_partition: Sequence[Evidence] = (),
    described: Chapter | None = None,
    findings: Sequence[Finding] | None = None,
    broker_id: int | None = None,
) -> str:
    """What was decided, or refused, in the span; where that is nothing, the last before it. Of a broker alone: what
    changed its place, and what it refused.

    ``of_no_partition`` holds requests that brokers ignored as a whole, which name no partition; ``described`` is what
    brokers answered a client about it, the last chapter. ``findings`` are all of the partition, those of the rules on
    offsets and requests too; without them those of the history are taken.
    """
    every = sorted(
        [
            *decisions(history, history.verdicts.findings if findings is None else findings),
            *refusals(history, of_no_partition),
        ],
        key=lambda chapter: chapter.at,
    )
    chapters = [chapter for chapter in every if chapter.concerns(broker_id)]
    others = sum(span.start <= one.at < span.end and not one.concerns(broker_id) for one in every)
    chosen = [chapter for chapter in chapters if span.start <= chapter.at < span.end]
    before = [chapter for chapter in chapters if chapter.at < span.start]
    after = [chapter for chapter in chapters if chapter.at >= span.end]
    notes = []
    if not chosen and before:
        notes.append(f"Nothing was decided or refused then; the last before it was at {utc(before[-1].at)}:")
        chosen = [chapter for chapter in before if chapter.at == before[-1].at]
        before = [chapter for chapter in before if chapter.at != chosen[0].at]
    elif not chosen:
        notes.append("Nothing is known of this partition at that time or before it.")
    return text(
        heading,
        [*_in_force(history, span), *notes],
        [*chosen[:_MOST_DECISIONS], *([described] if described is not None else [])],
        [*_left_out(chosen), *_of_others(others, broker_id), *_neighbours(before, after)],
    )


def holders(history: Case) -> list[int]:
    """The brokers that have, or had, a replica, as far as any assignment, leader or ISR shows."""
    assigned = {replica for one in history.assignments for replica in one.value.replicas}
    decided = {replica for one in history.decided for replica in (*one.value.isr, one.value.leader)}
    return sorted((assigned | decided) - {NO_LEADER})


def description_only(heading: str, described: Chapter) -> str:
    """What brokers described of a partition of which neither a log nor a znode is known."""
    return text(
        heading, ["No log and no znode tells what was decided: there is what brokers described."], [described], []
    )


def _in_force(history: Case, span: Span) -> list[str]:
    state = as_of(history.decided, span.end - 1)
    if state is None:
        return []
    value = state.value
    until = "" if state.end is None else f" until {utc(state.end)}"
    return [
        f"In force: leader {value.leader}, leader epoch {value.leader_epoch}, ISR {','.join(map(str, value.isr))},"
        f" since {utc(state.start)}{until}.",
        *_awaited(value),
    ]


def _awaited(state: LeaderAndIsrState) -> list[str]:
    """Who may end that there is no leader: the ISR, with ELRs (KIP-966) these as well."""
    may_lead = sorted({*state.isr, *(state.elr or ())})
    if state.leader != NO_LEADER or not may_lead:
        return []
    *others, last = map(str, may_lead)
    named = f"{', '.join(others)} or {last}" if others else last
    return [f"It waits for {named} to come back: no other replica may lead but by an unclean election."]


def _left_out(chosen: Sequence[Chapter]) -> list[str]:
    more = len(chosen) - _MOST_DECISIONS
    return [f"{more} more in that time: ask for a shorter one."] if more > 0 else []


def _of_others(others: int, broker_id: int | None) -> list[str]:
    if not others:
        return []
    return [f"{others} more in that time changed nothing of broker {broker_id}: without --broker they are told, too."]


def _neighbours(before: Sequence[Chapter], after: Sequence[Chapter]) -> list[str]:
    lines = [f"before: {utc(chapter.at)}  {chapter.title}" for chapter in before[-1:]]
    return lines + [f"after:  {utc(chapter.at)}  {chapter.title}" for chapter in after[:1]]
