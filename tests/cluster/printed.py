"""What Kafka's own tools print of a live cluster at one instant."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from jobs.lab.admin import Partition
from jobs.lab.machines.releases import Release
from jobs.lab.scenarios.brokers import not_the_controller
from jobs.lab.stage import ORDERS, Scenario, Stage
from tests.cluster.kafka_tools import Described, KafkaTools

#: DescribeLogDirs is answered since then (KIP-113).
HAS_LOG_DIRS: Final = (1, 0)


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
        if release.number >= HAS_LOG_DIRS:
            printed.offset_lags = tools.offset_lags()
        stage.recording.wait_for_rounds(3)

    return Scenario("agreement", "what Kafka's own tools say", scenario)
