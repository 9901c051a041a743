"""Every rule about one partition's offsets, one after the other; an error only where no clock could explain it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.rule import Rule, judge
from reconstruct.findings.verdicts import BROKEN, Finding, Verdicts
from reconstruct.offsets.rules.book import RULES
from reconstruct.offsets.rules.case import OffsetCase

#: By how much the lines of one broker may be off against the copies and the other brokers, after correction: nothing is
#: reported that one of the first explains, and nothing is an error that one of the others does.
_UNSURE_US: Final = (50_000, 100_000, 250_000)
_POSSIBLE_US: Final = (500_000, 750_000, 1_000_000)
#: The types that compare instants of different clocks.
_TIMED: Final = frozenset(
    {
        DivergenceType.HIGH_WATERMARK_DECREASED,
        DivergenceType.HIGH_WATERMARK_ABOVE_LOG_END,
        DivergenceType.RECOVERY_POINT_ABOVE_LOG_END,
        DivergenceType.LOG_START_ABOVE_HIGH_WATERMARK,
        DivergenceType.LOG_START_ABOVE_LOG_END,
        DivergenceType.FOLLOWER_HIGH_WATERMARK_ABOVE_LEADER,
        DivergenceType.ISR_MEMBER_BEHIND_HIGH_WATERMARK,
        DivergenceType.ISR_JOIN_TOO_EARLY,
        DivergenceType.COMMITTED_RECORDS_TRUNCATED,
        DivergenceType.HIGH_WATERMARK_MOVED_UNDER_MIN_ISR,
    }
)
_Name = tuple[str, str, int | None]


def judge_offsets(case: OffsetCase, verdicts: Verdicts) -> None:
    """R30 to R36, R38 and R39. The same evidence in any order gives the same verdicts.

    Copies and probes are of the capture's clock, lines of each broker's own. So what is broken is judged again with a
    broker's lines a little earlier and later: where a quarter of a second would explain it, it cannot be judged; where
    a second would, an error is a warning.
    """
    found = _judge_as_timed(case)
    explained = _explained_by_clocks(case, found)
    for (rule_id, verdict), times in found.counts.items():
        verdicts.counts[rule_id, verdict] += times
    for finding in found.findings:
        slack = explained.get(_name(finding))
        if slack in _UNSURE_US:
            verdicts.counts[finding.rule_id, BROKEN] -= 1
            verdicts.unjudged(finding.rule_id)
        elif slack is not None and finding.severity == "error":
            verdicts.findings.append(_softened(finding, slack))
        else:
            verdicts.findings.append(finding)
    verdicts.counts += Counter()  # without those that came down to zero


def _explained_by_clocks(case: OffsetCase, found: Verdicts) -> dict[_Name, int]:
    """By finding: by how much, at the least, one broker's clock must be off to explain it; none where no slack does."""
    open_ = {_name(finding) for finding in found.findings if finding.divergence_type in _TIMED}
    explained: dict[_Name, int] = {}
    for slack in (*_UNSURE_US, *_POSSIBLE_US):
        for other in _otherwise_timed(case, slack) if open_ else ():
            broken = {rule_id for rule_id, _, _ in open_}
            rules = [rule for rule in RULES if rule.rule_id in broken]
            accused = frozenset(replica_id for _, _, replica_id in open_ if replica_id is not None)
            again = replace(other, judged=accused if all(name[2] is not None for name in open_) else None)
            gone = open_ - {_name(finding) for finding in _judge_as_timed(again, rules).findings}
            explained |= dict.fromkeys(gone, slack)
            open_ -= gone
    return explained


def _judge_as_timed(case: OffsetCase, rules: Iterable[Rule] = RULES) -> Verdicts:
    verdicts = Verdicts()
    judge(rules, case, verdicts)
    return verdicts


def _name(finding: Finding) -> _Name:
    return (finding.rule_id, finding.divergence_type, finding.replica_id)


def _softened(finding: Finding, slack: int) -> Finding:
    explanation = f"{finding.explanation} A broker's clock that is off by {slack / 1_000_000:g} s would explain it."
    return replace(finding, severity="warning", explanation=explanation)


def _otherwise_timed(case: OffsetCase, slack: int) -> Iterator[OffsetCase]:
    """The case with the lines of one broker earlier or later; copies and answers stay."""
    brokers = {event.replica_id for event in case.evidence.events} | {move.leader for move in case.isr_moves}
    for broker in sorted(brokers):
        for by in (-slack, slack):
            evidence = replace(
                case.evidence,
                observations=[
                    replace(s, observed_at=s.observed_at + by)
                    if s.replica_id == broker and s.observed_at_upper is None and s.observed_at
                    else s
                    for s in case.evidence.observations
                ],
                events=[replace(e, at=e.at + by) if e.replica_id == broker else e for e in case.evidence.events],
            )
            moves = [replace(move, at=move.at + by) if move.leader == broker else move for move in case.isr_moves]
            yield replace(case, evidence=evidence, isr_moves=moves)
