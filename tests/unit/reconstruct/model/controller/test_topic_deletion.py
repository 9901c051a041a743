"""Deleting topics: Kafka's own four cases by name, and how each era does it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from reconstruct.model.controller.outputs import (
    PartitionTransition,
    ReplicaTransition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from reconstruct.model.controller.values import PartitionAndReplica, TopicPartition
from reconstruct.model.controller.zookeeper import topic_path
from reconstruct.model.states import PartitionState, ReplicaState
from reconstruct.model.versions import LAST_WITH_ZOOKEEPER, KafkaVersion, v
from reconstruct.model.znode_paths import DELETE_TOPICS_PATH
from tests.oracles.controller import machines, questions, replica_state_machine, topic_deletion
from tests.oracles.controller.context import ControllerContext
from tests.oracles.controller.context_changes import add_live_brokers, remove_live_brokers
from tests.oracles.controller.outcomes import (
    Result,
)
from tests.oracles.controller.topic_deletion import (
    complete_replica_deletion,
    enqueue_topics_for_deletion,
    fail_replica_deletion,
    init,
    process_stop_replica_response,
    resume_deletion_for_topics,
)
from tests.support.loops import for_each
from tests.unit.reconstruct.model.controller.clusters import ERAS, controller, decided, zookeeper

STARTED, SUCCESSFUL = ReplicaState.DELETION_STARTED, ReplicaState.DELETION_SUCCESSFUL
INELIGIBLE, OFFLINE = ReplicaState.DELETION_INELIGIBLE, ReplicaState.OFFLINE
BROKERS = (1, 2, 3)
WITH_DELETION = ERAS[1:]


def serving(
    version: KafkaVersion = LAST_WITH_ZOOKEEPER, topics: Collection[str] = ("foo", "bar"), **settings: object
) -> Result:
    """Both machines started over two partitions of each topic on three brokers; the log begins afterwards."""
    assigned: dict[TopicPartition, Iterable[int]] = {}
    for number, partition in enumerate(TopicPartition(topic, n) for topic in sorted(topics) for n in range(2)):
        assigned[partition] = [BROKERS[(number + i) % 3] for i in range(3)]
    context = controller(BROKERS, version, assigned, **settings)
    zk = zookeeper(context).with_znodes({f"{DELETE_TOPICS_PATH}/{topic}": None for topic in topics})
    result = machines.start_replica_state_machine(context, zk).then(machines.start_partition_state_machine)
    return Result(result.context, result.zookeeper)


def replicas(context: ControllerContext, *topics: str) -> set[PartitionAndReplica]:
    return set(questions.replicas_for_topics(context, topics))


def in_state(result: Result, topic: str, state: ReplicaState) -> set[PartitionAndReplica]:
    return set(questions.replicas_in_state(result.context, topic, state))


def deletion_state(result: Result) -> tuple[set[str], set[str], set[str]]:
    """Topics queued, started, ineligible."""
    context = result.context
    return (
        set(context.topics_to_be_deleted),
        set(context.topics_with_deletion_started),
        set(context.topics_ineligible_for_deletion),
    )


def without_broker(result: Result, broker: int) -> Result:
    return result.change(lambda context: remove_live_brokers(context, [broker]))


def with_broker(result: Result, broker: int) -> Result:
    return result.change(lambda context: add_live_brokers(context, {broker: 2}))


# kafka.controller.TopicDeletionManagerTest of 3.9: 4 cases, by name.


def test_initialization() -> None:
    start = serving()
    result = start.then(init, {"foo", "bar"}, {"bar", "baz"})
    assert deletion_state(result) == ({"foo", "bar"}, set(), {"bar"})


def test_basic_deletion() -> None:
    start = serving()
    partitions = questions.all_partitions(start.context)
    foo, bar = replicas(start.context, "foo"), replicas(start.context, "bar")
    started = start.then(enqueue_topics_for_deletion, {"foo", "bar"})
    for topic, expected in (("foo", foo), ("bar", bar)):
        of_topic = questions.partitions_for_topics(started.context, (topic,))
        assert questions.partitions_in_state(started.context, PartitionState.NON_EXISTENT, topic) == of_topic
        assert in_state(started, topic, STARTED) == expected
    told = [request for request in started.requests if isinstance(request, UpdateMetadataRequest)]
    assert {entry.partition for request in told for entry in request.partitions} == set(partitions)
    assert {entry.info.leader for request in told for entry in request.partitions} == {-2}
    assert deletion_state(started) == ({"foo", "bar"}, {"foo", "bar"}, set())

    ended = started.then(complete_replica_deletion, foo | bar)
    assert ended.context.assignments == {}
    assert ended.context.replica_states == {}
    assert deletion_state(ended) == (set(), set(), set())
    assert [transition.to_state for transition in ended.transitions if isinstance(transition, PartitionTransition)] == [
        *[PartitionState.OFFLINE] * 4,
        *[PartitionState.NON_EXISTENT] * 4,
    ]
    seen = [transition.to_state for transition in ended.transitions if isinstance(transition, ReplicaTransition)]
    assert seen == [
        *[OFFLINE] * 12,
        *[STARTED] * 12,
        *[SUCCESSFUL] * 12,
        *[ReplicaState.NON_EXISTENT] * 12,
    ]


def test_deletion_with_broker_offline() -> None:
    start = without_broker(serving(), 2)
    foo = replicas(start.context, "foo")
    offline = {replica for replica in foo if replica.replica_id == 2}
    down = start.then(replica_state_machine.handle_state_changes, offline, OFFLINE)

    started = down.then(enqueue_topics_for_deletion, {"foo"})
    partitions = questions.partitions_for_topics(started.context, ("foo",))
    assert questions.partitions_in_state(started.context, PartitionState.NON_EXISTENT, "foo") == partitions
    assert in_state(started, "foo", STARTED) == foo - offline
    assert in_state(started, "foo", INELIGIBLE) == offline
    assert deletion_state(started) == ({"foo"}, {"foo"}, {"foo"})

    answered = started.then(complete_replica_deletion, foo - offline)
    assert deletion_state(answered) == ({"foo"}, {"foo"}, {"foo"})
    assert in_state(answered, "foo", SUCCESSFUL) == foo - offline
    assert in_state(answered, "foo", OFFLINE) == offline

    back = with_broker(answered, 2).then(resume_deletion_for_topics, {"foo"})
    assert in_state(back, "foo", SUCCESSFUL) == foo - offline
    assert in_state(back, "foo", STARTED) == offline

    ended = back.then(complete_replica_deletion, offline)
    assert replicas(ended.context, "foo") == set()
    assert {r for r in ended.context.replica_states if r.topic == "foo"} == set()
    assert deletion_state(ended) == (set(), set(), set())


def test_broker_failure_after_deletion_started() -> None:
    started = serving().then(enqueue_topics_for_deletion, {"foo"})
    foo = replicas(started.context, "foo")
    offline = {replica for replica in foo if replica.replica_id == 2}
    assert in_state(started, "foo", STARTED) == foo

    failed = without_broker(started, 2).then(fail_replica_deletion, offline)
    assert deletion_state(failed) == ({"foo"}, {"foo"}, {"foo"})
    assert in_state(failed, "foo", INELIGIBLE) == offline
    assert in_state(failed, "foo", STARTED) == foo - offline

    back = with_broker(failed, 2).then(resume_deletion_for_topics, {"foo"})
    assert deletion_state(back) == ({"foo"}, {"foo"}, set())
    assert in_state(back, "foo", STARTED) == foo - offline
    assert in_state(back, "foo", INELIGIBLE) == offline

    retried = back.then(complete_replica_deletion, foo - offline)
    assert deletion_state(retried) == ({"foo"}, {"foo"}, set())
    assert in_state(retried, "foo", SUCCESSFUL) == foo - offline
    assert in_state(retried, "foo", STARTED) == offline


# Beyond Kafka's list.


@for_each(version=WITH_DELETION)
def test_every_era_deletes_a_topic_to_the_last_znode(version: KafkaVersion) -> None:
    start = serving(version)
    started = start.then(enqueue_topics_for_deletion, {"foo"})
    stops = [request for request in started.requests if isinstance(request, StopReplicaRequest)]
    assert {entry.delete_partition for request in stops for entry in request.partitions} == {False, True}
    ended = started.then(complete_replica_deletion, replicas(started.context, "foo"))
    assert ended.failures == ()
    assert [path for path in ended.zookeeper.znodes if "foo" in path] == []
    assert topic_path("bar") in ended.zookeeper.znodes
    assert ended.context.all_topics == {"bar"}
    assert {p.topic for p in ended.context.partition_states} == {"bar"}


@for_each(version=WITH_DELETION)
def test_partitions_end_first_since_2_1(version: KafkaVersion) -> None:
    started = serving(version).then(enqueue_topics_for_deletion, {"foo"})
    ended_partitions = questions.partitions_in_state(started.context, PartitionState.NON_EXISTENT, "foo")
    assert bool(ended_partitions) is (version >= v(2, 1))


@for_each(version=WITH_DELETION)
def test_a_dead_replica_may_become_ineligible_only_since_2_3(version: KafkaVersion) -> None:
    start = without_broker(serving(version), 2)
    foo = {replica for replica in replicas(start.context, "foo") if replica.replica_id == 2}
    down = start.then(replica_state_machine.handle_state_changes, foo, OFFLINE)
    started = down.then(enqueue_topics_for_deletion, {"foo"})
    refused = {failure.to_state for failure in started.failures}
    assert refused == (set() if version >= v(2, 3) else {INELIGIBLE})
    assert in_state(started, "foo", INELIGIBLE if version >= v(2, 3) else OFFLINE) == foo
    assert deletion_state(started)[2] == {"foo"}


def test_an_answer_with_errors_halts_the_topic_and_keeps_what_succeeded() -> None:
    started = serving().then(enqueue_topics_for_deletion, {"foo"})
    foo = replicas(started.context, "foo")
    of_one = {replica for replica in foo if replica.replica_id == 1}
    bad = {min(of_one)}
    answered = started.then(process_stop_replica_response, of_one - bad, bad)
    assert in_state(answered, "foo", INELIGIBLE) == bad
    assert in_state(answered, "foo", SUCCESSFUL) == of_one - bad
    assert deletion_state(answered)[2] == {"foo"}
    rest = answered.then(complete_replica_deletion, foo - of_one)
    assert in_state(rest, "foo", OFFLINE) == bad


def test_an_answer_for_a_topic_that_is_not_queued_is_ignored() -> None:
    start = serving()
    answered = start.then(fail_replica_deletion, replicas(start.context, "foo")).then(
        complete_replica_deletion, replicas(start.context, "foo")
    )
    assert (answered.context, answered.outputs) == (start.context, ())


def test_where_deletion_is_disabled_nothing_is_deleted() -> None:
    start = serving(delete_topic_enable=False)
    result = start.then(enqueue_topics_for_deletion, {"foo"})
    assert (result.context, result.outputs) == (start.context, ())
    cleaned = start.then(init, {"foo"}, set())
    assert f"{DELETE_TOPICS_PATH}/foo" not in cleaned.zookeeper.znodes
    assert cleaned.context == start.context


@for_each(version=WITH_DELETION)
def test_nobody_is_told_of_a_shrinking_isr(version: KafkaVersion) -> None:
    started = serving(version).then(enqueue_topics_for_deletion, {"foo"})
    states = [started.zookeeper.partition_state(TopicPartition("foo", n))[0] for n in range(2)]
    assert {info.leader for info in states if info} == {-1}
    assert all(len(info.isr) == (1 if version >= v(1, 1) else len(info.isr)) for info in states if info)


def test_the_questions_that_decide_what_is_deleted_when() -> None:
    started = serving(topics=("foo",)).then(enqueue_topics_for_deletion, {"foo"})
    assert questions.is_at_least_one_replica_in_deletion_started_state(started.context, "foo")
    assert not questions.are_all_replicas_for_topic_deleted(started.context, "foo")
    assert not questions.is_any_replica_in_state(started.context, "foo", SUCCESSFUL)
    assert set(questions.replicas_in_deletion_states(started.context, "foo")) == replicas(started.context, "foo")
    foo = replicas(started.context, "foo")
    done = started.then(replica_state_machine.handle_state_changes, foo, SUCCESSFUL)
    assert questions.are_all_replicas_for_topic_deleted(done.context, "foo")
    assert questions.are_all_replicas_for_topic_deleted(done.context, "unknown")
    assert questions.partitions_on_broker(done.context, 1) == questions.all_partitions(done.context)


def test_a_leader_that_was_decided_by_somebody_else_stops_the_shrink_not_the_program() -> None:
    start = serving(topics=("foo",))
    path = f"{topic_path('foo')}/partitions/0/state"
    newer = start.zookeeper.with_znodes({path: decided(3, [1, 2, 3], 9, 99)})
    result = topic_deletion.enqueue_topics_for_deletion(start.context, newer, {"foo"})
    assert result.failures
    assert (
        result.zookeeper.partition_state(TopicPartition("foo", 0))[0]
        == newer.partition_state(TopicPartition("foo", 0))[0]
    )
