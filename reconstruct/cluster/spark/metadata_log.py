"""What the metadata log tells of a cluster, beside what logs and znodes do."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ingest.lake.plans import collect_all, in_order
from reconstruct.cluster.evidence import ClusterFacts
from reconstruct.cluster.metadata_log import (
    MIN_ISR,
    UNCLEAN,
    broker_facts,
    broker_settings,
    elected_controllers,
    supported_levels,
)
from reconstruct.cluster.settings import SettingChange
from reconstruct.engine.rows import value_of
from reconstruct.metadata_log.evidence import LEADER_CHANGE, LogRow
from reconstruct.metadata_log.rows import change_of
from reconstruct.metadata_log.timeline import MetadataChange


def add_metadata_facts(facts: dict[str, ClusterFacts], changes: DataFrame, records: DataFrame) -> None:
    """``changes`` are ``silver.metadata_changes``, ``records`` ``bronze.metadata_records``."""
    led = (
        records.where(F.col("record_type") == LEADER_CHANGE)
        .groupBy("cluster_id", "offset", F.col("leader_epoch").alias("epoch"), "record_type", "fields")
        .agg(F.min("record_id").alias("evidence_id"), F.unix_micros(F.min("appended_at")).alias("at"))
        .where("fields IS NOT NULL AND at IS NOT NULL")
    )
    kept = changes.where("subject_kind = 'broker' OR subject_kind = 'config' AND topic IS NULL")
    others = kept.withColumn("at", F.unix_micros("changed_at"))
    elected, changed, settings = collect_all([led, others, _topic_settings(changes)])
    for row in elected:
        facts.setdefault(row["cluster_id"], ClusterFacts()).controllers.extend(
            elected_controllers([value_of(LogRow, row.asDict())])
        )
    made: dict[str, list[MetadataChange]] = {}
    for row in in_order(changed, "cluster_id", "offset"):
        made.setdefault(row["cluster_id"], []).append(change_of(row.asDict()))
    for cluster_id, of_cluster in made.items():
        cluster = facts.setdefault(cluster_id, ClusterFacts())
        cluster.brokers.extend(broker_facts(of_cluster))
        cluster.metadata_levels |= supported_levels(of_cluster)
        cluster.has_all_settings = True
        for broker_id, change in broker_settings(of_cluster):
            cluster.broker_settings.setdefault(broker_id, []).append(change)
    for row in in_order(settings, "cluster_id", "at"):
        change = SettingChange(row["at"], row["min_isr"], row["unclean"], row["is_first"])
        facts.setdefault(row["cluster_id"], ClusterFacts()).topic_settings.setdefault(row["topic"], []).append(change)


def _topic_settings(changes: DataFrame) -> DataFrame:
    """A row for each time that the settings of a topic became others."""
    pairs = F.from_json("state", "settings array<array<string>>")["settings"]
    settings = F.map_from_entries(F.transform(pairs, lambda pair: F.struct(pair[0], pair[1])))
    before = F.lag("state").over(Window.partitionBy("cluster_id", "subject").orderBy("offset"))
    is_new = before.isNull() & F.col("inferred_from").isNull()
    return changes.where("subject_kind = 'config' AND topic IS NOT NULL").select(
        "cluster_id",
        "topic",
        F.unix_micros("changed_at").alias("at"),
        F.try_element_at(settings, F.lit(MIN_ISR)).try_cast("int").alias("min_isr"),
        F.try_element_at(settings, F.lit(UNCLEAN)).try_cast("boolean").alias("unclean"),
        is_new.alias("is_first"),
    )
