"""Segments as rows of evidence: files of partition directories by segment, and lines of server.log about segments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingest.lake.tables.bronze import SourceKind
from ingest.lake.tables.shared import PARTITION_KEY
from reconstruct.engine.folds import map_rows, select_evidence
from reconstruct.engine.rows import Row
from reconstruct.events.spark.fields import speaker
from reconstruct.segments.entries import EntriesSeen, Sampled, SegmentSamples, judged_entries
from reconstruct.segments.evidence import SegmentFiles
from reconstruct.segments.lines import SEGMENT_ACTS, SegmentLine

#: A file of a segment in use: neither deleted nor being cleaned.
IN_USE: Final = r"^[0-9]{20}\.(log|index|timeindex)$"
#: Files with a sample of what they hold, and its columns in bronze.log_segments.
SAMPLED: Final = (SourceKind.LOG_SEGMENT, SourceKind.OFFSET_INDEX, SourceKind.TIME_INDEX)
_SAMPLES: Final = ("sampled_one_in", "sampled_positions", "sampled_offsets", "sampled_timestamps")
_FILES: Final = {
    "cluster_id": "string",
    "broker_id": "int",
    "topic": "string",
    "partition_id": "int",
    "copy": "string",
    "base_offset": "bigint",
    "topic_id": "string",
    "is_last": "boolean",
    "captured_at": "bigint",
    "captured_at_upper": "bigint",
    "record_id": "string",
    "files": "array<string>",
    "size_bytes": "bigint",
    "valid_bytes": "bigint",
    "next_offset": "bigint",
    "segment_problem": "string",
    "index_entries_count": "bigint",
    "last_indexed_offset": "bigint",
    "last_indexed_position": "bigint",
    "last_timed_offset": "bigint",
    "index_problem": "string",
    "entries_count": "bigint",
    "entries_one_in": "bigint",
    "entry_problem": "string",
}


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
        _of(SourceKind.LOG_SEGMENT, "max_timestamp"),
        *(_of(kind, name, f"{kind}_{name}") for kind in SAMPLED for name in _SAMPLES),
    )
    instants = {name: F.unix_micros(name) for name in ("captured_at", "captured_at_upper")}
    held = map_rows(
        grouped.withColumns({**instants, "max_timestamp": F.unix_millis("max_timestamp")}), _FILES, _with_entries
    )
    return held.withColumns(
        {name: F.timestamp_micros(name) for name in instants}
        | {"offset_kind": F.lit(""), "source": F.lit(SourceKind.LOG_SEGMENT)}
    )


def _with_entries(rows: Iterator[Row]) -> Iterator[Row]:
    """Each segment with what its indexes' entries are found to be, in place of the samples."""
    for row in rows:
        seen = EntriesSeen(0, 1, None)
        batches, *indexes = (_sampled(row, kind) for kind in SAMPLED)
        if batches is not None and row["valid_bytes"] is not None:
            is_open = row["is_last"] or row["segment_problem"] is not None
            samples = SegmentSamples(row["valid_bytes"], is_open, row["max_timestamp"], batches, *indexes)
            seen = judged_entries(samples)
        kept = {name: row.get(name) for name in _FILES}
        yield kept | {
            "entries_count": seen.count,
            "entries_one_in": seen.one_in,
            "entry_problem": seen.problem,
        }


def _sampled(row: Row, kind: str) -> Sampled | None:
    one_in, *places = (row[f"{kind}_{name}"] for name in _SAMPLES)
    return None if one_in is None else Sampled(one_in, *(column or () for column in places))


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
