"""Kept: what a run of ``reconstruct`` leaves for the next, so that only what is new is made anew.

No question is answered by these tables and nothing is checked in them: without them everything is made anew.
"""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.gold import DIVERGENCES
from ingest.lake.tables.spec import Column, TableSpec, col

STEP: Final = col("step", "string", "Step of the run.", nullable=False)

RUNS: Final = TableSpec(
    "kept",
    "runs",
    "one row per run that ended well and was not over at once",
    ("run_number", "ended_at"),
    (
        col("run_number", "int", "Counts the runs that found bronze changed, from 1.", nullable=False),
        col("program", "string", "Fingerprint of the program that ran.", nullable=False),
        col("evidence", "map<string,bigint>", "Version of each table of bronze that was read.", nullable=False),
        col("evidence_until", "timestamp", "When the newest file in it was ingested; NULL where there is none."),
        col("tables", "map<string,bigint>", "Version of each table that was written, when it ended.", nullable=False),
        col("report", "string", "What it reported, as JSON.", nullable=False),
        col("ended_at", "timestamp", "When it ended: our clock.", nullable=False),
    ),
)

#: What is kept of each key of a fold: columns that the fold gives beside its tables', with their types.
OF_KEY: Final[tuple[Column, ...]] = (
    col("evidence_count", "bigint", "Rows of its evidence.", nullable=False),
    col("evidence_hash", "array<bigint>", "Hashes of all of them, whatever their order.", nullable=False),
    col("asked", "array<string>", "What it asked of the facts it was given beside.", nullable=False),
    col("answers", "string", "Hash of all answers.", nullable=False),
)
#: By some of these the evidence of each fold is grouped.
_KEY: Final = (
    col("cluster_id", "string", "Cluster.", nullable=False),
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
        col("table_name", "string", "gold.divergences, or what else the row is.", nullable=False),
        *(col(column.name, column.type, column.comment) for column in DIVERGENCES.columns),
        col("rule", "string", "Of a verdict: the rule."),
        col("verdict", "string", "Kept, broken or not to be judged."),
        col("times", "bigint", "How often."),
        col("event_at", "timestamp", "Of a loss: the election that lost."),
        col("leader", "int", "Its leader."),
    ),
)

KEPT_TABLES: Final = (RUNS, FOLDED_KEYS, JUDGED_ROWS)
