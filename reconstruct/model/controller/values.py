"""The words the controller speaks: partitions, replicas, assignments, and one decision about a partition's leadership.

All are immutable. ``str()`` of each is for people; Kafka's own print of each era is the ingest's business.

Sources: kafka.api.LeaderAndIsr and kafka.controller.ReplicaAssignment, 0.8.2 to 3.9.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from enum import IntEnum
from typing import Final, NamedTuple

from reconstruct.model.value_class import value_class

INITIAL_LEADER_EPOCH: Final = 0
INITIAL_PARTITION_EPOCH: Final = 0


class TopicPartition(NamedTuple):
    """A partition of a topic; orders by topic, then by number."""

    topic: str
    partition_id: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition_id}"


class PartitionAndReplica(NamedTuple):
    """One replica: a partition and the broker that holds it."""

    partition: TopicPartition
    replica_id: int

    @property
    def topic(self) -> str:
        return self.partition.topic

    def __str__(self) -> str:
        return f"replica {self.replica_id} of {self.partition}"


class LeaderRecoveryState(IntEnum):
    """Whether the leader still has to recover from an unclean election (KIP-704, protocol 3.2)."""

    RECOVERED = 0
    RECOVERING = 1


@value_class
class LeaderAndIsr:
    """Who leads a partition, since which epoch, with whom in sync; ``partition_epoch`` is the znode's version."""

    leader: int
    isr: tuple[int, ...]
    leader_epoch: int = INITIAL_LEADER_EPOCH
    partition_epoch: int = INITIAL_PARTITION_EPOCH
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED

    def new_leader_and_isr(self, leader: int, isr: Iterable[int]) -> LeaderAndIsr:
        """The next decision: a leader, an ISR, and the leader epoch raised by one."""
        return replace(self, leader=leader, isr=tuple(isr), leader_epoch=self.leader_epoch + 1)

    def new_recovering_leader_and_isr(self, leader: int, isr: Iterable[int]) -> LeaderAndIsr:
        """The same after an unclean election, where the protocol can say so."""
        return replace(self.new_leader_and_isr(leader, isr), leader_recovery_state=LeaderRecoveryState.RECOVERING)

    def with_partition_epoch(self, partition_epoch: int) -> LeaderAndIsr:
        return replace(self, partition_epoch=partition_epoch)


@value_class
class LeaderIsrAndControllerEpoch:
    """A decision and the epoch of the controller that took it: the content of a ``state`` znode."""

    leader_and_isr: LeaderAndIsr
    controller_epoch: int

    @property
    def leader(self) -> int:
        return self.leader_and_isr.leader

    @property
    def isr(self) -> tuple[int, ...]:
        return self.leader_and_isr.isr


@value_class
class ReplicaAssignment:
    """A partition's replicas in order of preference, those a reassignment adds and those it removes among them.

    Up to 2.3 nothing is adding or removing: the target of a reassignment stands elsewhere (KIP-455).
    """

    replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()

    @property
    def target_replicas(self) -> tuple[int, ...]:
        return without(self.replicas, self.removing_replicas)

    def remove_replica(self, replica_id: int) -> ReplicaAssignment:
        gone = (replica_id,)
        return ReplicaAssignment(
            without(self.replicas, gone), without(self.adding_replicas, gone), without(self.removing_replicas, gone)
        )

    def add_replica(self, replica_id: int) -> ReplicaAssignment:
        return replace(self, replicas=(*self.replicas, replica_id))


def without(replicas: Iterable[int], gone: Collection[int]) -> tuple[int, ...]:
    """``replicas`` in their order but for those in ``gone``."""
    return tuple(replica for replica in replicas if replica not in gone)
