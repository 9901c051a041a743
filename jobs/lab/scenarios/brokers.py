"""Incidents with brokers: they stop, die, freeze, lose their session; leaders and controllers move."""

from __future__ import annotations

from typing import Final

from jobs.lab.admin import Partition
from jobs.lab.kraft_admin import KraftAdmin
from jobs.lab.machines.with_zookeeper import ZooKeeperCluster
from jobs.lab.stage import ORDERS, Stage
from jobs.lab.waiting import NeverHappened, wait_for

#: In 2.8 a leader whose AlterIsr request went to the frozen controller may not change that ISR for minutes: then the
#: scenario goes on without it, and says so.
_ISR_PATIENCE_S: Final = 60.0
#: Before, a quorum's controller elects uncleanly only where it is asked to, whatever topics set (KAFKA-12670).
_BY_ITSELF_SINCE: Final = (3, 9)


def controlled_shutdown(stage: Stage) -> None:
    """A rolling restart: every broker is asked to stop, and started again when it has."""
    orders = stage.create("orders", ORDERS)
    with stage.produce(orders) as load:
        for broker in stage.cluster.brokers:
            stage.let_run(load, rounds=2)
            stage.cluster.stop(broker)
            stage.cluster.start(broker)
            stage.cluster.wait_for_full_isr()
        stage.let_run(load)


def kill(stage: Stage) -> None:
    """A leader that is not the controller dies, others take over, it comes back."""
    with stage.busy() as (orders, _):
        die_and_return(stage, not_the_controller(stage), orders)


def controller_failover(stage: Stage) -> None:
    """The controller dies; another is elected and elects leaders; the old one comes back as a broker."""
    with stage.busy() as (orders, _):
        die_and_return(stage, stage.cluster.wait_for_controller(), orders)


def paused_broker(stage: Stage) -> None:
    """A follower freezes long enough to leave every ISR, not long enough to lose its session."""
    paused = not_the_controller(stage)
    first, second = (broker for broker in (1, 2, 3) if broker != paused)
    with stage.busy({0: (first, second, paused), 1: (second, paused, first)}) as (orders, _):
        stage.cluster.pause(paused)
        for partition in orders:
            stage.wait_for_isr(partition, (first, second))
        stage.cluster.resume(paused)
        stage.cluster.wait_for_full_isr()


def zombie(stage: Stage) -> None:
    """The controller freezes past its session; another is elected; the old one wakes and believes for a moment."""
    with stage.busy() as (orders, _):
        old = stage.cluster.wait_for_controller()
        _pause_past_the_session(stage, old, orders)
        new = stage.cluster.wait_for_controller(other_than=old)
        stage.note("controller_now", controller=new)


def session_expiry(stage: Stage) -> None:
    """A broker that is not the controller freezes past its session: it goes, and comes back, without a restart."""
    with stage.busy() as (orders, _):
        _pause_past_the_session(stage, not_the_controller(stage), orders)


def zookeeper_outage(stage: Stage) -> None:
    """ZooKeeper is killed and started again: brokers serve on, and nothing is decided meanwhile; then a broker dies."""
    cluster = stage.cluster
    assert isinstance(cluster, ZooKeeperCluster)
    with stage.busy() as (orders, load):
        cluster.kill_zookeeper()
        load.wait_for_more(60)
        cluster.start_zookeeper()
        stage.let_run(load)
        die_and_return(stage, not_the_controller(stage), orders)


def preferred_election(stage: Stage) -> None:
    """After a restart the leaders are not the preferred ones; an election brings them back."""
    with stage.busy() as (orders, _):
        restarted = not_the_controller(stage)
        stage.cluster.stop(restarted)
        stage.cluster.start(restarted)
        stage.cluster.wait_for_full_isr()
        stage.recording.wait_for_rounds(2)
        elect_the_preferred(stage, orders)


def elect_the_preferred(stage: Stage, orders: list[Partition]) -> None:
    """Of the topic that :meth:`Stage.busy` makes."""
    stage.say("electing the preferred leaders")
    stage.note("preferred_election", partitions=[list(partition) for partition in orders])
    stage.admin.elect_preferred(orders)
    wait_for("the preferred election is done", lambda: not stage.admin.is_electing_preferred())
    for partition in orders:
        stage.wait_for_leader(partition, ORDERS[partition[1]][:1])


def unclean_election(stage: Stage) -> None:
    """The last of the ISR dies; an old replica may lead one topic, and not the other. Records are lost."""
    ledger = stage.create("ledger", {0: (1, 2), 1: (1, 2)}, {"unclean.leader.election.enable": "true"})
    safe = stage.create("safe", {0: (1, 2)}, {"unclean.leader.election.enable": "false"})
    solo = stage.create("solo", {0: (3,)})
    with stage.produce([*ledger, *safe, *solo]) as load:
        stage.let_run(load)
        stage.kill(2)
        for partition in (*ledger, *safe):
            stage.wait_for_isr(partition, (1,))
        stage.let_run(load)
        stage.kill(1)
        stage.let_run(load, solo)
    stage.cluster.start(2)
    if isinstance(stage.admin, KraftAdmin) and stage.cluster.release.number < _BY_ITSELF_SINCE:
        stage.say("electing leaders of ledger uncleanly")
        stage.note("unclean_election", partitions=[list(partition) for partition in ledger])
        stage.admin.elect_unclean(ledger)
    for partition in ledger:
        stage.wait_for_leader(partition, (2,))
    with stage.produce([*ledger, *solo]) as load:
        stage.let_run(load)
        stage.cluster.start(1)
        stage.cluster.wait_for_full_isr()
        stage.let_run(load)


def die_and_return(stage: Stage, broker: int, partitions: list[Partition]) -> None:
    """A node is killed; the living lead what it led, without it in their ISRs; it is started again."""
    stage.kill(broker)
    living = [other for other in stage.cluster.brokers if other != broker]
    for partition in partitions:
        stage.wait_for_leader(partition, living)
        stage.wait_for_isr(partition, living)
    if broker not in stage.cluster.brokers:
        stage.cluster.wait_for_controller(other_than=broker)
    stage.recording.wait_for_rounds(2)
    stage.cluster.start(broker)
    stage.cluster.wait_for_full_isr()


def _pause_past_the_session(stage: Stage, broker: int, partitions: list[Partition]) -> None:
    stage.cluster.pause(broker)
    stage.cluster.wait_until_gone(broker)
    stage.note("session_ended", broker=broker)
    living = [other for other in stage.cluster.brokers if other != broker]
    for partition in partitions:
        stage.wait_for_leader(partition, living)
    stage.recording.wait_for_rounds(2)
    stage.cluster.resume(broker)
    stage.cluster.wait_until_back(broker)
    try:
        stage.cluster.wait_for_full_isr(_ISR_PATIENCE_S)
    except NeverHappened:
        stage.note("isr_not_full", states={f"{t}-{n}": str(stage.admin.state((t, n))) for t, n in partitions})


def not_the_controller(stage: Stage) -> int:
    """The first broker that is not the controller now."""
    controller = stage.cluster.wait_for_controller()
    return next(broker for broker in sorted(stage.cluster.brokers) if broker != controller)
