"""What brokers described of one partition, read from the lake: what differs from each broker's answer before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingest.lake.delta import Lake
from ingest.lake.tables.bronze import CAPTURE_GAPS, CLUSTER_DESCRIPTIONS
from reconstruct.explain.described import AFTER_US, MOST_ANSWERS, Described, Missed
from reconstruct.time.instants import to_datetime

_MOST_GAPS: Final = 100
#: What a capture may not record at all, of what brokers describe.
_DESCRIBED: Final = ("probes", "log dirs", "reassignments")


def describing_clusters(lake: Lake, topic: str) -> list[str]:
    """The clusters of which some broker described the topic."""
    rows = lake.read(CLUSTER_DESCRIPTIONS).where((F.col("topic") == topic) & (F.col("description_type") == "topic"))
    return sorted(row["cluster_id"] for row in rows.select("cluster_id").distinct().collect())


def described_of(
    lake: Lake, cluster_id: str, topic: str, partition_id: int, start: int, end: int
) -> tuple[list[Described], list[Missed]]:
    """What was described from ``start`` to some time after ``end`` (µs), the last before of each kind and broker
    included; and what the capture missed then."""
    lines = lake.read(CLUSTER_DESCRIPTIONS).where(F.col("cluster_id") == cluster_id)
    frame = changes_of(lines.where(F.unix_micros("sent_at") <= end + AFTER_US), topic, partition_id)
    is_before = F.unix_micros("sent_at") < start
    newest = Window.partitionBy("subject", is_before).orderBy(F.col("sent_at").desc(), F.col("byte_offset").desc())
    rows = (
        frame.withColumn("newest", F.row_number().over(newest))
        .where(~is_before | (F.col("newest") == 1))
        .orderBy("sent_at", "byte_offset", "record_id")
        .limit(MOST_ANSWERS)
        .select(
            F.unix_micros("sent_at").alias("at"),
            "broker_id",
            F.col("description_type").alias("kind"),
            "partition",
            "log_dir",
            F.coalesce("own_replicas", F.array()).alias("replicas"),
            "reassignment",
        )
        .collect()
    )
    return [Described(**row.asDict(recursive=True)) for row in rows], _missed(lake, cluster_id, start, end)


def changes_of(lines: DataFrame, topic: str, partition_id: int) -> DataFrame:
    """Of a cluster's rows of ``bronze.cluster_descriptions`` those that say of the partition something else than the
    last one of the same broker and kind did: with ``partition``, ``own_replicas``, ``reassignment`` and ``subject``."""
    own = (F.col("topic") == topic) & F.col("description_type").isin("topic", "topic_gone", "log_dir_topic")
    moves = F.col("description_type") == "reassignments"
    answers = lines.where(own | moves).select(
        "record_id",
        "byte_offset",
        "sent_at",
        "broker_id",
        "description_type",
        "log_dir",
        F.get(F.filter("partitions", _is(partition_id)), 0).alias("partition"),
        F.transform(
            F.filter("replicas", _is(partition_id)),
            lambda one: F.struct(one["offset_lag"].alias("offset_lag"), one["is_future"].alias("is_future")),
        ).alias("own_replicas"),
        F.get(
            F.filter("reassignments", lambda one: (one["topic"] == topic) & (one["partition_id"] == partition_id)), 0
        ).alias("reassignment"),
        # one controller at a time tells of reassignments
        F.when(moves, F.lit("moves"))
        .otherwise(F.concat_ws(" ", "broker_id", F.coalesce("log_dir", F.lit(""))))
        .alias("subject"),
    )
    in_order = Window.partitionBy("subject").orderBy("sent_at", "byte_offset")
    content = F.to_json(F.struct("partition", "own_replicas", "reassignment"))
    is_something = (
        F.col("partition").isNotNull()
        | F.col("reassignment").isNotNull()
        | (F.coalesce(F.size("own_replicas"), F.lit(0)) > 0)
    )
    compared = answers.withColumns({"content": content, "content_before": F.lag(content).over(in_order)})
    return compared.where(
        ~F.col("content").eqNullSafe(F.col("content_before")) & (F.col("content_before").isNotNull() | is_something)
    )


def _is(partition_id: int) -> Callable[[Column], Column]:
    return lambda one: one["partition_id"] == partition_id


def _missed(lake: Lake, cluster_id: str, start: int, end: int) -> list[Missed]:
    """Outages that touch the span, and what is not recorded at all of what brokers describe."""
    outages = (
        lake.read(CAPTURE_GAPS)
        .where(F.col("cluster_id") == cluster_id)
        .groupBy("missed_source", "missed_of", "missed_from")
        .agg(F.max("missed_to").alias("missed_to"), F.max("reason").alias("reason"))
    )
    until = F.lit(to_datetime(end + AFTER_US))
    is_never = F.col("missed_to").eqNullSafe(F.col("missed_from"))
    touches = (F.col("missed_from") <= until) & F.coalesce(F.col("missed_to") >= F.lit(to_datetime(start)), F.lit(True))
    wanted = (touches & ~is_never) | (is_never & F.col("missed_source").isin(*_DESCRIBED))
    rows = (
        outages.where(wanted)
        .select(
            "missed_source",
            "missed_of",
            F.unix_micros("missed_from").alias("start"),
            F.unix_micros("missed_to").alias("end"),
            "reason",
        )
        .orderBy("start", "missed_source", "missed_of")
        .limit(_MOST_GAPS)
        .collect()
    )
    return [Missed(*row) for row in rows]
