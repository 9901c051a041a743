"""What a fold costs for each key, beside what it costs for each row: as many rows, of few keys and of many."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

import pytest

from tests.benchmark.processor_time import cost_of

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]

ROWS: Final = 240_000
KEYS: Final = (80, 8_000)
#: In a Java of its own: each number of keys once to compile what it takes, then three times by turns.
PROGRAM: Final = f"""
import json
from pyspark.sql import functions as F
from jobs.session.run_configs import LONG_RUN_CONFIG
from jobs.session.session import build_session
from reconstruct.engine.folds import fold
from reconstruct.engine.rows import SAYS, TABLE
from reconstruct.partitions.spark.step import PARTITION_FOLD as step
from tests.benchmark.process_tree import cpu_seconds

spark = build_session("folds", master="local[2]", writes=True, config=LONG_RUN_CONFIG)
name = step.tables[0].full_name

def made(keys):
    rows = spark.range({ROWS}).select(
        F.lit("c").alias("cluster_id"), F.concat(F.lit("t"), F.col("id") % keys).alias("topic"),
        F.lit("i").alias("topic_incarnation"), F.lit(0).alias("partition_id"),
        F.to_json(F.struct(F.col("id").alias("at"), F.lit("f").alias("file"))).alias(SAYS))
    of_key = {{"cluster_id": "string", "topic": "string", "topic_incarnation": "string", "partition_id": "int"}}
    folded = fold(rows, step.key, step.columns | of_key, lambda given: [{{TABLE: name}} for _ in given][:6])
    before = cpu_seconds()
    assert folded.count() == 6 * keys
    return cpu_seconds() - before

costs = {{keys: [] for keys in {KEYS}}}
for turn in range(4):
    for keys, found in costs.items():
        found.append(made(keys))
print(json.dumps({{keys: min(found[1:]) for keys, found in costs.items()}}))
"""


def test_as_many_rows_of_a_hundred_times_as_many_keys(capsys: Any) -> None:
    """The program itself says whether each key was folded once."""
    told = cost_of([sys.executable, "-c", PROGRAM]).out.splitlines()[-1]
    few, many = json.loads(told).values()
    with capsys.disabled():
        print(f"\n{ROWS} rows of {KEYS[0]} and {KEYS[1]} keys: {few:.1f} and {many:.1f} s, {many / few:.1f} times")
