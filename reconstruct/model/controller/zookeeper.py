"""ZooKeeper as a value: the znodes the controller reads and writes, and the three ways in which it refuses a write.

A write names the version it expects (*BADVERSION*: somebody wrote in between, read again), creates what must not exist
(*NODEEXISTS*) or changes what must (*NONODE*). From 2.1 on each write of the controller is a transaction that also
checks the version of ``/controller_epoch`` (KAFKA-6082): a controller that was deposed without noticing gets
*CONTROLLER_MOVED* and nothing is written. Before, its writes go through, and only its own look at the controller epoch
inside the ``state`` znode stops it.

Sources: kafka.zk.KafkaZkClient 1.1 to 3.9; kafka.utils.ZkUtils 0.8; ZooKeeper's KeeperException.Code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from reconstruct.model.controller.values import LeaderIsrAndControllerEpoch, ReplicaAssignment, TopicPartition
from reconstruct.model.value_class import value_class
from reconstruct.model.znode_paths import (
    CONTROLLER_EPOCH_PATH,
    TOPICS_PATH,
)


class Code(StrEnum):
    """How an operation ended, in ZooKeeper's words; the last is Kafka's ControllerMovedException."""

    OK = "OK"
    NONODE = "NONODE"
    NODEEXISTS = "NODEEXISTS"
    BADVERSION = "BADVERSION"
    CONNECTIONLOSS = "CONNECTIONLOSS"
    CONTROLLER_MOVED = "CONTROLLER_MOVED"


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """The content of ``/brokers/topics/T``: partition number to assignment, and since 2.8 the topic's id."""

    partitions: Mapping[int, ReplicaAssignment]
    topic_id: str | None = None


#: What the znodes hold: a decision, an assignment, or a number.
Content = LeaderIsrAndControllerEpoch | TopicAssignment | int | None


@value_class
class Znode:
    """Content and version: 0 when created, one more with each write."""

    content: Content
    version: int = 0


def partition_state_path(partition: TopicPartition) -> str:
    return f"{TOPICS_PATH}/{partition.topic}/partitions/{partition.partition_id}/state"


def topic_path(topic: str) -> str:
    return f"{TOPICS_PATH}/{topic}"


@dataclass(frozen=True, slots=True)
class ZooKeeper:
    """All znodes by path. Methods that write return the new ZooKeeper, how it ended, and the znode's new version."""

    znodes: Mapping[str, Znode] = field(default_factory=dict)

    # --- reading ----------------------------------------------------------------------------------------------------

    def partition_state(self, partition: TopicPartition) -> tuple[LeaderIsrAndControllerEpoch | None, Code]:
        """The decision in force, its ``partition_epoch`` taken from the znode's version."""
        znode = self.znodes.get(partition_state_path(partition))
        if znode is None or not isinstance(znode.content, LeaderIsrAndControllerEpoch):
            return None, Code.NONODE
        leader_and_isr = znode.content.leader_and_isr.with_partition_epoch(znode.version)
        return replace(znode.content, leader_and_isr=leader_and_isr), Code.OK

    def topic_assignment(self, topic: str) -> TopicAssignment | None:
        znode = self.znodes.get(topic_path(topic))
        return znode.content if znode is not None and isinstance(znode.content, TopicAssignment) else None

    def controller_epoch(self) -> tuple[int, int] | None:
        """The epoch of the last elected controller and the znode's version; None before the first."""
        znode = self.znodes.get(CONTROLLER_EPOCH_PATH)
        return (znode.content, znode.version) if znode is not None and isinstance(znode.content, int) else None

    # --- writing ----------------------------------------------------------------------------------------------------

    def create(self, path: str, content: Content, epoch_zk_version: int | None = None) -> tuple[ZooKeeper, Code, int]:
        code = self.refusal(epoch_zk_version)
        if code is None and path in self.znodes:
            code = Code.NODEEXISTS
        if code is not None:
            return self, code, 0
        return self._put(path, Znode(content)), Code.OK, 0

    def set(
        self, path: str, content: Content, expected_version: int | None = None, epoch_zk_version: int | None = None
    ) -> tuple[ZooKeeper, Code, int]:
        """Change a znode; ``expected_version`` None takes any, as Kafka does for assignments."""
        code = self.refusal(epoch_zk_version)
        znode = self.znodes.get(path)
        if code is not None or znode is None:
            return self, code or Code.NONODE, 0
        if expected_version is not None and znode.version != expected_version:
            return self, Code.BADVERSION, znode.version
        return self._put(path, Znode(content, znode.version + 1)), Code.OK, znode.version + 1

    def with_znodes(self, contents: Mapping[str, Content] | Iterable[tuple[str, Content]]) -> ZooKeeper:
        """Somebody else's unconditional writes: created at version 0, or one version on."""
        result = self
        for path, content in dict(contents).items():
            known = result.znodes.get(path)
            result = result._put(path, Znode(content, 0 if known is None else known.version + 1))
        return result

    def _put(self, path: str, znode: Znode) -> ZooKeeper:
        return replace(self, znodes={**self.znodes, path: znode})

    def refusal(self, epoch_zk_version: int | None) -> Code | None:
        """Why a write that depends on that version of /controller_epoch is refused; None where it is not."""
        known = self.controller_epoch()
        if epoch_zk_version is not None and known is not None and known[1] != epoch_zk_version:
            return Code.CONTROLLER_MOVED
        return None
