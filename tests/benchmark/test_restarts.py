"""What months of restarts cost the offsets: ``lifecycle-1.1.1``, whose last 70 seconds (brokers start three times,
leaders are elected, a topic is deleted) follow behind its end again and again, at two lengths, in plain Python."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from reconstruct.cluster.view import ClusterView
from reconstruct.findings.verdicts import Verdicts
from reconstruct.model.versions import VersionRange
from reconstruct.offsets.evidence import ReplicaEventKind
from reconstruct.offsets.losses import find_losses
from reconstruct.offsets.rules import OffsetCase, judge_offsets
from reconstruct.offsets.widest_bounds import bounds_of_versions
from tests.benchmark.growing_cluster import CAPTURE, LAST_ELECTED, records, risen
from tests.support.captures.packed import unpack
from tests.support.truth.offsets import read_evidence

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

RESTARTS: Final = tuple(int(times) for times in os.environ.get("BENCHMARK_RESTARTS", "25,100").split(","))
_LATER: Final = timedelta(seconds=80)


def restarted(folder: Path, times: int) -> Path:
    """The capture with its last 70 seconds so many times more, numbers that rise risen."""
    cluster = unpack(CAPTURE, folder)
    for log in sorted(cluster.rglob("logs/*.log")):
        repeated = [record for record in records(log) if record >= LAST_ELECTED]
        with log.open("a", encoding="utf-8") as file:
            file.writelines(risen(record, number, _LATER) for number in range(1, times + 1) for record in repeated)
    return cluster


def test_offsets_where_a_broker_starts_again_and_again(tmp_path: Path, capsys: Any) -> None:
    starts = []
    for times in RESTARTS:
        capture = restarted(tmp_path / str(times), times)
        found = read_evidence(capture)
        view = ClusterView(CAPTURE, VersionRange.exactly(found.version))
        spent = dict.fromkeys(("bounds", "losses", "rules"), 0.0)
        for (topic, _), evidence in found.partitions.items():
            instants = [time.process_time()]
            bounds = bounds_of_versions(evidence, view.version)
            instants.append(time.process_time())
            losses = find_losses(evidence, bounds)
            instants.append(time.process_time())
            judge_offsets(OffsetCase(topic, view, evidence, losses, (), {}), Verdicts())
            instants.append(time.process_time())
            for name, (begin, end) in zip(spent, pairwise(instants), strict=True):
                spent[name] += end - begin
        with capsys.disabled():
            size = sum(log.stat().st_size for log in capture.rglob("*.log")) / 1e6
            print(f"\n{times} times, {size:.0f} MB: " + ", ".join(f"{name} {s:.1f} s" for name, s in spent.items()))
        events = found.partitions["orders", 3].events_of(3, ReplicaEventKind.STARTED)
        starts.append(len(events))
    assert starts[1] - starts[0] == 2 * (RESTARTS[1] - RESTARTS[0])
