"""Quality: what was checked, what it cost, and what cannot be said."""

from __future__ import annotations

from typing import Final

from ingest.tables.silver import CLUSTER
from ingest.tables.spec import TableSpec, col

VERDICTS: Final = ("kept", "broken", "cannot_be_judged")

CHECK_RESULTS: Final = TableSpec(
    "quality",
    "check_results",
    "one row per (run, check): an expectation over a table, or a rule over the timelines",
    ("run_id", "check_id"),
    (
        col("run_id", "string", "Run that checked.", nullable=False),
        col("check_id", "string", "TABLE.EXPECTATION, or the rule's id.", nullable=False),
        col("table_name", "string", "Table the check owns.", nullable=False),
        col(
            "severity",
            "string",
            "critical fails the gate; warning is reported.",
            nullable=False,
            vocabulary=("critical", "warning", "info"),
        ),
        col("verdict", "string", "Verdict.", nullable=False, vocabulary=VERDICTS),
        col("checked_count", "bigint", "Rows, or cases, judged."),
        col("broken_count", "bigint", "Those that break it."),
        col("examples", "string", "First offending rows as JSON; NULL where there are none."),
        col("explanation", "string", "What the check means, in a sentence.", nullable=False),
        col("rules_fingerprint", "string", "Fingerprint of the set of checks that judged.", nullable=False),
        col("model_version", "string", "Version of the rules.", nullable=False),
        col("run_at", "timestamp", "When it ran: our clock.", nullable=False),
    ),
)

RUN_METRICS: Final = TableSpec(
    "quality",
    "run_metrics",
    "one row per (run, metric, cluster, subject)",
    ("run_id", "metric", "cluster_id", "subject"),
    (
        col("run_id", "string", "Run that measured.", nullable=False),
        CLUSTER,
        col("metric", "string", "Name, unit included.", nullable=False),
        col(
            "subject", "string", "What it is about: a version, a broker, a table; empty for the whole.", nullable=False
        ),
        col("value", "double", "Value.", nullable=False),
        col("run_at", "timestamp", "When it was measured: our clock.", nullable=False),
    ),
)

EVIDENCE_COVERAGE: Final = TableSpec(
    "quality",
    "evidence_coverage",
    "one row per (source, broker, interval) in which evidence exists",
    ("cluster_id", "source_kind", "broker_id", "source_file", "valid_from"),
    (
        CLUSTER,
        col("source_kind", "string", "Kind of source.", nullable=False),
        col("broker_id", "int", "Broker; -1 for what belongs to none.", nullable=False),
        col("source_file", "string", "File.", nullable=False),
        col(
            "coverage",
            "string",
            "covered, gap or too_coarse.",
            nullable=False,
            vocabulary=("covered", "gap", "too_coarse"),
        ),
        col("level_floor", "string", "Lowest log level seen; NULL for what has none."),
        col("valid_from", "timestamp", "First instant.", nullable=False),
        col("valid_to", "timestamp", "Last instant.", nullable=False),
        col("records_count", "bigint", "Records in it.", nullable=False),
    ),
)

QUALITY_TABLES: Final = (CHECK_RESULTS, RUN_METRICS, EVIDENCE_COVERAGE)
