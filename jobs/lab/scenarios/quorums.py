"""Incidents with a quorum's controllers: they are outvoted, slow, exchanged."""

from __future__ import annotations

from typing import Final

from jobs.lab.machines.kraft import KraftCluster
from jobs.lab.scenarios.brokers import die_and_return, not_the_controller
from jobs.lab.scenarios.topics import reassign
from jobs.lab.stage import Stage

#: A controller pauses so often, each time for less than its voters wait for it.
_PAUSES: Final = 6


def quorum_outage(stage: Stage) -> None:
    """Two of three controllers are killed: brokers serve on, and nothing is decided until one is back; then a broker
    dies."""
    with stage.busy() as (orders, load):
        controllers = _controllers(stage)
        for controller in controllers[:2]:
            stage.cluster.kill(controller)
        load.wait_for_more(60)
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


def _controllers(stage: Stage) -> list[int]:
    """Those that are no brokers."""
    return sorted(stage.cluster.nodes.keys() - stage.cluster.brokers.keys())
