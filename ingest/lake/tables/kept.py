"""Kept: what a run of ``reconstruct`` leaves for the next, so that only what is new is made anew.

No question is answered by these tables and nothing is checked in them: without them everything is made anew.
"""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.gold import DIVERGENCES
from ingest.lake.tables.spec import Column, TableSpec, col, required

STEP: Final = required("step", "string", "Step of the run.")

RUNS: Final = TableSpec(
    "kept",
    "runs",
    "one row per run that ended well and was not over at once",
    ("run_number", "ended_at"),
    (
        required("run_number", "int", "Counts the runs that found bronze changed, from 1."),
        required("program", "string", "Fingerprint of the program that ran."),
        required("evidence", "map<string,bigint>", "Version of each table of bronze that was read."),
        col("evidence_until", "timestamp", "When the newest file in it was ingested; NULL where there is none."),
        required("tables", "map<string,bigint>", "Version of each table that was written, when it ended."),
        required("report", "string", "What it reported, as JSON."),
        required("ended_at", "timestamp", "When it ended: our clock."),
    ),
)

#: What is kept of each key of a fold: columns that the fold gives beside its tables', with their types.
OF_KEY: Final[tuple[Column, ...]] = (
    required("evidence_count", "bigint", "Rows of its evidence."),
    required("evidence_hash", "array<bigint>", "Hashes of all of them, whatever their order."),
    required("asked", "array<string>", "What it asked of the facts it was given beside."),
    required("answers", "string", "Hash of all answers."),
)
#: By some of these the evidence of each fold is grouped.
_KEY: Final = (
    required("cluster_id", "string", "Cluster."),
    col("topic", "string", "Topic; NULL, as the others are, where the step does not group by it."),
    col("topic_incarnation", "string", "Its incarnation."),
    col("partition_id", "int", "Partition."),
    col("broker_id", "int", "Broker."),
    col("replica_id", "int", "Replica."),
)

FOLDED_KEYS: Final = TableSpec(
    "kept",
    "folded_keys",
    "one row per (step, key of its fold): by which it is known whether its evidence or an answer is another",
    ("step", *(column.name for column in _KEY)),
    (STEP, *_KEY, *OF_KEY),
)

JUDGED_ROWS: Final = TableSpec(
    "kept",
    "judged_rows",
    "one row per (step, finding), (step, key, rule, verdict) and (step, key, loss), as the folds gave them",
    (),
    (
        STEP,
        required("table_name", "string", "gold.divergences, or what else the row is."),
        *(col(column.name, column.type, column.comment) for column in DIVERGENCES.columns),
        col("rule", "string", "Of a verdict: the rule."),
        col("verdict", "string", "Kept, broken or not to be judged."),
        col("times", "bigint", "How often."),
        col("event_at", "timestamp", "Of a loss: the election that lost."),
        col("leader", "int", "Its leader."),
    ),
)

KEPT_TABLES: Final = (RUNS, FOLDED_KEYS, JUDGED_ROWS)
