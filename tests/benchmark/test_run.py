"""A whole ``run`` over logs scaled up from a capture, stage by stage, beside what DuckDB takes for the same fields.

Everything is measured at a quarter of the size and at the size, so that the growth is seen:
``KAFKA_STATE_REPLAY_BENCHMARK_BYTES`` (default 100 MB; the aims are of 1 and 10 GB), at the level
``KAFKA_STATE_REPLAY_BENCHMARK_LEVEL`` (TRACE, or INFO as brokers log by default since 2.6). A table is printed, and
written as JSON to ``.cache/benchmark.json``.

DuckDB reads the state-change logs line by line, takes the fields of the shapes that these logs hold by
``regexp_extract`` and writes them as Parquet; our ``ingest`` of the same files into the lake is the stage
``state-change``. The stage ``all logs`` is the other logs added.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from ingest.shapes import SHAPES
from jobs import check_job, ingest_job, reconstruct_job, report_job
from jobs.command.job import lake_of
from jobs.session.session import build_session
from tests.benchmark.duckdb_reading import DuckDbReading
from tests.benchmark.process_tree import ProcessTree
from tests.support.captures.packed import unpack
from tests.support.captures.scaled import scale_logs

CAPTURE: Final = "lifecycle-1.1.1"
TOPICS: Final = ("orders", "payments", "doomed", "scratch", "audit.log_v2")
SIZE_VARIABLE: Final = "KAFKA_STATE_REPLAY_BENCHMARK_BYTES"
LEVEL_VARIABLE: Final = "KAFKA_STATE_REPLAY_BENCHMARK_LEVEL"
THREADS: Final = 2
#: Stages that are no part of ``run``.
_BESIDE: Final = ("starting Spark", "DuckDB")

Stages = dict[str, dict[str, float]]


@pytest.mark.benchmark
@pytest.mark.timeout(7200)
def test_a_run_beside_duckdb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    size, level = int(os.environ.get(SIZE_VARIABLE, "100000000")), os.environ.get(LEVEL_VARIABLE, "TRACE")
    capture = unpack(CAPTURE, tmp_path / "capture")
    runs = []
    for bytes_ in (size // 4, size):
        logs = tmp_path / f"logs-{bytes_}"
        copies = scale_logs(capture, logs, bytes_, TOPICS, level=level)
        with capsys.disabled():
            runs.append(measured(logs, tmp_path / f"lake-{bytes_}") | {"level": level, "copies": copies})
    small, large = runs
    machine = {"processors": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()[0]}
    of_all = ratios(large)
    found = {"machine": machine, "runs": runs, "ratios": of_all, "growth": growth(small, large)}
    Path(".cache").mkdir(exist_ok=True)
    Path(".cache/benchmark.json").write_text(json.dumps(found, indent=1))
    with capsys.disabled():
        print(f"ratios at {large['bytes'] / 1e6:.0f} MB: {of_all}\ngrowth: {found['growth']}")
    assert not any(run["failed_gates"] for run in runs)
    assert of_all["check of all"] <= 0.25


def measured(logs: Path, folder: Path) -> dict[str, Any]:
    """Seconds, processors' seconds and most memory of each stage over these logs; printed as they come."""
    stages: Stages = {}
    tree = ProcessTree()
    written = sum(path.stat().st_size for path in logs.rglob("*.log"))
    state_changes = sorted(logs.rglob("state-change.log"))
    of_these = sum(path.stat().st_size for path in state_changes)
    print(
        f"\n{written / 1e6:.0f} MB of logs, {of_these / 1e6:.0f} of them state changes, load {os.getloadavg()[0]:.1f}"
    )
    print(f"{'stage':14} {'seconds':>8} {'processor':>10} {'MB/s':>7} {'peak MiB':>9}", flush=True)

    def timed(name: str, work: Callable[[], Any], of: int = written) -> Any:
        began, spent, tree.peak_bytes = time.perf_counter(), tree.cpu_seconds(), 0
        result = work()
        seconds, cpu = time.perf_counter() - began, tree.cpu_seconds() - spent
        stages[name] = {"seconds": seconds, "cpu_seconds": cpu, "peak_bytes": tree.peak_bytes}
        print(
            f"{name:14} {seconds:8.1f} {cpu:10.1f} {of / 1e6 / seconds:7.1f} {tree.peak_bytes / 2**20:9.0f}",
            flush=True,
        )
        return result

    def ingest(lake: Any, *paths: Path) -> Any:
        return ingest_job.ingest(lake, ingest_job.Params(lake.root, tuple(map(str, paths))), lambda _: None)

    spark = timed("starting Spark", lambda: build_session("benchmark"))
    try:
        ingest(lake_of(spark, f"{folder}/warm"), *logs.rglob("controller.log"))
        lake = lake_of(spark, f"{folder}/lake")
        timed("state-change", lambda: ingest(lake, *state_changes), of_these)
        known = lake.spark.read.format("delta").load(f"{lake.root}/bronze/log_records").select("shape_id").distinct()
        shapes = {row["shape_id"] for row in known.collect()}
        timed("DuckDB", lambda: to_parquet(state_changes, shapes, folder), of_these)
        whole = lake_of(spark, f"{folder}/whole")
        timed("ingest", lambda: ingest(whole, logs))
        timed("reconstruct", lambda: reconstruct_job.reconstruct(whole, lambda _: None))
        timed("report", lambda: report_job.write(whole, f"{folder}/report", None, lambda _: None, before_checks=True))
        checked = timed("check", lambda: check_job.check(whole, None, lambda _: None))
        timed("Data Docs", lambda: check_job.write_data_docs(checked, f"{folder}/docs", lambda _: None))
    finally:
        spark.stop()
        tree.stop()
    return {"bytes": written, "stages": stages, "failed_gates": checked.failed_gates}


def to_parquet(logs: list[Path], shapes: set[str | None], folder: Path) -> None:
    """DuckDB's part, with as many threads as Spark has processors."""
    for number, log in enumerate(logs):
        reading = DuckDbReading(log, [shape for shape in SHAPES if shape.id in shapes], THREADS)
        reading.run()
        reading.connection.execute(f"COPY records TO '{folder}/records-{number}.parquet' (FORMAT parquet)")
        reading.connection.close()


def ratios(run: dict[str, Any]) -> dict[str, float]:
    """How many times as long one stage takes as another."""
    seconds = {name: stage["seconds"] for name, stage in run["stages"].items()}
    of_run = sum(took for name, took in seconds.items() if name not in (*_BESIDE, "state-change"))
    return {
        "ingest to DuckDB": round(seconds["state-change"] / seconds["DuckDB"], 2),
        "reconstruct to ingest": round(seconds["reconstruct"] / seconds["ingest"], 2),
        "run to ingest": round(of_run / seconds["ingest"], 2),
        "check of all": round((seconds["check"] + seconds["Data Docs"]) / of_run, 3),
    }


def growth(small: dict[str, Any], large: dict[str, Any]) -> dict[str, float]:
    """By stage how many times as many seconds of the processors each takes for as many times the bytes, of 1."""
    times = large["bytes"] / small["bytes"]
    of_small = small["stages"]
    return {
        name: round(stage["cpu_seconds"] / of_small[name]["cpu_seconds"] / times, 2)
        for name, stage in large["stages"].items()
        if of_small[name]["cpu_seconds"]
    }
