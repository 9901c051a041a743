"""At one instant, what we reconstruct is what Kafka's own tools print of the live cluster."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from jobs.lab.admin import Partition
from jobs.lab.play import play
from jobs.lab.releases import RELEASES, Release
from jobs.lab.scenarios.brokers import not_the_controller
from jobs.lab.stage import ORDERS, Scenario, Stage
from reconstruct.history.fold import PartitionHistory
from reconstruct.history.offsets.evidence import OffsetBounds
from tests.cluster.conftest import require_jars
from tests.cluster.kafka_tools import Described, KafkaTools
from tests.cluster.processes import processes_of
from tests.support.offset_truth import bounds_of, read_evidence
from tests.support.plain_evidence import plain_capture

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


@dataclass
class Printed:
    """What the tools said at ``at`` (µs since the epoch), when nothing had moved for a while and nothing did."""

    at: int = 0
    dead: int = 0
    topics: Mapping[Partition, Described] = field(default_factory=dict)
    under_replicated: frozenset[Partition] = frozenset()
    unavailable: frozenset[Partition] = frozenset()
    high_watermarks: dict[Partition, int] = field(default_factory=dict)
    log_ends: dict[tuple[int, Partition], int] = field(default_factory=dict)
    offset_lags: Mapping[tuple[int, Partition], int] = field(default_factory=dict)
    most_behind: int = -1


def asks(printed: Printed, release: Release) -> Scenario:
    """Produce, kill a broker that alone has one partition, and ask when all has come to rest."""

    def scenario(stage: Stage) -> None:
        tools = KafkaTools(stage.cluster)
        printed.dead = not_the_controller(stage)
        orders = stage.create("orders", ORDERS)
        solo = stage.create("solo", {0: (printed.dead,)})
        with stage.produce([*orders, *solo], acks="all") as load:
            stage.let_run(load)
        printed.most_behind = tools.most_behind("orders")
        stage.kill(printed.dead)
        living = [broker for broker in stage.cluster.brokers if broker != printed.dead]
        for partition in orders:
            stage.wait_for_isr(partition, living)
            stage.wait_for_leader(partition, living)
        stage.recording.wait_for_rounds(4)
        printed.at = time.time_ns() // 1000
        printed.topics = tools.topics()
        printed.under_replicated = frozenset(tools.topics("--under-replicated-partitions"))
        printed.unavailable = frozenset(tools.topics("--unavailable-partitions"))
        printed.high_watermarks = tools.offsets("orders")
        for broker_id in living:
            for partition in orders:
                data = stage.cluster.brokers[broker_id].data
                printed.log_ends[broker_id, partition] = tools.log_end_offset(data, partition)
        if release.has_log_dirs:
            printed.offset_lags = tools.offset_lags()
        stage.recording.wait_for_rounds(3)

    return Scenario("agreement", "what Kafka's own tools say", scenario)


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
def test_our_tables_are_what_kafka_s_tools_print(release: Release, tmp_path: Path) -> None:
    require_jars(release)
    printed = Printed()
    played = play(asks(printed, release), release, tmp_path, say=print)
    assert processes_of(tmp_path) == {}
    histories = plain_capture(played.capture).fold()
    assert {key: described(history, printed.at) for key, history in histories.items()} == printed.topics
    assert kept(histories, "under_replicated", printed.at) == printed.under_replicated
    assert kept(histories, "offline", printed.at) == printed.unavailable == {("solo", 0)}
    bounds = bounds_of(read_evidence(played.capture, with_probes=True))
    orders = {partition: rows for partition, rows in bounds.items() if partition[0] == "orders"}
    ours = {key: high_watermark(rows, printed.topics[key].leader, printed.at) for key, rows in orders.items()}
    assert ours == {partition: (offset, offset) for partition, offset in printed.high_watermarks.items()}
    ends = {key: log_end(orders[key[1]], key[0], printed.at) for key in printed.log_ends}
    assert ends == {key: (offset, offset) for key, offset in printed.log_ends.items()}
    assert len(ends) == 6
    lags = {key: lag for key, lag in printed.offset_lags.items() if key in ends}
    our_lags = {key: max(0, printed.high_watermarks[key[1]] - end) for key, end in printed.log_ends.items()}
    assert lags == (our_lags if release.has_log_dirs else {})
    assert printed.most_behind == 0


def described(history: PartitionHistory, at: int) -> Described:
    """A partition as our timelines have it at one instant."""
    state = next(interval.value for interval in history.leader_and_isr if interval.holds_at(at))
    assigned = next(interval.value for interval in history.assignments if interval.holds_at(at))
    return Described(state.leader, assigned.replicas, frozenset(state.isr))


def kept(histories: Mapping[Partition, PartitionHistory], kind: str, at: int) -> set[Partition]:
    """The partitions that were unavailable in one way at one instant."""
    return {
        key
        for key, history in histories.items()
        for each in history.availability
        if each.kind == kind and each.start <= at and (each.end is None or at < each.end)
    }


def high_watermark(rows: Sequence[OffsetBounds], replica: int, at: int) -> tuple[int | None, int | None]:
    row = as_of(rows, replica, at)
    return row.high_watermark_lower, row.high_watermark_upper


def log_end(rows: Sequence[OffsetBounds], replica: int, at: int) -> tuple[int | None, int | None]:
    row = as_of(rows, replica, at)
    return row.log_end_offset_lower, row.log_end_offset_upper


def as_of(rows: Sequence[OffsetBounds], replica: int, at: int) -> OffsetBounds:
    return next(
        row
        for row in rows
        if row.replica_id == replica and row.valid_from <= at and (row.valid_to is None or at < row.valid_to)
    )
