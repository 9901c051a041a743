"""The replica state machine: Kafka's own 45 cases under its own names."""

from __future__ import annotations

from reconstruct.model.controller.outputs import (
    Reason,
    UpdateMetadataRequest,
)
from reconstruct.model.controller.values import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    PartitionAndReplica,
)
from reconstruct.model.states import ReplicaState
from tests.oracles.controller.machines import start_replica_state_machine
from tests.unit.reconstruct.model.controller.clusters import (
    BROKER,
    CONTROLLER_EPOCH,
    PARTITION,
    REPLICA,
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
    STARTED,
    SUCCESSFUL,
    in_state,
    leader_and_isr_told,
    move,
    state_of,
    stopped,
)


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
