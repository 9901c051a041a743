"""Rows are found in the windows of time that hold them, and windows are not repeated without end."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ingest.lake.local_frames import local_frame
from reconstruct.engine.windows import REACHED_AT_MOST, STRETCH, time_windows

S = 1_000_000
FOREVER = 2**62
Window = tuple[str, int, int]


def one_after_the_other(rng: random.Random) -> list[Window]:
    starts = sorted(rng.sample(range(0, 3000 * S, S), 40))
    return [("a", start, end) for start, end in zip(starts, [*starts[1:], FOREVER], strict=True)]


def none_ends(rng: random.Random) -> list[Window]:
    return [(rng.choice("ab"), rng.randrange(3000 * S), FOREVER) for _ in range(300)]


def anyhow(rng: random.Random) -> list[Window]:
    starts = [rng.randrange(-500 * S, 3000 * S) for _ in range(60)]
    return [(rng.choice("ab"), start, start + rng.choice((0, -S, 1, S, 700 * S))) for start in starts]


def at_one_instant(rng: random.Random) -> list[Window]:
    return [("a", S, S + length) for length in (0, 1, S)]


def none(rng: random.Random) -> list[Window]:
    return []


@pytest.mark.parametrize("shape", [one_after_the_other, none_ends, anyhow, at_one_instant, none])
def test_each_row_is_found_in_the_windows_that_hold_it(
    spark: SparkSession, shape: Callable[[random.Random], list[Window]]
) -> None:
    rng = random.Random(7)
    windows = [(*window, number) for number, window in enumerate(shape(rng))]
    edges = [at + by for _, since, until, _ in windows for at in (since, until) if at < FOREVER for by in (-1, 0, 1)]
    instants = [*edges, *(rng.randrange(-600 * S, 4000 * S) for _ in range(100)), FOREVER - 1]
    rows = [(rng.choice("ab"), at) for at in instants]

    columns = "key string, since_us bigint, until_us bigint, number int"
    looked_in = time_windows(spark, columns, windows, since="since_us", until="until_us")
    at = F.col("at_us")
    placed = local_frame(spark, "key string, at_us bigint", rows).withColumn(STRETCH, looked_in.stretches.holding(at))
    joined = placed.join(looked_in.frame, ["key", STRETCH]).where((at >= F.col("since_us")) & (at < F.col("until_us")))
    found = sorted((row["key"], row["at_us"], row["number"]) for row in joined.collect())

    expected = [
        (key, instant, number)
        for key, instant in rows
        for of, since, until, number in windows
        if of == key and since <= instant < until
    ]
    assert found == sorted(expected)
    assert looked_in.frame.count() <= REACHED_AT_MOST * len(windows)
