"""One leader, one or two followers, fetch by fetch: where log end offsets and high watermarks are after each step."""

from __future__ import annotations

import pytest

from reconstruct.model.versions import KafkaVersion
from tests.oracles.replication.cluster import Cluster, new_cluster, run, step
from tests.oracles.replication.events import (
    AnswerAlterIsr,
    CheckpointHighWatermarks,
    Deliver,
    Elect,
    Event,
    FetchOnce,
    Kill,
    LoseCheckpoint,
    LoseSession,
    Pass,
    Pause,
    Produce,
    Restart,
    Resume,
    ShrinkIsr,
)
from tests.oracles.replication.leader import is_acknowledged
from tests.oracles.replication.rules import ReplicationConfig, rules_of

VERSIONS = ("0.8.2.2", "0.10.2.2", "1.1.1", "2.8.2", "3.9.1")
HOLDS_BACK = ("0.10.2.2", "1.1.1", "2.8.2", "3.9.1")


def cluster(version: str, *brokers: int, **config: int) -> Cluster:
    parsed = KafkaVersion.parse(version)
    assert parsed is not None
    return new_cluster(rules_of(parsed), ReplicationConfig(**config), brokers or (1, 2))


def high_watermarks(after: Cluster) -> list[int]:
    return [replica.high_watermark for replica in after.replicas.values()]


def log_end_offsets(after: Cluster) -> list[int]:
    return [replica.log_end_offset for replica in after.replicas.values()]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_record_is_committed_one_fetch_after_it_is_replicated_and_a_follower_learns_it_one_later(
    version: str,
) -> None:
    rows, at = [], run(cluster(version), [FetchOnce(2)])
    for event in (Produce(1, 3), FetchOnce(2), FetchOnce(2), FetchOnce(2)):
        at = step(at, event)
        rows.append((log_end_offsets(at), high_watermarks(at)))
    assert rows == [([3, 0], [0, 0]), ([3, 3], [0, 0]), ([3, 3], [3, 0]), ([3, 3], [3, 3])]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_leader_alone_in_the_isr_commits_what_it_appends(version: str) -> None:
    assert high_watermarks(run(cluster(version, 1), [Produce(1, 2)])) == [2]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_fetch_answer_that_is_lost_still_tells_the_leader(version: str) -> None:
    at = run(cluster(version), [FetchOnce(2), Produce(1), FetchOnce(2), FetchOnce(2, is_answer_lost=True)])
    assert high_watermarks(at) == [1, 0]


def shrunk(version: str, **config: int) -> Cluster:
    """Broker 3 stopped fetching and has left the ISR; 1 and 2 have three records, all committed."""
    events: list[Event] = [FetchOnce(2), FetchOnce(3), Produce(1), FetchOnce(2), Pass(20_000), FetchOnce(2)]
    events += [ShrinkIsr(1), AnswerAlterIsr(1), Produce(1, 2), FetchOnce(2), FetchOnce(2), FetchOnce(2)]
    return run(cluster(version, 1, 2, 3, **config), events)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_follower_that_does_not_fetch_leaves_the_isr_and_the_high_watermark_goes_on(version: str) -> None:
    at = shrunk(version)
    assert (at.decided.isr, at.decided.partition_epoch) == ({1, 2}, 1)
    assert high_watermarks(at) == [3, 3, 0]


@pytest.mark.parametrize("version", VERSIONS)
def test_it_joins_again_when_its_end_reached_the_high_watermark(version: str) -> None:
    once = run(shrunk(version), [FetchOnce(3, max_records=2), FetchOnce(3), AnswerAlterIsr(1)])
    assert once.decided.isr == {1, 2}
    assert run(once, [FetchOnce(3), AnswerAlterIsr(1)]).decided.isr == {1, 2, 3}


@pytest.mark.parametrize(
    ("version", "behind", "isr"), [("0.8.2.2", 4, {1, 2}), ("0.8.2.2", 5, {1}), ("0.9.0.1", 5, {1, 2})]
)
def test_until_0_9_too_many_records_behind_is_enough_to_leave(version: str, behind: int, isr: set[int]) -> None:
    at = run(cluster(version, replica_lag_max_messages=4), [FetchOnce(2), Produce(1, behind), ShrinkIsr(1)])
    assert at.decided.isr == isr


@pytest.mark.parametrize(("version", "expected"), [("0.10.1.1", 2), *((version, 1) for version in HOLDS_BACK)])
def test_since_0_10_2_a_caught_up_replica_outside_the_isr_holds_the_high_watermark_back(
    version: str, expected: int
) -> None:
    """Broker 2 left the ISR of one; it catches up, but its return cannot be written: the leader is deposed."""
    at = run(cluster(version), [FetchOnce(2), Pass(20_000), Produce(1), ShrinkIsr(1), AnswerAlterIsr(1)])
    assert (at.decided.isr, high_watermarks(at)[0]) == ({1}, 1)
    at = run(at, [Pause(1), LoseSession(1), Resume(1), FetchOnce(2), FetchOnce(2), Produce(1)])
    assert high_watermarks(at)[0] == expected


@pytest.mark.parametrize(("version", "expected"), [("2.8.2", [1, 1]), ("3.6.2", [1, 1]), ("3.7.0", [0, 0])])
def test_since_3_7_nothing_is_committed_under_min_insync_replicas(version: str, expected: list[int]) -> None:
    events: list[Event] = [FetchOnce(2), Pass(60_000), Produce(1, acks=1), ShrinkIsr(1), AnswerAlterIsr(1)]
    at = run(cluster(version, min_insync_replicas=2), events)
    assert at.decided.isr == {1}
    assert [at.replicas[1].high_watermark, len(at.shown)] == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_acks_all_is_refused_under_min_insync_replicas_and_acks_one_is_not(version: str) -> None:
    at = run(cluster(version, min_insync_replicas=2), [FetchOnce(2), Pass(60_000), Produce(1), ShrinkIsr(1)])
    at = run(at, [AnswerAlterIsr(1)])
    assert step(at, Produce(1, acks=-1)) is at
    after = step(at, Produce(1, acks=1))
    assert after.replicas[1].log_end_offset == 2
    assert is_acknowledged(after.config, after.replicas[1], 1, acks=1)
    assert not is_acknowledged(after.config, after.replicas[1], 0, acks=-1)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_new_leader_starts_with_its_own_older_high_watermark_until_the_isr_fetched(version: str) -> None:
    at = run(cluster(version), [FetchOnce(2), Produce(1), FetchOnce(2), FetchOnce(2, is_answer_lost=True)])
    at = run(at, [Elect(2), Deliver(2), Deliver(1)])
    assert (high_watermarks(at), at.replicas[2].log_end_offset) == ([1, 0], 1)
    assert run(at, [FetchOnce(1)]).replicas[2].high_watermark == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_a_deposed_leader_cannot_write_the_isr(version: str) -> None:
    at = run(cluster(version), [FetchOnce(2), Pause(1), Elect(2), Deliver(2), Resume(1), Pass(60_000), Produce(1)])
    assert run(at, [ShrinkIsr(1), AnswerAlterIsr(1)]).decided == at.decided


@pytest.mark.parametrize(
    ("version", "end"), [("0.8.2.2", 1), ("0.10.2.2", 1), ("0.11.0.3", 2), ("2.8.2", 2), ("3.9.1", 2)]
)
def test_a_follower_of_a_new_leader_cuts_to_its_high_watermark_before_0_11_and_keeps_what_the_leader_has_since(
    version: str, end: int
) -> None:
    events: list[Event] = [FetchOnce(2), FetchOnce(3), Produce(1), FetchOnce(2), FetchOnce(3), FetchOnce(2)]
    events += [FetchOnce(3), FetchOnce(3), Produce(1), FetchOnce(2), FetchOnce(3)]
    at = run(cluster(version, 1, 2, 3), [*events, Elect(2), Deliver(2), Deliver(3)])
    assert high_watermarks(at)[2] == 1
    assert at.replicas[3].log_end_offset == end
    assert run(at, [FetchOnce(3)]).replicas[3].log_end_offset == 2


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("loses_checkpoint", "expected"), [(False, 2), (True, 0)])
def test_a_restart_begins_at_the_checkpointed_high_watermark_and_at_zero_without_one(
    version: str, loses_checkpoint: bool, expected: int
) -> None:
    at = run(cluster(version, 1), [Produce(1, 2), CheckpointHighWatermarks(1), Produce(1), Kill(1)])
    at = run(at, [LoseCheckpoint(1)] if loses_checkpoint else [])
    assert step(at, Restart(1)).replicas[1].high_watermark == expected
    assert step(at, Restart(1)).replicas[1].log_end_offset == 3


def test_a_checkpoint_above_what_recovery_left_is_capped_by_the_log_end() -> None:
    at = run(cluster("1.1.1", 1), [Produce(1, 3), CheckpointHighWatermarks(1), Kill(1), Restart(1, log_end_offset=1)])
    assert (log_end_offsets(at), high_watermarks(at)) == ([1], [1])


def test_events_that_cannot_happen_change_nothing() -> None:
    at = cluster("3.9.1")
    impossible: list[Event] = [
        Produce(2),
        FetchOnce(1),
        Deliver(1),
        Deliver(1, skipped=9),
        ShrinkIsr(2),
        AnswerAlterIsr(1),
        Restart(1),
        Elect(1),
        Resume(1),
        LoseCheckpoint(1),
    ]
    for event in impossible:
        assert step(at, event) is at, event
