"""What an increment costs beside making everything anew, in seconds of the processors' time and stage by stage: one
cluster, some thousand partitions, and then one in a hundred more; and one cluster more in a lake of several.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.benchmark.growing_cluster import first_day, next_logs, next_restarts
from tests.benchmark.processor_time import Cost, cost_of
from tests.support.captures.packed import capture_names, unpack

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

#: 100 copies are about 100 MB.
COPIES: Final = int(os.environ.get("BENCHMARK_COPIES", "100"))
#: Of a lake that grows for so many hours, and copies that come in each.
HOURS: Final = int(os.environ.get("BENCHMARK_HOURS", "30"))
HOURLY_COPIES: Final = int(os.environ.get("BENCHMARK_HOURLY_COPIES", "2"))
#: Of one whose brokers start again each hour, and of how many copies that is told.
RESTARTED_HOURS: Final = int(os.environ.get("BENCHMARK_RESTARTED_HOURS", "12"))
RESTARTED_COPIES: Final = int(os.environ.get("BENCHMARK_RESTARTED_COPIES", "5"))


def program(lake: Path, *command: str) -> tuple[Cost, dict[str, Any]]:
    """A command of the program: what it costs, and what it says of itself; its stages by the processors' time."""
    told = lake.with_name("told.json")
    counted = [sys.executable, "-m", "tests.benchmark.stage_costs", *command]
    cost = cost_of([*counted, "--lake", str(lake), "--json", str(told)])
    of_stages = json.loads(cost.out.splitlines()[-1])
    return cost, json.loads(told.read_text(encoding="utf-8")) | {"stages": of_stages}


def test_an_increment_of_a_hundredth_and_a_run_with_nothing_new(tmp_path: Path, capsys: Any) -> None:
    folder = first_day(tmp_path, COPIES)
    size = sum(path.stat().st_size for path in folder.rglob("*.log.*"))
    lake = tmp_path / "lake"
    costs: dict[str, tuple[Cost, dict[str, Any]]] = {}
    costs["ingest"] = program(lake, "ingest", str(folder))
    costs["first run"] = program(lake, "reconstruct")
    costs["nothing new"] = program(lake, "reconstruct")
    next_logs(tmp_path, range(COPIES, COPIES + max(1, COPIES // 100)))
    costs["ingest of 1 %"] = program(lake, "ingest", str(folder))
    costs["increment of 1 %"] = program(lake, "reconstruct")
    costs["--full"] = program(lake, "reconstruct", "--full")
    show(capsys, f"{size / 1e6:.0f} MB of logs", costs)
    assert costs["nothing new"][1]["reconstruct"]["how"] == "nothing is new since run 1"
    rows = [costs[name][1]["reconstruct"]["rows"] for name in ("increment of 1 %", "--full")]
    assert rows[0] == rows[1]


def test_each_capture_more_costs_about_what_it_would_alone(tmp_path: Path, capsys: Any) -> None:
    """A lake in which captures gather, as those of incidents do."""
    lake = tmp_path / "lake"
    costs: dict[str, tuple[Cost, dict[str, Any]]] = {}
    for name in capture_names():
        program(lake, "ingest", str(unpack(name, tmp_path / name)), "--cluster", name)
        costs[name] = program(lake, "reconstruct")
    costs["--full"] = program(lake, "reconstruct", "--full")
    show(capsys, f"{len(capture_names())} captures, one after the other", costs)
    told = [costs[name][1]["reconstruct"] for name in (capture_names()[-1], "--full")]
    assert told[0]["how"].endswith(f"; clusters left as they were: {len(capture_names()) - 1}")
    assert told[0]["rows"] == told[1]["rows"]


def test_the_thirtieth_run_beside_the_third(tmp_path: Path, capsys: Any) -> None:
    """A lake to which each hour brings as much as it began with, scheduled: ``ingest``, then ``reconstruct``."""
    folder = first_day(tmp_path, HOURLY_COPIES)
    lake = tmp_path / "lake"
    costs: dict[str, tuple[Cost, dict[str, Any]]] = {}
    for hour in range(HOURS):
        if hour:
            next_logs(tmp_path, range(hour * HOURLY_COPIES, (hour + 1) * HOURLY_COPIES), hour)
        costs[f"ingest {hour + 1}"] = program(lake, "ingest", str(folder))
        costs[f"reconstruct {hour + 1}"] = program(lake, "reconstruct")
    costs["--full"] = program(lake, "reconstruct", "--full")
    size = sum(path.stat().st_size for path in folder.rglob("*.log.*"))
    show(capsys, f"{size / 1e6:.0f} MB of logs in {HOURS} hours", costs)
    assert costs[f"reconstruct {HOURS}"][1]["reconstruct"]["how"].startswith("folds made again: ")
    rows = [costs[name][1]["reconstruct"]["rows"] for name in (f"reconstruct {HOURS}", "--full")]
    assert rows[0] == rows[1]


def test_hours_in_which_topics_are_deleted_and_created_again(tmp_path: Path, capsys: Any) -> None:
    """A lake of one cluster whose brokers start again each hour: of what was deleted nothing is made anew."""
    copies, lake = range(RESTARTED_COPIES), tmp_path / "lake"
    folder = first_day(tmp_path, RESTARTED_COPIES)
    costs: dict[str, tuple[Cost, dict[str, Any]]] = {}
    for hour in range(RESTARTED_HOURS):
        if hour:
            next_restarts(tmp_path, copies, hour)
        program(lake, "ingest", str(folder))
        costs[f"reconstruct {hour + 1}"] = program(lake, "reconstruct")
    costs["--full"] = program(lake, "reconstruct", "--full")
    size = sum(path.stat().st_size for path in folder.rglob("*.log.*"))
    show(capsys, f"{size / 1e6:.0f} MB of logs in {RESTARTED_HOURS} hours", costs)
    rows = [costs[name][1]["reconstruct"]["rows"] for name in (f"reconstruct {RESTARTED_HOURS}", "--full")]
    assert rows[0] == rows[1]


def show(capsys: Any, title: str, costs: dict[str, tuple[Cost, dict[str, Any]]]) -> None:
    """Print what each run cost, stage by stage."""
    with capsys.disabled():
        print(f"\n{title}")
        for name, (cost, told) in costs.items():
            how = told.get("reconstruct", {}).get("how", "")
            print(f"{name:20} {cost.busy_s:8.1f} s of the processors, {cost.lasted_s:8.1f} s by the clock  {how}")
            for stage, busy_s in told["stages"].items():
                print(f"    {stage:60} {busy_s:8.1f} s")
