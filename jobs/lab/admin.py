"""What one asks of a cluster, and what it says: of one with ZooKeeper through its znodes.

``kafka-topics --zookeeper``, ``kafka-reassign-partitions`` and ``kafka-preferred-replica-election`` did nothing else
than write znodes up to 2.x, and every release with a controller in ZooKeeper mode takes them up: so one way serves all
of them. :mod:`jobs.lab.kraft_admin` asks a cluster without one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError

from reconstruct.model.znode_paths import (
    BROKER_IDS_PATH,
    DELETE_TOPICS_PATH,
    PREFERRED_REPLICA_ELECTION_PATH,
    REASSIGN_PARTITIONS_PATH,
    TOPICS_PATH,
)

Partition = tuple[str, int]


@dataclass(frozen=True)
class State:
    """A partition's decided state; what only znodes say is None where there are none."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int | None = None
    partition_epoch: int | None = None


class Admin(Protocol):
    """What scenarios ask of a cluster, and look at; each waits for a server that is down."""

    def create_topic(
        self, topic: str, assignment: Mapping[int, Sequence[int]], config: Mapping[str, str] | None = None
    ) -> None: ...

    def add_partitions(self, topic: str, assignment: Mapping[int, Sequence[int]]) -> None:
        """``assignment`` of the new ones; those that are there keep theirs."""

    def reassign(self, plan: Mapping[Partition, Sequence[int]]) -> None:
        """Ask for other replicas; :meth:`is_reassigning` says whether it is under way."""

    def elect_preferred(self, partitions: Sequence[Partition]) -> None:
        """Ask for it; :meth:`is_electing_preferred` says whether it is under way."""

    def delete_topic(self, topic: str) -> None:
        """Ask for the deletion; :meth:`topics` shows when it is done."""

    def controller(self) -> int | None:
        """The node that decides, as far as is known."""

    def live_brokers(self) -> Collection[int]:
        """Those that are registered, and not fenced."""

    def topics(self) -> dict[str, dict[int, list[int]]]:
        """The assignment of every topic."""

    def state(self, partition: Partition) -> State | None:
        """None where nothing is decided yet, or the topic is gone."""

    def is_electing_preferred(self) -> bool: ...

    def is_reassigning(self) -> bool: ...


class ZooKeeperAdmin:
    """Reads and writes through one ZooKeeper session, which outlasts pauses of the server."""

    def __init__(self, zookeeper: KazooClient) -> None:
        self._zookeeper = zookeeper

    # --- what is asked ----------------------------------------------------------------------------------------------

    def create_topic(
        self, topic: str, assignment: Mapping[int, Sequence[int]], config: Mapping[str, str] | None = None
    ) -> None:
        self._create(f"/config/topics/{topic}", {"version": 1, "config": dict(config or {})})
        self._create(f"{TOPICS_PATH}/{topic}", {"version": 1, "partitions": _numbered(assignment)})

    def add_partitions(self, topic: str, assignment: Mapping[int, Sequence[int]]) -> None:
        """``assignment`` of the new ones; those that are there keep theirs."""
        path = f"{TOPICS_PATH}/{topic}"
        data, stat = self._zookeeper.retry(self._zookeeper.get, path)
        written = json.loads(data)
        written["partitions"] |= _numbered(assignment)
        self._zookeeper.retry(self._zookeeper.set, path, _encoded(written), stat.version)

    def reassign(self, plan: Mapping[Partition, Sequence[int]]) -> None:
        """Ask for other replicas; :meth:`is_reassigning` says whether it is under way."""
        moves = [
            {"topic": topic, "partition": number, "replicas": list(replicas)}
            for (topic, number), replicas in plan.items()
        ]
        self._create(REASSIGN_PARTITIONS_PATH, {"version": 1, "partitions": moves})

    def elect_preferred(self, partitions: Sequence[Partition]) -> None:
        named = [{"topic": topic, "partition": number} for topic, number in partitions]
        self._create(PREFERRED_REPLICA_ELECTION_PATH, {"version": 1, "partitions": named})

    def delete_topic(self, topic: str) -> None:
        """Ask for the deletion; :meth:`topics` shows when it is done."""
        self._zookeeper.retry(self._zookeeper.create, f"{DELETE_TOPICS_PATH}/{topic}", b"", makepath=True)

    # --- what is so -------------------------------------------------------------------------------------------------

    def controller(self) -> int | None:
        """The broker that holds ``/controller``."""
        found = self._read("/controller")
        return None if found is None else int(found["brokerid"])

    def live_brokers(self) -> Collection[int]:
        """Those that are registered."""
        return {int(name) for name in self._children(BROKER_IDS_PATH)}

    def topics(self) -> dict[str, dict[int, list[int]]]:
        """The assignment of every topic."""
        found = {name: self._read(f"{TOPICS_PATH}/{name}") for name in self._children(TOPICS_PATH)}
        return {
            name: {int(number): replicas for number, replicas in topic["partitions"].items()}
            for name, topic in found.items()
            if topic is not None
        }

    def state(self, partition: Partition) -> State | None:
        """None where the controller has not decided anything yet, or the topic is gone."""
        topic, number = partition
        try:
            data, stat = self._zookeeper.retry(self._zookeeper.get, f"{TOPICS_PATH}/{topic}/partitions/{number}/state")
        except NoNodeError:
            return None
        read = json.loads(data)
        return State(read["leader"], read["leader_epoch"], tuple(read["isr"]), read["controller_epoch"], stat.version)

    def is_electing_preferred(self) -> bool:
        return self._is_there(PREFERRED_REPLICA_ELECTION_PATH)

    def is_reassigning(self) -> bool:
        return self._is_there(REASSIGN_PARTITIONS_PATH)

    # --- through ZooKeeper ------------------------------------------------------------------------------------------

    def _create(self, path: str, value: Mapping[str, Any]) -> None:
        try:
            self._zookeeper.retry(self._zookeeper.create, path, _encoded(value), makepath=True)
        except NodeExistsError:
            raise ValueError(f"{path} is there already") from None

    def _is_there(self, path: str) -> bool:
        return self._zookeeper.retry(self._zookeeper.exists, path) is not None

    def _children(self, path: str) -> list[str]:
        try:
            children: list[str] = self._zookeeper.retry(self._zookeeper.get_children, path)
        except NoNodeError:
            return []
        return sorted(children)

    def _read(self, path: str) -> Any:
        try:
            data, _ = self._zookeeper.retry(self._zookeeper.get, path)
        except NoNodeError:
            return None
        return json.loads(data) if data else None


def _numbered(assignment: Mapping[int, Sequence[int]]) -> dict[str, list[int]]:
    return {str(number): list(replicas) for number, replicas in assignment.items()}


def _encoded(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
