"""Where replication is known to break, each by its smallest history: broken up to a version, and not since.

KIP-101's two scenarios, KIP-279's, KAFKA-7128's, and one that the simulator found and Kafka's source confirms.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reconstruct.model.versions import KafkaVersion
from tests.oracles.replication.cluster import Cluster, new_cluster, run
from tests.oracles.replication.events import (
    AnswerAlterIsr,
    CheckpointHighWatermarks,
    Deliver,
    Elect,
    Event,
    FetchOnce,
    Kill,
    LoseSession,
    Pass,
    Produce,
    Restart,
    ShrinkIsr,
)
from tests.oracles.replication.invariants import INVARIANTS
from tests.oracles.replication.replica import NO_LEADER
from tests.oracles.replication.rules import ReplicationConfig, rules_of

VERSIONS = ("0.8.2.2", "0.9.0.1", "0.10.2.2", "0.11.0.3", "1.1.1", "2.0.0", "2.0.1", "2.1.1", "2.8.2", "3.9.1")
CUTS_TO_HIGH_WATERMARK = ("0.8.2.2", "0.9.0.1", "0.10.2.2")


def play(version: str, events: Sequence[Event], brokers: int = 2) -> Cluster:
    parsed = KafkaVersion.parse(version)
    assert parsed is not None
    return run(new_cluster(rules_of(parsed), ReplicationConfig(), range(1, brokers + 1)), events)


def broken(cluster: Cluster) -> set[str]:
    return {name for name, holds in INVARIANTS.items() if holds(cluster)}


REPLICATED = (FetchOnce(2), FetchOnce(2), FetchOnce(2))


@pytest.mark.parametrize("version", VERSIONS)
def test_kip_101_scenario_1_a_follower_cuts_committed_records_and_becomes_leader(version: str) -> None:
    """2 has both records, the second one committed, and not heard so; it restarts, and 1 dies before giving it back."""
    history: list[Event] = [FetchOnce(2), Produce(1), *REPLICATED, CheckpointHighWatermarks(2), Produce(1)]
    history += [FetchOnce(2), FetchOnce(2, is_answer_lost=True)]
    history += [Kill(2), Restart(2, is_noticed=False), Deliver(2), Kill(1), LoseSession(1), Deliver(2)]
    at = play(version, history)
    if version in CUTS_TO_HIGH_WATERMARK:
        assert broken(at) == {"CommittedIsKept"}
        assert [len(at.shown), at.replicas[2].log_end_offset] == [2, 1]
    else:
        assert broken(at) == set()
        assert at.decided.leader in (2, NO_LEADER)  # since 2.2 the bounce is noticed, and 2 is not in the ISR


@pytest.mark.parametrize("version", VERSIONS)
def test_kip_101_scenario_1_needs_no_restart_only_a_new_leader(version: str) -> None:
    """1 gives leadership to 2; 3 cuts to its high watermark, and is elected before it fetched from 2."""
    history: list[Event] = [FetchOnce(2), FetchOnce(3), Produce(1), FetchOnce(2), FetchOnce(3)]
    history += [FetchOnce(2, is_answer_lost=True), FetchOnce(3, is_answer_lost=True)]
    history += [Elect(2), Deliver(2), Deliver(3), Elect(3), Deliver(3)]
    at = play(version, history, brokers=3)
    assert "CommittedIsKept" in broken(at) if version in CUTS_TO_HIGH_WATERMARK else broken(at) == set()


@pytest.mark.parametrize("version", VERSIONS)
def test_kip_101_scenario_2_after_a_power_failure_two_replicas_keep_different_records(version: str) -> None:
    """Both lose power; 2, without its last record, leads and writes another; 1 returns with a log as long."""
    history: list[Event] = [Produce(1), *REPLICATED, *map(CheckpointHighWatermarks, (1, 2)), Produce(1), FetchOnce(2)]
    history += [FetchOnce(2), CheckpointHighWatermarks(1), Kill(1), Kill(2), LoseSession(1)]
    history += [Restart(2, log_end_offset=1), Deliver(2), Produce(2), Restart(1), Deliver(1), FetchOnce(1)]
    at = play(version, [*history, FetchOnce(1)])
    lost = {"CommittedIsKept"}  # a record that only 1 still had was committed: no rule of Kafka's can keep it
    if version in CUTS_TO_HIGH_WATERMARK:
        assert broken(at) == lost | {"FollowersAgree", "WeakIsr", "StrongIsr"}
    else:
        assert broken(at) == lost
        assert at.replicas[1].log.records == at.replicas[2].log.records


@pytest.mark.parametrize("version", VERSIONS)
def test_kip_279_two_fast_failovers_leave_a_divergence_below_the_high_watermark(version: str) -> None:
    """1 leads again before it fetched from 2; 2 asks about its epoch, which 1 never saw."""
    history: list[Event] = [FetchOnce(2), Produce(1), *REPLICATED, Produce(1), Elect(2), Deliver(2), Produce(2)]
    history += [Elect(1), Deliver(1, skipped=1), Produce(1), Deliver(2), FetchOnce(2), FetchOnce(2)]
    at = play(version, history)
    if version in ("0.11.0.3", "1.1.1"):
        assert broken(at) == {"FollowersAgree", "WeakIsr", "StrongIsr"}
    else:
        assert broken(at) == set()


@pytest.mark.parametrize("version", VERSIONS)
def test_kafka_7128_a_replica_joins_at_a_lagging_high_watermark_and_loses_what_is_committed(version: str) -> None:
    """2 leads with an old high watermark; 3, which has no more than that, joins the ISR and is elected."""
    history: list[Event] = [FetchOnce(2), FetchOnce(3), Produce(1), FetchOnce(2), FetchOnce(3), FetchOnce(2)]
    history += [
        FetchOnce(3),
        FetchOnce(3),
        *REPLICATED,
        Pass(20_000),
        FetchOnce(2),
        FetchOnce(2),
        Produce(1),
        ShrinkIsr(1),
    ]
    history += [AnswerAlterIsr(1), FetchOnce(2), FetchOnce(2, is_answer_lost=True), Elect(2), Deliver(2), Deliver(3)]
    history += [FetchOnce(3, max_records=0), AnswerAlterIsr(2), Elect(3), Deliver(3), Deliver(3)]
    at = play(version, history, brokers=3)
    assert len(at.shown) == 2
    joins = version in (*CUTS_TO_HIGH_WATERMARK, "0.11.0.3", "1.1.1", "2.0.0")
    assert (at.decided.leader, "CommittedIsKept" in broken(at)) == ((3, True) if joins else (2, False))


@pytest.mark.parametrize("version", [v for v in VERSIONS if not v.startswith("0.")])
def test_a_leader_that_never_heard_it_was_deposed_counts_fetches_of_its_earlier_reign(version: str) -> None:
    """1 leads at epochs 0 and 2 and its request of epoch 1 is lost; it still believes 2 has what 2 cut for leader 3.

    It needs a controller that dies between the two elections. Every version since 0.9 keeps that progress.
    """
    history: list[Event] = [Produce(1, 2), FetchOnce(2), FetchOnce(2), Elect(3), Deliver(3), Deliver(2), Produce(3, 2)]
    history += [FetchOnce(2), FetchOnce(2), FetchOnce(2), Elect(1), Deliver(1, skipped=1), Deliver(3), FetchOnce(3)]
    at = play(version, [*history, FetchOnce(3), FetchOnce(3)], brokers=3)
    assert {"WeakIsr", "StrongIsr"} <= broken(at)
