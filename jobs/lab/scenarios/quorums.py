"""Incidents with a quorum's controllers: outvoted, slow, exchanged; and some of all that can happen to a cluster."""

from __future__ import annotations

import re
from typing import Final

from ingest.readers.log_dirs.names import METADATA_DIRECTORY
from jobs.lab.machines.kraft import KraftCluster
from jobs.lab.machines.migrating import MigratingCluster
from jobs.lab.scenarios.brokers import die_and_return, elect_the_preferred, not_the_controller, unclean_election
from jobs.lab.scenarios.disks import lose_a_directory
from jobs.lab.scenarios.topics import ask_to_delete, reassign, wait_until_deleted
from jobs.lab.stage import Stage
from jobs.lab.waiting import wait_for

#: A controller pauses so often, each time for less than its voters wait for it.
_PAUSES: Final = 6
#: What a controller logs that gives its leadership, or its leader, up.
_GIVES_UP: Final = re.compile(r"Completed transition to (?:Resigned|Prospective|Candidate)State\(", re.ASCII)


def quorum_outage(stage: Stage) -> None:
    """Two of three controllers are killed: brokers serve on, and nothing is decided until one is back, when the third
    has noticed; then a broker dies."""
    with stage.busy() as (orders, load):
        controllers = _controllers(stage)
        third, before = controllers[2], _given_up(stage, controllers[2])
        leads_on = stage.cluster.wait_for_controller() == third and not stage.cluster.release.leader_resigns
        for controller in controllers[:2]:
            stage.cluster.kill(controller)
        load.wait_for_more(60)
        if not leads_on:
            stage.say(f"waiting until controller {third} gives its quorum up")
            wait_for(f"controller {third} gives its quorum up", lambda: _given_up(stage, third) > before)
        for controller in controllers[:2]:
            stage.cluster.start(controller)
        stage.cluster.wait_for_controller()
        stage.let_run(load)
        die_and_return(stage, not_the_controller(stage), orders)


def slow_controller(stage: Stage) -> None:
    """The active controller freezes again and again, each time for about a second, while there is something to decide;
    then it is well again."""
    with stage.busy() as (orders, load):
        controller = stage.cluster.wait_for_controller()
        for number in range(_PAUSES):
            stage.cluster.pause(controller)
            load.wait_for_more(20)
            stage.cluster.resume(controller)
            if number == 1:
                stage.create("payments", {0: (2, 1), 1: (3, 2)})
            elif number == 3:
                reassign(stage, {("payments", 0): (2, 3)})
            else:
                stage.recording.wait_for_rounds(1)
        die_and_return(stage, not_the_controller(stage), orders)


def voters(stage: Stage) -> None:
    """A new controller joins the voters; then the active one is taken out of them, and stopped; then a broker dies."""
    cluster = stage.cluster
    assert isinstance(cluster, KraftCluster)
    (spare,) = cluster.spare_ids
    with stage.busy() as (orders, load):
        cluster.start(spare)
        cluster.add_voter(spare)
        stage.let_run(load)
        old = cluster.wait_for_controller()
        cluster.remove_voter(old)
        cluster.wait_for_controller(other_than=old)
        cluster.stop(old)
        stage.let_run(load)
        die_and_return(stage, not_the_controller(stage), orders)


def snapshot_fetched(stage: Stage) -> None:
    """A broker dies and loses its disk; meanwhile the controllers delete their metadata log up to a snapshot, which the
    broker has to fetch when it is back."""
    with stage.busy() as (orders, load):
        broker = not_the_controller(stage)
        stage.kill(broker)
        stage.cluster.lose_data(broker)
        stage.note("data_lost", broker=broker)
        living = [other for other in stage.cluster.brokers if other != broker]
        for partition in orders:
            stage.wait_for_leader(partition, living)
        stage.create("payments", {0: (living[0], living[1])})
        first = wait_for("every controller has a snapshot", lambda: _first_snapshots(stage))
        stage.say("waiting until the controllers' metadata logs begin later")
        wait_for("no controller has its first snapshot", lambda: first.isdisjoint(_first_snapshots(stage) or first))
        stage.note("log_deleted")
        stage.let_run(load)
        stage.cluster.start(broker)
        stage.cluster.wait_for_full_isr()


def _first_snapshots(stage: Stage) -> set[tuple[int, str]]:
    """Of each controller its oldest snapshot; none while one has none."""
    found = set()
    for node_id in _controllers(stage):
        directory = stage.cluster.nodes[node_id].data / METADATA_DIRECTORY
        names = sorted(path.name for path in directory.glob("*-*.checkpoint"))
        if not names:
            return set()
        found.add((node_id, names[0]))
    return found


def lifecycle(stage: Stage) -> None:
    """Some of everything: a topic is deleted, created again and moved, the active controller killed, a log directory
    lost, leaders brought back to the preferred ones; then an unclean election."""
    with stage.busy() as (orders, load):
        stage.create("payments", {0: (1, 2), 1: (2, 3)}, {"min.insync.replicas": "2"})
        ask_to_delete(stage, "payments")
        wait_until_deleted(stage, "payments")
        stage.let_run(load)
        stage.create("payments", {0: (2, 3)})
        reassign(stage, {("payments", 0): (3, 1)})
        die_and_return(stage, stage.cluster.wait_for_controller(), orders)
        lose_a_directory(stage, 3, orders, load)
        elect_the_preferred(stage, orders)
    unclean_election(stage)


def migration(stage: Stage) -> None:
    """A cluster leaves ZooKeeper: controllers join, take over when each broker was started to migrate; a topic is
    created, a broker dies and a replica moves while both are written; then ZooKeeper is left by the brokers, and by the
    controllers."""
    cluster = stage.cluster
    assert isinstance(cluster, MigratingCluster)
    stage.create("payments", {0: (1, 2), 1: (2, 3)}, {"min.insync.replicas": "2"})
    with stage.busy() as (orders, load):
        cluster.start_controllers()
        for broker in cluster.brokers:
            cluster.restart_to_migrate(broker)
            cluster.wait_for_full_isr()
        cluster.wait_until_migrated()
        stage.let_run(load)
        stage.create("shipments", {0: (3, 1), 1: (1, 2)})
        die_and_return(stage, 2, orders)
        reassign(stage, {("payments", 0): (3, 2)})
        for broker in cluster.brokers:
            cluster.restart_without_zookeeper(broker)
            cluster.wait_for_full_isr()
        stage.let_run(load)
        cluster.finish()
        stage.create("refunds", {0: (2, 1)})
        stage.let_run(load)


def _controllers(stage: Stage) -> list[int]:
    """Those that are no brokers."""
    return sorted(stage.cluster.nodes.keys() - stage.cluster.brokers.keys())


def _given_up(stage: Stage, controller: int) -> int:
    """How often the controller logs that it gave its quorum up."""
    return len(_GIVES_UP.findall(stage.cluster.nodes[controller].server_log.read_text(encoding="utf-8")))
