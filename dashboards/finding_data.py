"""The findings of the report, and the records that are their evidence."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dashboards.source import Source, by_cluster, ms, plain, top
from ingest.lake.tables import bronze, gold

#: Severities, the worst first.
SEVERITY_ORDER: Final = {word: number for number, word in enumerate(gold.SEVERITIES)}


def _severity() -> Column:
    pairs = [F.lit(item) for pair in SEVERITY_ORDER.items() for item in pair]
    return F.element_at(F.create_map(*pairs), F.col("severity"))


def finding_counts(source: Source) -> dict[str, list[dict[str, Any]]]:
    """Findings by rule, type and severity, the worst first."""
    rows = (
        source.read(gold.DIVERGENCES)
        .groupBy("cluster_id", "severity", "rule_id", "divergence_type")
        .agg(
            F.count("*").alias("findings"),
            F.count_distinct("topic", "topic_incarnation", "partition_id").alias("partitions"),
            F.min(ms("detected_at")).alias("first_ms"),
            F.max(ms("detected_at")).alias("last_ms"),
        )
    )
    order = [_severity(), F.col("rule_id"), F.col("divergence_type")]
    return by_cluster(top(rows, ["cluster_id"], order, 200).orderBy("cluster_id", *order).collect())


def shown_findings(source: Source) -> dict[str, list[dict[str, Any]]]:
    """The findings the page tells one by one, the worst first, by time within a severity.

    No rule takes more than its share, so that one noisy rule hides no other.
    """
    order = [_severity(), F.col("detected_at"), F.col("rule_id"), F.col("divergence_id")]
    each = top(
        source.read(gold.DIVERGENCES),
        ["cluster_id", "severity", "rule_id", "divergence_type"],
        order,
        source.limits.findings_per_type,
    )
    rows = top(each, ["cluster_id"], order, source.limits.findings)
    return by_cluster(
        rows.orderBy("cluster_id", *order)
        .select(
            "cluster_id",
            "divergence_id",
            "topic",
            "topic_incarnation",
            "partition_id",
            "broker_id",
            "replica_id",
            "rule_id",
            "divergence_type",
            "severity",
            ms("detected_at").alias("at_ms"),
            "expected",
            "observed",
            "explanation",
            "known_issue",
            "rule_source",
            "inferred_from",
            F.slice("evidence", 1, source.limits.evidence_per_finding).alias("evidence"),
            F.size("evidence").alias("evidence_count"),
        )
        .collect()
    )


def records_by_id(source: Source, told: Iterable[str], placed: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The bronze records with these ids: ``source_file``, ``source_line``, ``source_kind``, ``broker_id``, ``text``.

    ``told`` are wanted with their text (shortened where long), ``placed`` only with their place. Ids that are no
    bronze record's are left out of the answer.
    """
    with_text = set(told)
    missing = with_text | set(placed)
    found: dict[str, dict[str, Any]] = {}
    # Nearly all evidence is log records: the other tables are opened only for what is not among them.
    for table in (_log_texts, _other_texts):
        if missing:
            found |= _resolve(source, table(source), missing, with_text)
            missing -= set(found)
    return found


def _resolve(source: Source, rows: DataFrame, ids: set[str], with_text: set[str]) -> dict[str, dict[str, Any]]:
    wanted = source.keys(
        ("record_id", "is_told"), [(i, i in with_text) for i in sorted(ids)], (pa.string(), pa.bool_())
    )
    matched = rows.join(wanted, "record_id").select(
        "record_id",
        "source_file",
        "source_line",
        "source_kind",
        "broker_id",
        F.when(F.col("is_told"), F.substring("text", 1, source.limits.text_characters + 1)).alias("text"),
    )
    found: dict[str, dict[str, Any]] = {}
    for row in map(plain, matched.orderBy("record_id", "source_file", "source_line").collect()):
        found.setdefault(row.pop("record_id"), row)
    return found


def _texts(rows: DataFrame, kind: Column, broker: Column, text: Column) -> DataFrame:
    """Bronze records as they would be read."""
    return rows.select(
        "record_id",
        "source_file",
        "source_line",
        kind.alias("source_kind"),
        broker.alias("broker_id"),
        text.alias("text"),
    )


def _log_texts(source: Source) -> DataFrame:
    logger = F.when(F.col("logger").isNotNull(), F.concat(F.lit(" ("), "logger", F.lit(")"))).otherwise(F.lit(""))
    text = F.concat(
        F.lit("["),
        "event_time_text",
        F.lit("] "),
        F.coalesce("log_level", F.lit("")),
        F.lit(" "),
        "message",
        logger,
        F.coalesce(F.concat(F.lit("\n"), "continuation"), F.lit("")),
    )
    return _texts(source.read(bronze.LOG_RECORDS), F.col("source_kind"), F.col("broker_id"), text)


def _other_texts(source: Source) -> DataFrame:
    kind, broker, nobody = F.col("source_kind"), F.col("broker_id"), F.lit(None).cast("int")
    znode = F.concat_ws(" ", "path", F.concat(F.lit("version "), "version"), F.concat(F.lit("mzxid "), "mzxid"), "data")
    epochs = F.concat_ws(" ", "directory", F.lit("epoch"), "leader_epoch", F.lit("starts at"), "start_offset")
    tables = [
        _texts(source.read(bronze.ZNODE_SNAPSHOTS), F.lit("znode_snapshot"), nobody, znode),
        _texts(
            source.read(bronze.OFFSET_CHECKPOINTS), kind, broker, F.concat_ws(" ", "topic", "partition_id", "offset")
        ),
        _texts(
            source.read(bronze.OFFSET_PROBES),
            kind,
            broker,
            F.concat_ws(" ", "topic", "partition_id", F.lit("asked as"), "replica_id", F.lit("offset"), "offset"),
        ),
        _texts(source.read(bronze.LEADER_EPOCH_CHECKPOINTS), F.lit("leader_epoch_checkpoint"), broker, epochs),
        _texts(
            source.read(bronze.ZNODE_TRANSACTIONS),
            F.lit("znode_transaction_log"),
            nobody,
            F.concat_ws(" ", F.concat(F.lit("zxid "), "zxid"), "operation", "full_path", "version", "data"),
        ),
        _texts(
            source.read(bronze.LOG_SEGMENTS),
            kind,
            broker,
            F.concat_ws(" ", F.concat_ws("/", "directory", "file_name"), F.lit("next offset"), "next_offset"),
        ),
        _texts(source.read(bronze.BROKER_CONFIGS), kind, broker, F.concat("config_key", F.lit("="), "config_value")),
    ]
    return reduce(DataFrame.unionByName, tables)
