"""Rows of the metadata log as evidence: each record once, of which topic it is, and what each node's copy covers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from ingest.lake.plans import collect_all
from reconstruct.engine.rows import columns_of, value_of
from reconstruct.metadata_log.evidence import (
    OF_QUORUM,
    OF_TRANSACTIONS,
    ClusterLog,
    CopySpan,
    LogRow,
    SnapshotFile,
)
from reconstruct.model.metadata_log.image import REPLAYED
from reconstruct.model.metadata_log.values import ConfigResource

_COLUMNS: Final = columns_of(LogRow)
_USED: Final = sorted({*REPLAYED, *OF_QUORUM, *OF_TRANSACTIONS})
_HEADER: Final = "SnapshotHeaderRecord"
_FOOTER: Final = "SnapshotFooterRecord"


def log_rows(records: DataFrame, snapshots: DataFrame) -> DataFrame:
    """``bronze.metadata_records`` and ``bronze.metadata_snapshots`` as rows of :class:`LogRow`, with ``cluster_id`` and
    ``topic``: the name of the topic that a record concerns, its id where no record gives its name; NULL where it
    concerns none, or could not be read. A record that clears all topics' ELR is a row of each."""
    logged = (
        records.where(F.col("record_type").isin(*_USED))
        .groupBy("cluster_id", "offset", F.col("leader_epoch").alias("epoch"), "record_type", "fields")
        .agg(
            F.min("record_id").alias("evidence_id"),
            F.unix_micros(F.min("appended_at")).alias("at"),
            F.min("batch_offset").alias("batch_offset"),
            F.count_distinct("broker_id").alias("copies"),
        )
    )
    shown = (
        snapshots.where(F.col("record_type").isin(*_USED) & F.col("snapshot_end_offset").isNotNull())
        .groupBy(
            "cluster_id",
            F.col("broker_id").alias("node_id"),
            F.col("snapshot_end_offset").alias("snapshot_end"),
            F.col("position").alias("offset"),
            F.coalesce("snapshot_epoch", F.lit(0)).alias("epoch"),
            "record_type",
            "fields",
        )
        .agg(F.min("record_id").alias("evidence_id"), F.unix_micros(F.min("appended_at")).alias("at"))
        .withColumn("copies", F.lit(1))
    )
    rows = logged.unionByName(shown, allowMissingColumns=True).withColumns(
        {"at": F.coalesce("at", F.lit(0)), "fields": F.coalesce("fields", F.lit(""))}
    )
    return _of_topics(rows).select("cluster_id", "topic", *_COLUMNS)


def _field(name: str) -> Column:
    return F.get_json_object("fields", f"$.{name}")


def _is(*record_types: str) -> Column:
    return F.col("record_type").isin(*record_types)


def _of_topics(rows: DataFrame) -> DataFrame:
    """With the name of the topic; a topic has one name for good, a name may be that of several topics in turn."""
    named = rows.where(_is("TopicRecord")).select(
        F.col("cluster_id").alias("n_cluster_id"), _field("topicId").alias("n_topic_id"), _field("name").alias("n_name")
    )
    names = named.groupBy("n_cluster_id", "n_topic_id").agg(F.min("n_name").alias("n_name"))
    is_topics = _is("ConfigRecord") & (_field("resourceType") == str(ConfigResource.TOPIC))
    by_name = F.when(_is("TopicRecord"), _field("name")).when(is_topics, _field("resourceName"))
    by_id = F.when(_is("PartitionRecord", "PartitionChangeRecord", "RemoveTopicRecord"), _field("topicId"))
    cleared = F.when(_is("ClearElrRecord"), F.coalesce(_field("topicName"), F.lit("")))
    placed = rows.withColumns({"topic_id": by_id, "of_name": F.coalesce(by_name, F.nullif(cleared, F.lit("")))})
    single = placed.where(~F.coalesce(cleared == "", F.lit(False)))
    every = placed.where(F.coalesce(cleared == "", F.lit(False)))
    # names of topics are few beside the records that name them by id
    of_id = (F.col("cluster_id") == F.col("n_cluster_id")) & (F.col("topic_id") == F.col("n_topic_id"))
    of_each = names.select("n_cluster_id", "n_name").distinct()
    joined = single.join(F.broadcast(names), of_id, "left").withColumn(
        "topic", F.coalesce("of_name", "n_name", "topic_id")
    )
    of_all = every.join(F.broadcast(of_each), F.col("cluster_id") == F.col("n_cluster_id")).withColumn(
        "topic", F.col("n_name")
    )
    return joined.unionByName(of_all, allowMissingColumns=True)


def cluster_logs(records: DataFrame, snapshots: DataFrame, rows: DataFrame) -> dict[str, ClusterLog]:
    """Of each cluster that any metadata log is of, by its id. ``rows`` as :func:`log_rows` gives them."""
    spans, files, of_none, disputed = collect_all(
        [_spans(records), _snapshot_files(snapshots), rows.where("topic IS NULL"), _disputed(rows)]
    )
    found = {row["cluster_id"] for row in (*spans, *files, *of_none)}
    return {
        cluster_id: ClusterLog(
            cluster_id,
            tuple(value_of(CopySpan, row) for row in _of(cluster_id, spans)),
            tuple(value_of(SnapshotFile, row) for row in _of(cluster_id, files)),
            tuple(value_of(LogRow, row) for row in _of(cluster_id, of_none)),
            tuple(value_of(LogRow, row) for row in _of(cluster_id, disputed)),
        )
        for cluster_id in sorted(found)
    }


def _disputed(rows: DataFrame) -> DataFrame:
    """Of each offset and epoch of which copies have records of several topics, or of one and of none, a record of each
    kind. A record of all topics is a row of each, and one."""
    place = ["cluster_id", "offset", "epoch"]
    logged = rows.where("snapshot_end IS NULL")
    several = logged.groupBy(*place).agg(
        F.count_distinct(F.coalesce("topic", F.lit(""))).alias("topics"),
        F.count_distinct("record_type", "fields").alias("contents"),
    )
    where = several.where("topics > 1 AND contents > 1").select(*place)
    return logged.join(F.broadcast(where), place, "left_semi").dropDuplicates([*place, "record_type", "fields"])


def _of(cluster_id: str, rows: Iterable[Row]) -> Iterable[Mapping[str, object]]:
    return (row.asDict() for row in rows if row["cluster_id"] == cluster_id)


def _spans(records: DataFrame) -> DataFrame:
    """Of each node's copy the runs of offsets without a gap, epoch by epoch."""
    copy = ("cluster_id", "node_id", "epoch")
    of_node = records.where("broker_id IS NOT NULL").select(
        "cluster_id",
        F.col("broker_id").alias("node_id"),
        F.col("leader_epoch").alias("epoch"),
        F.col("offset").alias("first"),
        F.col("last_offset").alias("last"),
    )
    in_order = Window.partitionBy(*copy).orderBy("first", "last")
    reached = F.max("last").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    begins = F.when(F.col("first") <= F.coalesce("reached", F.lit(-2)) + 1, 0).otherwise(1)
    run = F.sum("begins").over(in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    return (
        of_node.withColumn("reached", reached)
        .withColumn("begins", begins)
        .withColumn("run", run)
        .groupBy(*copy, "run")
        .agg(F.min("first").alias("start"), (F.max("last") + 1).alias("end"))
        .drop("run")
    )


def _snapshot_files(snapshots: DataFrame) -> DataFrame:
    """Each node's snapshots; of one that was copied several times, all records of any copy."""
    contained = F.when(_is(_HEADER), _field("lastContainedLogTimestamp").try_cast("bigint") * 1000)
    return (
        snapshots.where("snapshot_end_offset IS NOT NULL AND broker_id IS NOT NULL")
        .groupBy("cluster_id", F.col("broker_id").alias("node_id"), F.col("snapshot_end_offset").alias("end"))
        .agg(
            F.coalesce(F.max("snapshot_epoch"), F.lit(0)).alias("epoch"),
            F.coalesce(F.max(contained), F.unix_micros(F.min("appended_at")), F.lit(0)).alias("at"),
            F.min("record_id").alias("evidence_id"),
            (
                F.bool_or(_is(_FOOTER))
                & (F.count_distinct("position") == F.max("position") + 1)
                & (F.count("problem") == 0)
            ).alias("is_whole"),
        )
    )
