"""What every explanation of a decision says: the state in words, who learned of it, and its findings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from reconstruct.explain.story import Section, ids, section
from reconstruct.findings.verdicts import Finding
from reconstruct.model.states import NO_LEADER
from reconstruct.partitions.case import Case
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from reconstruct.partitions.roles import Role
from reconstruct.time.intervals import Interval

#: The steps of one procedure follow each other within this time.
STEP_US: Final = 1_000_000
#: Requests of a decision, and what brokers did with them, within this time.
_ANSWERED_US: Final = 30_000_000


def title_of(old: LeaderAndIsrState | None, new: LeaderAndIsrState) -> str:
    if old is None:
        return f"first known state, leader {new.leader}, leader epoch {new.leader_epoch}"
    if new.leader == NO_LEADER:
        return f"no leader, leader epoch {new.leader_epoch}"
    gone, come = set(old.isr) - set(new.isr), set(new.isr) - set(old.isr)
    if come and not gone:
        return f"replica {ids(sorted(come))} joins the ISR"
    if gone and not come:
        return f"replica {ids(sorted(gone))} leaves the ISR"
    return f"leader epoch {new.leader_epoch}, leader {new.leader}, ISR {ids(new.isr)}"


def state_text(state: LeaderAndIsrState) -> str:
    version = "" if state.partition_epoch is None else f", partition epoch {state.partition_epoch}"
    return f"leader {state.leader}, leader epoch {state.leader_epoch}, ISR {ids(state.isr)}{version}"


def learned(case: Case, state: Interval[LeaderAndIsrState]) -> Iterator[str]:
    """Who learned of an ISR that no election made."""
    cached = ((broker_id, role.value.isr) for broker_id, role in taken_over(state, case.caches))
    yield from caches({broker_id for broker_id, isr in cached if isr is not None and set(isr) == set(state.value.isr)})


def answered_within(state: Interval[LeaderAndIsrState]) -> tuple[int, int]:
    latest = state.start + _ANSWERED_US
    return state.start - STEP_US, min(state.end or latest, latest)


def taken_over(
    state: Interval[LeaderAndIsrState], timelines: Mapping[int, Sequence[Interval[Role]]]
) -> Iterator[tuple[int, Interval[Role]]]:
    """Where brokers took over the leader epoch of the state, in time to be an answer to it: broker and interval."""
    since, until = answered_within(state)
    for broker_id, timeline in timelines.items():
        for role in timeline:
            if role.value.leader_epoch == state.value.leader_epoch and since <= role.start <= until:
                yield broker_id, role


def caches(brokers: Collection[int]) -> Iterator[str]:
    if brokers:
        yield f"metadata caches that took it over: brokers {ids(sorted(brokers))}"


def found_then(findings: Sequence[Finding], state: Interval[LeaderAndIsrState], instants: Collection[int]) -> Section:
    """The findings of the decision, and those of the time in which it was in force and answered."""
    _, until = answered_within(state)
    lines = [
        f"{finding.rule_id} {finding.severity}: {finding.explanation}"
        for finding in sorted(findings, key=lambda finding: finding.at)
        if finding.at in instants or state.start <= finding.at < until
    ]
    return section("Findings", dict.fromkeys(lines))
