"""The two state machines as wholes: their initial states, their start with a new controller, their end.

:mod:`reconstruct.model.controller` moves single partitions and replicas; here all of a controller's are moved.

Sources: kafka.controller.PartitionStateMachine and ReplicaStateMachine, 0.8.0 to 3.9.0.
"""

from __future__ import annotations

from dataclasses import replace

from reconstruct.model.states import PartitionState, ReplicaState, initial_partition_state, initial_replica_state
from reconstruct.model.versions import VersionRange
from tests.oracles.controller import partition_state_machine, questions, replica_state_machine
from tests.oracles.controller.context import ControllerContext
from tests.oracles.controller.outcomes import (
    Result,
)
from tests.oracles.controller.partition_state_machine import OFFLINE_ELECTION
from tests.oracles.controller.zookeeper import ZooKeeper
from tests.oracles.versions import DEAD_REPLICAS_DRIVEN_OFFLINE_SINCE


def trigger_online_partition_state_change(
    context: ControllerContext, zookeeper: ZooKeeper, topic: str | None = None
) -> Result:
    """Elect for every New and Offline partition (of one topic), after a controller's election and when brokers change.

    Partitions of topics queued for deletion are left out: a leader elected now would bring to life what is about to go.
    """
    states = (PartitionState.OFFLINE, PartitionState.NEW)
    waiting = (p for state in states for p in questions.partitions_in_state(context, state, topic))
    wanted = sorted(partition for partition in waiting if not context.is_queued_for_deletion(partition.topic))
    return partition_state_machine.handle_state_changes(
        context, zookeeper, wanted, PartitionState.ONLINE, OFFLINE_ELECTION
    )


def initialize_partition_state(context: ControllerContext) -> ControllerContext:
    """The states that a new controller starts from; nothing is logged."""
    states = {}
    for partition in questions.all_partitions(context):
        info = context.leadership.get(partition)
        is_live = info is not None and context.is_replica_online(info.leader, partition)
        states[partition] = initial_partition_state(info is not None, is_live)
    return replace(context, partition_states=states)


def start_partition_state_machine(context: ControllerContext, zookeeper: ZooKeeper) -> Result:
    """Initial states, then an election wherever one is due."""
    started = replace(initialize_partition_state(context), machines_started=True)
    start = Result(started, zookeeper).note("Initializing partition state")
    return start.note("Triggering online partition state changes").then(trigger_online_partition_state_change)


def stop_partition_state_machine(context: ControllerContext) -> ControllerContext:
    """The machine forgets what it knew, and refuses work where the version has it so."""
    return replace(context, machines_started=False, partition_states={})


def initialize_replica_state(context: ControllerContext) -> ControllerContext:
    """The states that a new controller starts from; nothing is logged. Those of dead brokers may not be deleted."""
    every = questions.replicas_for_partitions(context, questions.all_partitions(context))
    version = VersionRange.exactly(context.version)
    states = {r: initial_replica_state(context.is_replica_online(r.replica_id, r.partition), version) for r in every}
    return replace(context, replica_states=states)


def start_replica_state_machine(context: ControllerContext, zookeeper: ZooKeeper) -> Result:
    """Initial states; every replica that is online is told what it is; since 2.3 the others go Offline."""
    started = replace(initialize_replica_state(context), machines_started=True)
    online, offline = questions.online_and_offline_replicas(started)
    result = (
        Result(started, zookeeper)
        .note("Initializing replica state")
        .note("Triggering online replica state changes")
        .then(replica_state_machine.handle_state_changes, online, ReplicaState.ONLINE)
    )
    if context.version < DEAD_REPLICAS_DRIVEN_OFFLINE_SINCE:
        return result
    return result.note("Triggering offline replica state changes").then(
        replica_state_machine.handle_state_changes, offline, ReplicaState.OFFLINE
    )


def stop_replica_state_machine(context: ControllerContext) -> ControllerContext:
    """The machine forgets what it knew, and refuses work where the version has it so."""
    return replace(context, machines_started=False, replica_states={})
