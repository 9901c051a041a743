"""Causal pairs in plain Python: what the Spark step of ``clocks`` does, one record after the other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.clocks.evidence import (
    ANNOUNCES_REGISTRATION,
    RULES,
    SAME_REQUEST_US,
    LogFact,
    Mark,
    PairRule,
    ZnodeFact,
)
from reconstruct.clocks.timeline import CausalPair, ClockSegment
from reconstruct.model.znode_paths import BROKER_PATTERN

_BROKER: Final = re.compile(BROKER_PATTERN)


def pair_up(marks: Iterable[Mark]) -> list[CausalPair]:
    """The pairs of all marks, in a fixed order."""
    by_key: dict[tuple[str, str], tuple[list[Mark], list[Mark]]] = {}
    for mark in marks:
        by_key.setdefault((mark.rule, mark.key), ([], []))[0 if mark.is_earlier else 1].append(mark)
    pairs: list[CausalPair] = []
    for (rule, _), (earlier, later) in sorted(by_key.items()):
        pairs += _pairs_of(RULES[rule], earlier, later)
    return pairs


def _pairs_of(rule: PairRule, earlier: list[Mark], later: list[Mark]) -> Iterator[CausalPair]:
    if not earlier or not later or (len(later) > 1 and not rule.many_later):
        return
    clocks = {mark.clock for mark in earlier}
    span = max(mark.at_us for mark in earlier) - min(mark.at_us for mark in earlier)
    if len(clocks) > 1 or (len(earlier) > 1 and not (rule.many_earlier and span <= SAME_REQUEST_US)):
        return
    first = max(earlier, key=lambda mark: (mark.at_us, mark.evidence_id))
    for clock in sorted({mark.clock for mark in later} - clocks):
        then = min((mark for mark in later if mark.clock == clock), key=lambda mark: (mark.at_us, mark.evidence_id))
        yield CausalPair(first.clock, clock, first.at_us, then.at_us, rule.name, (first.evidence_id, then.evidence_id))


def with_announcements(facts: Iterable[LogFact]) -> Iterator[LogFact]:
    """The facts of one file in its order, each registration with the line that announced it."""
    announced: LogFact | None = None
    for fact in facts:
        if announces_registration(fact):
            announced = fact
        elif fact.event_type == EventType.BROKER_REGISTERED and announced is not None:
            fact = replace(fact, announced_us=announced.at_us, announced_by=announced.evidence_id)
        yield fact


def announces_registration(fact: LogFact) -> bool:
    """``Creating /brokers/ids/N (is it secure? ...)``, or the start of the broker."""
    is_creating = "is_secure" in fact.fields and _BROKER.match(fact.fields.get("path", "")) is not None
    return fact.source_kind == "server_log" and (is_creating or fact.event_type in ANNOUNCES_REGISTRATION)


def with_previous(facts: Iterable[ZnodeFact]) -> list[ZnodeFact]:
    """All writes to znodes, each with the one before it to the same znode, by path and transaction."""
    ordered = sorted(facts, key=lambda fact: (fact.path, fact.mzxid))
    znodes: dict[str, set[int]] = {}
    for fact in ordered:
        znodes.setdefault(fact.path, set()).add(fact.czxid)
    result: list[ZnodeFact] = []
    before: ZnodeFact | None = None
    for fact in ordered:
        known = before if before is not None and (before.path, before.czxid) == (fact.path, fact.czxid) else None
        result.append(
            replace(
                fact,
                previous=None if known is None else known.data,
                previous_version=None if known is None else known.version,
                is_only=len(znodes[fact.path]) == 1,
            )
        )
        before = fact
    return result


def segment_at(
    segments: Sequence[ClockSegment], printed_us: int, *, is_after_step_back: bool | None = None
) -> ClockSegment | None:
    """The segment of one broker that a printed time belongs to; None where none does, or two do and nothing decides.

    ``is_after_step_back``: whether the record's file went back in time before it, where the caller knows.
    """
    holding = [
        s
        for s in sorted(segments, key=lambda s: s.sequence)
        if (s.from_us is None or s.from_us <= printed_us) and (s.to_us is None or printed_us < s.to_us)
    ]
    if len(holding) == 1:
        return holding[0]
    if not holding or is_after_step_back is None:
        return None
    return holding[-1] if is_after_step_back else holding[0]
