"""The partition state machine: Kafka's own 22 cases under its own names, every cell of the matrix, and each era."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconstruct.model.controller.leader_election import Election
from reconstruct.model.controller.outputs import (
    LeaderAndIsrRequest,
    Reason,
    UpdateMetadataRequest,
)
from reconstruct.model.controller.values import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    LeaderRecoveryState,
    PartitionAndReplica,
    ReplicaAssignment,
    TopicPartition,
)
from reconstruct.model.controller.zookeeper import partition_state_path
from reconstruct.model.elections import ElectionKind
from reconstruct.model.states import PartitionState, ReplicaState, is_legal_partition_transition
from reconstruct.model.versions import KafkaVersion, VersionRange, v
from reconstruct.model.znode_paths import CONTROLLER_EPOCH_PATH
from tests.oracles.controller import questions
from tests.oracles.controller.context_changes import begin_topic_deletion, queue_topic_deletion
from tests.oracles.controller.machines import (
    initialize_partition_state,
    start_partition_state_machine,
    stop_partition_state_machine,
    trigger_online_partition_state_change,
)
from tests.oracles.controller.outcomes import (
    Result,
)
from tests.oracles.controller.partition_state_machine import OFFLINE_ELECTION, handle_state_changes
from tests.oracles.controller.topic_deletion import enqueue_topics_for_deletion
from tests.oracles.controller.zookeeper import Operation, ZooKeeper
from tests.support.loops import for_each
from tests.unit.reconstruct.model.controller.clusters import (
    BROKER,
    CONTROLLER_EPOCH,
    ERAS,
    PARTITION,
    controller,
    decided,
    zookeeper,
)

NEW, ONLINE = PartitionState.NEW, PartitionState.ONLINE
OFFLINE, NON_EXISTENT = PartitionState.OFFLINE, PartitionState.NON_EXISTENT
PREFERRED = Election(ElectionKind.PREFERRED_REPLICA)
SHUTDOWN = Election(ElectionKind.CONTROLLED_SHUTDOWN)


def one_broker(state: PartitionState, leader: int | None = BROKER, **settings: object):
    """The partition on one live broker, in that state; ``leader`` None where none was ever decided."""
    led = {} if leader is None else {PARTITION: decided(leader, [BROKER])}
    return controller(
        [BROKER], assigned={PARTITION: [BROKER]}, led=led, partition_states={PARTITION: state}, **settings
    )


def move(context, target: PartitionState, election: Election | None = None, zk: ZooKeeper | None = None) -> Result:
    return handle_state_changes(context, zk or zookeeper(context), [PARTITION], target, election)


def state_of(result: Result) -> PartitionState:
    return result.context.partition_state(PARTITION)


def told(result: Result) -> dict[int, tuple[LeaderIsrAndControllerEpoch, tuple[int, ...], bool]]:
    """Broker: what its LeaderAndIsr request says of the partition."""
    return {
        request.broker_id: (entry.info, entry.assignment.replicas, entry.is_new)
        for request in result.requests
        if isinstance(request, LeaderAndIsrRequest)
        for entry in request.partitions
        if entry.partition == PARTITION
    }


# kafka.controller.PartitionStateMachineTest of 3.9: 22 cases, by name.


def test_nonexistent_partition_to_new_partition_transition() -> None:
    assert state_of(move(controller(), NEW)) is NEW


def test_invalid_nonexistent_partition_to_online_partition_transition() -> None:
    context = controller()
    result = move(context, ONLINE, OFFLINE_ELECTION)
    assert state_of(result) is NON_EXISTENT
    assert [failure.reason for failure in result.failures] == [Reason.ILLEGAL_STATE]


def test_invalid_nonexistent_partition_to_offline_partition_transition() -> None:
    assert state_of(move(controller(), OFFLINE)) is NON_EXISTENT


def test_new_partition_to_online_partition_transition() -> None:
    result = move(one_broker(NEW, leader=None), ONLINE, OFFLINE_ELECTION)
    first = decided(BROKER, [BROKER])
    assert state_of(result) is ONLINE
    assert result.zookeeper.partition_state(PARTITION)[0] == first
    assert told(result) == {BROKER: (first, (BROKER,), True)}


def test_new_partition_to_online_partition_transition_zoo_keeper_client_exception_from_create_states() -> None:
    context = one_broker(NEW, leader=None)
    result = move(context, ONLINE, OFFLINE_ELECTION, zookeeper(context, unreachable=(Operation.CREATE,)))
    assert state_of(result) is NEW
    assert result.requests == ()
    assert [(f.reason, f.logged_to_state) for f in result.failures] == [(Reason.CONNECTION_LOSS, NEW)]


def test_new_partition_to_online_partition_transition_error_code_from_create_states() -> None:
    context = one_broker(NEW, leader=None)
    known = zookeeper(context).with_znodes({partition_state_path(PARTITION): decided(BROKER, [BROKER], 7)})
    result = move(context, ONLINE, OFFLINE_ELECTION, known)
    assert state_of(result) is NEW
    assert result.requests == ()
    assert result.zookeeper == known
    assert [failure.reason for failure in result.failures] == [Reason.NODE_EXISTS]


def test_new_partition_to_offline_partition_transition() -> None:
    assert state_of(move(controller(partition_states={PARTITION: NEW}), OFFLINE)) is OFFLINE


def test_invalid_new_partition_to_nonexistent_partition_transition() -> None:
    assert state_of(move(controller(partition_states={PARTITION: NEW}), NON_EXISTENT)) is NEW


def test_online_partition_to_online_transition() -> None:
    result = move(one_broker(ONLINE), ONLINE, PREFERRED)
    again = LeaderIsrAndControllerEpoch(LeaderAndIsr(BROKER, (BROKER,), 1, 1), CONTROLLER_EPOCH)
    assert state_of(result) is ONLINE
    assert told(result) == {BROKER: (again, (BROKER,), False)}
    assert len(result.writes) == 1


def test_online_partition_to_online_transition_for_controlled_shutdown() -> None:
    other = BROKER + 1
    context = controller(
        [BROKER, other],
        assigned={PARTITION: [BROKER, other]},
        led={PARTITION: decided(BROKER, [BROKER, other])},
        partition_states={PARTITION: ONLINE},
        shutting_down=[BROKER],
    )
    result = move(context, ONLINE, SHUTDOWN)
    moved = LeaderIsrAndControllerEpoch(LeaderAndIsr(other, (other,), 1, 1), CONTROLLER_EPOCH)
    assert state_of(result) is ONLINE
    assert told(result) == dict.fromkeys((BROKER, other), (moved, (BROKER, other), False))


def test_online_partition_to_offline_transition() -> None:
    assert state_of(move(controller(partition_states={PARTITION: ONLINE}), OFFLINE)) is OFFLINE


def test_invalid_online_partition_to_nonexistent_partition_transition() -> None:
    assert state_of(move(controller(partition_states={PARTITION: ONLINE}), NON_EXISTENT)) is ONLINE


def test_invalid_online_partition_to_new_partition_transition() -> None:
    assert state_of(move(controller(partition_states={PARTITION: ONLINE}), NEW)) is ONLINE


def test_offline_partition_to_online_partition_transition() -> None:
    result = move(one_broker(OFFLINE, leader=-1), ONLINE, OFFLINE_ELECTION)
    elected = LeaderIsrAndControllerEpoch(LeaderAndIsr(BROKER, (BROKER,), 1, 1), CONTROLLER_EPOCH)
    assert state_of(result) is ONLINE
    assert told(result) == {BROKER: (elected, (BROKER,), False)}
    assert result.context.leadership[PARTITION] == elected


@pytest.mark.parametrize("is_leader_recovery_supported", [True, False])
def test_offline_partition_to_unclean_online_partition_transition(is_leader_recovery_supported: bool) -> None:
    gone = BROKER + 1
    context = controller(
        [BROKER],
        assigned={PARTITION: [gone, BROKER]},
        led={PARTITION: decided(gone, [gone])},
        partition_states={PARTITION: OFFLINE},
        inter_broker_protocol=v(3, 2) if is_leader_recovery_supported else v(3, 1),
    )
    result = move(context, ONLINE, Election(ElectionKind.OFFLINE_PARTITION, allow_unclean=True))
    recovery = LeaderRecoveryState.RECOVERING if is_leader_recovery_supported else LeaderRecoveryState.RECOVERED
    elected = LeaderIsrAndControllerEpoch(LeaderAndIsr(BROKER, (BROKER,), 1, 1, recovery), CONTROLLER_EPOCH)
    assert state_of(result) is ONLINE
    assert told(result) == {BROKER: (elected, (gone, BROKER), False)}


def test_offline_partition_to_online_partition_transition_zoo_keeper_client_exception_from_state_lookup() -> None:
    context = one_broker(OFFLINE, leader=-1)
    result = move(context, ONLINE, OFFLINE_ELECTION, zookeeper(context, unreachable=(Operation.READ,)))
    assert state_of(result) is OFFLINE
    assert result.requests == ()
    assert [failure.reason for failure in result.failures] == [Reason.CONNECTION_LOSS]


def test_offline_partition_to_online_partition_transition_error_code_from_state_lookup() -> None:
    result = move(one_broker(OFFLINE, leader=-1), ONLINE, OFFLINE_ELECTION, ZooKeeper())
    assert state_of(result) is OFFLINE
    assert result.requests == ()
    assert [failure.reason for failure in result.failures] == [Reason.STATE_CHANGE_FAILED]


def test_offline_partition_to_nonexistent_partition_transition() -> None:
    assert state_of(move(controller(partition_states={PARTITION: OFFLINE}), NON_EXISTENT)) is NON_EXISTENT


def test_invalid_offline_partition_to_new_partition_transition() -> None:
    assert state_of(move(controller(partition_states={PARTITION: OFFLINE}), NEW)) is OFFLINE


FOUR = [TopicPartition("test", number) for number in range(4)]


def test_updating_offline_partitions_count() -> None:
    context = controller([BROKER], assigned=dict.fromkeys(FOUR, (BROKER,)))
    zk = zookeeper(context).with_znodes({partition_state_path(p): decided(BROKER, [BROKER]) for p in FOUR})
    offline = handle_state_changes(context, zk, FOUR, NEW).then(handle_state_changes, FOUR, OFFLINE)
    assert questions.offline_partition_count(offline.context) == 4
    online = offline.then(handle_state_changes, FOUR, ONLINE, OFFLINE_ELECTION)
    assert questions.offline_partition_count(online.context) == 0


def test_no_offline_partitions_change_for_topics_being_deleted() -> None:
    context = begin_topic_deletion(queue_topic_deletion(controller(), ["test"]), ["test"])
    result = handle_state_changes(context, ZooKeeper(), FOUR, NEW).then(handle_state_changes, FOUR, OFFLINE)
    assert questions.partitions_in_state(result.context, OFFLINE) == tuple(FOUR)
    assert questions.offline_partition_count(result.context) == 0


def test_updating_offline_partitions_count_during_topic_deletion() -> None:
    context = controller(
        assigned=dict.fromkeys(FOUR, (BROKER,)),
        partition_states=dict.fromkeys(FOUR, OFFLINE),
        replica_states={PartitionAndReplica(p, BROKER): ReplicaState.OFFLINE for p in FOUR},
    )
    assert questions.offline_partition_count(context) == 4
    result = enqueue_topics_for_deletion(context, zookeeper(context), {"test"})
    assert questions.offline_partition_count(result.context) == 0


# Beyond Kafka's list.


@for_each(target=PartitionState, before=PartitionState, version=ERAS)
def test_an_illegal_transition_changes_nothing(
    before: PartitionState, target: PartitionState, version: KafkaVersion
) -> None:
    context = one_broker(before, version=version)
    zk = zookeeper(context)
    result = move(context, target, OFFLINE_ELECTION, zk)
    if is_legal_partition_transition(before, target, VersionRange.exactly(version)):
        assert Reason.ILLEGAL_STATE not in {failure.reason for failure in result.failures}
    else:
        assert (result.context, result.zookeeper, result.outputs) == (context, zk, ())
        assert [(f.reason, f.from_state, f.to_state) for f in result.failures] == [
            (Reason.ILLEGAL_STATE, before, target)
        ]


def test_the_first_leader_is_the_first_live_replica_and_all_live_ones_are_in_sync() -> None:
    context = controller([2, 3], assigned={PARTITION: [1, 2, 3]}, partition_states={PARTITION: NEW})
    result = move(context, ONLINE, OFFLINE_ELECTION)
    assert result.context.leadership[PARTITION] == decided(2, [2, 3])
    assert set(told(result)) == {2, 3}
    metadata = [request for request in result.requests if isinstance(request, UpdateMetadataRequest)]
    assert [(request.broker_id, request.partitions[0].offline_replicas) for request in metadata] == [
        (2, (1,)),
        (3, (1,)),
    ]


def test_a_new_partition_without_a_live_replica_stays_new() -> None:
    context = controller([9], assigned={PARTITION: [1, 2]}, partition_states={PARTITION: NEW})
    result = move(context, ONLINE, OFFLINE_ELECTION)
    assert state_of(result) is NEW
    assert "no assigned replica of t-0 is alive" in result.failures[0].message


def test_a_leader_that_changes_its_isr_in_between_makes_the_election_read_again() -> None:
    context = controller(
        [2, 3],
        assigned={PARTITION: [1, 2, 3]},
        led={PARTITION: decided(1, [1, 2, 3], 4)},
        partition_states={PARTITION: OFFLINE},
    )
    zk = zookeeper(context, racing=((partition_state_path(PARTITION), decided(1, [1, 3], 4)),))
    result = move(context, ONLINE, OFFLINE_ELECTION, zk)
    assert result.context.leadership[PARTITION].leader_and_isr == LeaderAndIsr(3, (3,), 5, 2)
    assert len(result.writes) == 1


@pytest.mark.parametrize(("version", "epochs"), [(v(1, 0), (1, 1)), (v(1, 1), (2, 1)), (v(2, 4), (1, 1))])
def test_from_1_1_to_2_3_one_refused_write_elects_the_whole_batch_again(
    version: KafkaVersion, epochs: tuple[int, int]
) -> None:
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    context = controller(
        [BROKER],
        version,
        assigned={first: [BROKER], second: [BROKER]},
        led={first: decided(BROKER, [BROKER]), second: decided(BROKER, [BROKER])},
        partition_states={first: OFFLINE, second: OFFLINE},
    )
    path = partition_state_path(second)
    zk = zookeeper(context, racing=((path, decided(BROKER, [BROKER])),))
    result = handle_state_changes(context, zk, [first, second], ONLINE, OFFLINE_ELECTION)
    assert tuple(result.context.leadership[p].leader_and_isr.leader_epoch for p in (first, second)) == epochs


@for_each(version=ERAS)
def test_a_controller_does_not_elect_over_a_newer_ones_decision(version: KafkaVersion) -> None:
    context = one_broker(OFFLINE, version=version)
    newer = zookeeper(context).with_znodes({partition_state_path(PARTITION): decided(7, [7], 9, CONTROLLER_EPOCH + 1)})
    result = move(context, ONLINE, OFFLINE_ELECTION, newer)
    assert (result.context, result.zookeeper, result.requests) == (context, newer, ())
    assert result.failures[0].reason is Reason.STATE_CHANGE_FAILED
    assert "written by a controller of epoch 51" in result.failures[0].message


@pytest.mark.parametrize(("version", "is_refused"), [(v(2, 0), False), (v(2, 1), True), (v(3, 9), True)])
def test_zookeeper_refuses_a_zombie_since_2_1(version: KafkaVersion, is_refused: bool) -> None:
    context = one_broker(OFFLINE, version=version)
    deposed = zookeeper(context).with_znodes({CONTROLLER_EPOCH_PATH: CONTROLLER_EPOCH + 1})
    result = move(context, ONLINE, OFFLINE_ELECTION, deposed)
    assert result.has_moved is is_refused
    assert (result.zookeeper == deposed) is is_refused
    assert (result.context == context) is is_refused
    assert (result.requests == ()) is is_refused


@pytest.mark.parametrize(("version", "state"), [(v(1, 0), ONLINE), (v(1, 1), OFFLINE), (v(3, 9), OFFLINE)])
def test_up_to_1_0_a_preferred_election_that_is_not_needed_counts_as_done(
    version: KafkaVersion, state: PartitionState
) -> None:
    context = controller(
        [],
        version,
        assigned={PARTITION: [BROKER]},
        led={PARTITION: decided(BROKER, [BROKER])},
        partition_states={PARTITION: OFFLINE},
    )
    result = move(context, ONLINE, PREFERRED)
    assert state_of(result) is state
    assert result.writes == ()


@pytest.mark.parametrize("version", [v(0, 8, 2), v(1, 0)], ids=str)
def test_without_an_election_the_no_op_selector_writes_the_same_state_again(version: KafkaVersion) -> None:
    result = move(one_broker(ONLINE, version=version), ONLINE)
    assert result.context.leadership[PARTITION].leader_and_isr == LeaderAndIsr(BROKER, (BROKER,), 0, 1)
    assert set(told(result)) == {BROKER}


def test_since_1_1_an_election_is_required() -> None:
    result = move(one_broker(ONLINE), ONLINE)
    assert result.failures[0].reason is Reason.ILLEGAL_ARGUMENT
    assert result.elected == {PARTITION: result.failures[0]}


def test_up_to_0_10_a_machine_that_was_not_started_refuses_everything() -> None:
    stopped = stop_partition_state_machine(controller(version=v(0, 10, 2)))
    assert move(stopped, NEW).failures[0].reason is Reason.STATE_CHANGE_FAILED
    assert state_of(move(stop_partition_state_machine(controller(version=v(0, 11))), NEW)) is NEW


def test_a_new_controller_finds_each_partition_in_its_state() -> None:
    online, offline, new = (TopicPartition("t", number) for number in range(3))
    context = controller(
        [1],
        assigned={online: [1, 2], offline: [2, 1], new: [1]},
        led={online: decided(1, [1]), offline: decided(2, [2])},
    )
    found = initialize_partition_state(context).partition_states
    assert found == {online: ONLINE, offline: OFFLINE, new: NEW}
    started = start_partition_state_machine(context, zookeeper(context))
    assert started.context.partition_states == {online: ONLINE, offline: OFFLINE, new: ONLINE}
    assert [failure.partition for failure in started.failures] == [offline]


def test_partitions_of_a_topic_being_deleted_are_not_elected() -> None:
    context = queue_topic_deletion(one_broker(OFFLINE), ["t"])
    result = trigger_online_partition_state_change(context, zookeeper(context))
    assert (result.context, result.outputs) == (context, ())


def test_a_replica_on_a_failed_log_directory_is_not_elected() -> None:
    context = controller(
        [1, 2],
        assigned={PARTITION: [1, 2]},
        led={PARTITION: decided(1, [1, 2])},
        partition_states={PARTITION: OFFLINE},
    )
    failed = replace(context, replicas_on_offline_dirs={1: frozenset({PARTITION})})
    result = move(failed, ONLINE, OFFLINE_ELECTION)
    assert result.context.leadership[PARTITION].leader_and_isr == LeaderAndIsr(2, (2,), 1, 1)


def test_an_assignment_read_anew_is_told() -> None:
    context = one_broker(NON_EXISTENT, leader=None, version=v(0, 8, 2))
    grown = context.with_assignments({PARTITION: ReplicaAssignment((BROKER, 6))})
    result = move(context, NEW, zk=zookeeper(grown))
    assert result.context.replicas(PARTITION) == (BROKER, 6)
