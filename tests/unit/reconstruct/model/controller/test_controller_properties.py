"""What holds after any sequence of events, in every era; and that garbage gives failures, never an error."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconstruct.model.controller.leader_election import Election
from reconstruct.model.controller.values import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    PartitionAndReplica,
    ReplicaAssignment,
    TopicPartition,
)
from reconstruct.model.controller.zookeeper import partition_state_path, topic_path
from reconstruct.model.elections import ElectionKind
from reconstruct.model.states import (
    PartitionState,
    ReplicaState,
    is_legal_partition_transition,
    is_legal_replica_transition,
)
from reconstruct.model.versions import KafkaVersion, VersionRange, v
from reconstruct.model.znode_paths import CONTROLLER_EPOCH_PATH
from tests.oracles.controller import partition_state_machine, replica_state_machine
from tests.oracles.controller.cluster import Cluster
from tests.oracles.controller.context import ControllerContext, Settings
from tests.oracles.controller.replica_election import check_and_trigger_auto_leader_rebalance
from tests.oracles.controller.znodes import broker_epochs, controller_id, reassignments
from tests.oracles.controller.zookeeper import ZooKeeper
from tests.unit.reconstruct.model.controller.clusters import ERAS

BROKERS = 4
#: Each story begins with something that can happen to a partition.
OPENING = ("create", "a", [(0, 1, 2), (1, 2), (3,)])
brokers = st.integers(0, BROKERS - 1)
replicas = st.lists(brokers, unique=True, min_size=1, max_size=3).map(tuple)
topics = st.sampled_from(["a", "b"])
partitions = st.builds(TopicPartition, topics, st.integers(0, 2))
events = st.one_of(
    st.tuples(st.just("create"), topics, st.lists(replicas, min_size=1, max_size=3)),
    st.tuples(st.just("expand"), topics, st.integers(0, 2), replicas),
    st.tuples(st.just("delete"), topics),
    st.tuples(st.just("answer"), st.booleans()),
    st.tuples(st.just("kill"), brokers),
    st.tuples(st.just("start"), brokers),
    st.tuples(st.just("bounce"), brokers),
    st.tuples(st.just("shut_down"), brokers),
    st.tuples(st.just("shrink"), partitions, brokers),
    st.tuples(st.just("catch_up")),
    st.tuples(st.just("reassign"), partitions, replicas),
    st.tuples(st.just("prefer"), partitions),
    st.tuples(st.just("rebalance")),
    st.tuples(st.just("elect"), brokers),
    st.tuples(st.just("zombie")),
)


def play(cluster: Cluster, event: tuple) -> None:  # type: ignore[type-arg]
    """One event, unless it makes no sense now: a dead broker cannot die, nor a known topic be created."""
    kind, *args = event
    live = broker_epochs(cluster.zookeeper)
    if kind == "create" and cluster.zookeeper.topic_assignment(args[0]) is None:
        cluster.create(args[0], dict(enumerate(args[1])))
    elif kind == "expand" and cluster.zookeeper.topic_assignment(args[0]) is not None:
        known = cluster.zookeeper.topic_assignment(args[0])
        if known is not None and args[1] not in known.partitions:
            cluster.expand(args[0], {args[1]: args[2]})
    elif kind == "delete" and cluster.settings.version >= v(0, 8, 1):
        cluster.delete(args[0])
    elif kind == "answer":
        cluster.answer_deletions(args[0])
    elif kind == "kill" and args[0] in live and len(live) > 1:
        cluster.kill(args[0])
        if controller_id(cluster.zookeeper) == args[0]:
            cluster.elect(min(broker_epochs(cluster.zookeeper)))
    elif kind == "start" and args[0] not in live:
        cluster.start(args[0])
    elif kind == "bounce" and args[0] in live:
        cluster.bounce(args[0])
    elif kind == "shut_down":
        cluster.shut_down(args[0])
    elif kind == "shrink":
        shrink(cluster, *args)
    elif kind == "catch_up":
        cluster.catch_up()
    elif kind == "reassign":
        cluster.reassign({args[0]: args[1]})
    elif kind == "prefer":
        cluster.prefer(args[0])
    elif kind == "rebalance":
        cluster.apply(check_and_trigger_auto_leader_rebalance)
    elif kind == "elect" and args[0] in live:
        cluster.elect(args[0])
    elif kind == "zombie":
        cluster.wake_zombie()


def shrink(cluster: Cluster, partition: TopicPartition, broker: int) -> None:
    """The leader drops a follower that lags."""
    known, _ = cluster.zookeeper.partition_state(partition)
    if known is not None and known.leader in cluster.context.live_broker_epochs and broker != known.leader:
        cluster.change_isr(partition, [replica for replica in known.isr if replica != broker])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(ERAS), st.booleans(), st.lists(events, min_size=3, max_size=25))
def test_the_promises_hold_after_any_sequence_of_events(
    version: KafkaVersion,
    is_unclean_allowed: bool,
    story: list[tuple],  # type: ignore[type-arg]
) -> None:
    cluster = Cluster(BROKERS, version, unclean_leader_election_enable=is_unclean_allowed)
    exactly = VersionRange.exactly(version)
    for event in (OPENING, *story):
        seen = len(cluster.log)
        play(cluster, event)
        for moved in cluster.log[seen:]:
            if hasattr(moved, "replica_id"):
                assert is_legal_replica_transition(moved.from_state, moved.to_state, exactly)
            else:
                assert is_legal_partition_transition(moved.from_state, moved.to_state, exactly)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(ERAS[1:]), st.lists(events, max_size=15))
def test_once_everybody_is_back_everything_ends_well(version: KafkaVersion, story: list[tuple]) -> None:  # type: ignore[type-arg]
    """All brokers live, all answers given, all replicas caught up: no deletion, no reassignment, no partition waits.

    But for a topic that was deleted while it moved: its reassignment stays, in the cache and in the znode, until the
    next controller strikes it off.
    """
    cluster = Cluster(BROKERS, version, unclean_leader_election_enable=True)
    for event in (OPENING, *story):
        play(cluster, event)
    if cluster.context.shutting_down_broker_ids:
        cluster.elect(min(broker_epochs(cluster.zookeeper)))
    serving = cluster.context.settings.broker_id
    cluster.kill(*[broker for broker in broker_epochs(cluster.zookeeper) if broker != serving])
    cluster.start(*[broker for broker in range(BROKERS) if broker != serving])
    for _ in range(4):
        cluster.answer_deletions()
        cluster.catch_up()
    assert cluster.context.topics_to_be_deleted == frozenset()
    moving = {*cluster.context.partitions_being_reassigned, *reassignments(cluster.zookeeper)}
    assert moving.isdisjoint(cluster.context.assignments)
    assert set(cluster.context.partition_states.values()) <= {PartitionState.ONLINE}
    for partition, info in cluster.context.leadership.items():
        assert set(info.isr) <= set(cluster.context.replicas(partition))
        assert info.leader in info.isr


@given(st.sampled_from(ERAS), st.lists(events, max_size=10))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_same_events_give_the_same_effects(version: KafkaVersion, story: list[tuple]) -> None:  # type: ignore[type-arg]
    first, second = Cluster(BROKERS, version), Cluster(BROKERS, version)
    for event in (OPENING, *story):
        play(first, event)
        play(second, event)
    assert (first.context, first.zookeeper, first.requests) == (second.context, second.zookeeper, second.requests)


anything = st.integers(-3, 9)
any_ids = st.lists(anything, max_size=4).map(tuple)
decisions = st.builds(
    LeaderIsrAndControllerEpoch, st.builds(LeaderAndIsr, anything, any_ids, anything, anything), st.integers(-1, 99)
)
any_partitions = st.builds(TopicPartition, st.sampled_from(["a", "b", ""]), st.integers(-1, 1))
any_replicas = st.builds(PartitionAndReplica, any_partitions, anything)
contexts = st.builds(
    ControllerContext,
    settings=st.builds(Settings, version=st.sampled_from(ERAS)),
    epoch=st.integers(-1, 60),
    epoch_zk_version=st.integers(0, 1),
    live_broker_epochs=st.dictionaries(anything, anything, max_size=4),
    shutting_down_broker_ids=st.frozensets(anything, max_size=2),
    assignments=st.dictionaries(any_partitions, st.builds(ReplicaAssignment, any_ids, any_ids, any_ids), max_size=3),
    leadership=st.dictionaries(any_partitions, decisions, max_size=3),
    partition_states=st.dictionaries(any_partitions, st.sampled_from(PartitionState), max_size=3),
    replica_states=st.dictionaries(any_replicas, st.sampled_from(ReplicaState), max_size=5),
    topics_to_be_deleted=st.frozensets(st.sampled_from(["a", "b", ""]), max_size=1),
)
zookeepers = st.dictionaries(any_partitions, decisions, max_size=3).map(
    lambda states: ZooKeeper().with_znodes(
        {CONTROLLER_EPOCH_PATH: 50, topic_path("a"): None, **{partition_state_path(p): d for p, d in states.items()}}
    )
)
elections = st.one_of(st.none(), st.builds(Election, st.sampled_from([None, *ElectionKind]), st.booleans()))


@given(contexts, zookeepers, st.lists(any_partitions, max_size=4), st.sampled_from(PartitionState), elections)
def test_partitions_of_any_kind_move_or_are_refused(
    context: ControllerContext,
    zookeeper: ZooKeeper,
    asked: list[TopicPartition],
    target: PartitionState,
    election: Election | None,
) -> None:
    result = partition_state_machine.handle_state_changes(context, zookeeper, asked, target, election)
    refused = {failure.partition for failure in result.failures}
    for partition in asked:
        before, after = context.partition_state(partition), result.context.partition_state(partition)
        legal = is_legal_partition_transition(before, target, VersionRange.exactly(context.version))
        assert after is before or (after is target and legal)
        assert after is target or partition in refused or result.has_moved


@given(contexts, zookeepers, st.lists(any_replicas, max_size=4), st.sampled_from(ReplicaState))
def test_replicas_of_any_kind_move_or_are_refused(
    context: ControllerContext, zookeeper: ZooKeeper, asked: list[PartitionAndReplica], target: ReplicaState
) -> None:
    result = replica_state_machine.handle_state_changes(context, zookeeper, asked, target)
    for replica in asked:
        before, after = context.replica_state(replica), result.context.replica_state(replica)
        legal = is_legal_replica_transition(before, target, VersionRange.exactly(context.version))
        assert after is before or (after is target and legal)
