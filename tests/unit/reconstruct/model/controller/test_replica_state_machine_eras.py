"""The replica state machine beyond Kafka's own cases: every cell of the matrix, and each era."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconstruct.model.controller.outputs import (
    LeaderAndIsrRequest,
    Reason,
    ReplicaTransition,
    StopReplicaRequest,
)
from reconstruct.model.controller.request_batch import RequestBatch
from reconstruct.model.controller.values import (
    LeaderAndIsr,
    ReplicaAssignment,
    TopicPartition,
)
from reconstruct.model.controller.zookeeper import partition_state_path
from reconstruct.model.states import ReplicaState, is_legal_replica_transition
from reconstruct.model.versions import KafkaVersion, VersionRange, v
from reconstruct.model.znode_paths import CONTROLLER_EPOCH_PATH
from tests.oracles.controller.context_changes import queue_topic_deletion
from tests.oracles.controller.machines import start_replica_state_machine, stop_replica_state_machine
from tests.oracles.controller.outcomes import (
    Result,
)
from tests.oracles.controller.zookeeper import ZooKeeper
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
from tests.unit.reconstruct.model.controller.replicas import (
    INELIGIBLE,
    NEW,
    NON_EXISTENT,
    OFFLINE,
    ONLINE,
    OTHER,
    SUCCESSFUL,
    in_state,
    leader_and_isr_told,
    move,
    state_of,
    stopped,
)


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
