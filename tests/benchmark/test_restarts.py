"""What months of restarts cost the offsets: ``lifecycle-1.1.1``, whose last 70 seconds (brokers start three times,
leaders are elected, a topic is deleted) follow behind its end again and again, at two lengths, in plain Python."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
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
from tests.support.captures.packed import unpack
from tests.support.truth.offsets import read_evidence

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

CAPTURE: Final = "lifecycle-1.1.1"
RESTARTS: Final = tuple(int(times) for times in os.environ.get("BENCHMARK_RESTARTS", "25,100").split(","))
#: What lasts 70 seconds and is told again, this much later each time.
_REPEATED_FROM: Final = "[2026-11-21 03:31:37"
_LATER: Final = timedelta(seconds=80)
_BEGINS_RECORD: Final = re.compile(r"^\[\d{4}-\d\d-\d\d ")
#: Numbers that rise meanwhile, and by how much each time.
_RISING: Final = (
    (re.compile(r"(leaderEpoch=|LeaderEpoch:|Leader Epoch |Leader Epoch was: |\{epoch:|leader epoch )(\d+)"), 4),
    (re.compile(r"(zkVersion=|version )(\d+)"), 12),
    (re.compile(r"(correlation ?[iI]d )(\d+)"), 1000),
    (re.compile(r"(offset[: ]|from offset )(\d+)"), 600),
)


def restarted(folder: Path, times: int) -> Path:
    """The capture with its last 70 seconds so many times more, numbers that rise risen."""
    cluster = unpack(CAPTURE, folder)
    for log in sorted(cluster.rglob("logs/*.log")):
        repeated = [record for record in _records(log) if record >= _REPEATED_FROM]
        with log.open("a", encoding="utf-8") as file:
            file.writelines(_later(record, number) for number in range(1, times + 1) for record in repeated)
    return cluster


def _records(log: Path) -> Iterator[str]:
    held = ""
    for line in log.read_text(encoding="utf-8").splitlines(keepends=True):
        if held and _BEGINS_RECORD.match(line):
            yield held
            held = ""
        held += line
    yield held


def _later(record: str, number: int) -> str:
    at = datetime.strptime(record[1:24], "%Y-%m-%d %H:%M:%S,%f") + number * _LATER
    text = record[24:]
    for pattern, by in _RISING:
        text = pattern.sub(lambda found, more=by * number: f"{found[1]}{int(found[2]) + more}", text)  # type: ignore[misc]
    return f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03}{text}"


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
