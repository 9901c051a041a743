"""A cluster to play with: brokers that come and go, one of them controller, and what leaders do of their own accord.

Every event goes to the controller at once. After each one the promises that hold in every state are asserted
(:meth:`Cluster.check`), so that each test that plays a story is also a test of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reconstruct.model.controller.outputs import (
    Failure,
    Output,
    Request,
    StopReplicaRequest,
    ZnodeWrite,
)
from reconstruct.model.controller.values import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    LeaderRecoveryState,
    PartitionAndReplica,
    ReplicaAssignment,
    TopicPartition,
)
from reconstruct.model.controller.zookeeper import TopicAssignment, partition_state_path, topic_path
from reconstruct.model.states import PartitionState
from reconstruct.model.versions import ALTER_ISR_SINCE, LAST_WITH_ZOOKEEPER, KafkaVersion, v
from reconstruct.model.znode_paths import (
    BROKER_IDS_PATH,
    CONTROLLER_PATH,
    DELETE_TOPICS_PATH,
    PREFERRED_REPLICA_ELECTION_PATH,
    REASSIGN_PARTITIONS_PATH,
)
from tests.oracles.controller import alter_partition, broker_changes, failover, listeners, reassignment
from tests.oracles.controller import replica_election as elections
from tests.oracles.controller.context import ControllerContext, Settings
from tests.oracles.controller.outcomes import (
    Result,
)
from tests.oracles.controller.topic_deletion import process_stop_replica_response
from tests.oracles.controller.znodes import Registration, children, delete
from tests.oracles.controller.zookeeper import ZooKeeper


@dataclass(frozen=True, slots=True)
class Procedure:
    """What one event made one controller do, in order; who served it, and the brokers that it took for live."""

    controller_id: int
    controller_epoch: int
    live_broker_ids: tuple[int, ...]
    outputs: tuple[Output, ...]


class Cluster:
    """Brokers 0 to ``count`` - 1, all registered; broker 0 is elected controller."""

    def __init__(self, count: int = 3, version: KafkaVersion = LAST_WITH_ZOOKEEPER, **settings: Any) -> None:
        self.settings = replace(Settings(version=version), **settings)
        self.zookeeper = ZooKeeper()
        self.registrations = 0
        self.requests: list[Request] = []
        self.failures: list[Failure] = []
        self.log: list[Any] = []
        self.procedures: list[Procedure] = []
        #: Each partition's replicas, as its topic was created.
        self.assigned: dict[TopicPartition, tuple[int, ...]] = {}
        self.to_delete: list[PartitionAndReplica] = []
        self.context = ControllerContext(settings=self.settings, is_active=False)
        self.former: list[ControllerContext] = []
        for broker in range(count):
            self._register(broker)
        self.elect(0)

    # --- what happens -----------------------------------------------------------------------------------------------

    def apply(self, step: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
        """The controller takes a step; what it sends and what it refuses is kept."""
        before = self.zookeeper
        result = step(self.context, self.zookeeper, *args, **kwargs)
        done = result.context
        self.procedures.append(
            Procedure(done.settings.broker_id, done.epoch, done.live_or_shutting_down_broker_ids, result.outputs)
        )
        result = failover.maybe_resign(result)
        self.context, self.zookeeper = result.context, result.zookeeper
        self.requests.extend(result.requests)
        self.failures.extend(result.failures)
        self.log.extend(result.transitions)
        for request in result.requests:
            if isinstance(request, StopReplicaRequest):
                self.to_delete += [
                    PartitionAndReplica(entry.partition, request.broker_id)
                    for entry in request.partitions
                    if entry.delete_partition
                ]
        self.check(before, result)
        if self.settings.version < ALTER_ISR_SINCE:
            self._fire_isr_watches(result)
        return result

    def note(self, write: ZnodeWrite) -> None:
        """Somebody else than the controller wrote."""
        served = self.context
        self.procedures.append(Procedure(served.settings.broker_id, served.epoch, (), (write,)))

    def _fire_isr_watches(self, result: Result) -> None:
        """Up to 2.6 the controller watches the state of each partition that moves, its own writes included."""
        written = {write.path for write in result.writes}
        for partition in sorted(self.context.partitions_being_reassigned):
            if partition_state_path(partition) in written:
                self.apply(reassignment.process_isr_change, partition)

    def elect(self, broker: int) -> Result:
        """The present controller loses its session, without noticing; this broker takes over."""
        if self.context.is_active:
            self.former.append(self.context)
        znodes = {path: znode for path, znode in self.zookeeper.znodes.items() if path != CONTROLLER_PATH}
        self.zookeeper = replace(self.zookeeper, znodes=znodes)
        self.context = ControllerContext(settings=replace(self.settings, broker_id=broker), is_active=False)
        return self.apply(failover.elect, self.new_ids())

    def wake_zombie(self) -> None:
        """The last deposed controller, which has heard of nothing, looks at the brokers."""
        if self.former:
            before = self.zookeeper
            result = broker_changes.process_broker_change(self.former[-1], before)
            self.zookeeper = result.zookeeper
            self.check(before, result)

    def start(self, *brokers: int) -> Result:
        for broker in brokers:
            self._register(broker)
        return self.apply(broker_changes.process_broker_change)

    def kill(self, *brokers: int) -> Result:
        for broker in brokers:
            self.zookeeper, _ = delete(self.zookeeper, f"{BROKER_IDS_PATH}/{broker}")
        return self.apply(broker_changes.process_broker_change)

    def bounce(self, broker: int) -> Result:
        """Dead and back before the controller looks."""
        self._register(broker)
        return self.apply(broker_changes.process_broker_change)

    def shut_down(self, broker: int) -> Result:
        return self.apply(broker_changes.controlled_shutdown, broker)

    def create(self, topic: str, assignment: Mapping[int, Iterable[int]]) -> Result:
        self._write_topic(topic, assignment)
        return self.apply(listeners.process_topic_change, self.new_ids())

    def expand(self, topic: str, assignment: Mapping[int, Iterable[int]]) -> Result:
        known = self.zookeeper.topic_assignment(topic)
        merged = {n: a.replicas for n, a in (known.partitions if known else {}).items()} | dict(assignment)
        self._write_topic(topic, merged, known.topic_id if known else None)
        return self.apply(listeners.process_partition_modifications, topic)

    def delete(self, *topics: str) -> Result:
        self.zookeeper = self.zookeeper.with_znodes({f"{DELETE_TOPICS_PATH}/{topic}": None for topic in topics})
        return self.apply(listeners.process_topic_deletion)

    def answer_deletions(self, in_error: bool = False) -> None:
        """Every broker that was told to delete replicas and lives does so, or answers with an error."""
        told, self.to_delete = self.to_delete, []
        for broker in sorted({replica.replica_id for replica in told} & set(self.context.live_broker_epochs)):
            its_own = {replica for replica in told if replica.replica_id == broker}
            gone, failed = (set(), its_own) if in_error else (its_own, set())
            self.apply(process_stop_replica_response, gone, failed)

    def reassign(self, targets: Mapping[TopicPartition, Sequence[int]]) -> Result:
        wanted = {partition: tuple(target) for partition, target in targets.items()}
        self.zookeeper = self.zookeeper.with_znodes({REASSIGN_PARTITIONS_PATH: wanted})
        self.note(ZnodeWrite(REASSIGN_PARTITIONS_PATH, wanted, 0))
        return self.apply(reassignment.process_partition_reassignment)

    def prefer(self, *partitions: TopicPartition) -> Result:
        self.zookeeper = self.zookeeper.with_znodes({PREFERRED_REPLICA_ELECTION_PATH: frozenset(partitions)})
        return self.apply(elections.process_replica_leader_election)

    def change_isr(self, partition: TopicPartition, isr: Iterable[int]) -> Result:
        """What the leader does: write the znode up to 2.6, ask the controller since 2.7."""
        known = self.state(partition)
        wanted = replace(known.leader_and_isr, isr=tuple(isr))
        if known.leader_and_isr.leader_recovery_state is LeaderRecoveryState.RECOVERING:
            # A leader recovers alone before it takes others in.
            wanted = replace(wanted, leader_recovery_state=LeaderRecoveryState.RECOVERED)
        if self.settings.version >= ALTER_ISR_SINCE:
            epoch = self.context.live_broker_epochs.get(known.leader, 0)
            request = alter_partition.AlterPartitionRequest(known.leader, epoch, {partition: wanted})
            return self.apply(alter_partition.process_alter_partition, request)
        by_leader = LeaderIsrAndControllerEpoch(wanted, known.controller_epoch)
        path = partition_state_path(partition)
        self.zookeeper, _, version = self.zookeeper.set(path, by_leader, known.leader_and_isr.partition_epoch)
        self.procedures.append(
            Procedure(known.leader, known.controller_epoch, (), (ZnodeWrite(path, by_leader, version),))
        )
        return self.apply(reassignment.process_isr_change, partition)

    def catch_up(self) -> None:
        """Every leader takes every live replica into its ISR."""
        for partition in sorted(self.context.assignments):
            known, _ = self.zookeeper.partition_state(partition)
            live = self.context.live_broker_epochs
            if known is None or known.leader not in live or self.context.is_queued_for_deletion(partition.topic):
                continue
            joining = [
                replica
                for replica in self.context.replicas(partition)
                if self.context.is_live_broker(replica) and replica not in known.isr
            ]
            if joining:
                self.change_isr(partition, (*known.isr, *joining))

    # --- what is ----------------------------------------------------------------------------------------------------

    def state(self, partition: TopicPartition) -> LeaderIsrAndControllerEpoch:
        found, _ = self.zookeeper.partition_state(partition)
        assert found is not None, f"{partition} has no state in ZooKeeper"
        return found

    def leader_and_isr(self, partition: TopicPartition) -> tuple[int, tuple[int, ...], int]:
        """Leader, ISR, leader epoch."""
        known = self.state(partition).leader_and_isr
        return known.leader, known.isr, known.leader_epoch

    def new_ids(self) -> dict[str, str]:
        return {name: f"id-{name}" for name in children(self.zookeeper, "/brokers/topics")}

    def sent(self, kind: type[Request]) -> list[Any]:
        return [request for request in self.requests if isinstance(request, kind)]

    # --- what must be -----------------------------------------------------------------------------------------------

    def check(self, before: ZooKeeper, result: Result) -> None:
        """R01 to R06 of what ZooKeeper holds, and that no partition serves without a state there."""
        for path, znode in self.zookeeper.znodes.items():
            if not isinstance(znode.content, LeaderIsrAndControllerEpoch):
                continue
            now = znode.content.leader_and_isr
            assert now.leader in now.isr or now.leader == -1, f"{path}: leader {now.leader} is not in the ISR {now.isr}"
            assert now.isr or self.settings.version < v(1, 1), f"{path}: the ISR is empty"
            assert len(set(now.isr)) == len(now.isr), f"{path}: the ISR {now.isr} names a replica twice"
            then = before.znodes.get(path)
            if then is None or not isinstance(then.content, LeaderIsrAndControllerEpoch):
                continue
            known = then.content.leader_and_isr
            assert now.leader_epoch >= known.leader_epoch, f"{path}: the leader epoch fell"
            assert znode.version >= then.version
            assert znode.content.controller_epoch >= then.content.controller_epoch, f"{path}: an older controller wrote"
            if now.leader_epoch == known.leader_epoch:
                assert now.leader == known.leader, f"{path}: another leader in the same epoch"
        written = [write for write in result.writes if isinstance(write.content, LeaderIsrAndControllerEpoch)]
        for write in written:
            assert isinstance(write.content, LeaderIsrAndControllerEpoch)
            assert write.content.controller_epoch == result.context.epoch or not result.context.is_active
        for partition, state in self.context.partition_states.items():
            if state is PartitionState.ONLINE and partition in self.context.assignments:
                known_state, _ = self.zookeeper.partition_state(partition)
                assert known_state is not None, f"{partition} is online without a state"
        for partition, info in self.context.leadership.items():
            truth, _ = self.zookeeper.partition_state(partition)
            if truth is not None and self.context.is_active:
                assert info.leader_and_isr.leader_epoch <= truth.leader_and_isr.leader_epoch, (
                    f"{partition}: cache ahead"
                )

    # --- the parts --------------------------------------------------------------------------------------------------

    def _register(self, broker: int) -> None:
        self.registrations += 1
        self.zookeeper = self.zookeeper.with_znodes({f"{BROKER_IDS_PATH}/{broker}": Registration(self.registrations)})

    def _write_topic(self, topic: str, assignment: Mapping[int, Iterable[int]], topic_id: str | None = None) -> None:
        partitions = {number: ReplicaAssignment(tuple(replicas)) for number, replicas in assignment.items()}
        self.assigned.update((TopicPartition(topic, n), found.replicas) for n, found in partitions.items())
        self.zookeeper = self.zookeeper.with_znodes({topic_path(topic): TopicAssignment(partitions, topic_id)})


def state_of(leader: int, isr: Iterable[int], leader_epoch: int, partition_epoch: int) -> LeaderAndIsr:
    return LeaderAndIsr(leader, tuple(isr), leader_epoch, partition_epoch)
