"""AlterPartition: Kafka's own cases by name (ControllerIntegrationTest of 3.9)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconstruct.model.controller.outputs import (
    Reason,
)
from reconstruct.model.controller.values import LeaderRecoveryState, TopicPartition
from tests.oracles.controller.alter_partition import AlterPartitionRequest, process_alter_partition
from tests.oracles.controller.cluster import Cluster
from tests.oracles.controller.outcomes import (
    RequestError,
    Result,
)

TP, TP1 = TopicPartition("t", 0), TopicPartition("t", 1)


def alter(cluster: Cluster, isr: list[int], broker_epoch: int | None = None, **changes: object) -> Result:
    known = cluster.state(TP).leader_and_isr
    epoch = cluster.context.live_broker_epochs[known.leader] if broker_epoch is None else broker_epoch
    wanted = replace(known, isr=tuple(isr), **changes)  # type: ignore[arg-type]
    return cluster.apply(process_alter_partition, AlterPartitionRequest(known.leader, epoch, {TP: wanted}))


def test_alter_partition() -> None:
    cluster = Cluster(2)
    cluster.create("t", {0: [0, 1]})
    answer = alter(cluster, [0]).elected[TP]
    known = cluster.state(TP)
    assert answer == known.leader_and_isr
    assert (known.leader_and_isr.isr, known.leader_and_isr.leader_epoch, known.leader_and_isr.partition_epoch) == (
        (0,),
        0,
        1,
    )
    assert cluster.context.leadership[TP] == known


def test_idempotent_alter_partition() -> None:
    cluster = Cluster(2)
    cluster.create("t", {0: [0, 1]})
    known = cluster.state(TP).leader_and_isr
    result = alter(cluster, [0, 1])
    assert (result.elected[TP], result.writes) == (known, ())


def test_shutdown_broker_not_added_to_isr() -> None:
    cluster = Cluster(2)
    cluster.create("t", {0: [0, 1]})
    cluster.kill(1)
    assert [failure.reason for failure in alter(cluster, [0, 1]).failures] == [RequestError.INELIGIBLE_REPLICA]
    assert cluster.leader_and_isr(TP)[1] == (0,)
    cluster.start(1)
    cluster.catch_up()
    assert cluster.leader_and_isr(TP)[1] == (0, 1)


RECOVERING = LeaderRecoveryState.RECOVERING


@pytest.mark.parametrize(
    ("isr", "change", "reason"),
    [
        ([0], {"partition_epoch": -1}, RequestError.INVALID_UPDATE_VERSION),
        ([0, 1], {"partition_epoch": 1}, RequestError.NOT_CONTROLLER),
        ([0, 1], {"leader_epoch": -1}, RequestError.FENCED_LEADER_EPOCH),
        ([0, 1], {"leader_epoch": 1}, RequestError.NOT_CONTROLLER),
        ([0, 1], {"leader_recovery_state": RECOVERING}, RequestError.INVALID_REQUEST),
        ([0], {"leader_recovery_state": RECOVERING}, RequestError.INVALID_REQUEST),
        ([0, 1], {"leader_recovery_state": RECOVERING, "partition_epoch": -1}, RequestError.INVALID_UPDATE_VERSION),
        ([0, 1], {"leader_recovery_state": RECOVERING, "leader_epoch": -1}, RequestError.FENCED_LEADER_EPOCH),
        ([0, 1], {"leader_recovery_state": RECOVERING, "leader_epoch": 1}, RequestError.NOT_CONTROLLER),
    ],
)
def test_alter_partition_errors(isr: list[int], change: dict[str, int], reason: Reason) -> None:
    cluster = Cluster(2)
    cluster.create("t", {0: [0, 1]})
    known = cluster.state(TP).leader_and_isr
    absolute = {
        name: value if name == "leader_recovery_state" else getattr(known, name) + value
        for name, value in change.items()
    }
    result = alter(cluster, isr, **absolute)
    assert [failure.reason for failure in result.failures] == [reason]
    assert cluster.state(TP).leader_and_isr == known


def test_alter_partition_errors_of_the_whole_request() -> None:
    cluster = Cluster(2)
    cluster.create("t", {0: [0, 1]})
    known = cluster.state(TP).leader_and_isr
    assert alter(cluster, [0], broker_epoch=0).failures[0].reason is RequestError.STALE_BROKER_EPOCH
    unknown = AlterPartitionRequest(99, 1, {TP: known})
    assert cluster.apply(process_alter_partition, unknown).failures[0].reason is RequestError.STALE_BROKER_EPOCH
    elsewhere = AlterPartitionRequest(0, 1, {TP1: known})
    assert (
        cluster.apply(process_alter_partition, elsewhere).failures[0].reason is RequestError.UNKNOWN_TOPIC_OR_PARTITION
    )


def test_alter_partition_errors_after_unclean_election() -> None:
    cluster = Cluster(3, unclean_leader_election_enable=True)
    cluster.create("t", {0: [1, 2]})
    cluster.kill(1)
    assert cluster.leader_and_isr(TP)[:2] == (2, (2,))
    cluster.kill(2)
    assert cluster.leader_and_isr(TP)[:2] == (-1, (2,))
    cluster.start(1)
    known = cluster.state(TP).leader_and_isr
    assert (known.leader, known.isr, known.leader_recovery_state) == (1, (1,), RECOVERING)
    for changes, reason in (
        ({"partition_epoch": known.partition_epoch - 1}, RequestError.INVALID_UPDATE_VERSION),
        ({"partition_epoch": known.partition_epoch + 1}, RequestError.NOT_CONTROLLER),
        ({"leader_epoch": known.leader_epoch - 1}, RequestError.FENCED_LEADER_EPOCH),
        ({"leader_recovery_state": RECOVERING}, RequestError.INVALID_REQUEST),
    ):
        assert alter(cluster, [1, 2], **changes).failures[0].reason is reason
    alter(cluster, [1], leader_recovery_state=LeaderRecoveryState.RECOVERED)
    assert cluster.state(TP).leader_and_isr.leader_recovery_state is LeaderRecoveryState.RECOVERED
