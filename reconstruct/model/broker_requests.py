"""Whether a broker takes a controller's request, by the epochs of the request and of the broker.

A broker remembers the highest controller epoch that it has accepted since it started, and for each replica the leader
epoch that it acts at. It ignores what is older. What it does with a request that it takes is played by
``tests/oracles/broker_requests.py``.

Sources: kafka.server.ReplicaManager.becomeLeaderOrFollower, stopReplicas, maybeUpdateMetadataCache 0.8.0 to 3.9.0.
"""

from __future__ import annotations

from enum import StrEnum

from reconstruct.model.states import EPOCH_DURING_DELETE, NO_EPOCH
from reconstruct.model.versions import EQUAL_EPOCH_STOPS_SINCE, STOP_REPLICA_PER_PARTITION_SINCE, KafkaVersion


class Answer(StrEnum):
    """Whether a broker takes a request, or one partition of it, and why not."""

    TAKEN = "taken"
    STALE_CONTROLLER_EPOCH = "stale_controller_epoch"
    LEADER_EPOCH_SMALLER = "leader_epoch_smaller"
    LEADER_EPOCH_MATCHES = "leader_epoch_matches"


def answer_by_controller_epoch(requested: int, accepted: int) -> Answer:
    """Of any request as a whole: only a lower controller epoch is refused."""
    return Answer.STALE_CONTROLLER_EPOCH if requested < accepted else Answer.TAKEN


def answer_to_leader_and_isr(requested: int, current: int) -> Answer:
    """Of one partition of a LeaderAndIsr: only a higher leader epoch is taken."""
    if requested > current:
        return Answer.TAKEN
    return Answer.LEADER_EPOCH_MATCHES if requested == current else Answer.LEADER_EPOCH_SMALLER


def answer_to_stop_replica(requested: int, current: int, version: KafkaVersion) -> Answer:
    """Of one partition of a StopReplica: compared since 2.6, where the request has an epoch (KIP-570); since 3.4.1 an
    equal one is taken (KAFKA-13972)."""
    if version < STOP_REPLICA_PER_PARTITION_SINCE or requested in (NO_EPOCH, EPOCH_DURING_DELETE):
        return Answer.TAKEN
    answer = answer_to_leader_and_isr(requested, current)
    is_equal_taken = answer is Answer.LEADER_EPOCH_MATCHES and version >= EQUAL_EPOCH_STOPS_SINCE
    return Answer.TAKEN if is_equal_taken else answer
