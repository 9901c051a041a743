"""Migrations from ZooKeeper on Spark: of each topic the writes to its znodes beside what the records made of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingest.lake.plans import union
from ingest.lake.tables.gold import DIVERGENCES
from reconstruct.engine.folds import fold, select_evidence, table_columns
from reconstruct.engine.rows import Row, columns_of, value_of, verdict_rows
from reconstruct.findings.verdicts import Verdicts
from reconstruct.metadata_log.evidence import ClusterLog
from reconstruct.metadata_log.migration import DELETION, Migration, UpTo, Written, judge_migration
from reconstruct.model.znode_paths import (
    CONTROLLER_PATH,
    DELETE_TOPIC_PATTERN,
    MIGRATION_PATH,
    PARTITION_STATE_PATTERN,
    TOPIC_CONFIG_PATTERN,
    TOPIC_PATTERN,
)

_KEY: Final = ("cluster_id", "topic")
_COLUMNS: Final = columns_of(Written)


def migrations(znodes: DataFrame, logs: Mapping[str, ClusterLog]) -> dict[str, Migration]:
    """By cluster, of ``silver.znode_changes``: those in which a quorum's controller took over and wrote to both.
    ``logs`` are the metadata logs by cluster."""
    written = znodes.where("change = 'written'")
    taken = written.where(_is_taken_over()).groupBy("cluster_id")
    offset = F.get_json_object("data", "$.kraft_metadata_offset").try_cast("bigint")
    named = (
        written.where(F.col("path") == MIGRATION_PATH)
        .withColumn("offset", offset)
        .where("offset >= 0")
        .groupBy("cluster_id", "offset")
        .agg(
            F.min("mzxid").alias("zxid"),
            F.unix_micros(F.min("changed_at")).alias("at"),
            F.min_by(F.col("evidence")[0], "mzxid").alias("evidence_id"),
            F.min_by(F.expr("hidden_writes_count <=> 0"), "mzxid").alias("is_first"),
        )
    )
    of_cluster = Window.partitionBy("cluster_id")
    is_told = F.col("offset") < F.coalesce(
        *(F.when(F.col("cluster_id") == of, log.told_end) for of, log in logs.items()), F.lit(0)
    )
    last_told = F.max(F.when(is_told, F.col("offset"))).over(of_cluster)
    ends = (
        named.withColumn("next_offset", F.lead("offset").over(of_cluster.orderBy("offset")))
        .withColumns(
            {"first": F.min("offset").over(of_cluster), "last": F.coalesce(last_told, F.max("offset").over(of_cluster))}
        )
        .where("offset = first OR offset = last")
    )
    began = taken.agg(F.min("mzxid").alias("taken_over_zxid"))
    found: dict[str, list[UpTo]] = {}
    zxids: dict[str, int] = {}
    for row in ends.join(began, "cluster_id").orderBy("cluster_id", "offset").collect():
        found.setdefault(row["cluster_id"], []).append(value_of(UpTo, row.asDict()))
        zxids[row["cluster_id"]] = row["taken_over_zxid"]
    return {
        cluster_id: Migration(zxids[cluster_id], of[0], of[-1]).by(logs.get(cluster_id))
        for cluster_id, of in found.items()
    }


def _is_taken_over() -> Column:
    """Whether a write names a quorum's controller in ``/controller``."""
    of_quorum = F.get_json_object("data", "$.kraftControllerEpoch").try_cast("int") >= 0
    return (F.col("path") == CONTROLLER_PATH) & of_quorum


def take_overs(znodes: DataFrame) -> DataFrame:
    """By cluster when a quorum's controller first named itself in ``/controller``, µs, as ``taken_over_us``."""
    taken = znodes.where((F.col("change") == "written") & _is_taken_over()).groupBy("cluster_id")
    return taken.agg(F.unix_micros(F.min("changed_at")).alias("taken_over_us"))


def before_take_over(znodes: DataFrame, of_clusters: Mapping[str, Migration]) -> DataFrame:
    """The writes to znodes that decided something: since a quorum's controller took over, its records do."""
    for cluster_id, migration in of_clusters.items():
        is_later = F.coalesce("zxid", "mzxid") > migration.taken_over_zxid
        znodes = znodes.where(~((F.col("cluster_id") == cluster_id) & is_later))
    return znodes


def of_one_before_take_over(rows: DataFrame, znodes: DataFrame, changes: DataFrame) -> DataFrame:
    """The same for a reader of one topic: of its writes to znodes those that decided something. ``znodes`` are all of
    the cluster, ``changes`` what its metadata log says of the topic."""
    taken = znodes.where((F.col("change") == "written") & _is_taken_over()).agg(F.min("mzxid").alias("taken_over"))
    told = changes.limit(1).agg(F.count("*").alias("told"))
    decided = "told = 0 OR taken_over IS NULL OR coalesce(zxid, mzxid) <= taken_over"
    beside = F.broadcast(taken.crossJoin(told))
    return rows.crossJoin(beside).where(decided).drop("taken_over", "told")


def migrated_topics(znodes: DataFrame, changes: DataFrame, of_clusters: Mapping[str, Migration]) -> DataFrame:
    """Findings and verdicts; ``changes`` are ``silver.metadata_changes``."""
    judged = table_columns(DIVERGENCES)
    is_migrated = F.col("cluster_id").isin(*of_clusters)

    def of_topic(evidence: Iterable[Row]) -> Iterator[dict[str, Any]]:
        rows = list(evidence)
        verdicts = Verdicts()
        migration = of_clusters[rows[0]["cluster_id"]]
        judge_migration(rows[0]["topic"], (value_of(Written, row) for row in rows), migration, verdicts)
        yield from verdict_rows(verdicts)

    return fold(_evidence(znodes.where(is_migrated), changes.where(is_migrated)), _KEY, judged, of_topic)


def _evidence(znodes: DataFrame, changes: DataFrame) -> DataFrame:
    at: dict[str, Column | str] = {"at": F.unix_micros("changed_at"), "evidence_id": "evidence[0]"}
    parts = [
        select_evidence(
            znodes.where(F.col("path").rlike(pattern)).withColumn("topic", F.regexp_extract("path", pattern, 1)),
            _KEY,
            _COLUMNS,
            is_znode="true",
            kind=F.lit(kind),
            partition_id=F.regexp_extract("path", pattern, 2).try_cast("int") if kind == "partition" else "NULL",
            place="coalesce(zxid, mzxid)",
            value="if(change = 'written', '{}', NULL)" if kind == DELETION else "data",
            is_known="CASE WHEN change = 'written' THEN hidden_writes_count <=> 0 ELSE zxid IS NOT NULL END",
            **at,
        )
        for kind, pattern in (
            ("topic", TOPIC_PATTERN),
            ("partition", PARTITION_STATE_PATTERN),
            ("config", TOPIC_CONFIG_PATTERN),
            (DELETION, DELETE_TOPIC_PATTERN),
        )
    ]
    records = select_evidence(
        changes.where("topic IS NOT NULL"),
        _KEY,
        _COLUMNS,
        is_znode="false",
        kind="subject_kind",
        partition_id="partition_id",
        place="offset",
        value="state",
        is_known="true",
        **at,
    )
    return union([*parts, records])
