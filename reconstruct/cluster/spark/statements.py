"""What brokers state of their cluster's id, also for the logs that lie beside."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingest.lake.tables.bronze import LOG_KINDS
from ingest.shapes.event_types import EventType
from reconstruct.events.spark.fields import text_field


def may_state_id() -> Column:
    """Whether a line is of a kind that states the cluster's id."""
    return F.col("event_type").isin(EventType.CLUSTER_ID, EventType.BROKER_STATE_CHANGED)


def stated_ids(lines: DataFrame, files: DataFrame) -> DataFrame:
    """The statements of an id in ``lines`` (records of logs, or events of ``server.log``), as (``cluster_id``,
    ``broker_id``, ``at`` in µs, ``evidence_id``, ``stated_cluster_id``). A log that may be of several clusters is a
    cluster of its own (``bronze.ingested_files``, ``files``): what the others of its folder state, it is told too."""
    is_statement = (F.col("event_type") == EventType.CLUSTER_ID) | (text_field("to_state") == "STARTING")
    stated = lines.where(may_state_id()).where(is_statement & text_field("cluster_id").isNotNull())
    ambiguous = (
        files.where((F.col("cluster_source") == "ambiguous") & F.col("source_kind").isin(*LOG_KINDS))
        .select(F.col("cluster_id").alias("beside"), _folder().alias("folder"))
        .distinct()
    )
    # the two logs are of one process, and nothing corrects the clock of a single log
    neighbours = (
        stated.withColumn("folder", _folder())
        .join(F.broadcast(ambiguous), "folder")
        .where("cluster_id != beside")
        .withColumns({"cluster_id": F.col("beside"), "corrected_time": F.col("event_time")})
    )
    columns = ("cluster_id", "broker_id", "corrected_time", "record_id", "fields")
    return (
        stated.select(*columns)
        .unionByName(neighbours.select(*columns))
        .select(
            "cluster_id",
            "broker_id",
            F.unix_micros("corrected_time").alias("at"),
            F.col("record_id").alias("evidence_id"),
            text_field("cluster_id").alias("stated_cluster_id"),
        )
    )


def _folder() -> Column:
    return F.regexp_replace("source_file", r"[^/!]*$", "")
