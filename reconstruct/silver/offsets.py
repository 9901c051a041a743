"""Sightings of offsets: what checkpoint files held, and between which instants."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingest.tables.silver import OFFSET_OBSERVATIONS
from reconstruct.model.rules_version import MODEL_VERSION


def offset_observations(checkpoints: DataFrame, epochs: DataFrame, incarnations: DataFrame) -> DataFrame:
    """``bronze.offset_checkpoints`` and ``leader_epoch_checkpoints`` as ``silver.offset_observations``.

    The cleaner's checkpoint is the first dirty offset, which bounds nothing here: it stays in bronze.
    """
    kind = (
        F.when(F.col("source_kind") == "replication_offset_checkpoint", "high_watermark")
        .when(F.col("source_kind") == "recovery_point_offset_checkpoint", "recovery_point")
        .when(F.col("source_kind") == "log_start_offset_checkpoint", "log_start_offset")
    )
    offsets = checkpoints.withColumn("offset_kind", kind).where("offset_kind IS NOT NULL").select(
        "cluster_id", "topic", "partition_id", "broker_id", "offset_kind", "offset",
        F.lit(None).cast("int").alias("leader_epoch"), "captured_at", "captured_at_upper", "record_id",
        F.col("source_kind").alias("source"),
    )  # fmt: skip
    starts = epochs.select(
        "cluster_id", "topic", "partition_id", "broker_id", F.lit("epoch_start").alias("offset_kind"),
        F.col("start_offset").alias("offset"), "leader_epoch", "captured_at", "captured_at_upper", "record_id",
        F.lit("leader_epoch_checkpoint").alias("source"),
    )  # fmt: skip
    return _placed(offsets.unionByName(starts), incarnations).select(*OFFSET_OBSERVATIONS.column_names)


def _placed(sightings: DataFrame, incarnations: DataFrame) -> DataFrame:
    """With the incarnation: by the copy's instant, else the last one; a file may hold what is older than its copy."""
    spans = F.broadcast(
        incarnations.select(
            F.col("cluster_id").alias("i_cluster_id"), F.col("topic").alias("i_topic"), "topic_incarnation",
            "starts_at",
            "ends_at", "is_last",
        )
    )  # fmt: skip
    own: Column = (F.col("cluster_id") == F.col("i_cluster_id")) & (F.col("topic") == F.col("i_topic"))
    inside = (F.col("captured_at") >= F.col("starts_at")) & (F.col("captured_at") < F.col("ends_at"))
    joined = sightings.join(spans, own & F.coalesce(inside, F.col("is_last")), "left")
    return joined.select(
        F.sha2(F.concat_ws("|", "record_id", "offset_kind"), 256).substr(1, 32).alias("observation_id"),
        "cluster_id", "topic", F.coalesce("topic_incarnation", F.lit("unknown")).alias("topic_incarnation"),
        "partition_id", F.col("broker_id").alias("replica_id"), "offset_kind", "offset", "leader_epoch",
        F.col("captured_at").alias("observed_at"), F.col("captured_at_upper").alias("observed_at_upper"), "source",
        F.array("record_id").alias("evidence"), F.lit(None).cast("string").alias("inferred_from"),
        F.lit(MODEL_VERSION).alias("model_version"),
    )  # fmt: skip
