"""Elections that somebody asks for: an administrator, a znode, or the balance of leaders.

* **Preferred**: the first assigned replica shall lead. Up to 2.1 every partition asked for is elected; since 2.2 those
  led by it already are left out, as are, always, partitions of topics being deleted. The znode that asked is deleted at
  the end, whatever came of it.
* **Unclean** (2.4): an administrator lets partitions without a live leader leave the ISR.
* **Balance**: per broker, if more than a tenth of the partitions that it should lead is led by others, those are
  elected: up to 1.1 one by one, up to 3.3 only while nothing is reassigned, since 2.6 only where the replica could
  lead.

Sources: KafkaController 0.8.2.2, 1.1.1, 2.2.2, 2.6.3, 3.9.0.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from enum import StrEnum

from reconstruct.model.controller.leader_election import Election
from reconstruct.model.controller.outputs import (
    Failure,
    Reason,
)
from reconstruct.model.controller.values import TopicPartition
from reconstruct.model.elections import ElectionKind
from reconstruct.model.states import PartitionState
from reconstruct.model.versions import PREFERRED_NOT_REPEATED_SINCE
from reconstruct.model.znode_paths import PREFERRED_REPLICA_ELECTION_PATH
from tests.oracles.controller import topic_deletion
from tests.oracles.controller.context import ControllerContext
from tests.oracles.controller.outcomes import (
    RequestError,
    Result,
)
from tests.oracles.controller.partition_state_machine import handle_state_changes
from tests.oracles.controller.questions import all_partitions
from tests.oracles.controller.znodes import preferred_elections
from tests.oracles.controller.zookeeper import ZooKeeper
from tests.oracles.versions import (
    REBALANCE_ASKS_FIRST_SINCE,
    REBALANCE_DURING_REASSIGNMENT_SINCE,
    REBALANCED_TOGETHER_SINCE,
    SINGLE_THREADED_CONTROLLER_SINCE,
)

#: leader.imbalance.per.broker.percentage, as a ratio.
DEFAULT_IMBALANCE_RATIO = 0.1


class Trigger(StrEnum):
    """Who asks, in Kafka's words."""

    ZK = "ZkTriggered"
    AUTO = "AutoTriggered"
    ADMIN_CLIENT = "AdminClientTriggered"


class ElectionType(StrEnum):
    PREFERRED = "PREFERRED"
    UNCLEAN = "UNCLEAN"


def process_replica_leader_election(
    context: ControllerContext,
    zookeeper: ZooKeeper,
    partitions: Collection[TopicPartition] | None = None,
    election_type: ElectionType = ElectionType.PREFERRED,
    trigger: Trigger = Trigger.ZK,
) -> Result:
    """A request; ``partitions`` None takes those of ``/admin/preferred_replica_election``."""
    if not context.is_active:
        failure = Failure(RequestError.NOT_CONTROLLER, "this broker is not the controller")
        return Result(context, zookeeper, failures=(failure,))
    asked = sorted(preferred_elections(zookeeper) if partitions is None else partitions)
    refused = {partition: _refusal(context, partition, election_type) for partition in asked}
    electable = tuple(partition for partition, failure in refused.items() if failure is None)
    failures = tuple(failure for failure in refused.values() if failure is not None)
    return Result(context, zookeeper, failures=failures).then(on_replica_election, electable, election_type, trigger)


def _refusal(context: ControllerContext, partition: TopicPartition, election_type: ElectionType) -> Failure | None:
    replicas = context.replicas(partition)
    info = context.leadership.get(partition)
    if not replicas:
        return Failure(RequestError.UNKNOWN_TOPIC_OR_PARTITION, f"{partition} does not exist", partition)
    if context.is_queued_for_deletion(partition.topic):
        return Failure(RequestError.INVALID_TOPIC, f"the topic of {partition} is being deleted", partition)
    if info is None or context.version < PREFERRED_NOT_REPEATED_SINCE:
        return None
    if election_type is ElectionType.UNCLEAN:
        is_needed = not context.is_live_broker(info.leader)
    else:
        is_needed = info.leader != replicas[0]
    if is_needed:
        return None
    return Failure(Reason.ELECTION_NOT_NEEDED, f"{partition} needs no election: {info.leader} leads it", partition)


def on_replica_election(
    context: ControllerContext,
    zookeeper: ZooKeeper,
    partitions: Collection[TopicPartition],
    election_type: ElectionType = ElectionType.PREFERRED,
    trigger: Trigger = Trigger.ZK,
) -> Result:
    """Elect, and take the request away."""
    if election_type is ElectionType.UNCLEAN:
        election = Election(ElectionKind.OFFLINE_PARTITION, allow_unclean=trigger is Trigger.ADMIN_CLIENT)
    else:
        election = Election(ElectionKind.PREFERRED_REPLICA)
    names = ",".join(map(str, sorted(partitions)))
    start = Result(context, zookeeper).note(
        f"Starting replica leader election ({election_type}) for partitions {names}"
    )
    held = start.change(lambda now: _hold_up_deletions(now, partitions))
    result = held.then(handle_state_changes, partitions, PartitionState.ONLINE, election)
    elected = result.elected
    if trigger is Trigger.ZK and PREFERRED_REPLICA_ELECTION_PATH in zookeeper.znodes:
        result = result.then(topic_deletion.delete_znode, PREFERRED_REPLICA_ELECTION_PATH)
    if context.version < SINGLE_THREADED_CONTROLLER_SINCE:
        result = _let_deletions_go_on(result, partitions)
    return replace(result, elected=elected)


def _hold_up_deletions(context: ControllerContext, partitions: Collection[TopicPartition]) -> ControllerContext:
    if context.version >= SINGLE_THREADED_CONTROLLER_SINCE:
        return context
    under_way = context.partitions_undergoing_preferred_election | frozenset(partitions)
    marked = replace(context, partitions_undergoing_preferred_election=under_way)
    return topic_deletion.mark_topics_ineligible_for_deletion(marked, {partition.topic for partition in partitions})


def _let_deletions_go_on(result: Result, partitions: Collection[TopicPartition]) -> Result:
    done = frozenset(partitions)
    ended = result.change(
        lambda now: replace(
            now,
            partitions_undergoing_preferred_election=now.partitions_undergoing_preferred_election - done,
        )
    )
    return ended.then(topic_deletion.resume_deletion_for_topics, {partition.topic for partition in done})


def check_and_trigger_auto_leader_rebalance(
    context: ControllerContext, zookeeper: ZooKeeper, ratio: float = DEFAULT_IMBALANCE_RATIO
) -> Result:
    """Elect preferred leaders for brokers that lead too little of what they should."""
    result = Result(context, zookeeper)
    for broker, partitions in sorted(_by_preferred_replica(context).items()):
        not_led = [p for p in partitions if p in context.leadership and context.leadership[p].leader != broker]
        if len(not_led) > ratio * len(partitions):
            result = _rebalance(result, broker, not_led)
    return result


def _by_preferred_replica(context: ControllerContext) -> dict[int, list[TopicPartition]]:
    found: dict[int, list[TopicPartition]] = {}
    for partition in all_partitions(context):
        replicas = context.replicas(partition)
        if replicas and not context.is_queued_for_deletion(partition.topic):
            found.setdefault(replicas[0], []).append(partition)
    return found


def _rebalance(result: Result, broker: int, partitions: list[TopicPartition]) -> Result:
    context = result.context
    is_halted = bool(context.partitions_being_reassigned) and context.version < REBALANCE_DURING_REASSIGNMENT_SINCE
    if is_halted or context.partitions_undergoing_preferred_election:
        wanted = []
    elif context.version >= REBALANCE_ASKS_FIRST_SINCE:
        wanted = [partition for partition in partitions if can_preferred_replica_be_leader(context, partition)]
    else:
        wanted = [partition for partition in partitions if context.is_replica_online(broker, partition)]
    if context.version >= REBALANCED_TOGETHER_SINCE:
        return result.then(on_replica_election, wanted, ElectionType.PREFERRED, Trigger.AUTO) if wanted else result
    for partition in wanted:
        result = result.then(on_replica_election, (partition,), ElectionType.PREFERRED, Trigger.AUTO)
    return result


def can_preferred_replica_be_leader(context: ControllerContext, partition: TopicPartition) -> bool:
    """Whether it is online and in the ISR that the cache knows."""
    info = context.leadership.get(partition)
    replicas = context.replicas(partition)
    isr = () if info is None else info.isr
    return any(replica in isr and context.is_replica_online(replica, partition) for replica in replicas[:1])
