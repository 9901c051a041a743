"""What the checks cost beside the rest of a ``run``, over logs scaled up from a capture: at most a quarter is asked.

The size is 1 GB, or ``KAFKA_STATE_REPLAY_BENCHMARK_BYTES``; what is timed is the jobs' own functions, in one session as
``run`` makes it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from jobs import check_job, ingest_job, reconstruct_job, report_job, run_job
from jobs.job import lake_of
from jobs.session.session import build_session
from tests.support.captures.packed import unpack
from tests.support.captures.scaled import scale_logs

CAPTURE: Final = "lifecycle-1.1.1"
TOPICS: Final = ("orders", "payments", "doomed", "scratch", "audit.log_v2")
SIZE_VARIABLE: Final = "KAFKA_STATE_REPLAY_BENCHMARK_BYTES"


@pytest.mark.benchmark
@pytest.mark.timeout(7200)
def test_the_checks_beside_a_run(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", str(tmp_path / "report")
    size = int(os.environ.get(SIZE_VARIABLE, "1000000000"))
    copies = scale_logs(unpack(CAPTURE, tmp_path / "capture"), logs, size, TOPICS)
    written = sum(path.stat().st_size for path in logs.rglob("*.log"))
    spark = build_session("benchmark", config=run_job.JOB.config)
    seconds: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = work()
        seconds[name] = time.perf_counter() - start
        print(f"{name:12} {seconds[name]:7.1f} s", flush=True)
        return result

    def say(text: str) -> None:
        if text:
            print(f"    {time.perf_counter() - began:7.1f} s  {text}", flush=True)

    began = time.perf_counter()
    print(f"\n{written / 1e6:.0f} MB of logs, {copies} copies of {len(TOPICS)} topics, load {os.getloadavg()[0]:.1f}")
    try:
        lake = lake_of(spark, str(tmp_path / "lake"))
        timed("ingest", lambda: ingest_job.ingest(lake, ingest_job.Params(lake.root, (str(logs),)), say))
        timed("reconstruct", lambda: reconstruct_job.reconstruct(lake, False, say))
        checked = timed("check", lambda: check_job.check(lake, report_job.data_docs_of(out), say))
        timed("report", lambda: report_job.write(lake, out, None, say))
        rows = {
            name: lake.spark.read.format("delta").load(f"{lake.root}/{name.replace('.', '/')}").count()
            for name in ("bronze.log_records", "silver.state_change_events", "silver.replica_state_timeline")
        }
    finally:
        spark.stop()
    share = seconds["check"] / sum(seconds.values())
    print(", ".join(f"{name} {count:,} rows" for name, count in rows.items()))
    print(f"the checks take {share:.0%} of the run")
    assert not checked.failed_gates, checked.failed_gates
    assert share <= 0.25
