"""``explain`` of a KRaft cluster tells what its metadata log shows, and none of the steps of ZooKeeper's controller."""

from __future__ import annotations

import pytest

from reconstruct.explain.explain import Span, explanation
from tests.support.kraft_partitions import history_of
from tests.support.metadata_log import NODES


@pytest.fixture(scope="module")
def told() -> dict[int, dict[str, str]]:
    """Of each partition of ``ledger`` what is told of each decision, by the time of day."""
    _, cases = history_of(NODES)
    found = {}
    for (topic, _, partition_id), case in cases.items():
        if topic != "ledger":
            continue
        span = Span(case.decided[0].start, case.decided[-1].start + 1)
        chapters = explanation("ledger", case, span).split("\n\n")[1:]
        found[partition_id] = {chapter.split()[1]: chapter for chapter in chapters}
    return found


def test_a_leader_in_controlled_shutdown(told: dict[int, dict[str, str]]) -> None:
    lines = told[0]["09:49:36.125"].splitlines()
    assert lines[0].endswith("leader 2 elected, leader epoch 1")
    assert "  state before leader 1, leader epoch 0, ISR 1,2, partition epoch 1" in lines
    assert "  broker 3     fenced, or not registered, since 09:49:20.311" in lines
    assert "  Leader 1 was in controlled shutdown since 09:49:36.125." in lines
    assert "  metadata log, offset 119: written by node 2 as active controller, epoch 3" in lines


def test_a_leader_that_was_fenced(told: dict[int, dict[str, str]]) -> None:
    lines = told[2]["09:49:20.311"].splitlines()
    assert lines[0].endswith("leader 1 elected, leader epoch 1")
    assert "  Leader 3 was fenced, or not registered, since 09:49:20.311." in lines


def test_who_took_a_replica_out_of_the_isr(told: dict[int, dict[str, str]]) -> None:
    fenced = "Broker 3 was fenced, or not registered, since 09:49:20.311: the controller took it out of the ISR."
    assert fenced in told[1]["09:49:20.311"]
    leaving = "Broker 1 was in controlled shutdown since 09:49:36.125: the controller took it out of the ISR."
    assert leaving in told[1]["09:49:36.125"]
    assert "Its leader asked (AlterPartition): replica 3 had caught up" in told[1]["09:49:40.521"]


def test_nothing_is_told_of_a_controller_of_zookeeper(told: dict[int, dict[str, str]]) -> None:
    every = "\n".join(chapter for of_partition in told.values() for chapter in of_partition.values())
    assert len(told) == 3
    for words in ("OfflineReplica", "not known", "What the rules give", "max.messages"):
        assert words not in every
