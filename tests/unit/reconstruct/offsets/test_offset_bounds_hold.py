"""The bounds against the simulator: whatever happened to a cluster, what its files and logs prove of it is true.

A random history is played, one event every three seconds; beside it, what its brokers would have left behind: copies of
the checkpoint files, the lines of role changes, truncations and loaded logs, the decided states. From those alone the
bounds are made, and the replicas' real offsets must lie within them at every instant; also where the brokers' clocks
are wrong, each by no more than is said of it.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from reconstruct.model.versions import KafkaVersion
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_AFTER
from reconstruct.offsets.clocks import UNBOUNDED_US, OffsetClocks
from reconstruct.offsets.evidence import (
    DecidedState,
    OffsetBounds,
    OffsetEvidence,
    OffsetObservation,
    ReplicaEvent,
    ReplicaEventKind,
)
from reconstruct.offsets.timeline import bound_offsets
from tests.figures import Figure
from tests.oracles.replication import events as e
from tests.oracles.replication.cluster import Cluster, new_cluster, step
from tests.oracles.replication.replica import Replica, Role
from tests.oracles.replication.rules import ReplicationConfig, rules_of
from tests.support.budget import IS_HARD

SECOND = 1_000_000
HOUR = 3_600 * SECOND
RUNS = 200 if IS_HARD else 16
STEPS = 100


@dataclass(slots=True)
class Witness:
    """Writes down what the brokers' logs, the copies of their files and the controller would show."""

    observations: list[OffsetObservation] = field(default_factory=list)
    events: list[ReplicaEvent] = field(default_factory=list)
    decided: list[DecidedState] = field(default_factory=list)

    def watch(self, before: Cluster, after: Cluster, event: e.Event, at: int) -> None:
        for broker, replica in after.replicas.items():
            was = before.replicas[broker]
            if broker in after.alive - before.alive:
                self._started(broker, replica, at)
            elif broker in after.alive:
                self._acted(broker, was, replica, at)
        if after.decided != before.decided:
            self.decide(after, at)

    def _started(self, broker: int, replica: Replica, at: int) -> None:
        self.events.append(ReplicaEvent(broker, ReplicaEventKind.STARTED, at))
        self.observations.append(
            OffsetObservation(broker, oe.LOG_END_OFFSET, replica.log_end_offset, at + 100, source="log_record")
        )

    def _acted(self, broker: int, was: Replica, replica: Replica, at: int) -> None:
        if replica.leader_epoch != was.leader_epoch and replica.role is Role.LEADER:
            epoch = replica.leader_epoch
            self.events.append(ReplicaEvent(broker, ReplicaEventKind.LEADS, at, None, broker, epoch))
            end = was.log_end_offset
            self.observations.append(
                OffsetObservation(broker, oe.LOG_END_OFFSET, end, at, leader_epoch=epoch, source="log_record")
            )
        follows_anew = replica.leader != was.leader or was.role is not Role.FOLLOWER or replica.is_truncating
        if replica.leader_epoch != was.leader_epoch and replica.role is Role.FOLLOWER and follows_anew:
            self.events.append(ReplicaEvent(broker, ReplicaEventKind.FOLLOWS, at, None, replica.leader))
        kept = next(
            (i for i, (a, b) in enumerate(zip(was.log.records, replica.log.records, strict=False)) if a != b),
            min(was.log_end_offset, replica.log_end_offset),
        )
        if kept < was.log_end_offset:
            self.events.append(ReplicaEvent(broker, ReplicaEventKind.TRUNCATED, at, kept))

    def copy_files(self, cluster: Cluster, at: int) -> None:
        for broker, replica in cluster.replicas.items():
            if replica.checkpointed_high_watermark is not None:
                self.observations.append(
                    OffsetObservation(
                        broker,
                        oe.HIGH_WATERMARK,
                        replica.checkpointed_high_watermark,
                        at,
                        at + SECOND,
                        source="replication_offset_checkpoint",
                    )
                )

    def probe(self, source: random.Random, before: Cluster, after: Cluster, at: int) -> None:
        """What running brokers answer who were asked before the event at ``at``, or after it, and answer later."""
        cluster, late = (before, 0) if source.random() < 0.5 else (after, SECOND)
        for broker in before.alive & after.alive:
            replica = cluster.replicas[broker]
            if Role.OFFLINE in (replica.role, before.replicas[broker].role):
                continue
            asked, answered = at - source.choice((1, SECOND)) + late, at + late + source.choice((0, SECOND // 2))
            answers = [(oe.LOG_END_OFFSET, replica.log_end_offset)]
            if replica.role is Role.LEADER:
                answers.append((oe.HIGH_WATERMARK, replica.high_watermark))
            for kind, offset in answers:
                self.observations.append(OffsetObservation(broker, kind, offset, asked, answered, source=oe.PROBE))

    def decide(self, cluster: Cluster, at: int) -> None:
        if self.decided:
            last = self.decided.pop()
            self.decided.append(DecidedState(last.valid_from, at, last.leader, last.leader_epoch, last.isr))
        state = cluster.decided
        self.decided.append(DecidedState(at, None, state.leader, state.leader_epoch, tuple(sorted(state.isr))))

    def evidence(self) -> OffsetEvidence:
        covered = {broker: [(0, EVER_AFTER)] for broker in (1, 2, 3)}
        return OffsetEvidence(self.observations, self.events, self.decided, covered)


def some_events(source: random.Random, cluster: Cluster) -> list[e.Event]:
    """Mostly replication that goes on, in a cluster in which something fails now and then and is soon healed."""
    broker, kind = source.choice((1, 2, 3)), source.random()
    if kind < 0.25:
        return [e.Produce(leader.broker_id, source.choice((1, 3))) for leader in cluster.leaders()]
    if kind < 0.55:
        return [e.FetchOnce(broker, source.choice((1, 9)), source.random() < 0.1)]
    if kind < 0.65:
        return [e.Deliver(broker), e.FetchOnce(broker)]
    if kind < 0.86:
        return [e.CheckpointHighWatermarks(broker)]
    if kind < 0.93:
        return [source.choice([e.Restart, e.Resume])(other) for other in (1, 2, 3)]
    rare: list[list[e.Event]] = [
        [e.Pass(11_000), e.FetchOnce(broker), *map(e.ShrinkIsr, (1, 2, 3)), *map(e.AnswerAlterIsr, (1, 2, 3))],
        [e.AnswerAlterIsr(broker)],
        [e.Elect(broker)],
        [e.Elect(broker), e.Deliver(broker)],
        [e.Kill(broker)],
        [e.Kill(broker), e.LoseSession(broker)],
        [e.Pause(broker)],
        [e.LoseSession(broker)],
        [*map(e.Kill, (1, 2, 3)), *map(e.LoseSession, (1, 2, 3)), e.Restart(broker), e.Elect(broker, is_unclean=True)],
    ]
    return source.choice(rare)


def as_timed(evidence: OffsetEvidence, source: random.Random, uncertain: Mapping[int, int]) -> OffsetEvidence:
    """``evidence`` as clocks tell it that are wrong by no more than ``uncertain``: each broker's lines by as much all
    along, decided states each by whatever some broker's clock allows."""
    wrong = {
        broker: source.randint(-most, most) if most < UNBOUNDED_US else -HOUR for broker, most in uncertain.items()
    }
    worst = max(abs(by) for by in wrong.values())
    decided: list[DecidedState] = []
    for state in evidence.decided:
        told = state.valid_from + source.randint(-worst, worst)
        if decided:
            told = max(told, decided[-1].valid_from)
            decided[-1] = replace(decided[-1], valid_to=told)
        decided.append(replace(state, valid_from=told))
    return replace(
        evidence,
        observations=[
            s if s.observed_at_upper is not None else replace(s, observed_at=s.observed_at + wrong[s.replica_id])
            for s in evidence.observations
        ],
        events=[replace(event, at=event.at + wrong[event.replica_id]) for event in evidence.events],
        decided=decided,
        covered={broker: [(wrong[broker], EVER_AFTER)] for broker in evidence.covered},
        clocks=OffsetClocks(uncertain),
    )


def play(
    version: str, seed: int, *, with_probes: bool = False, uncertain: Mapping[int, int] | None = None
) -> tuple[list[tuple[int, Cluster]], list[OffsetBounds]]:
    """One history: the states from their instants on, and the bounds made without them."""
    parsed = KafkaVersion.parse(version)
    assert parsed is not None
    source, rules, witness = random.Random(seed), rules_of(parsed), Witness()
    cluster = new_cluster(rules, ReplicationConfig())
    for broker, replica in cluster.replicas.items():
        kind = ReplicaEventKind.LEADS if replica.role is Role.LEADER else ReplicaEventKind.FOLLOWS
        witness.events += [
            ReplicaEvent(broker, ReplicaEventKind.STARTED, SECOND),
            ReplicaEvent(broker, kind, 2 * SECOND, None, replica.leader, replica.leader_epoch),
        ]
    witness.decide(cluster, 2 * SECOND)
    states, at = [(2 * SECOND, cluster)], 4 * SECOND
    for _ in range(STEPS):
        for event in some_events(source, cluster):
            before = cluster
            after = step(cluster, event)
            witness.watch(cluster, after, event, at)
            cluster = after
            states.append((at, cluster))
            if source.random() < 0.7:
                witness.copy_files(cluster, at + SECOND)
            if with_probes and source.random() < 0.5:
                witness.probe(source, before, cluster, at)
            at += 3 * SECOND
    evidence = witness.evidence()
    return states, bound_offsets(as_timed(evidence, source, uncertain) if uncertain else evidence, parsed)


@pytest.mark.parametrize("with_probes", [False, True], ids=["without probes", "with probes"])
@pytest.mark.parametrize("version", ["0.8.2.2", "0.10.2.2", "1.1.1", "2.1.1", "2.8.2", "3.9.1"])
def test_real_offsets_lie_within_the_bounds_of_any_history(
    version: str, with_probes: bool, record_property: Any
) -> None:
    lower, upper = claims_of(version, with_probes=with_probes)
    assert min(lower, upper) > 25 * RUNS, "bounds that say nothing are no test"
    record_property(Figure.HISTORIES, RUNS)


@pytest.mark.parametrize("with_probes", [False, True], ids=["without probes", "with probes"])
@pytest.mark.parametrize("seconds", [0.2, 2, 20])
@pytest.mark.parametrize("version", ["0.8.2.2", "1.1.1", "3.9.1"])
def test_real_offsets_lie_within_the_bounds_also_where_clocks_are_wrong(
    version: str, seconds: float, with_probes: bool, record_property: Any
) -> None:
    uncertain = {broker: round(seconds * SECOND) for broker in (1, 2, 3)}
    lower, upper = claims_of(version, with_probes=with_probes, uncertain=uncertain)
    assert min(lower, upper) > 20 * RUNS, "bounds that say nothing are no test"
    record_property(Figure.HISTORIES, RUNS)


@pytest.mark.parametrize("version", ["0.8.2.2", "1.1.1", "3.9.1"])
def test_nothing_is_claimed_of_a_broker_whose_clock_nothing_bounds_and_what_is_true_of_the_others(version: str) -> None:
    uncertain = {1: UNBOUNDED_US, 2: 0, 3: 0}
    assert not any(row.replica_id == 1 for row in play(version, 0, uncertain=uncertain)[1])
    assert min(claims_of(version, uncertain=uncertain)) > 6 * RUNS, "bounds that say nothing are no test"


def claims_of(
    version: str, *, with_probes: bool = False, uncertain: Mapping[int, int] | None = None
) -> tuple[int, int]:
    """How many high watermarks of running replicas the bounds of all runs claim from below and from above: all true."""
    lower = upper = 0
    for seed in range(RUNS):
        states, bounds = play(version, seed, with_probes=with_probes, uncertain=uncertain)
        instants = [at + SECOND + SECOND // 2 for at, _ in states]
        for row in bounds:
            until = len(states) if row.valid_to is None else bisect_left(instants, row.valid_to)
            for at, cluster in states[bisect_left(instants, row.valid_from) : until]:
                replica = cluster.replicas[row.replica_id]
                if row.replica_id not in cluster.alive or replica.role is Role.OFFLINE:
                    continue
                where = (f"seed {seed}, {at / SECOND + 1.5} s", replica, row)
                assert is_within(row.high_watermark_lower, replica.high_watermark, row.high_watermark_upper), where
                assert is_within(row.log_end_offset_lower, replica.log_end_offset, row.log_end_offset_upper), where
                lower += (row.high_watermark_lower or 0) > 0
                upper += row.high_watermark_upper is not None
    return lower, upper


def is_within(lower: int | None, offset: int, upper: int | None) -> bool:
    return (lower is None or lower <= offset) and (upper is None or offset <= upper)
