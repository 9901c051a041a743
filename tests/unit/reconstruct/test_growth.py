"""A long history of one partition, states or offsets, or of one cluster, costs in proportion to its lines, not to their
square."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import pytest

from ingest.shapes.broker_settings import BrokerSetting
from ingest.shapes.event_types import EventType
from reconstruct.cluster.episodes.procedures import reigning_windows
from reconstruct.cluster.evidence import (
    FOUND_CLEAN,
    STARTS,
    BrokerFact,
    ClusterFacts,
    ControllerFact,
    LifeSign,
    ProcedureLine,
    TakeOverLine,
)
from reconstruct.cluster.spans import LogSpan, Tenure
from reconstruct.cluster.spark.step import ClusterHistory
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.verdicts import Verdicts
from reconstruct.model.versions import KafkaVersion, VersionRange
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_AFTER, Drop, Fact, lower_steps, upper_steps
from reconstruct.offsets.evidence import (
    DecidedState,
    OffsetEvidence,
    OffsetObservation,
    ReplicaEvent,
    ReplicaEventKind,
)
from reconstruct.offsets.losses import find_losses
from reconstruct.offsets.rules import IsrMove, IsrMoveKind, OffsetCase, judge_offsets
from reconstruct.offsets.timeline import bound_offsets
from reconstruct.partitions.evidence import METADATA_PARTITION, Evidence
from reconstruct.partitions.timeline import fold_partition
from tests.support.work import lines_executed

SHORT: Final = 30
TIMES: Final = 4
SECOND: Final = 1_000_000
WHOLE, SMALL = (1, 2, 3), (1, 2)


def view_of(version: str) -> ClusterView:
    known = KafkaVersion.parse(version)
    assert known is not None
    return ClusterView("c", VersionRange.exactly(known), tenures=(Tenure(1, 1, 0, None, (), "TRACE"),))


def flapping(times: int) -> Iterator[Evidence]:
    """Replica 3 leaves the ISR and comes back: the leader's line, the controller's request, and three receipts."""
    for number in range(2 * times):
        at, isr, old = 10 * SECOND * number, (SMALL, WHOLE)[number % 2], (WHOLE, SMALL)[number % 2]
        kind = (EventType.ISR_SHRINK_PROPOSED, EventType.ISR_EXPAND_PROPOSED)[number % 2]
        yield Evidence(f"i{number}", kind, at, file="server", offset=number, broker_id=1, isr=isr, old_isr=old)
        state = {"leader": 1, "leader_epoch": 0, "isr": isr, "partition_epoch": number + 1, "replicas": WHOLE}
        sent = {"controller_id": 1, "controller_epoch": 1, "correlation_id": number}
        yield Evidence(
            f"s{number}",
            EventType.UPDATE_METADATA_SENT,
            at + SECOND,
            file="state",
            offset=2 * number,
            broker_id=1,
            to_broker_ids=WHOLE,
            **state,
            **sent,
        )
        for broker in WHOLE:
            yield Evidence(
                f"c{number}.{broker}",
                EventType.METADATA_CACHED,
                at + 2 * SECOND,
                file=f"state{broker}",
                offset=2 * number + 1,
                broker_id=broker,
                **state,
                **sent,
            )


def elected(times: int) -> Iterator[Evidence]:
    """Leader 1 and leader 2 by turns: the controller's line and request, what each broker received and became."""
    for epoch in range(times):
        at, leader = 10 * SECOND * epoch, 1 + epoch % 2
        state = {"leader": leader, "leader_epoch": epoch, "isr": WHOLE, "replicas": WHOLE, "partition_epoch": epoch}
        sent = {"controller_id": 1, "controller_epoch": 1}
        yield Evidence(
            f"d{epoch}",
            EventType.PARTITION_STATE_CHANGE,
            at,
            file="state",
            offset=2 * epoch,
            broker_id=1,
            from_state="OnlinePartition",
            to_state="OnlinePartition",
            **state,
            **sent,
        )
        yield Evidence(
            f"s{epoch}",
            EventType.LEADER_AND_ISR_SENT,
            at + 1,
            file="state",
            offset=2 * epoch + 1,
            broker_id=1,
            to_broker_ids=WHOLE,
            correlation_id=epoch,
            **state,
            **sent,
        )
        for broker in WHOLE:
            yield Evidence(
                f"r{epoch}.{broker}",
                EventType.LEADER_AND_ISR_RECEIVED,
                at + 1_000,
                file=f"state{broker}",
                offset=3 * epoch,
                broker_id=broker,
                correlation_id=epoch,
                **state,
                **sent,
            )


def recorded(times: int) -> Iterator[Evidence]:
    """A quorum's records of a replica that leaves the ISR and comes back, each tenth time with another leader."""
    for number in range(2 * times):
        epoch, isr = number // 20, (SMALL, WHOLE)[number % 2]
        yield Evidence(
            f"m{number}",
            METADATA_PARTITION,
            10 * SECOND * number,
            file="log",
            offset=number,
            leader=1 + epoch % 2,
            leader_epoch=epoch,
            isr=isr,
            replicas=WHOLE,
            partition_epoch=number,
        )


@pytest.mark.parametrize(
    ("history", "version"), [(flapping, "1.1.1"), (elected, "1.1.1"), (elected, "0.8.2.2"), (recorded, "4.0.0")]
)
def test_a_partition_s_history(history: Callable[[int], Iterator[Evidence]], version: str) -> None:
    def work(times: int) -> int:
        facts, states = list(history(times)), []

        def fold() -> None:
            case = fold_partition("orders", facts, view_of(version), partition_id=0)
            assert (case.overlaps, case.fetchers, case.isr_flapping) is not None
            states.extend(case.decided)

        executed = lines_executed(fold)
        assert len(states) >= times
        return executed

    assert work(TIMES * SHORT) < 1.25 * TIMES * work(SHORT)


def offsets(times: int) -> tuple[OffsetEvidence, list[IsrMove]]:
    """Leader 1 and leader 2 by turns, and replica 3, which each time leaves the ISR and comes back."""
    observations, events, decided, moves = [], [], [], []
    for epoch in range(times):
        at, leader = 100 * SECOND * epoch, 1 + epoch % 2
        for replica in WHOLE:
            kind = ReplicaEventKind.LEADS if replica == leader else ReplicaEventKind.FOLLOWS
            events.append(
                ReplicaEvent(replica, kind, at, leader=leader, leader_epoch=epoch, evidence_id=f"e{epoch}.{replica}")
            )
            for step in range(1, 5):
                for kind_of in (oe.HIGH_WATERMARK, oe.LOG_END_OFFSET):
                    offset = 100 * epoch + 10 * step + (kind_of == oe.LOG_END_OFFSET)
                    seen = OffsetObservation(replica, kind_of, offset, at + step * 20 * SECOND, source=oe.PROBE)
                    observations.append(seen)
        for part, isr in enumerate((WHOLE, SMALL, WHOLE)):
            begin, end = at + 30 * SECOND * part, at + (30 * (part + 1) if part < 2 else 100) * SECOND
            decided.append(DecidedState(begin, end, leader, epoch, isr))
        moves += [
            IsrMove(leader, 3, kind, at + after * SECOND, evidence_id=f"m{epoch}.{after}")
            for kind, after in ((IsrMoveKind.LEFT, 30), (IsrMoveKind.JOINED, 60))
        ]
    covered = {replica: [(-SECOND, 100 * SECOND * times)] for replica in WHOLE}
    return OffsetEvidence(observations, events, decided, covered), moves


def restarts(times: int) -> tuple[OffsetEvidence, list[IsrMove]]:
    """Replica 3 starts again and again; each time leader 1 is told that it leads, and the others whom they follow."""
    observations, events, decided, moves = [], [], [], []
    for number in range(times):
        at = 100 * SECOND * number
        events.append(ReplicaEvent(3, ReplicaEventKind.STARTED, at + 40 * SECOND, evidence_id=f"e{number}.started"))
        for replica in WHOLE:
            kind = ReplicaEventKind.LEADS if replica == 1 else ReplicaEventKind.FOLLOWS
            told = ReplicaEvent(replica, kind, at + 41 * SECOND, None, 1, number, f"e{number}.{replica}")
            events.append(told)
            for step in range(1, 5):
                for kind_of in (oe.HIGH_WATERMARK, oe.LOG_END_OFFSET) if replica != 2 else ():
                    offset = 100 * number + 10 * step + (kind_of == oe.LOG_END_OFFSET)
                    seen = OffsetObservation(replica, kind_of, offset, at + step * 20 * SECOND, source=oe.PROBE)
                    observations.append(seen)
        for part, isr in enumerate((WHOLE, SMALL)):
            decided.append(DecidedState(at + 50 * part * SECOND, at + 50 * (part + 1) * SECOND, 1, number, isr))
        moves += [
            IsrMove(1, 3, kind, at + after * SECOND, evidence_id=f"m{number}.{after}")
            for kind, after in ((IsrMoveKind.LEFT, 50), (IsrMoveKind.JOINED, 100))
        ]
    covered = {replica: [(-SECOND, 100 * SECOND * times)] for replica in WHOLE}
    return OffsetEvidence(observations, events, decided, covered), moves


@pytest.mark.parametrize("history", [offsets, restarts])
def test_offsets(history: Callable[[int], tuple[OffsetEvidence, list[IsrMove]]]) -> None:
    def work(times: int) -> int:
        evidence, moves = history(times)
        rows = []

        def fold() -> None:
            bounds = bound_offsets(evidence, KafkaVersion((3, 9, 1)))
            case = OffsetCase("orders", view_of("3.9.1"), evidence, find_losses(evidence, bounds), moves)
            judge_offsets(case, Verdicts())
            rows.extend(bounds)

        executed = lines_executed(fold)
        assert len(rows) >= times
        return executed

    assert work(TIMES * SHORT) < 1.25 * TIMES * work(SHORT)


def test_drops_that_nothing_ends() -> None:
    """Of a follower that is never seen to fetch, though it is told to follow again and again."""

    def work(times: int) -> int:
        facts = [Fact(2 * number + 1, number) for number in range(times)]
        drops = [Drop(2 * number, EVER_AFTER, floor=number) for number in range(times)]
        steps = []
        executed = lines_executed(lambda: steps.extend([*lower_steps(facts, drops), *upper_steps(facts, drops)]))
        assert steps
        return executed

    assert work(TIMES * SHORT) < 1.25 * TIMES * work(SHORT)


def cluster(times: int) -> ClusterFacts:
    """Broker 3 starts again and again, every second time in order, and each time another controller is elected."""
    facts = ClusterFacts(stated_versions=["2.8.2"])
    for number in range(times):
        at, other = 100 * SECOND * number, 1 + number % 2
        facts.controllers += [
            ControllerFact("elected", at, f"e{number}", other, number + 1),
            ControllerFact("acted", at + SECOND, f"a{number}", other, number + 1, "TRACE", log_file=f"{other}"),
            ControllerFact("resigned", at + 99 * SECOND, f"q{number}", other),
        ]
        told = [("registered", 20), ("up", 21), ("unregistered", 60), ("down", 61)]
        told += [("shutdown_requested", 55)] if number % 2 else []
        facts.brokers += [
            BrokerFact(3, kind, at + s * SECOND, f"{kind}{number}", number + 1, at + s * SECOND, controller_id=other)
            for kind, s in told
        ]
        facts.process_starts.append((3, at + 15 * SECOND, f"s{number}"))
        signs = [(STARTS, 15), (FOUND_CLEAN, 16), ("line", 50), ("unreachable", 59)]
        facts.life_signs += [LifeSign(3, kind, at + s * SECOND, f"{kind}{number}") for kind, s in signs]
        facts.own_settings.printed.setdefault(3, []).append(
            (at + 15 * SECOND, {BrokerSetting.SESSION_TIMEOUT: str(6000 + number % 2)})
        )
        facts.take_over_lines.append(
            TakeOverLine(other, EventType.CONTROLLER_ELECTED, at + SECOND, f"t{number}", "controller", 2 * number)
        )
        named = {"deleted_broker_ids": "3"}
        failure = (EventType.BROKER_CHANGE, at + 61 * SECOND, f"b{number}", "controller", 2 * number + 1)
        facts.procedure_lines.append(ProcedureLine(other, *failure, named=named))
    return facts


def test_a_broker_that_starts_again_and_again() -> None:
    def work(times: int) -> int:
        facts, histories = cluster(times), []
        executed = lines_executed(lambda: histories.append(ClusterHistory("c", facts)))
        (history,) = histories
        spans = [(number, one.began_at, one.until) for number, one in enumerate(history.procedures)]
        executed += lines_executed(lambda: list(reigning_windows(history.tenures, spans, history.procedures)))
        assert [len(ends) for ends in history.ends.values()] == [times]
        assert (len(history.tenures), len(history.view.departures[3])) == (times, times)
        return executed

    assert work(TIMES * SHORT) < 1.25 * TIMES * work(SHORT)


def led_by_one_that_starts_again(times: int) -> Iterator[Evidence]:
    """Broker 3 leads whenever it is there; what each decision says is sent, and received by all that live."""
    for number in range(2 * times):
        is_back = number % 2 == 0
        at, controller = 100 * SECOND * (number // 2) + (21 if is_back else 61) * SECOND, 1 + number // 2 % 2
        leader, isr = (3, WHOLE) if is_back else (controller, SMALL)
        state = {"leader": leader, "leader_epoch": number, "isr": isr, "partition_epoch": number, "replicas": WHOLE}
        sent = {"controller_id": controller, "controller_epoch": number // 2 + 1, "correlation_id": number}
        yield Evidence(
            f"s{number}",
            EventType.LEADER_AND_ISR_SENT,
            at,
            file=f"state-{controller}",
            offset=2 * number,
            broker_id=controller,
            to_broker_ids=isr,
            **state,
            **sent,
        )
        for broker in isr:
            line = (f"r{number}.{broker}", EventType.LEADER_AND_ISR_RECEIVED, at + 2000)
            yield Evidence(*line, file=f"state-{broker}", offset=2 * number + 1, broker_id=broker, **state, **sent)


def test_a_partition_led_by_one_that_starts_again_and_again() -> None:
    def work(times: int) -> int:
        facts, cases = list(led_by_one_that_starts_again(times)), []
        logs = tuple(LogSpan(100 * SECOND * n, 100 * SECOND * (n + 1) - 1, "TRACE") for n in range(times))
        view = replace(ClusterHistory("c", cluster(times)).view, logs=dict.fromkeys(WHOLE, logs))
        executed = lines_executed(lambda: cases.append(fold_partition("orders", facts, view, partition_id=0)))
        assert len(cases[0].decided) == 2 * times
        return executed

    assert work(TIMES * SHORT) < 1.25 * TIMES * work(SHORT)
