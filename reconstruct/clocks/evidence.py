"""Causal pairs: which line of one clock must have come before which line, or write, of another, by the rules of Kafka.

Each rule names what comes first, what follows, and the key that ties the two. A record leaves marks (:func:`log_marks`,
:func:`znode_marks`, :func:`record_marks`). Two marks of one key are a pair (:mod:`reconstruct.clocks.spark.evidence`)
where nothing else can have been meant: the side that must be one record is one record. ZooKeeper gives a write its time
when its leader prepares the transaction, before anyone learns of it; a line that announces a write is printed before it
is asked for. The active controller of a KRaft quorum gives a record its time when it appends it: the records' clock
stands in the place of ZooKeeper's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from ingest.lake.tables.bronze import SourceKind
from ingest.shapes.event_types import EventType
from ingest.shapes.values import json_object
from reconstruct.clocks.timeline import ZOOKEEPER
from reconstruct.events.fields import number, partition_name, words
from reconstruct.model.states import LEADER_DURING_DELETE
from reconstruct.model.value_class import value_class
from reconstruct.model.znode_paths import BROKER_PATTERN, CONTROLLER_EPOCH_PATH, PARTITION_STATE_PATTERN

#: Lines of one request that are further apart belong to two requests that share a correlation id: µs.
SAME_REQUEST_US: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class PairRule:
    """Why one event precedes another.

    ``many_earlier``: every line of the key precedes (the last counts); ``many_later``: every line follows (the first of
    each clock counts); else that side must be one record. ``versions`` are those that print both sides.
    """

    name: str
    versions: str
    source: str
    many_earlier: bool = False
    many_later: bool = False


RULES: Final[Mapping[str, PairRule]] = {
    rule.name: rule
    for rule in (
        PairRule("state_written_before_shown", "0.9 to 4.3", "lines print the version that the write got", False, True),
        PairRule("epoch_opened_before_shown", "0.8 to 3.9", "R10: only a controller's write raises it", False, True),
        PairRule("isr_proposed_before_written", "0.8 to 4.3", "Partition.maybeExpandIsr, maybeShrinkIsr"),
        PairRule(
            "registering_before_registered", "0.8 to 4.3", "KafkaZkClient.registerBroker; czxid since 2.2; KIP-631"
        ),
        PairRule("registered_before_logged", "0.8 to 4.3", "KafkaZkClient.registerBroker; czxid since 2.2; KIP-631"),
        PairRule("registered_before_replayed", "4.0 to 4.3", "ClusterControlManager.replay; KIP-919", False, True),
        PairRule("controller_epoch_written_before_logged", "0.8 to 3.9", "KafkaController.elect", False, True),
        PairRule("controller_epoch_read_before_written", "0.8 to 2.0", "KafkaController.onControllerFailover"),
        PairRule("decided_before_next_decision", "1.1 to 3.9", "one thread decides and writes; R12", False, False),
        PairRule("sent_before_received", "0.8 to 0.8.2", "one correlation id for each batch", False, True),
        PairRule("state_sent_before_received", "0.9 to 3.9", "the request's own words, sent once", False, True),
        PairRule("handled_before_answered", "0.8.2 to 3.9", "KafkaApis answers after it has handled", True, False),
        PairRule("decided_before_received", "1.1 to 3.9", "sendRequestsToBrokers comes last", False, True),
        PairRule("isr_proposed_before_decided", "3.3 to 3.9", "KIP-497: the controller writes what the leader asks"),
        PairRule("isr_decided_before_committed", "2.7 to 3.9", "KIP-497: the leader learns it from the answer"),
        PairRule("registering_before_broker_epoch_cached", "2.2 to 3.9", "KIP-380", False, True),
    )
}

#: Lines that show a state that stands in ZooKeeper already.
SHOWN: Final = frozenset(
    {
        EventType.PARTITION_STATE_CHANGE,
        EventType.ISR_SHRUNK_BY_CONTROLLER,
        EventType.LEADER_AND_ISR_SENT,
        EventType.UPDATE_METADATA_SENT,
        EventType.LEADER_AND_ISR_RECEIVED,
        EventType.METADATA_CACHED,
        EventType.LEADER_EPOCH_STARTED,
        EventType.LEADER_EPOCH_UPDATED,
        EventType.ISR_UPDATE_COMMITTED,
        EventType.PARTITION_CREATED,
        EventType.PARTITION_CHANGED,
    }
)
_SENT: Final[Mapping[str, str]] = {
    EventType.LEADER_AND_ISR_SENT: "LEADER_AND_ISR",
    EventType.UPDATE_METADATA_SENT: "UPDATE_METADATA",
}
_RECEIVED: Final[Mapping[str, str]] = {
    EventType.LEADER_AND_ISR_RECEIVED: "LEADER_AND_ISR",
    EventType.METADATA_CACHED: "UPDATE_METADATA",
}
_HANDLED: Final[Mapping[str, str]] = {
    **_RECEIVED,
    EventType.METADATA_DELETED: "UPDATE_METADATA",
    EventType.BECOME_LEADER_COMPLETED: "LEADER_AND_ISR",
    EventType.BECOME_FOLLOWER_COMPLETED: "LEADER_AND_ISR",
}
_ELECTED: Final = frozenset({EventType.CONTROLLER_EPOCH_INCREMENTED, EventType.CONTROLLER_ELECTED})
_PROPOSED: Final = frozenset({EventType.ISR_SHRINK_PROPOSED, EventType.ISR_EXPAND_PROPOSED})
#: A broker's registration is announced by the last line before it in its file that is of these types, or, of any other,
#: says so.
ANNOUNCES_REGISTRATION: Final = (EventType.BROKER_SERVER_STARTING, "broker_registering")
#: ``ControllerRegistrationRequestData(controllerId=101, incarnationId=...``, ``ControllerRegistration(id=101, inc...``.
_CONTROLLER: Final = re.compile(r"\((?:controllerId|id)=(\d+), incarnationId=([\w-]{22})", re.ASCII)
_STATE_PATH: Final = re.compile(PARTITION_STATE_PATTERN)
_BROKER_PATH: Final = re.compile(BROKER_PATTERN)


@value_class
class LogFact:
    """A typed record: ``at_us`` as printed, read as UTC; ``broker_id`` whose log it is; ``fields`` all its fields.

    ``announced_us`` and ``announced_by``: for a registration, the line before it in its file that announced it.
    """

    evidence_id: str
    source_kind: str
    event_type: str
    at_us: int
    broker_id: int | None
    fields: Mapping[str, str]
    announced_us: int | None = None
    announced_by: str | None = None


@dataclass(frozen=True, slots=True)
class ZnodeFact:
    """A write to a znode: ``at_us`` is its mtime; ``previous`` and ``previous_version``, the known write before it.

    ``is_only``: no other znode of this path is known, of a topic created again or a broker that came back.
    """

    evidence_id: str
    path: str
    data: str | None
    at_us: int
    czxid: int
    mzxid: int
    version: int | None = None
    previous: str | None = None
    previous_version: int | None = None
    is_only: bool = True


@dataclass(frozen=True, slots=True)
class RecordFact:
    """A record of a KRaft quorum's metadata log and, as JSON, what it made of ``subject``: a partition, broker or
    controller. ``previous`` is what that was before. ``is_only``: of that name no other topic is known."""

    evidence_id: str
    subject_kind: str
    subject: str
    topic: str | None
    partition_id: int | None
    record_type: str
    at_us: int
    state: str | None
    previous: str | None = None
    is_only: bool = True


class Mark(NamedTuple):
    """One side of a possible pair."""

    rule: str
    key: str
    is_earlier: bool
    clock: int
    at_us: int
    evidence_id: str


def log_marks(fact: LogFact) -> Iterator[Mark]:
    """The marks that a log record leaves; none where it does not say whose clock it shows."""
    speaker = fact.fields.get("broker_id" if fact.event_type in _HANDLED else "controller_id")
    clock = fact.broker_id if fact.broker_id is not None else number(speaker, 31)
    if clock is None:
        return
    for sides_of in _LEFT_BY.get(fact.event_type, ()):
        for rule, key, is_earlier in sides_of(fact, clock):
            yield Mark(rule, key, is_earlier, clock, fact.at_us, fact.evidence_id)
    # one clock in one file: an announcement that is later by it stands before the registration by mistake
    if (
        fact.event_type == EventType.BROKER_REGISTERED
        and fact.announced_us is not None
        and fact.announced_us <= fact.at_us
    ):
        broker_id, epoch = fact.fields.get("broker_id", str(clock)), fact.fields.get("broker_epoch", "only")
        for rule in ("registering_before_registered", "registering_before_broker_epoch_cached"):
            yield Mark(rule, f"{broker_id}|{epoch}", True, clock, fact.announced_us, fact.announced_by or "")


_Sides = Iterator[tuple[str, str, bool]]


def _of_states(fact: LogFact, _clock: int) -> _Sides:
    fields = fact.fields
    partition = partition_name(fields)
    if partition is None or fields.get("leader") == str(LEADER_DURING_DELETE):
        return
    leader_epoch, partition_epoch = fields.get("leader_epoch"), fields.get("partition_epoch")
    if partition_epoch is not None:
        yield "state_written_before_shown", f"{partition}|{partition_epoch}|{leader_epoch or ''}", False
    if leader_epoch is None:
        return
    yield "epoch_opened_before_shown", f"{partition}|{leader_epoch}", False
    if fact.event_type == EventType.PARTITION_STATE_CHANGE and fields.get("to_state") == "OnlinePartition":
        yield "decided_before_received", f"{partition}|{leader_epoch}", True
        yield "decided_before_next_decision", f"{partition}|{leader_epoch}|{fields.get('controller_epoch')}", True
    elif fact.event_type in _RECEIVED or fact.event_type == EventType.LEADER_EPOCH_STARTED:
        yield "decided_before_received", f"{partition}|{leader_epoch}", False


def _of_requests(fact: LogFact, _clock: int) -> _Sides:
    fields = fact.fields
    controller = f"{fields.get('controller_id')}|{fields.get('controller_epoch')}"
    correlation, partition = fields.get("correlation_id"), partition_name(fields)
    if fact.event_type in _SENT and partition is not None:
        for to in words(fields.get("to_broker_ids") or fields.get("to_broker_id")):
            request = f"{_SENT[fact.event_type]}|{controller}|{to}|{partition}"
            if correlation is not None:
                yield "sent_before_received", f"{request}|{correlation}", True
            else:
                yield "state_sent_before_received", f"{request}|{_state(fields)}", True
    if correlation is None:
        return
    if fact.event_type in _HANDLED:
        api = _HANDLED[fact.event_type]
        to = fields.get("broker_id", "" if fact.broker_id is None else str(fact.broker_id))
        if "controller_epoch" in fields:
            yield "handled_before_answered", f"{api}|{controller}|{to}|{correlation}", True
        if fact.event_type in _RECEIVED and partition is not None:
            yield "sent_before_received", f"{api}|{controller}|{to}|{partition}|{correlation}", False
            yield "state_sent_before_received", f"{api}|{controller}|{to}|{partition}|{_state(fields)}", False
    elif fact.event_type == EventType.RESPONSE_RECEIVED and "api" in fields:
        key = f"{fields['api']}|{controller}|{fields.get('to_broker_id')}|{correlation}"
        yield "handled_before_answered", key, False


def _state(fields: Mapping[str, str]) -> str:
    """The words of a request about one partition."""
    return "|".join([fields.get(name, "") for name in ("leader", "leader_epoch", "partition_epoch", "isr")])


def _of_isr(fact: LogFact, clock: int) -> _Sides:
    fields = fact.fields
    partition = partition_name(fields)
    if partition is None:
        return
    if fact.event_type in _PROPOSED:
        old, new = _members(fields.get("old_isr")), _members(fields.get("new_isr", fields.get("isr")))
        yield "isr_proposed_before_written", f"{partition}|{clock}|{old}|{new}", True
        yield "isr_proposed_before_decided", f"{partition}|{clock}|{new}", True
    elif fact.event_type == EventType.ISR_UPDATE_COMMITTED and "partition_epoch" in fields:
        is_controller = fact.source_kind == SourceKind.CONTROLLER_LOG
        yield "isr_decided_before_committed", f"{partition}|{fields['partition_epoch']}", is_controller
        if is_controller and "leader" in fields:
            yield "isr_proposed_before_decided", f"{partition}|{fields['leader']}|{_members(fields.get('isr'))}", False


def _of_control(fact: LogFact, _clock: int) -> _Sides:
    fields = fact.fields
    epoch = fields.get("controller_epoch")
    if fact.event_type in _ELECTED and epoch and fact.source_kind == SourceKind.CONTROLLER_LOG:
        yield "controller_epoch_written_before_logged", epoch, False
    elif fact.event_type == EventType.CONTROLLER_EPOCH_READ and (read := number(epoch)) is not None:
        yield "controller_epoch_read_before_written", str(read + 1), True
    elif fact.event_type == EventType.BROKER_REGISTERED and "broker_id" in fields:
        yield "registered_before_logged", f"{fields['broker_id']}|{fields.get('broker_epoch', 'only')}", False
    elif fact.event_type == EventType.BROKER_STATE_CHANGED and fields.get("to_state") == "STARTING":
        yield "registering_before_registered", f"{fields.get('broker_id')}|{fields.get('incarnation_id')}", True
    elif fact.event_type == EventType.CONTROLLER_REGISTRATION:
        asked, replayed = (_CONTROLLER.search(fields.get(name, "")) for name in ("request", "new_registration"))
        if asked is not None:
            yield "registering_before_registered", f"{asked[1]}|{asked[2]}", True
        if replayed is not None:
            yield "registered_before_replayed", f"{replayed[1]}|{replayed[2]}", False
    elif fact.event_type == "broker_epochs":
        for entry in words(fields.get("broker_epochs")):
            broker_id, _, broker_epoch = entry.partition(":")
            if broker_epoch:
                yield "registering_before_broker_epoch_cached", f"{broker_id}|{broker_epoch}", False


#: What leaves marks, by the types of its records.
_LEAVING: Final = (
    (_of_states, SHOWN),
    (_of_requests, _SENT.keys() | _HANDLED.keys() | {EventType.RESPONSE_RECEIVED}),
    (_of_isr, _PROPOSED | {EventType.ISR_UPDATE_COMMITTED}),
    (
        _of_control,
        _ELECTED
        | {EventType.CONTROLLER_EPOCH_READ, EventType.BROKER_REGISTERED, "broker_epochs"}
        | {EventType.BROKER_STATE_CHANGED, EventType.CONTROLLER_REGISTRATION},
    ),
)
#: Every event type that leaves a mark: what to read of the silver tables.
EVENT_TYPES: Final = frozenset().union(*(types for _, types in _LEAVING))
_LEFT_BY: Final = {
    event_type: [sides_of for sides_of, types in _LEAVING if event_type in types] for event_type in EVENT_TYPES
}


def znode_marks(fact: ZnodeFact) -> Iterator[Mark]:
    """The marks that a write to a znode leaves."""
    for rule, key, is_earlier in _of_znode(fact):
        yield Mark(rule, key, is_earlier, ZOOKEEPER, fact.at_us, fact.evidence_id)


def record_marks(fact: RecordFact) -> Iterator[Mark]:
    """The marks that a record of the metadata log leaves."""
    for rule, key, is_earlier in _of_record(fact):
        yield Mark(rule, key, is_earlier, ZOOKEEPER, fact.at_us, fact.evidence_id)


def _of_record(fact: RecordFact) -> _Sides:
    state, before = json_object(fact.state), json_object(fact.previous)
    if fact.record_type in ("RegisterBrokerRecord", "RegisterControllerRecord") and "incarnation_id" in state:
        key = f"{fact.subject}|{state['incarnation_id']}"
        yield "registering_before_registered", key, False
        yield "registered_before_replayed", key, True
        if "broker_epoch" in state:
            yield "registered_before_logged", f"{fact.subject}|{state['broker_epoch']}", True
    if fact.subject_kind != "partition" or not fact.is_only or "partition_epoch" not in state:
        return
    partition = f"{fact.topic}-{fact.partition_id}"
    for shown in (state["leader_epoch"], ""):
        yield "state_written_before_shown", f"{partition}|{state['partition_epoch']}|{shown}", True
    is_next = before.get("partition_epoch") == state["partition_epoch"] - 1
    if is_next and all(before[name] == state[name] for name in ("leader", "leader_epoch")):
        old, new = set(before["isr"]), set(state["isr"])
        if old < new:  # what leaves the ISR the controller may have taken out by itself
            key = f"{partition}|{state['leader']}|{_members(before['isr'])}|{_members(state['isr'])}"
            yield "isr_proposed_before_written", key, False


def _of_znode(fact: ZnodeFact) -> _Sides:
    if fact.path == CONTROLLER_EPOCH_PATH and fact.data is not None:
        yield "controller_epoch_written_before_logged", fact.data.strip(), True
        yield "controller_epoch_read_before_written", fact.data.strip(), False
    broker = _BROKER_PATH.match(fact.path)
    if broker is not None:
        for epoch in (str(fact.czxid), "only"):
            yield "registered_before_logged", f"{broker[1]}|{epoch}", True
            yield "registering_before_registered", f"{broker[1]}|{epoch}", False
    name = _STATE_PATH.match(fact.path)
    state = json_object(fact.data)
    if name is None or not fact.is_only or "leader_epoch" not in state:
        return
    partition, leader_epoch = f"{name[1]}-{name[2]}", state["leader_epoch"]
    if fact.version is not None:
        for shown in (leader_epoch, ""):
            yield "state_written_before_shown", f"{partition}|{fact.version}|{shown}", True
    is_next = fact.version is not None and fact.previous_version == fact.version - 1
    before = json_object(fact.previous) if is_next else {}
    if fact.version == 0 or ("leader_epoch" in before and before["leader_epoch"] != leader_epoch):
        yield "epoch_opened_before_shown", f"{partition}|{leader_epoch}", True
        if before and before.get("controller_epoch") == state.get("controller_epoch"):
            key = f"{partition}|{before['leader_epoch']}|{state.get('controller_epoch')}"
            yield "decided_before_next_decision", key, False
    elif before and _members(before.get("isr")) != _members(state.get("isr")):
        # the leader asked for this change: a controller's own raises the leader epoch
        key = f"{partition}|{state.get('leader')}|{_members(before.get('isr'))}|{_members(state.get('isr'))}"
        yield "isr_proposed_before_written", key, False


def _members(isr: object) -> str:
    """An ISR as a set: who writes it and who prints it need not agree on the order."""
    ids = words(isr) if isinstance(isr, str) else isr if isinstance(isr, list) else []
    return ",".join(sorted(map(str, ids)))
