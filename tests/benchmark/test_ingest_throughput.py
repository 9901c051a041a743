"""Framing and typing of a TRACE state-change log on two cores, beside DuckDB's ``regexp_extract`` on the same file.

Ours is two processes, each with half of the file, from bytes to the Arrow batches that bronze is written from. Beyond
DuckDB's fields that includes where each record stands, its id (a hash of its bytes), continuation lines, and finding
the shape among all those that are known and not only among those that the file has.
"""

from __future__ import annotations

import os
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import pytest

from ingest.readers.lines import blocks
from ingest.readers.logs import records
from ingest.readers.work import Rejected, WorkItem
from ingest.shapes import SHAPES, match
from tests.benchmark.duckdb_reading import DuckDbReading
from tests.support.captures.packed import unpack

CAPTURE: Final = "lifecycle-1.1.1"
SIZE_BYTES: Final = 100_000_000
CORES: Final = 2
RUNS: Final = 3
#: The fields whose values are compared, so that both do the same work.
FIELDS: Final = ("leader_epoch", "topic", "correlation_id", "to_state")
#: A timestamp's date, of which every copy of the capture gets one of its own.
_DATE: Final = re.compile(rb"(?m)^\[\d{4}-\d\d-\d\d")


def scaled_log(folder: Path) -> Path:
    """The capture's state-change logs again and again, a day further each time."""
    logs = sorted(unpack(CAPTURE, folder).rglob("state-change.log"))
    once = b"".join(log.read_bytes() for log in logs)
    target = folder / "state-change.log"
    with target.open("wb") as file:
        copy = 0
        while file.tell() < SIZE_BYTES:
            date = b"[%04d-%02d-%02d" % (2010 + copy // 336, 1 + copy // 28 % 12, 1 + copy % 28)
            file.write(_DATE.sub(date, once))
            copy += 1
    return target


def halves(log: Path) -> list[tuple[int, int]]:
    """Where each process begins and ends: at a record."""
    size = log.stat().st_size
    with log.open("rb") as file:
        file.seek(size // CORES)
        middle = size // CORES + file.read(1 << 20).index(b"\n[20") + 1
    return [(0, middle), (middle, size)]


def read_part(log: Path, begin: int, end: int, compared: bool) -> tuple[int, int, dict[str, Counter[str]]]:
    """Records kept and rejected of a part, and how often each shape and field value was seen, where it is compared."""
    item = WorkItem(
        location=str(log),
        member=None,
        source_file=log.name,
        kind="state_change_log",
        cluster_id="c",
        broker_id=1,
        file_id="f",
        record_base="f",
        end=end,
        offset=begin,
        layout="bracketed",
    )
    kept = rejected = 0
    seen: dict[str, Counter[str]] = {name: Counter() for name in ("shape_id", *FIELDS)}
    with log.open("rb") as file:
        file.seek(begin)
        for batch in records.read(item, blocks(file, end - begin), match):
            if isinstance(batch, Rejected):
                rejected += 1
                continue
            kept += batch.num_rows
            if compared:
                seen["shape_id"].update(batch.column("shape_id").to_pylist())
                for fields in batch.column("fields").to_pylist():
                    for name, value in fields or ():
                        if name in seen and value:
                            seen[name][value] += 1
    return kept, rejected, seen


def ours(pool: Executor, log: Path, *, compared: bool = False) -> list[tuple[int, int, dict[str, Counter[str]]]]:
    parts = [pool.submit(read_part, log, begin, end, compared) for begin, end in halves(log)]
    return [part.result() for part in parts]


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


@pytest.mark.benchmark
def test_framing_and_typing_beside_duckdb(tmp_path: Path) -> None:
    log = scaled_log(tmp_path)
    size = log.stat().st_size
    with ProcessPoolExecutor(CORES, mp_context=get_context("spawn")) as pool:
        parts = ours(pool, log, compared=True)
        kept = sum(part[0] for part in parts)
        seen = {name: sum((part[2][name] for part in parts), Counter()) for name in ("shape_id", *FIELDS)}
        theirs = DuckDbReading(log, [shape for shape in SHAPES if shape.id in seen["shape_id"]], CORES)
        theirs.run()
        assert sum(part[1] for part in parts) == 0
        for name, values in seen.items():
            assert theirs.counts(name) == values, name
        assert sum(seen["shape_id"].values()) == kept
        times: dict[str, list[float]] = {"ours": [], "DuckDB": []}
        for _ in range(RUNS):
            times["ours"].append(seconds(lambda: ours(pool, log)))
            times["DuckDB"].append(seconds(theirs.run))
    print(f"\n{size / 1e6:.0f} MB, {kept} records, {CORES} cores, median of {RUNS} runs, load {os.getloadavg()[0]:.1f}")
    for name, values in times.items():
        median = statistics.median(values)
        spread = f"{min(values):.2f} to {max(values):.2f} s"
        print(f"{name:7} {size / 1e6 / median:6.1f} MB/s {kept / median:9.0f} records/s  ({spread})")
    ratio = statistics.median(times["DuckDB"]) / statistics.median(times["ours"])
    print(f"ours is {ratio:.2f} times as fast as DuckDB")
