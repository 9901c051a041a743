"""Random workloads and failures: what a version promises holds in every state, what it cannot keep breaks.

Clean elections, and brokers that lose nothing they wrote: that is what Kafka's promise is about. A share of the runs
is in every suite, always the same ones; with ``HYPOTHESIS_PROFILE=hard`` each machine runs 1,000 times, ever anew.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from reconstruct.model.versions import KafkaVersion
from tests.figures import Figure
from tests.oracles.replication import events as e
from tests.oracles.replication.cluster import Cluster, new_cluster, step
from tests.oracles.replication.invariants import INVARIANTS
from tests.oracles.replication.rules import ReplicationConfig, ReplicationRules, rules_of
from tests.support.budget import IS_HARD

RUNS = 1_000 if IS_HARD else 25
HISTORIES = 12_000 if IS_HARD else 400
VERSIONS = ("0.8.2.2", "0.10.2.2", "1.1.1", "2.0.0", "2.1.1", "2.8.2", "3.9.1")
PROMISING = ("2.1.1", "2.8.2", "3.9.1")
BROKERS = st.sampled_from((1, 2, 3))


def rules(version: str) -> ReplicationRules:
    parsed = KafkaVersion.parse(version)
    assert parsed is not None
    return rules_of(parsed)


def promised(rules: ReplicationRules, *, is_clean: bool) -> set[str]:
    """The invariants that hold in every state of a cluster of these rules, by whether its elections were clean."""
    names = {"LeaderInIsr"}
    if rules.keeps_high_watermark_in_log:
        names.add("HighWatermarkWithinLog")
    if rules.promises_strong_isr:
        names |= {"FollowersAgree"} | ({"WeakIsr", "StrongIsr", "CommittedIsKept"} if is_clean else set())
    return names


class ReplicationMachine(RuleBasedStateMachine):
    """A partition with three replicas, under every event; its subclasses say which rules and how bad the world is."""

    replication_rules: ReplicationRules
    is_clean = True

    def __init__(self) -> None:
        super().__init__()
        self.cluster = new_cluster(self.replication_rules, ReplicationConfig())
        self.names = promised(self.replication_rules, is_clean=self.is_clean)

    @initialize(min_insync_replicas=st.sampled_from((1, 2)))
    def configure(self, min_insync_replicas: int) -> None:
        config = ReplicationConfig(min_insync_replicas=min_insync_replicas)
        self.cluster = new_cluster(self.replication_rules, config)

    def happen(self, event: e.Event) -> None:
        before = self.cluster
        self.cluster = step(before, event)
        if self.cluster is before:
            return
        check_step(before, self.cluster)
        for name in self.names:
            broken = INVARIANTS[name](self.cluster)
            assert broken is None, f"{name}: {broken}"

    @rule(broker=BROKERS, count=st.integers(1, 2), acks=st.sampled_from((-1, 1)))
    def produce(self, broker: int, count: int, acks: int) -> None:
        self.happen(e.Produce(broker, count, acks))

    @rule(broker=BROKERS, max_records=st.sampled_from((100, 1)), is_answer_lost=st.booleans())
    def fetch(self, broker: int, max_records: int, is_answer_lost: bool) -> None:
        self.happen(e.FetchOnce(broker, max_records, is_answer_lost))

    @rule(broker=BROKERS)
    def fetch_twice(self, broker: int) -> None:
        self.happen(e.FetchOnce(broker))
        self.happen(e.FetchOnce(broker))

    @rule(broker=BROKERS)
    def deliver(self, broker: int) -> None:
        self.happen(e.Deliver(broker))

    @rule(broker=BROKERS, ms=st.sampled_from((0, 11_000)))
    def shrink_isr(self, broker: int, ms: int) -> None:
        self.happen(e.Pass(ms))
        self.happen(e.ShrinkIsr(broker))

    @rule(broker=BROKERS)
    def answer_alter_isr(self, broker: int) -> None:
        self.happen(e.AnswerAlterIsr(broker))

    @rule(broker=BROKERS)
    def checkpoint(self, broker: int) -> None:
        self.happen(e.CheckpointHighWatermarks(broker))

    @rule(broker=BROKERS, loses_checkpoint=st.booleans())
    def kill(self, broker: int, loses_checkpoint: bool) -> None:
        self.happen(e.Kill(broker))
        if loses_checkpoint:
            self.happen(e.LoseCheckpoint(broker))

    @rule(broker=BROKERS)
    def pause(self, broker: int) -> None:
        self.happen(e.Pause(broker))

    @rule(broker=BROKERS)
    def lose_session(self, broker: int) -> None:
        self.happen(e.LoseSession(broker))

    @rule(broker=BROKERS, is_noticed=st.booleans())
    def come_back(self, broker: int, is_noticed: bool) -> None:
        self.happen(e.Resume(broker))
        self.happen(e.Restart(broker, is_noticed))

    @rule(broker=BROKERS)
    def elect(self, broker: int) -> None:
        self.happen(e.Elect(broker, is_unclean=not self.is_clean))


def check_step(before: Cluster, after: Cluster) -> None:
    """What holds of every step, in every version: a leader's high watermark only rises, epochs only rise."""
    assert after.decided.leader_epoch >= before.decided.leader_epoch
    assert after.decided.partition_epoch >= before.decided.partition_epoch
    for broker, replica in after.replicas.items():
        was = before.replicas[broker]
        if was.role == replica.role == "leader":
            assert replica.high_watermark >= was.high_watermark
            assert replica.log.records[: was.log_end_offset] == was.log.records
        epochs = [entry.leader_epoch for entry in replica.log.lineage]
        starts = [entry.start_offset for entry in replica.log.lineage]
        assert epochs == sorted(set(epochs))
        assert starts == sorted(set(starts))


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "unclean"])
@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_version_promises_holds_in_every_state(version: str, is_clean: bool, record_property: Any) -> None:
    name = f"Machine{version.replace('.', '_')}{'Clean' if is_clean else 'Unclean'}"
    machine = type(name, (ReplicationMachine,), {"replication_rules": rules(version), "is_clean": is_clean})
    run_state_machine_as_test(machine, settings=settings(max_examples=RUNS, stateful_step_count=40))
    record_property(Figure.HISTORIES, RUNS)


def random_event(source: random.Random) -> e.Event:
    """One event, weighted so that replication goes on between failures."""
    broker, kind = source.choice((1, 2, 3)), source.random()
    if kind < 0.22:
        return e.Produce(broker, source.choice((1, 2)))
    if kind < 0.56:
        return e.FetchOnce(broker, source.choice((1, 9)), source.random() < 0.15)
    if kind < 0.72:
        return e.Deliver(broker)
    rare: list[e.Event] = [
        e.ShrinkIsr(broker),
        e.AnswerAlterIsr(broker),
        e.CheckpointHighWatermarks(broker),
        e.Pass(11_000),
        e.Elect(broker),
        e.Elect(broker),
        e.Kill(broker),
        e.LoseSession(broker),
        e.Restart(broker),
        e.Pause(broker),
        e.Resume(broker),
    ]
    return source.choice(rare)


def broken_in(version: str, seed: int) -> set[str]:
    """The invariants that some state of one random history of clean elections breaks."""
    source, cluster, found = random.Random(seed), new_cluster(rules(version), ReplicationConfig()), set()
    for _ in range(60):
        after = step(cluster, random_event(source))
        if after is not cluster:
            cluster = after
            found |= {name for name, holds in INVARIANTS.items() if name not in found and holds(cluster)}
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_random_histories_break_what_a_version_does_not_promise_and_nothing_else(
    version: str, record_property: Any
) -> None:
    counts: dict[str, int] = {}
    for seed in range(HISTORIES):
        for name in broken_in(version, seed):
            counts[name] = counts.get(name, 0) + 1
    assert not counts.keys() & promised(rules(version), is_clean=True), counts
    if version in ("0.8.2.2", "0.10.2.2"):
        assert counts.keys() >= {"WeakIsr", "StrongIsr", "CommittedIsKept"}
    if version in PROMISING:
        assert not counts
    record_property(Figure.HISTORIES, HISTORIES)
