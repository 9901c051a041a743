"""What was refused: requests that brokers ignored, transitions that a controller refused, deletions that wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.explain.story import Chapter, clock, ids, section
from reconstruct.model.broker_requests import (
    Answer,
    answer_by_controller_epoch,
    answer_to_leader_and_isr,
    answer_to_stop_replica,
)
from reconstruct.model.states import ReplicaState
from reconstruct.model.versions import TOPIC_DELETION_SINCE
from reconstruct.partitions.case import Case
from reconstruct.partitions.elections.controller_view import StateDecision, possible_statuses
from reconstruct.partitions.evidence import ZNODE_DELETION_REQUESTED, Evidence
from reconstruct.requests.evidence import BROKER_LINES, REQUEST_KINDS, Step
from reconstruct.time.instants import utc

#: Events that say that a broker ignored a request, or a partition of it, and Kafka's name of the request.
IGNORED: Final[Mapping[str, str]] = {
    event_type: REQUEST_KINDS[api] for event_type, (api, step) in BROKER_LINES.items() if step is Step.IGNORED
}
_WORDS: Final = {
    Answer.STALE_CONTROLLER_EPOCH: "Its epoch is lower: rightly ignored; whoever sent it had been deposed.",
    Answer.LEADER_EPOCH_SMALLER: "Its epoch is lower: rightly ignored; its sender was deposed, or repeats itself.",
    Answer.LEADER_EPOCH_MATCHES: "It is the epoch the broker has: rightly ignored, nothing has changed since.",
}
_FAILED: Final = (EventType.PARTITION_STATE_CHANGE_FAILED, EventType.REPLICA_STATE_CHANGE_FAILED)


def refusals(case: Case, of_no_partition: Sequence[Evidence]) -> Iterator[Chapter]:
    """In order of their time; ``of_no_partition`` are requests that brokers ignored as a whole."""
    for fact in sorted([*case.facts, *of_no_partition], key=lambda fact: fact.order):
        if fact.kind in IGNORED:
            yield _ignored(case, fact)
        elif fact.kind in _FAILED:
            yield _refused_transition(fact)
        elif fact.kind == EventType.REPLICA_STATE_CHANGE and fact.to_state == ReplicaState.DELETION_INELIGIBLE:
            yield _ineligible(case, fact)


def _ignored(case: Case, fact: Evidence) -> Chapter:
    request = IGNORED[fact.kind]
    sender = "a controller" if fact.controller_id is None else f"controller {fact.controller_id}"
    by_controller = fact.known_controller_epoch is not None
    known = fact.known_controller_epoch if by_controller else fact.known_leader_epoch
    asked = fact.controller_epoch if by_controller else fact.leader_epoch
    which = "controller epoch" if by_controller else "leader epoch"
    inputs = [f"request          {request} of {sender}, {which} {'not printed' if asked is None else asked}"]
    if fact.correlation_id is not None:
        inputs.append(f"correlation id   {fact.correlation_id}")
    inputs.append(f"broker {fact.broker_id} held    {which} {'not printed' if known is None else known}")
    return Chapter(
        fact.at,
        f"broker {fact.broker_id} ignores a {request} of {sender}",
        (
            section("What the broker had", inputs),
            section("What the rules give", _judgement(case, fact)),
            section("Who was controller", _tenures(case, fact) if by_controller else ()),
        ),
        None if fact.broker_id is None else frozenset({fact.broker_id}),
    )


def _judgement(case: Case, fact: Evidence) -> Iterator[str]:
    """What the model of a broker answers to the same request, by the epochs that the line prints."""
    if fact.known_controller_epoch is not None:
        yield "A broker takes no request of a lower controller epoch than it has seen since it started."
    else:
        yield "A broker takes a request for a partition only with a higher leader epoch than it has."
    answers = _answers(case, fact)
    if not answers:
        yield "The line does not print both epochs: whether it was right is judged from the broker's own log."
    for answer in sorted(answers):
        yield _WORDS.get(answer, "The broker should have taken it.")


def _answers(case: Case, fact: Evidence) -> set[Answer]:
    """By the lowest and the highest version that the cluster may be of."""
    if fact.known_controller_epoch is not None and fact.controller_epoch is not None:
        return {answer_by_controller_epoch(fact.controller_epoch, fact.known_controller_epoch)}
    if fact.known_leader_epoch is None or fact.leader_epoch is None:
        return set()
    if fact.kind != EventType.STOP_REPLICA_IGNORED:
        return {answer_to_leader_and_isr(fact.leader_epoch, fact.known_leader_epoch)}
    return {
        answer_to_stop_replica(fact.leader_epoch, fact.known_leader_epoch, version)
        for version in (case.cluster.version.low, case.cluster.version.high)
    }


def _tenures(case: Case, fact: Evidence) -> Iterator[str]:
    """The tenures around the refusal, and since when the sender had no longer been the controller."""
    for tenure in case.cluster.tenures:
        until = "" if tenure.end is None else f" to {clock(tenure.end)}"
        yield f"epoch {tenure.controller_epoch}: broker {tenure.controller_id} from {clock(tenure.start)}{until}"
    superseded = None if fact.controller_epoch is None else case.cluster.successor_start(fact.controller_epoch)
    if superseded is not None and superseded <= fact.at:
        late = (fact.at - superseded) / 1000
        yield f"The sender's epoch had ended {late:,.0f} ms before: a zombie, which had not noticed yet."


def _refused_transition(fact: Evidence) -> Chapter:
    subject = "the partition" if fact.replica_id is None else f"replica {fact.replica_id}"
    way = f" from {fact.from_state} to {fact.to_state}" if fact.from_state and fact.to_state else ""
    return Chapter(
        fact.at,
        f"controller {fact.controller_id} could not move {subject}{way}",
        (
            section("Why, in the controller's words", [fact.cause] if fact.cause else ["no cause is logged"]),
            section("What the rules give", ["A refused transition changes nothing: the state stays what it was."]),
        ),
        None if fact.replica_id is None else frozenset({fact.replica_id}),
    )


def _ineligible(case: Case, fact: Evidence) -> Chapter:
    assert fact.replica_id is not None
    decision = StateDecision(
        fact.at, fact.controller_id, fact.controller_epoch, is_own_clock=True, evidence_id=fact.evidence_id
    )
    statuses = possible_statuses(fact.replica_id, decision, case.cluster)
    asked = [f for f in case.facts if f.kind == ZNODE_DELETION_REQUESTED]
    requested = f"since {utc(asked[0].at)}" if asked else "not in the evidence (no znodes were given)"
    errors = [
        f
        for f in case.facts
        if f.kind == EventType.TOPIC_DELETION_RESPONSE and abs(f.at - fact.at) < 1_000_000 and f.cause is not None
    ]
    inputs = [
        f"replica          {fact.replica_id}, in state {fact.from_state}",
        f"broker {fact.replica_id:<10}{' or '.join(sorted(status.value for status in statuses))} to the controller",
        f"deletion         asked for {requested}",
        *(f"StopReplica      answered: {error.cause}" for error in errors[:1]),
    ]
    return Chapter(
        fact.at,
        f"replica {fact.replica_id} cannot be deleted now",
        (
            section("What the controller had", inputs),
            section("What the rules give", _deletion_rules(case)),
            section("What came of it", _afterwards(case, fact)),
        ),
        frozenset({fact.replica_id}),
    )


def _deletion_rules(case: Case) -> Iterator[str]:
    if case.cluster.version.may_be_before(TOPIC_DELETION_SINCE):
        yield "Before 0.8.1 topics are not deleted."
        return
    yield "A replica is deleted by a StopReplica to its broker; a broker that is not live, or answers with an error,"
    yield "makes it ReplicaDeletionIneligible, and the topic's deletion waits. It goes on when the broker is back:"
    yield "the replica becomes OfflineReplica again, then ReplicaDeletionStarted."


def _afterwards(case: Case, fact: Evidence) -> Iterator[str]:
    later = [
        f
        for f in case.facts
        if f.kind == EventType.REPLICA_STATE_CHANGE and f.replica_id == fact.replica_id and f.order > fact.order
    ]
    for move in later[:4]:
        yield f"{clock(move.at)}  {move.from_state} to {move.to_state} (controller {move.controller_id})"
    if not later:
        yield "Nothing more of this replica is logged."
    if case.deleted_at is not None:
        yield f"The topic was gone at {utc(case.deleted_at)}."
    else:
        yield f"Assigned then: {ids(case.assignments[-1].value.replicas if case.assignments else None)}."
