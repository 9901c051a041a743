"""Segments as rows of evidence: files of partition directories by segment, and lines of server.log about segments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingest.lake.tables.bronze import SourceKind
from ingest.lake.tables.shared import PARTITION_KEY
from reconstruct.engine.folds import select_evidence
from reconstruct.events.spark.fields import speaker
from reconstruct.segments.evidence import SegmentFiles
from reconstruct.segments.lines import SEGMENT_ACTS, SegmentLine

#: A file of a segment in use: neither deleted nor being cleaned.
IN_USE: Final = r"^[0-9]{20}\.(log|index|timeindex)$"


def segment_files(segments: DataFrame) -> DataFrame:
    """Grain: one row per (copy or listing of a partition's directory, segment) of ``bronze.log_segments``; with its
    ``topic_id``, where the copy has one, for whoever places it in an incarnation."""
    folder = F.regexp_replace("source_file", "[^/]*$", "")
    at = F.concat_ws("|", F.col("captured_at").cast("string"), F.when(F.col("captured_at").isNull(), folder))
    own = segments.where(F.col("directory") == F.concat_ws("-", "topic", F.col("partition_id").cast("string")))
    copy = ("cluster_id", "broker_id", "topic", "partition_id", "copy")
    is_of_segment = F.col("file_name").rlike(IN_USE)
    whole = (
        own.withColumn("copy", at)
        .withColumn("topic_id", F.max("topic_id").over(Window.partitionBy(*copy)))
        .where(is_of_segment & F.col("base_offset").isNotNull() & F.col("broker_id").isNotNull())
        .withColumn("last_base", F.max("base_offset").over(Window.partitionBy(*copy)))
    )
    grouped = whole.groupBy(*copy, "base_offset").agg(
        F.max("topic_id").alias("topic_id"),
        (F.max("last_base") == F.col("base_offset")).alias("is_last"),
        F.min("captured_at").alias("captured_at"),
        F.max("captured_at_upper").alias("captured_at_upper"),
        F.min("record_id").alias("record_id"),
        F.sort_array(F.collect_set("record_id")).alias("files"),
        _of(SourceKind.LOG_SEGMENT, "size_bytes"),
        _of(SourceKind.LOG_SEGMENT, "valid_bytes"),
        _of(SourceKind.LOG_SEGMENT, "next_offset"),
        _of(SourceKind.LOG_SEGMENT, "problem", "segment_problem"),
        _of(SourceKind.OFFSET_INDEX, "entries_count", "index_entries_count"),
        _of(SourceKind.OFFSET_INDEX, "last_indexed_offset"),
        _of(SourceKind.OFFSET_INDEX, "last_indexed_position"),
        _of(SourceKind.TIME_INDEX, "last_indexed_offset", "last_timed_offset"),
        F.coalesce(
            F.max(F.when(F.col("file_kind") == SourceKind.OFFSET_INDEX, F.col("problem"))),
            F.max(F.when(F.col("file_kind") == SourceKind.TIME_INDEX, F.col("problem"))),
        ).alias("index_problem"),
    )
    return grouped.withColumns({"offset_kind": F.lit(""), "source": F.lit(SourceKind.LOG_SEGMENT)})


def _of(kind: str, column: str, name: str | None = None) -> Column:
    return F.max(F.when(F.col("file_kind") == kind, F.col(column))).alias(name or column)


def files_evidence(placed: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """Rows of :func:`segment_files` with their incarnation as evidence."""
    return select_evidence(
        placed,
        PARTITION_KEY,
        columns,
        SegmentFiles,
        replica_id="broker_id",
        seen_at=F.unix_micros("captured_at"),
        seen_at_upper=F.unix_micros("captured_at_upper"),
    )


def lines_evidence(replication_events: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """One row per line of server.log about segments of a partition."""
    lines = replication_events.where(
        F.col("event_type").isin(*SEGMENT_ACTS)
        & F.col("topic_incarnation").isNotNull()
        & F.col("partition_id").isNotNull()
        & speaker().isNotNull()
    )
    return select_evidence(
        lines,
        PARTITION_KEY,
        columns,
        SegmentLine,
        replica_id=speaker(),
        segment_event="event_type",
        at=F.unix_micros("corrected_time"),
        evidence_id="record_id",
        log_place="file_id",
        line="byte_offset",
    )
