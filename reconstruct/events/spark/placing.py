"""What happened when a topic had several incarnations, given to the one whose time it was."""

from __future__ import annotations

from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def with_incarnation(
    rows: DataFrame, incarnations: DataFrame, at_us: Column, how: Literal["inner", "left"] = "inner"
) -> DataFrame:
    """``rows`` (with ``cluster_id`` and ``topic``) and the ``topic_incarnation`` of their topic at an instant in
    microseconds; with ``how`` "inner" those that are of none go, with "left" theirs is NULL.

    ``incarnations`` as :func:`reconstruct.cluster.spark.incarnations.topic_incarnations` gives them: few, so broadcast.
    """
    spans = F.broadcast(
        incarnations.select(
            F.col("cluster_id").alias("i_cluster_id"),
            F.col("topic").alias("i_topic"),
            "topic_incarnation",
            F.unix_micros("starts_at").alias("i_starts_us"),
            F.unix_micros("ends_at").alias("i_ends_us"),
        )
    )
    inside = (
        (F.col("cluster_id") == F.col("i_cluster_id"))
        & (F.col("topic") == F.col("i_topic"))
        & (at_us >= F.col("i_starts_us"))
        & (at_us < F.col("i_ends_us"))
    )
    return rows.join(spans, inside, how).drop("i_cluster_id", "i_topic", "i_starts_us", "i_ends_us")


def placed_events(events: DataFrame) -> DataFrame:
    """Of typed events what tells one from another: which record it is of and whose, and where it was placed. What a
    record says stays as long as it is the same record."""
    return events.select(
        "cluster_id", "topic", "event_id", "file_id", "broker_id", "corrected_time", "topic_incarnation"
    )
