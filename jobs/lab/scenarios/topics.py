"""Incidents, and everyday work, with topics: creation, production, more partitions, other replicas, deletion."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.lab.admin import Partition
from jobs.lab.stage import ORDERS, Stage
from jobs.lab.waiting import wait_for


def creation(stage: Stage) -> None:
    """Topics of several shapes; one is created while the others get records."""
    orders = stage.create("orders", ORDERS)
    audit = stage.create("audit.log_v2", {0: (3,)})
    with stage.produce([*orders, *audit]) as load:
        stage.let_run(load)
        stage.create("payments", {0: (2, 1), 1: (3, 2)}, {"min.insync.replicas": "2"})
        stage.let_run(load)


def produce(stage: Stage) -> None:
    """A steady producer, and nothing goes wrong."""
    orders = stage.create("orders", ORDERS)
    with stage.produce(orders, acks="all") as load:
        stage.let_run(load, rounds=12)


def added_partitions(stage: Stage) -> None:
    """A topic gets two more partitions while it gets records."""
    orders = stage.create("orders", {0: (1, 2), 1: (2, 3)})
    with stage.produce(orders) as load:
        stage.let_run(load)
        more = {2: (3, 1), 3: (1, 3)}
        stage.say("adding partitions 2 and 3 to orders")
        stage.note("add_partitions", topic="orders", assignment={str(n): list(r) for n, r in more.items()})
        stage.admin.add_partitions("orders", more)
        for number, replicas in more.items():
            stage.wait_for_isr(("orders", number), replicas)
        stage.let_run(load)
    with stage.produce([("orders", number) for number in range(4)]) as load:
        stage.let_run(load)


def reassignment(stage: Stage) -> None:
    """Two partitions move: one in part, one wholly, under load; then one moves back."""
    with stage.busy({0: (1, 2), 1: (2, 3), 2: (3, 1)}) as (_, load):
        reassign(stage, {("orders", 0): (3, 2), ("orders", 1): (1,)})
        stage.let_run(load)
        reassign(stage, {("orders", 1): (2,)})


def reassign(stage: Stage, plan: dict[tuple[str, int], tuple[int, ...]]) -> None:
    """Until the partitions are assigned so, and in sync."""
    stage.say("reassigning " + ", ".join(f"{t}-{n} to {list(replicas)}" for (t, n), replicas in plan.items()))
    stage.note("reassign", plan={f"{topic}-{number}": list(replicas) for (topic, number), replicas in plan.items()})
    stage.admin.reassign(plan)
    wait_for("the reassignment is done", lambda: not stage.admin.is_reassigning())
    for partition, replicas in plan.items():
        _wait_for_assignment(stage, partition, replicas)
        stage.wait_for_isr(partition, replicas)
    stage.note("reassigned")


def _wait_for_assignment(stage: Stage, partition: Partition, replicas: Sequence[int]) -> None:
    topic, number = partition
    wait_for(
        f"{topic}-{number} is assigned to {list(replicas)}",
        lambda: stage.admin.topics()[topic][number] == list(replicas),
    )


def deletion_with_a_dead_broker(stage: Stage) -> None:
    """A topic is deleted while one of its replicas' brokers is down: the deletion waits for that broker."""
    orders = stage.create("orders", ORDERS)
    stage.create("doomed", {0: (1, 2), 1: (3, 1)})
    with stage.produce(orders) as load:
        stage.let_run(load)
        dead = next(broker for broker in (3, 2) if broker != stage.cluster.wait_for_controller())
        stage.kill(dead)
        living = [broker for broker in (1, 2, 3) if broker != dead]
        for partition in orders:
            stage.wait_for_leader(partition, living)
        ask_to_delete(stage, "doomed")
        stage.let_run(load)
        stage.cluster.start(dead)
        wait_until_deleted(stage, "doomed")
        stage.cluster.wait_for_full_isr()
        stage.let_run(load)


def ask_to_delete(stage: Stage, topic: str) -> None:
    stage.say(f"deleting topic {topic}")
    stage.note("delete_topic", topic=topic)
    stage.admin.delete_topic(topic)


def wait_until_deleted(stage: Stage, topic: str) -> None:
    wait_for(f"the topic {topic} is gone", lambda: topic not in stage.admin.topics())
    stage.note("topic_gone", topic=topic)
