"""Why the controller of a KRaft quorum wrote a record of a partition: what the metadata log shows beside it.

The log holds what was decided, not why: that a broker was fenced or asked to be shut down just before tells of a step
of the controller itself; where neither is so, an ISR changes because its leader asked (AlterPartition).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reconstruct.explain.states import found_then, learned, state_text, title_of
from reconstruct.explain.story import Chapter, clock, ids, section
from reconstruct.findings.verdicts import Finding
from reconstruct.model.states import NO_LEADER
from reconstruct.partitions.case import Case
from reconstruct.partitions.elections.judging import JudgedElection
from reconstruct.partitions.evidence import METADATA_PARTITION, Evidence
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from reconstruct.time.intervals import Interval, as_of

_RECOVERING: Final = 1


def recorded(
    case: Case,
    record: Evidence,
    election: JudgedElection | None,
    before: Interval[LeaderAndIsrState] | None,
    state: Interval[LeaderAndIsrState],
    findings: Sequence[Finding],
) -> Chapter:
    """One record of the metadata log, and the state that it made of the partition."""
    old = before.value if before is not None else None
    if election is None:
        title, why = title_of(old, state.value), why_changed(case, old, state)
    else:
        unclean = ", uncleanly" if election.is_unclean else ""
        title = f"leader {election.observed_leader} elected{unclean}, leader epoch {election.leader_epoch}"
        why = why_elected(case, election, state)
    return Chapter(
        state.start,
        title,
        (
            section("What the controller had", before_record(case, state, old)),
            section("Why", why),
            section("What was decided", [state_text(state.value), *written(case, state, record)]),
            section("What came of it", learned(case, state)),
            found_then(findings, state, {state.start}),
        ),
    )


def record_of(case: Case, state: Interval[LeaderAndIsrState]) -> Evidence | None:
    """The record of the metadata log that made the state; None where it is known from elsewhere."""
    return next((f for f in case.facts if f.kind == METADATA_PARTITION and f.evidence_id in state.evidence), None)


def before_record(case: Case, state: Interval[LeaderAndIsrState], before: LeaderAndIsrState | None) -> Iterator[str]:
    """What held for the controller when it wrote the record: the state, the assignment, and each broker's standing."""
    yield f"state before {state_text(before) if before else 'none: the partition was new, or the log begins here'}"
    assignment = as_of(case.assignments, state.start)
    if assignment is not None:
        yield f"assignment   {ids(assignment.value.replicas)}"
        if assignment.value.adding or assignment.value.removing:
            yield f"reassigned   adding {ids(assignment.value.adding)}, removing {ids(assignment.value.removing)}"
    replicas = {*(before.isr if before else ()), *state.value.isr, *(assignment.value.replicas if assignment else ())}
    for replica in sorted(replicas):
        yield f"broker {replica:<6}{standing(case, replica, state.start)[1]}"


def standing(case: Case, broker_id: int, at: int) -> tuple[bool | None, str]:
    """Whether the broker could lead at an instant, None where nothing says; and in words."""
    known = case.cluster.liveness.get(broker_id, ())
    registered = as_of(known, at)
    if registered is not None:
        asked = [t for t, _ in case.cluster.shutdown_requests.get(broker_id, ()) if registered.start <= t <= at]
        if asked:
            return False, f"in controlled shutdown since {clock(asked[-1])}"
        return True, f"live since {clock(registered.start)}"
    ended = [span.end for span in known if span.end is not None and span.end <= at]
    if ended:
        return False, f"fenced, or not registered, since {clock(max(ended))}"
    return (False, "not live yet") if known else (None, "nothing is known of its registration")


def why_elected(case: Case, election: JudgedElection, state: Interval[LeaderAndIsrState]) -> Iterator[str]:
    """What the log shows of the occasion of an election."""
    previous = election.previous_leader
    if previous is None:
        yield "The partition was created: the first live assigned replica leads, all live ones are the ISR."
        return
    if previous == NO_LEADER:
        yield "There was no leader, and one that may lead had come back."
    else:
        could, words = standing(case, previous, state.start)
        yield f"Leader {previous} was {words}."
        if could and as_of(case.assignments, state.start) is not None:
            yield "It could have led on: a preferred election, a reassignment, or a directory of its that failed."
    if election.is_unclean:
        yield "The record marks the leader as recovering: it was elected uncleanly, and records may be lost."


def why_changed(case: Case, old: LeaderAndIsrState | None, state: Interval[LeaderAndIsrState]) -> Iterator[str]:
    """What the log shows of a record that elected nobody."""
    new = state.value
    if old is None:
        return
    gone, come = sorted(set(old.isr) - set(new.isr)), sorted(set(new.isr) - set(old.isr))
    if new.leader == NO_LEADER != old.leader:
        _, words = standing(case, old.leader, state.start)
        yield f"Leader {old.leader} was {words}, and nobody could be elected."
    lacking = [replica for replica in gone if standing(case, replica, state.start)[0] is False]
    for replica in lacking:
        yield f"Broker {replica} was {standing(case, replica, state.start)[1]}: the controller took it out of the ISR."
    others = [replica for replica in gone if replica not in lacking]
    if others:
        yield (
            f"Nothing shows that broker {ids(others)} was fenced or shut down then: most likely its leader"
            f" {old.leader} asked (AlterPartition), which found it too far behind (replica.lag.time.max.ms)."
        )
    if come:
        yield f"Its leader asked (AlterPartition): replica {ids(come)} had caught up with the high watermark."
    if old.leader_recovery_state == _RECOVERING != new.leader_recovery_state:
        yield "The leader had recovered from its unclean election."


def written(case: Case, state: Interval[LeaderAndIsrState], record: Evidence) -> Iterator[str]:
    """Where it stands in the metadata log, who wrote it, and whether it is known to be committed."""
    tenure = case.cluster.tenure_of(record.controller_epoch)
    by = f" by node {tenure.controller_id}" if tenure is not None else ""
    yield f"metadata log, offset {record.offset}: written{by} as active controller, epoch {record.controller_epoch}"
    if state.inferred_from is not None:
        yield f"not observed as such: {state.inferred_from}"
