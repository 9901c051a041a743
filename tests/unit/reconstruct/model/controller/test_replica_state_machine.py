"""The replica state machine: Kafka's own 45 cases under its own names, every cell of the matrix, and each era."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconstruct.model.controller.outputs import (
    LeaderAndIsrRequest,
    Reason,
    ReplicaTransition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from reconstruct.model.controller.request_batch import RequestBatch
from reconstruct.model.controller.values import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    PartitionAndReplica,
    ReplicaAssignment,
    TopicPartition,
)
from reconstruct.model.controller.zookeeper import partition_state_path
from reconstruct.model.states import ReplicaState, is_legal_replica_transition
from reconstruct.model.versions import KafkaVersion, VersionRange, v
from reconstruct.model.znode_paths import CONTROLLER_EPOCH_PATH
from tests.oracles.controller.context import ControllerContext
from tests.oracles.controller.context_changes import queue_topic_deletion
from tests.oracles.controller.machines import start_replica_state_machine, stop_replica_state_machine
from tests.oracles.controller.outcomes import (
    Result,
)
from tests.oracles.controller.replica_state_machine import handle_state_changes
from tests.oracles.controller.zookeeper import ZooKeeper
from tests.support.loops import for_each
from tests.unit.reconstruct.model.controller.clusters import (
    BROKER,
    CONTROLLER_EPOCH,
    ERAS,
    PARTITION,
    REPLICA,
    controller,
    decided,
    zookeeper,
)

NEW, ONLINE, OFFLINE = ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.OFFLINE
STARTED, SUCCESSFUL = ReplicaState.DELETION_STARTED, ReplicaState.DELETION_SUCCESSFUL
INELIGIBLE, NON_EXISTENT = ReplicaState.DELETION_INELIGIBLE, ReplicaState.NON_EXISTENT
OTHER = BROKER + 1


def in_state(state: ReplicaState, **kwargs: object) -> ControllerContext:
    return controller(replica_states={REPLICA: state}, **kwargs)  # type: ignore[arg-type]


def move(context: ControllerContext, target: ReplicaState, zk: ZooKeeper | None = None) -> Result:
    return handle_state_changes(context, zk or zookeeper(context), [REPLICA], target)


def state_of(result: Result) -> ReplicaState:
    return result.context.replica_state(REPLICA)


def leader_and_isr_told(result: Result) -> dict[int, tuple[LeaderIsrAndControllerEpoch, tuple[int, ...], bool]]:
    """Broker: what its LeaderAndIsr request says of the partition."""
    return {
        request.broker_id: (entry.info, entry.assignment.replicas, entry.is_new)
        for request in result.requests
        if isinstance(request, LeaderAndIsrRequest)
        for entry in request.partitions
    }


def stopped(result: Result) -> list[tuple[int, bool, int]]:
    """(broker, whether to delete, leader epoch) of each StopReplica for the partition."""
    return [
        (request.broker_id, entry.delete_partition, entry.leader_epoch)
        for request in result.requests
        if isinstance(request, StopReplicaRequest)
        for entry in request.partitions
    ]


def check_invalid_transition(before: ReplicaState, target: ReplicaState) -> None:
    context = in_state(before)
    result = move(context, target)
    assert state_of(result) is before
    assert [failure.reason for failure in result.failures] == [Reason.ILLEGAL_STATE]
    assert (result.context, result.outputs) == (context, ())


def check_is_told_when_online(before: ReplicaState) -> None:
    known = decided(BROKER, [BROKER])
    context = in_state(before, live=[BROKER], assigned={PARTITION: [BROKER]}, led={PARTITION: known})
    result = move(context, ONLINE)
    assert state_of(result) is ONLINE
    assert leader_and_isr_told(result) == {BROKER: (known, (BROKER,), False)}


# kafka.controller.ReplicaStateMachineTest of 3.9: 45 cases, by name.


def test_startup_online_partition() -> None:
    context = controller([BROKER], assigned={PARTITION: [BROKER]})
    assert state_of(start_replica_state_machine(context, zookeeper(context))) is ONLINE


def test_startup_offline_partition() -> None:
    context = controller(assigned={PARTITION: [BROKER]})
    assert state_of(start_replica_state_machine(context, zookeeper(context))) is OFFLINE


def test_startup_with_replica_without_leader() -> None:
    context = controller([BROKER], assigned={PARTITION: [100]})
    result = start_replica_state_machine(context, zookeeper(context))
    assert result.context.replica_state(PartitionAndReplica(PARTITION, 100)) is OFFLINE


def test_nonexistent_replica_to_new_replica_transition() -> None:
    assert state_of(move(controller(), NEW)) is NEW


def test_invalid_nonexistent_replica_to_online_replica_transition() -> None:
    check_invalid_transition(NON_EXISTENT, ONLINE)


def test_invalid_nonexistent_replica_to_offline_replica_transition() -> None:
    check_invalid_transition(NON_EXISTENT, OFFLINE)


def test_invalid_nonexistent_replica_to_replica_deletion_started_transition() -> None:
    check_invalid_transition(NON_EXISTENT, STARTED)


def test_invalid_nonexistent_replica_to_replica_deletion_ineligible_transition() -> None:
    check_invalid_transition(NON_EXISTENT, INELIGIBLE)


def test_invalid_nonexistent_replica_to_replica_deletion_successful_transition() -> None:
    check_invalid_transition(NON_EXISTENT, SUCCESSFUL)


def test_invalid_new_replica_to_nonexistent_replica_transition() -> None:
    check_invalid_transition(NEW, NON_EXISTENT)


def test_new_replica_to_online_replica_transition() -> None:
    assert state_of(move(in_state(NEW, assigned={PARTITION: [BROKER]}), ONLINE)) is ONLINE


def test_new_replica_to_offline_replica_transition() -> None:
    result = move(in_state(NEW, live=[BROKER]), OFFLINE)
    assert state_of(result) is OFFLINE
    assert stopped(result) == [(BROKER, False, -1)]
    assert [r.broker_id for r in result.requests if isinstance(r, UpdateMetadataRequest)] == [BROKER]


def test_invalid_new_replica_to_replica_deletion_started_transition() -> None:
    check_invalid_transition(NEW, STARTED)


def test_invalid_new_replica_to_replica_deletion_ineligible_transition() -> None:
    check_invalid_transition(NEW, INELIGIBLE)


def test_invalid_new_replica_to_replica_deletion_successful_transition() -> None:
    check_invalid_transition(NEW, SUCCESSFUL)


def test_invalid_online_replica_to_nonexistent_replica_transition() -> None:
    check_invalid_transition(ONLINE, NON_EXISTENT)


def test_invalid_online_replica_to_new_replica_transition() -> None:
    check_invalid_transition(ONLINE, NEW)


def test_online_replica_to_online_replica_transition() -> None:
    check_is_told_when_online(ONLINE)


def test_online_replica_to_offline_replica_transition() -> None:
    context = in_state(
        ONLINE,
        live=[BROKER, OTHER],
        assigned={PARTITION: [BROKER, OTHER]},
        led={PARTITION: decided(BROKER, [BROKER, OTHER])},
    )
    result = move(context, OFFLINE)
    shrunk = LeaderIsrAndControllerEpoch(LeaderAndIsr(-1, (OTHER,), 1, 1), CONTROLLER_EPOCH)
    assert state_of(result) is OFFLINE
    assert result.context.leadership[PARTITION] == shrunk
    assert leader_and_isr_told(result) == {OTHER: (shrunk, (BROKER, OTHER), False)}
    assert stopped(result) == [(BROKER, False, 0)]


def test_invalid_online_replica_to_replica_deletion_started_transition() -> None:
    check_invalid_transition(ONLINE, STARTED)


def test_invalid_online_replica_to_replica_deletion_ineligible_transition() -> None:
    check_invalid_transition(ONLINE, INELIGIBLE)


def test_invalid_online_replica_to_replica_deletion_successful_transition() -> None:
    check_invalid_transition(ONLINE, SUCCESSFUL)


def test_invalid_offline_replica_to_nonexistent_replica_transition() -> None:
    check_invalid_transition(OFFLINE, NON_EXISTENT)


def test_invalid_offline_replica_to_new_replica_transition() -> None:
    check_invalid_transition(OFFLINE, NEW)


def test_offline_replica_to_online_replica_transition() -> None:
    check_is_told_when_online(OFFLINE)


def test_offline_replica_to_replica_deletion_started_transition() -> None:
    result = move(in_state(OFFLINE, live=[BROKER]), STARTED)
    assert state_of(result) is STARTED
    assert stopped(result) == [(BROKER, True, -1)]


def test_offline_replica_to_replica_deletion_ineligible_transition() -> None:
    assert state_of(move(in_state(OFFLINE), INELIGIBLE)) is INELIGIBLE


def test_invalid_offline_replica_to_replica_deletion_successful_transition() -> None:
    check_invalid_transition(OFFLINE, SUCCESSFUL)


def test_invalid_replica_deletion_started_to_nonexistent_replica_transition() -> None:
    check_invalid_transition(STARTED, NON_EXISTENT)


def test_invalid_replica_deletion_started_to_new_replica_transition() -> None:
    check_invalid_transition(STARTED, NEW)


def test_invalid_replica_deletion_started_to_online_replica_transition() -> None:
    check_invalid_transition(STARTED, ONLINE)


def test_invalid_replica_deletion_started_to_offline_replica_transition() -> None:
    check_invalid_transition(STARTED, OFFLINE)


def test_replica_deletion_started_to_replica_deletion_ineligible_transition() -> None:
    assert state_of(move(in_state(STARTED), INELIGIBLE)) is INELIGIBLE


def test_replica_deletion_started_to_replica_deletion_successful_transition() -> None:
    assert state_of(move(in_state(STARTED), SUCCESSFUL)) is SUCCESSFUL


def test_replica_deletion_successful_to_nonexistent_replica_transition() -> None:
    result = move(in_state(SUCCESSFUL, assigned={PARTITION: [BROKER]}), NON_EXISTENT)
    assert result.context.replicas(PARTITION) == ()
    assert REPLICA not in result.context.replica_states


def test_invalid_replica_deletion_successful_to_new_replica_transition() -> None:
    check_invalid_transition(SUCCESSFUL, NEW)


def test_invalid_replica_deletion_successful_to_online_replica_transition() -> None:
    check_invalid_transition(SUCCESSFUL, ONLINE)


def test_invalid_replica_deletion_successful_to_offline_replica_transition() -> None:
    check_invalid_transition(SUCCESSFUL, OFFLINE)


def test_invalid_replica_deletion_successful_to_replica_deletion_started_transition() -> None:
    check_invalid_transition(SUCCESSFUL, STARTED)


def test_invalid_replica_deletion_successful_to_replica_deletion_ineligible_transition() -> None:
    check_invalid_transition(SUCCESSFUL, INELIGIBLE)


def test_invalid_replica_deletion_ineligible_to_nonexistent_replica_transition() -> None:
    check_invalid_transition(INELIGIBLE, NON_EXISTENT)


def test_invalid_replica_deletion_ineligible_to_new_replica_transition() -> None:
    check_invalid_transition(INELIGIBLE, NEW)


def test_replica_deletion_ineligible_to_online_replica_transition() -> None:
    check_is_told_when_online(INELIGIBLE)


def test_invalid_replica_deletion_ineligible_to_replica_deletion_started_transition() -> None:
    check_invalid_transition(INELIGIBLE, STARTED)


def test_invalid_replica_deletion_ineligible_to_replica_deletion_successful_transition() -> None:
    check_invalid_transition(INELIGIBLE, SUCCESSFUL)


# Beyond Kafka's list.


@for_each(target=ReplicaState, before=ReplicaState, version=ERAS)
def test_an_illegal_transition_changes_nothing(
    before: ReplicaState, target: ReplicaState, version: KafkaVersion
) -> None:
    known = {PARTITION: decided(OTHER, [OTHER, BROKER])}
    context = in_state(before, live=[BROKER, OTHER], version=version, assigned={PARTITION: [BROKER, OTHER]}, led=known)
    zk = zookeeper(context)
    result = move(context, target, zk)
    if is_legal_replica_transition(before, target, VersionRange.exactly(version)):
        assert state_of(result) is target
        assert result.failures == ()
    else:
        assert (result.context, result.zookeeper, result.outputs) == (context, zk, ())
        assert [failure.reason for failure in result.failures] == [Reason.ILLEGAL_STATE]


def going_offline(version: KafkaVersion, isr: list[int], leader: int = BROKER, **kwargs: object) -> Result:
    context = in_state(
        ONLINE,
        version=version,
        live=[1, 2],
        assigned={PARTITION: [BROKER, 1, 2]},
        led={PARTITION: decided(leader, isr, 3)},
        **kwargs,
    )
    return move(context, OFFLINE)


@pytest.mark.parametrize(
    ("version", "unclean", "isr"),
    [
        (v(0, 8, 0), None, ()),
        (v(0, 8, 1), None, ()),
        (v(0, 8, 2), None, ()),
        (v(0, 8, 2), False, (BROKER,)),
        (v(1, 0), True, ()),
        (v(1, 0), None, (BROKER,)),
        (v(1, 1), True, (BROKER,)),
        (v(3, 9), None, (BROKER,)),
    ],
    ids=str,
)
def test_the_last_member_of_the_isr(version: KafkaVersion, unclean: bool | None, isr: tuple[int, ...]) -> None:
    result = going_offline(version, [BROKER], unclean_leader_election_enable=unclean)
    assert result.context.leadership[PARTITION].leader_and_isr == LeaderAndIsr(-1, isr, 4, 1)


@pytest.mark.parametrize(
    ("version", "is_stopped", "brokers"),
    [
        (v(0, 8, 0), False, {1}),
        (v(0, 8, 1), True, {1}),
        (v(0, 8, 2), True, {1, 2}),
        (v(3, 9), True, {1, 2}),
    ],
    ids=str,
)
def test_who_is_told_of_a_shrunk_isr(version: KafkaVersion, is_stopped: bool, brokers: set[int]) -> None:
    context = in_state(
        ONLINE,
        version=version,
        live=[1, 2, BROKER],
        assigned={PARTITION: [BROKER, 1, 2]},
        led={PARTITION: decided(1, [1, BROKER], 3)},
    )
    result = move(context, OFFLINE)
    assert bool(stopped(result)) is is_stopped
    assert set(leader_and_isr_told(result)) == brokers
    assert {info.leader_and_isr.isr for info, _, _ in leader_and_isr_told(result).values()} == {(1,)}


@pytest.mark.parametrize("version", [v(0, 8, 2), v(1, 1), v(3, 9)], ids=str)
def test_of_a_topic_being_deleted_the_shrunk_isr_is_not_told(version: KafkaVersion) -> None:
    context = queue_topic_deletion(
        in_state(
            ONLINE,
            version=version,
            live=[1, BROKER],
            assigned={PARTITION: [BROKER, 1]},
            led={PARTITION: decided(1, [1, BROKER])},
        ),
        ["t"],
    )
    result = move(context, OFFLINE)
    assert leader_and_isr_told(result) == {}
    assert result.context.leadership[PARTITION].isr == (1,)
    assert stopped(result) == [(BROKER, False, -2)]


@for_each(version=ERAS)
def test_a_replica_outside_the_isr_writes_nothing(version: KafkaVersion) -> None:
    result = going_offline(version, [1, 2], leader=1)
    assert state_of(result) is OFFLINE
    assert result.writes == ()
    assert result.context.leadership[PARTITION].leader_and_isr == LeaderAndIsr(1, (1, 2), 3)


@pytest.mark.parametrize(
    ("version", "state", "is_failure"),
    [(v(1, 0), NEW, True), (v(1, 1), NEW, False), (v(2, 0), OFFLINE, False), (v(3, 9), OFFLINE, False)],
    ids=str,
)
def test_going_offline_without_a_leader(version: KafkaVersion, state: ReplicaState, is_failure: bool) -> None:
    result = move(in_state(NEW, version=version, assigned={PARTITION: [BROKER]}), OFFLINE)
    assert state_of(result) is state
    assert bool(result.failures) is is_failure


@pytest.mark.parametrize(
    ("version", "is_failure"), [(v(0, 8, 2), True), (v(0, 9, 0, 1), False), (v(3, 9), False)], ids=str
)
def test_a_leader_known_to_the_cache_only(version: KafkaVersion, is_failure: bool) -> None:
    context = in_state(ONLINE, version=version, assigned={PARTITION: [BROKER]}, led={PARTITION: decided(1, [1])})
    gone = ZooKeeper().with_znodes({CONTROLLER_EPOCH_PATH: CONTROLLER_EPOCH})
    assert [f.reason for f in move(context, OFFLINE, gone).failures] == [Reason.STATE_CHANGE_FAILED]
    deleted = move(queue_topic_deletion(context, ["t"]), OFFLINE, gone)
    assert (state_of(deleted), bool(deleted.failures)) == (ONLINE, is_failure)


def test_a_leader_that_changes_its_isr_in_between_is_read_again() -> None:
    context = in_state(
        ONLINE, live=[1, 2], assigned={PARTITION: [1, 2, BROKER]}, led={PARTITION: decided(1, [1, 2, BROKER])}
    )
    path = partition_state_path(PARTITION)
    racing = ((path, decided(1, [1, 2, 9, BROKER])), (path, decided(1, [1, BROKER])))
    result = move(context, OFFLINE, zookeeper(context, racing=racing))
    assert result.context.leadership[PARTITION].leader_and_isr == LeaderAndIsr(1, (1,), 1, 3)


@for_each(version=ERAS)
def test_a_controller_does_not_shrink_over_a_newer_ones_decision(version: KafkaVersion) -> None:
    context = in_state(
        ONLINE, version=version, assigned={PARTITION: [BROKER]}, led={PARTITION: decided(1, [1, BROKER])}
    )
    newer = zookeeper(context).with_znodes({partition_state_path(PARTITION): decided(2, [2, BROKER], 9, 51)})
    result = move(context, OFFLINE, newer)
    assert (state_of(result), result.zookeeper) == (ONLINE, newer)
    assert [failure.reason for failure in result.failures] == [Reason.STATE_CHANGE_FAILED]


def test_zookeeper_refuses_a_zombie() -> None:
    context = in_state(ONLINE, assigned={PARTITION: [BROKER]}, led={PARTITION: decided(1, [1, BROKER])})
    deposed = zookeeper(context).with_znodes({CONTROLLER_EPOCH_PATH: 51})
    result = move(context, OFFLINE, deposed)
    assert result.has_moved
    assert (result.context, result.zookeeper, result.requests) == (context, deposed, ())


def test_a_new_replica_is_told_whom_to_follow_and_that_it_is_new() -> None:
    for version, is_new in ((v(0, 11), False), (v(1, 0), True), (v(3, 9), True)):
        known = decided(1, [1])
        context = controller([1, BROKER], version, assigned={PARTITION: [1, BROKER]}, led={PARTITION: known})
        assert leader_and_isr_told(move(context, NEW)) == {BROKER: (known, (1, BROKER), is_new)}


@pytest.mark.parametrize(("version", "logged"), [(v(1, 0), NEW), (v(1, 1), OFFLINE)], ids=str)
def test_a_replica_that_leads_cannot_be_new(version: KafkaVersion, logged: ReplicaState) -> None:
    context = controller([BROKER], version, assigned={PARTITION: [BROKER]}, led={PARTITION: decided(BROKER, [BROKER])})
    result = move(context, NEW)
    assert state_of(result) is NON_EXISTENT
    assert [(f.reason, f.to_state, f.logged_to_state) for f in result.failures] == [
        (Reason.STATE_CHANGE_FAILED, NEW, logged)
    ]


def test_a_new_replica_outside_the_assignment_joins_it_when_online() -> None:
    result = move(in_state(NEW, assigned={PARTITION: [1]}), ONLINE)
    assert result.context.replicas(PARTITION) == (1, BROKER)
    assert result.requests == ()


def test_a_deleted_replica_leaves_every_part_of_the_assignment() -> None:
    context = replace(in_state(SUCCESSFUL), assignments={PARTITION: ReplicaAssignment((BROKER, 1), (1,), (BROKER,))})
    assert move(context, NON_EXISTENT).context.assignment(PARTITION) == ReplicaAssignment((1,), (1,), ())


def test_up_to_1_0_the_way_online_of_a_partition_without_leader_is_silent() -> None:
    for version, is_logged in ((v(1, 0), False), (v(1, 1), True)):
        result = move(in_state(OFFLINE, version=version, assigned={PARTITION: [BROKER]}), ONLINE)
        assert result.outputs == (ReplicaTransition(PARTITION, BROKER, OFFLINE, ONLINE, is_logged),)


def test_0_8_0_deletes_a_replica_on_its_way_to_nowhere() -> None:
    result = move(in_state(OFFLINE, version=v(0, 8, 0), live=[BROKER], assigned={PARTITION: [BROKER, 1]}), NON_EXISTENT)
    assert (stopped(result), result.context.replicas(PARTITION)) == ([(BROKER, True, -1)], (1,))


@pytest.mark.parametrize(
    ("version", "state"),
    [(v(0, 8, 0), OFFLINE), (v(0, 8, 1), INELIGIBLE), (v(2, 2), INELIGIBLE), (v(2, 3), OFFLINE)],
    ids=str,
)
def test_a_dead_replica_when_a_controller_starts(version: KafkaVersion, state: ReplicaState) -> None:
    context = controller([1], version, assigned={PARTITION: [1, BROKER]}, led={PARTITION: decided(1, [1, BROKER])})
    result = start_replica_state_machine(context, zookeeper(context))
    assert state_of(result) is state
    assert result.context.leadership[PARTITION].isr == ((1, BROKER) if version < v(2, 3) else (1,))


def test_up_to_0_10_a_machine_that_was_not_started_refuses_everything() -> None:
    stopped_machine = stop_replica_state_machine(controller(version=v(0, 8, 2)))
    assert move(stopped_machine, NEW).failures[0].reason is Reason.STATE_CHANGE_FAILED


@pytest.mark.parametrize(("version", "count"), [(v(2, 5), 2), (v(2, 6), 1)], ids=str)
def test_stop_replica_requests_of_one_batch(version: KafkaVersion, count: int) -> None:
    """Since 2.6 one request carries both kinds; a batch of the machine has one kind, so it is filled by hand here."""
    context = controller([BROKER], version)
    batch = RequestBatch()
    batch.add_stop_replica(context, BROKER, PARTITION, delete_partition=True)
    batch.add_stop_replica(context, BROKER, TopicPartition("u", 1), delete_partition=False)
    assert len(batch.requests(context)) == count


def test_in_one_batch_the_last_word_holds_but_new_and_delete_stick() -> None:
    context = controller([BROKER], assigned={PARTITION: [BROKER]})
    batch = RequestBatch()
    for leader_epoch, is_new in ((0, True), (1, False)):
        info = decided(BROKER, [BROKER], leader_epoch)
        batch.add_leader_and_isr(context, [BROKER, -1], PARTITION, info, context.assignment(PARTITION), is_new)
    for delete_partition in (True, False):
        batch.add_stop_replica(context, BROKER, PARTITION, delete_partition)
    first, *_, last = batch.requests(context)
    assert isinstance(first, LeaderAndIsrRequest)
    assert [(e.info.leader_and_isr.leader_epoch, e.is_new) for e in first.partitions] == [(1, True)]
    assert isinstance(last, StopReplicaRequest)
    assert [e.delete_partition for e in last.partitions] == [True]
