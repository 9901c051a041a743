"""What a broker does with a controller's requests: accept, ignore as stale, become leader or follower, stop a replica.

A broker remembers the highest controller epoch it has accepted since it started, and for each replica the leader epoch
that it acts at. It refuses a whole request of a lower controller epoch; of the rest it takes each partition by itself.

What changed over the versions, and is gated here:

* 0.8.0 does not ask whether it is assigned (``Partition.makeLeader``, ``makeFollower``);
* a follower whose new leader is not live: 0.8.0 changes nothing; 0.8.1 follows at the new epoch and does not fetch;
  since 0.8.2 it makes the replica and keeps its epoch (KAFKA-1647);
* from 0.8.2 to 2.0 a follower that already follows the new leader goes on fetching without a truncation, in 2.0.1 only
  where it missed no epoch;
* since 2.6 the leader epoch of a StopReplica is compared: up to 3.4.0 only a higher one is taken, later an equal one as
  well (KAFKA-13972). -1 is a request without one, -2 a deletion: both are taken (KIP-570);
* since 3.3 a replica that is at a newer partition epoch is left as it is.

UpdateMetadata has no leader epoch check in any version.

Sources: kafka.server.ReplicaManager.becomeLeaderOrFollower, makeLeaders, makeFollowers, stopReplicas,
maybeUpdateMetadataCache of 0.8.0, 0.8.1.1, 0.8.2.2, 1.1.1, 2.0.1, 2.3.1, 2.6.0, 3.3.0, 3.4.1 and 3.9.0;
kafka.cluster.Partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from reconstruct.model.states import EPOCH_DURING_DELETE, NO_EPOCH
from reconstruct.model.versions import (
    EQUAL_EPOCH_STOPS_SINCE,
    STOP_REPLICA_PER_PARTITION_SINCE,
    KafkaVersion,
)
from tests.oracles.versions import (
    ASSIGNED_REPLICAS_CHECKED_SINCE,
    MISSED_EPOCHS_MADE_UP_SINCE,
    PARTITION_EPOCH_CHECKED_SINCE,
    REPLICA_MADE_WITHOUT_LEADER_SINCE,
    SAME_LEADER_FOLLOWED_ON_UNTIL,
)


class Answer(StrEnum):
    """What a broker did with a request, or with one partition of it."""

    STALE_CONTROLLER_EPOCH = "stale_controller_epoch"
    LEADER_EPOCH_SMALLER = "leader_epoch_smaller"
    LEADER_EPOCH_MATCHES = "leader_epoch_matches"
    NOT_ASSIGNED = "not_assigned"
    OLDER_PARTITION_EPOCH = "older_partition_epoch"
    LEADER_UNAVAILABLE = "leader_unavailable"
    BECAME_LEADER = "became_leader"
    BECAME_FOLLOWER = "became_follower"
    FOLLOWS_ON = "follows_on"
    STOPPED = "stopped"
    DELETED = "deleted"
    CACHED = "cached"


#: The steps of each answer, in their order.
STEPS: Final[Mapping[Answer, tuple[str, ...]]] = {
    Answer.BECAME_LEADER: ("stop fetching", "lead at the new epoch"),
    Answer.BECAME_FOLLOWER: ("stop fetching", "truncate", "follow at the new epoch", "fetch from the new leader"),
    Answer.LEADER_UNAVAILABLE: ("make the replica",),
    Answer.STOPPED: ("stop fetching", "give the replica up"),
    Answer.DELETED: ("stop fetching", "give the replica up", "delete the log"),
    Answer.CACHED: ("take the state into the metadata cache",),
}


@dataclass(frozen=True, slots=True)
class HostedReplica:
    """A replica as its broker holds it; ``leader`` None where it was never told of one."""

    leader: int | None
    leader_epoch: int
    partition_epoch: int = 0


@dataclass(frozen=True, slots=True)
class BrokerState:
    """What one process of a broker holds: the highest controller epoch it accepted, and its replicas by partition."""

    broker_id: int
    controller_epoch: int = 0
    replicas: Mapping[tuple[str, int], HostedReplica] = field(default_factory=dict)
    live_brokers: frozenset[int] = frozenset()
    is_shutting_down: bool = False


@dataclass(frozen=True, slots=True)
class LeaderAndIsrPartitionState:
    """One partition of a LeaderAndIsr request."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    partition_epoch: int = 0


@dataclass(frozen=True, slots=True)
class Handled:
    """The broker afterwards, what it answered, and the steps it took."""

    broker: BrokerState
    answer: Answer
    steps: tuple[str, ...] = ()


def is_stale(broker: BrokerState, controller_epoch: int) -> bool:
    """Whether the broker refuses a request of that controller epoch as a whole; an equal one is taken."""
    return controller_epoch < broker.controller_epoch


def handle_leader_and_isr(
    broker: BrokerState,
    controller_epoch: int,
    partition: tuple[str, int],
    told: LeaderAndIsrPartitionState,
    version: KafkaVersion,
) -> Handled:
    """One partition of a LeaderAndIsr request."""
    if is_stale(broker, controller_epoch):
        return Handled(broker, Answer.STALE_CONTROLLER_EPOCH)
    broker = replace(broker, controller_epoch=controller_epoch)
    held = broker.replicas.get(partition)
    if held is not None and told.leader_epoch <= held.leader_epoch:
        is_equal = told.leader_epoch == held.leader_epoch
        return Handled(broker, Answer.LEADER_EPOCH_MATCHES if is_equal else Answer.LEADER_EPOCH_SMALLER)
    if version >= ASSIGNED_REPLICAS_CHECKED_SINCE and broker.broker_id not in told.replicas:
        return Handled(broker, Answer.NOT_ASSIGNED)
    is_older = held is not None and told.partition_epoch < held.partition_epoch
    if version >= PARTITION_EPOCH_CHECKED_SINCE and is_older:
        return Handled(broker, Answer.OLDER_PARTITION_EPOCH)
    after = _with(broker, partition, HostedReplica(told.leader, told.leader_epoch, told.partition_epoch))
    if told.leader == broker.broker_id:
        return Handled(after, Answer.BECAME_LEADER, STEPS[Answer.BECAME_LEADER])
    if told.leader not in broker.live_brokers:
        return _without_leader(broker, partition, told, version)
    if held is not None and held.leader == told.leader and _goes_on(told.leader_epoch - held.leader_epoch, version):
        return Handled(after, Answer.FOLLOWS_ON)
    steps = STEPS[Answer.BECAME_FOLLOWER]
    return Handled(after, Answer.BECAME_FOLLOWER, steps[:-1] if broker.is_shutting_down else steps)


def handle_stop_replica(
    broker: BrokerState,
    controller_epoch: int,
    partition: tuple[str, int],
    leader_epoch: int,
    is_delete: bool,
    version: KafkaVersion,
) -> Handled:
    """One partition of a StopReplica request; ``leader_epoch`` is :data:`NO_EPOCH` where it has none."""
    if is_stale(broker, controller_epoch):
        return Handled(broker, Answer.STALE_CONTROLLER_EPOCH)
    broker = replace(broker, controller_epoch=controller_epoch)
    held = broker.replicas.get(partition)
    is_compared = version >= STOP_REPLICA_PER_PARTITION_SINCE and leader_epoch not in (NO_EPOCH, EPOCH_DURING_DELETE)
    if held is not None and is_compared:
        if leader_epoch < held.leader_epoch:
            return Handled(broker, Answer.LEADER_EPOCH_SMALLER)
        if leader_epoch == held.leader_epoch and version < EQUAL_EPOCH_STOPS_SINCE:
            return Handled(broker, Answer.LEADER_EPOCH_MATCHES)
    kept = {name: replica for name, replica in broker.replicas.items() if name != partition}
    answer = Answer.DELETED if is_delete else Answer.STOPPED
    return Handled(replace(broker, replicas=kept), answer, STEPS[answer])


def handle_update_metadata(broker: BrokerState, controller_epoch: int) -> Handled:
    """An UpdateMetadata request: only the controller epoch is asked for."""
    if is_stale(broker, controller_epoch):
        return Handled(broker, Answer.STALE_CONTROLLER_EPOCH)
    return Handled(replace(broker, controller_epoch=controller_epoch), Answer.CACHED, STEPS[Answer.CACHED])


def _goes_on(epochs: int, version: KafkaVersion) -> bool:
    """Whether a follower of the same leader skips its steps; ``epochs``: by how much the leader epoch rose."""
    if not REPLICA_MADE_WITHOUT_LEADER_SINCE <= version < SAME_LEADER_FOLLOWED_ON_UNTIL:
        return False
    return epochs == 1 or version < MISSED_EPOCHS_MADE_UP_SINCE


def _without_leader(
    broker: BrokerState, partition: tuple[str, int], told: LeaderAndIsrPartitionState, version: KafkaVersion
) -> Handled:
    """The new leader is not among the live brokers that it knows: nobody is fetched from."""
    if version < ASSIGNED_REPLICAS_CHECKED_SINCE:
        return Handled(broker, Answer.LEADER_UNAVAILABLE)
    if version < REPLICA_MADE_WITHOUT_LEADER_SINCE:
        after = _with(broker, partition, HostedReplica(told.leader, told.leader_epoch, told.partition_epoch))
        return Handled(after, Answer.LEADER_UNAVAILABLE, STEPS[Answer.BECAME_FOLLOWER][:-1])
    if partition in broker.replicas:
        return Handled(broker, Answer.LEADER_UNAVAILABLE)
    made = _with(broker, partition, HostedReplica(None, NO_EPOCH, told.partition_epoch))
    return Handled(made, Answer.LEADER_UNAVAILABLE, STEPS[Answer.LEADER_UNAVAILABLE])


def _with(broker: BrokerState, partition: tuple[str, int], replica: HostedReplica) -> BrokerState:
    return replace(broker, replicas={**broker.replicas, partition: replica})
