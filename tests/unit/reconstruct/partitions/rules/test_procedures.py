"""The oracle's procedures, as logs: R13 to R16 find nothing, and find a step that is dropped or swapped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from ingest.shapes.event_types import EventType
from reconstruct.findings.divergences import DivergenceType
from reconstruct.model.controller.values import TopicPartition
from reconstruct.model.versions import KafkaVersion, v
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.timeline import fold_partition
from tests.oracles.controller.cluster import Cluster
from tests.oracles.controller.evidence import logged
from tests.unit.reconstruct.partitions.rules.controllers import CONTROLLERS

Story = Callable[[Cluster], None]
T0 = TopicPartition("t", 0)
VERSIONS = (v(0, 8, 1), v(0, 8, 2), v(0, 10, 2), v(1, 0), v(1, 1), v(2, 0), v(2, 3), v(2, 5), v(3, 9))


def created(cluster: Cluster) -> None:
    cluster.create("t", {0: (1, 2)})


def deleted(cluster: Cluster) -> None:
    created(cluster)
    cluster.delete("t")
    cluster.answer_deletions()


def follower_died(cluster: Cluster) -> None:
    created(cluster)
    cluster.kill(2)
    cluster.start(2)
    cluster.catch_up()


def leader_died(cluster: Cluster) -> None:
    created(cluster)
    cluster.kill(1)
    cluster.start(1)
    cluster.catch_up()


def shut_down(cluster: Cluster) -> None:
    created(cluster)
    cluster.shut_down(1)
    cluster.kill(1)
    cluster.start(1)
    cluster.catch_up()


def failed_over(cluster: Cluster) -> None:
    created(cluster)
    cluster.elect(3)
    cluster.kill(1)
    cluster.start(1)


def reassigned(cluster: Cluster) -> None:
    created(cluster)
    cluster.reassign({T0: (2, 3)})
    cluster.catch_up()
    cluster.answer_deletions()


STORIES = (created, deleted, follower_died, leader_died, shut_down, failed_over, reassigned)


def played(story: Story, version: KafkaVersion) -> Cluster:
    cluster = Cluster(4, version)
    story(cluster)
    return cluster


def fold(cluster: Cluster) -> Case:
    facts, view = logged(cluster, T0)
    return fold_partition("t", facts, view)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_rules_find_nothing_in_what_the_oracle_does(story: Story) -> None:
    for version in VERSIONS:
        verdicts = fold(played(story, version)).verdicts
        found = [f for f in verdicts.findings if f.rule_id in CONTROLLERS]
        assert found == [], f"{story.__name__} in {version}: {[f.explanation for f in found]}"
        assert verdicts.counts["R15", "kept"], f"{story.__name__} in {version} was not judged"


# --- one step dropped or swapped --------------------------------------------------------------------------------------


def step(facts: Sequence[Evidence], kind: str, **fields: object) -> Evidence:
    """The last line of the kind with those values."""
    return [f for f in facts if f.kind == kind and all(getattr(f, name) == value for name, value in fields.items())][-1]


def partition_to(facts: Sequence[Evidence], state: str) -> Evidence:
    return step(facts, EventType.PARTITION_STATE_CHANGE, to_state=state)


def replica_to(facts: Sequence[Evidence], replica_id: int, state: str) -> Evidence:
    return step(facts, EventType.REPLICA_STATE_CHANGE, replica_id=replica_id, to_state=state)


def request_to(facts: Sequence[Evidence], broker_id: int) -> Evidence:
    return step(facts, EventType.LEADER_AND_ISR_SENT, to_broker_ids=(broker_id,))


def without(facts: Sequence[Evidence], *lines: Evidence) -> list[Evidence]:
    return [fact for fact in facts if fact not in lines]


def swapped(facts: Sequence[Evidence], one: Evidence, other: Evidence) -> list[Evidence]:
    """The two lines in each other's place."""
    places = {
        one.evidence_id: replace(other, at=one.at, offset=one.offset),
        other.evidence_id: replace(one, at=other.at, offset=other.offset),
    }
    return [places.get(fact.evidence_id, fact) for fact in facts]


Bend = Callable[[Sequence[Evidence]], list[Evidence]]
#: What is bent: the story, how, and the type of finding that says so; None where the rules cannot but say less.
BENDS: dict[str, tuple[Story, Bend, DivergenceType | None]] = {
    "creation without a replica": (
        created,
        lambda facts: without(facts, replica_to(facts, 2, "NewReplica")),
        DivergenceType.TRANSITION_NOT_LOGGED,
    ),
    "creation: replica Online before a leader is decided": (
        created,
        lambda facts: swapped(facts, partition_to(facts, "OnlinePartition"), replica_to(facts, 2, "OnlineReplica")),
        DivergenceType.STEP_OUT_OF_ORDER,
    ),
    "creation: replica New after a leader is decided": (
        created,
        lambda facts: swapped(facts, replica_to(facts, 2, "NewReplica"), partition_to(facts, "OnlinePartition")),
        DivergenceType.STEP_OUT_OF_ORDER,
    ),
    "creation: a replica is not told": (
        created,
        lambda facts: without(facts, request_to(facts, 2)),
        DivergenceType.REQUEST_NOT_SENT,
    ),
    "deletion: partition and replica change places": (
        deleted,
        lambda facts: swapped(
            facts,
            partition_to(facts, "NonExistentPartition"),
            replica_to(facts, 2, "ReplicaDeletionStarted"),
        ),
        DivergenceType.TRANSITION_NOT_LOGGED,
    ),
    "deletion without its end": (
        deleted,
        lambda facts: without(facts, partition_to(facts, "NonExistentPartition")),
        None,
    ),
    "broker failure without its replica": (
        follower_died,
        lambda facts: without(facts, replica_to(facts, 2, "OfflineReplica")),
        DivergenceType.TRANSITION_NOT_LOGGED,
    ),
    "broker failure: the leader is not told of the smaller ISR": (
        follower_died,
        lambda facts: without(facts, request_to(facts[: facts.index(replica_to(facts, 2, "OfflineReplica")) + 8], 1)),
        DivergenceType.REQUEST_NOT_SENT,
    ),
    "failover: an election is not told": (
        failed_over,
        lambda facts: without(facts, request_to(facts, 2)),
        DivergenceType.REQUEST_NOT_SENT,
    ),
    "reassignment: a replica goes before the new one is in": (
        reassigned,
        lambda facts: swapped(
            facts, replica_to(facts, 3, "OnlineReplica"), replica_to(facts, 1, "ReplicaDeletionStarted")
        ),
        DivergenceType.TRANSITION_NOT_LOGGED,
    ),
}


@pytest.mark.parametrize("name", BENDS)
def test_a_step_dropped_or_swapped_is_found_or_not_called_kept(name: str) -> None:
    story, bend, found_as = BENDS[name]
    for version in VERSIONS:
        facts, view = logged(played(story, version), T0)
        before = fold_partition("t", facts, view).verdicts.counts
        verdicts = fold_partition("t", bend(facts), view).verdicts
        found = {f.divergence_type for f in verdicts.findings if f.rule_id in CONTROLLERS}
        if found_as is None:
            assert verdicts.counts["R16", "kept"] < before["R16", "kept"], f"{name} in {version}"
        else:
            assert found_as in found, f"{name} in {version}: {found}"
