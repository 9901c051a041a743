"""A ZooKeeper that loses connections, and in which others write in between."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum

from reconstruct.model.controller import zookeeper
from reconstruct.model.controller.values import LeaderIsrAndControllerEpoch, TopicPartition
from reconstruct.model.controller.zookeeper import Code, Content


class Operation(StrEnum):
    """What may be unreachable."""

    READ = "getData"
    CREATE = "create"
    SET = "setData"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class ZooKeeper(zookeeper.ZooKeeper):
    """``unreachable`` names the operations that lose their connection; ``racing`` holds writes of others, each of which
    comes just before the next conditional write to its path."""

    unreachable: Collection[Operation] = ()
    racing: tuple[tuple[str, Content], ...] = ()

    def partition_state(self, partition: TopicPartition) -> tuple[LeaderIsrAndControllerEpoch | None, Code]:
        if Operation.READ in self.unreachable:
            return None, Code.CONNECTIONLOSS
        return zookeeper.ZooKeeper.partition_state(self, partition)

    def create(self, path: str, content: Content, epoch_zk_version: int | None = None) -> tuple[ZooKeeper, Code, int]:
        if Operation.CREATE in self.unreachable:
            return self, Code.CONNECTIONLOSS, 0
        return zookeeper.ZooKeeper.create(self, path, content, epoch_zk_version)

    def set(
        self, path: str, content: Content, expected_version: int | None = None, epoch_zk_version: int | None = None
    ) -> tuple[ZooKeeper, Code, int]:
        others = [number for number, (raced, _) in enumerate(self.racing) if raced == path]
        known = self
        if expected_version is not None and others:
            later = (*self.racing[: others[0]], *self.racing[others[0] + 1 :])
            known = replace(self, racing=later).with_znodes({path: self.racing[others[0]][1]})
        if Operation.SET in self.unreachable:
            return known, Code.CONNECTIONLOSS, 0
        return zookeeper.ZooKeeper.set(known, path, content, expected_version, epoch_zk_version)
