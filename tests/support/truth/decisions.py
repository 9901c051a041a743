"""What a cluster decided, from ZooKeeper's own transaction log: the ground truth a reconstruction is measured against.

Everything that Kafka decides in ZooKeeper mode is a write to a znode, so the log holds every decided state with its
time, its transaction and the session that wrote it. Of the program only the reader of these logs is used, which
replaying them against ZooKeeper's own snapshots proves (tests/unit/ingest/readers/zookeeper): it must share no
mistake with what it measures.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ingest.readers.lines import blocks
from ingest.readers.zookeeper.transaction_log import operations as operations_of
from ingest.readers.zookeeper.transactions import Op, Operation
from tests.oracles.znode_replay import close_sessions

TopicPartition = tuple[str, int]

_STATE_PATH: Final = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
_TOPIC_PATH: Final = re.compile(r"/brokers/topics/([^/]+)")
_BROKER_PATH: Final = re.compile(r"/brokers/ids/(\d+)")


@dataclass(frozen=True, slots=True)
class Write:
    """Where a decision stands in the log: its transaction, the leader's clock in ms, the session that wrote it."""

    zxid: int
    time_ms: int
    session: int


@dataclass(frozen=True, slots=True)
class DecidedState:
    """One write of a partition's state znode; ``isr`` in the order written, ``partition_epoch`` the znode's version."""

    topic: str
    topic_incarnation: int
    partition_id: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    partition_epoch: int
    leader_recovery_state: int | None
    write: Write

    @property
    def partition(self) -> TopicPartition:
        return self.topic, self.partition_id

    @property
    def state(self) -> tuple[int, int, frozenset[int]]:
        """What the measure compares."""
        return self.leader, self.leader_epoch, frozenset(self.isr)


@dataclass(frozen=True, slots=True)
class PartitionLife:
    """From the first write of a partition's state to its deletion; ``deleted`` is None while it exists."""

    topic: str
    topic_incarnation: int
    partition_id: int
    created: Write
    deleted: Write | None = None


@dataclass(frozen=True, slots=True)
class TopicLife:
    """From the creation of a topic's znode to its deletion; ``topic_id`` where the version has one (2.8 and later)."""

    topic: str
    topic_incarnation: int
    created: Write
    topic_id: str | None = None
    deleted: Write | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """One replica assignment of one partition, as written; consecutive equal ones are not repeated."""

    topic: str
    topic_incarnation: int
    partition_id: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    write: Write


@dataclass(frozen=True, slots=True)
class ControllerTenure:
    """One controller epoch: who took it, when the epoch was written, when its ``/controller`` znode went."""

    controller_id: int
    controller_epoch: int
    elected: Write
    resigned: Write | None = None


@dataclass(frozen=True, slots=True)
class Registration:
    """One broker's registration in ``/brokers/ids``; ``ended`` is None while it lasts."""

    broker_id: int
    began: Write
    ended: Write | None = None


@dataclass(slots=True)
class Truth:
    """Everything decided, each list in the order of the log; ``brokers_created`` is when ``/brokers`` was."""

    brokers_created: Write | None = None
    states: list[DecidedState] = field(default_factory=list)
    partitions: list[PartitionLife] = field(default_factory=list)
    topics: list[TopicLife] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    controllers: list[ControllerTenure] = field(default_factory=list)
    registrations: list[Registration] = field(default_factory=list)
    unreadable: list[Operation] = field(default_factory=list)

    def states_by_partition(self) -> dict[TopicPartition, list[DecidedState]]:
        """The states of each (topic, partition) over all incarnations of the topic, in order."""
        groups: dict[TopicPartition, list[DecidedState]] = {}
        for state in self.states:
            groups.setdefault(state.partition, []).append(state)
        return groups


def read_truth(capture: Path) -> Truth:
    """The truth of one capture folder, from its ``zk-version-2/log.*`` in the order of their first transaction.

    :raises FileNotFoundError: where the folder holds no transaction log.
    """
    logs = sorted((capture / "zk-version-2").glob("log.*"), key=lambda path: int(path.suffix[1:], 16))
    if not logs:
        raise FileNotFoundError(f"{capture} holds no zk-version-2/log.*: there is no truth to measure against")
    return truth_of(operation for log in logs for operation in _operations(log))


def _operations(log: Path) -> Iterator[Operation]:
    with log.open("rb") as stream:
        yield from operations_of(blocks(stream))


def truth_of(operations: Iterable[Operation], chroot: str = "") -> Truth:
    """The truth in ``operations``, which must be in order; ``chroot`` is the path that Kafka's znodes lie below."""
    recorder = _Recorder()
    for operation in close_sessions(operations):
        path = operation.path
        if path is None or not path.startswith(chroot + "/"):
            continue
        below = operation._replace(path=path.removeprefix(chroot))
        if operation.op in (Op.CREATE, Op.SET_DATA):
            try:
                recorder.written(below)
            except (ValueError, KeyError, TypeError, AttributeError):
                recorder.truth.unreadable.append(operation)
        elif operation.op is Op.DELETE:
            recorder.deleted(below)
    return recorder.truth


class _Recorder:
    """Follows the znodes that are alive, as indexes into the truth's lists."""

    def __init__(self) -> None:
        self.truth = Truth()
        self._topics: dict[str, int] = {}
        self._partitions: dict[str, int] = {}
        self._registrations: dict[int, int] = {}
        self._assignments: dict[tuple[int, int], Assignment] = {}
        self._controller_id = -1

    def written(self, operation: Operation) -> None:
        path, data = operation.path or "", operation.data or b""
        if match := _STATE_PATH.fullmatch(path):
            self._state_written(match[1], int(match[2]), operation)
        elif match := _TOPIC_PATH.fullmatch(path):
            self._topic_written(match[1], operation)
        elif (match := _BROKER_PATH.fullmatch(path)) and operation.op is Op.CREATE:
            self._registrations[int(match[1])] = len(self.truth.registrations)
            self.truth.registrations.append(Registration(int(match[1]), _write(operation)))
        elif path == "/brokers" and operation.op is Op.CREATE:
            self.truth.brokers_created = _write(operation)
        elif path == "/controller":
            self._controller_id = int(json.loads(data)["brokerid"])
        elif path == "/controller_epoch" and int(data) > 0:
            # From 2.8 the znode is created as 0 before the first election, which then sets it to 1.
            self.truth.controllers.append(ControllerTenure(self._controller_id, int(data), _write(operation)))

    def deleted(self, operation: Operation) -> None:
        path, write, truth = operation.path or "", _write(operation), self.truth
        if (index := self._partitions.pop(path, None)) is not None:
            truth.partitions[index] = replace(truth.partitions[index], deleted=write)
        elif (match := _TOPIC_PATH.fullmatch(path)) and (index := self._topics.pop(match[1], None)) is not None:
            truth.topics[index] = replace(truth.topics[index], deleted=write)
        elif match := _BROKER_PATH.fullmatch(path):
            if (index := self._registrations.pop(int(match[1]), None)) is not None:
                truth.registrations[index] = replace(truth.registrations[index], ended=write)
        elif path == "/controller" and truth.controllers and truth.controllers[-1].resigned is None:
            truth.controllers[-1] = replace(truth.controllers[-1], resigned=write)

    def _incarnation(self, topic: str) -> int:
        """Creation zxid of the topic's znode; 0 where it was created before the log begins."""
        return self.truth.topics[self._topics[topic]].topic_incarnation if topic in self._topics else 0

    def _state_written(self, topic: str, partition_id: int, operation: Operation) -> None:
        content: Mapping[str, Any] = json.loads(operation.data or b"")
        state = DecidedState(
            topic=topic,
            topic_incarnation=self._incarnation(topic),
            partition_id=partition_id,
            leader=int(content["leader"]),
            leader_epoch=int(content["leader_epoch"]),
            isr=tuple(int(replica) for replica in content["isr"]),
            controller_epoch=int(content["controller_epoch"]),
            partition_epoch=operation.version or 0,
            leader_recovery_state=content.get("leader_recovery_state"),
            write=_write(operation),
        )
        self.truth.states.append(state)
        if operation.path is not None and operation.path not in self._partitions:
            self._partitions[operation.path] = len(self.truth.partitions)
            life = PartitionLife(topic, state.topic_incarnation, partition_id, state.write)
            self.truth.partitions.append(life)

    def _topic_written(self, topic: str, operation: Operation) -> None:
        if operation.op is Op.CREATE or topic not in self._topics:
            self._topics[topic] = len(self.truth.topics)
            incarnation = operation.zxid if operation.op is Op.CREATE else 0
            self.truth.topics.append(TopicLife(topic, incarnation, _write(operation)))
        content: Mapping[str, Any] = json.loads(operation.data or b"")
        index = self._topics[topic]
        if topic_id := content.get("topic_id"):
            self.truth.topics[index] = replace(self.truth.topics[index], topic_id=topic_id)
        adding, removing = content.get("adding_replicas") or {}, content.get("removing_replicas") or {}
        for partition_id, replicas in sorted((content.get("partitions") or {}).items(), key=lambda item: int(item[0])):
            assignment = Assignment(
                topic=topic,
                topic_incarnation=self._incarnation(topic),
                partition_id=int(partition_id),
                replicas=tuple(replicas),
                adding_replicas=tuple(adding.get(partition_id, ())),
                removing_replicas=tuple(removing.get(partition_id, ())),
                write=_write(operation),
            )
            key = (assignment.topic_incarnation, assignment.partition_id)
            before = self._assignments.get(key)
            if before is None or replace(before, write=assignment.write) != assignment:
                self._assignments[key] = assignment
                self.truth.assignments.append(assignment)


def _write(operation: Operation) -> Write:
    return Write(operation.zxid, operation.time_ms, operation.session)
