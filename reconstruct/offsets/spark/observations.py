"""Observations of offsets, each between two instants: what checkpoints and directories contained, brokers answered and
logs print."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingest.lake.plans import union
from ingest.lake.tables.bronze import SourceKind
from reconstruct.engine.folds import select_columns
from reconstruct.model.versions import MODEL_VERSION
from reconstruct.offsets.evidence import PROBE

#: A segment of the log itself, neither deleted nor being cleaned.
_SEGMENT: Final = r"^[0-9]{20}\.log$"
#: Timestamps of a ListOffsets request, and the replica id of a consumer's.
_LATEST: Final = -1
_EARLIEST: Final = -2
_CONSUMER: Final = -1
_REPLICA: Final = ("cluster_id", "topic", "partition_id", "broker_id")
_COLUMNS: Final = {
    "offset_kind": "string",
    "offset": "bigint",
    "leader_epoch": "int",
    "captured_at": "timestamp",
    "captured_at_upper": "timestamp",
    "record_id": "string",
    "source": "string",
    "file_id": "string",
    "ordinal": "int",
    "topic_id": "string",
}


def offset_observations(
    checkpoints: DataFrame,
    epochs: DataFrame,
    segments: DataFrame,
    incarnations: DataFrame,
    statements: DataFrame | None = None,
    probes: DataFrame | None = None,
) -> DataFrame:
    """``bronze.offset_checkpoints``, ``leader_epoch_checkpoints``, ``log_segments`` and ``offset_probes``, and what log
    records say (``statements``, of :func:`offset_statements`), as ``silver.offset_observations``; and ``file_id`` of
    the copy that a row is of (NULL for what no copied checkpoint holds).

    The cleaner's checkpoint is the first dirty offset, which bounds nothing here: it stays in bronze.
    """
    kind = (
        F.when(F.col("source_kind") == SourceKind.REPLICATION_OFFSET_CHECKPOINT, "high_watermark")
        .when(F.col("source_kind") == SourceKind.RECOVERY_POINT_OFFSET_CHECKPOINT, "recovery_point")
        .when(F.col("source_kind") == SourceKind.LOG_START_OFFSET_CHECKPOINT, "log_start_offset")
    )
    parts = [
        _observed(checkpoints, kind, source="source_kind", file_id="file_id"),
        # a directory that waits for its deletion has another name
        _observed(
            epochs.where(F.col("directory") == _log_name()),
            F.lit("epoch_start"),
            offset="start_offset",
            leader_epoch="leader_epoch",
            source=F.lit(SourceKind.LEADER_EPOCH_CHECKPOINT),
            file_id="file_id",
        ),
        _log_ends(segments),
    ]
    parts += [] if statements is None else [_printed(statements)]
    parts += [] if probes is None else [_answered(probes)]
    return _columns(placed(union(parts), incarnations))


def _log_name() -> Column:
    """The directory of a partition's log in use."""
    return F.concat_ws("-", "topic", F.col("partition_id").cast("string"))


def _observed(rows: DataFrame, offset_kind: Column, /, **given: Column | str) -> DataFrame:
    """Observations of one source: those of its rows that have an ``offset_kind``, and their columns as ``given``."""
    own: dict[str, Column | str] = {name: name for name in ("captured_at", "captured_at_upper", "record_id")}
    of_kind = rows.withColumn("offset_kind", offset_kind).where("offset_kind IS NOT NULL")
    return select_columns(
        of_kind, _REPLICA, _COLUMNS, **{**own, "offset": "`offset`", **given}, offset_kind="offset_kind"
    )


def _printed(statements: DataFrame) -> DataFrame:
    """Offsets that log records print: sighted at the time of their lines."""
    at = F.timestamp_micros("at_us")
    return _observed(
        statements.withColumnRenamed("replica_id", "broker_id"),
        F.col("offset_kind"),
        leader_epoch="leader_epoch",
        captured_at=at,
        captured_at_upper=at,
        source="source",
        ordinal="ordinal",
    )


def _answered(probes: DataFrame) -> DataFrame:
    """Offsets that brokers answered: true at some instant between asking and answering.

    Of ListOffsets, a broker that takes itself for the leader, a deposed one too, answers a consumer with its high
    watermark, and anyone else with its log end offset. With read_committed a consumer gets the last stable offset,
    which is neither.
    """
    is_latest = F.col("target_timestamp") == _LATEST
    is_consumer = F.col("replica_id") == _CONSUMER
    kind = (
        F.when(F.col("target_timestamp") == _EARLIEST, "log_start_offset")
        .when(is_latest & is_consumer & (F.col("isolation_level") == 0), "high_watermark")
        .when(is_latest & ~is_consumer, "log_end_offset")
    )
    answers = probes.where("offset IS NOT NULL")
    return _observed(answers, kind, captured_at="sent_at", captured_at_upper="received_at", source=F.lit(PROBE))


def _log_ends(segments: DataFrame) -> DataFrame:
    """The log end offset of each copy of a partition's directory: where its last segment ends.

    Segments marked as deleted or being cleaned are none of the log's; nor are directories renamed for deletion, or of a
    copy that moves between the directories of one broker, this replica's log. A listing shows no end.
    """
    copy = ("cluster_id", "broker_id", "captured_at", "captured_at_upper", "topic", "partition_id", "directory")
    is_whole = F.col("directory") == _log_name()
    of_log = segments.where(
        is_whole & ((F.col("file_kind") == SourceKind.PARTITION_METADATA) | F.col("file_name").rlike(_SEGMENT))
    )
    is_segment = F.col("file_kind") == SourceKind.LOG_SEGMENT
    place = F.when(is_segment, F.struct("base_offset", "is_read", "next_offset", "record_id"))
    ends = of_log.groupBy(*copy).agg(F.max(place).alias("last"), F.max("topic_id").alias("topic_id"))
    return _observed(
        ends.where("last.is_read AND last.next_offset IS NOT NULL"),
        F.lit("log_end_offset"),
        offset="last.next_offset",
        record_id="last.record_id",
        source=F.lit(SourceKind.LOG_SEGMENT),
        topic_id="topic_id",
    )


def placed(sightings: DataFrame, incarnations: DataFrame) -> DataFrame:
    """With ``topic_incarnation``: by the topic id beside the file, else the copy's instant, else the last one; a file
    may hold what is older than its copy. An answer that may be of either of two incarnations is of none."""
    spans = F.broadcast(
        incarnations.select(
            F.col("cluster_id").alias("i_cluster_id"),
            F.col("topic").alias("i_topic"),
            "topic_incarnation",
            "starts_at",
            "ends_at",
            F.col("is_last").alias("i_is_last"),
        )
    )
    own: Column = (F.col("cluster_id") == F.col("i_cluster_id")) & (F.col("topic") == F.col("i_topic"))
    is_whole = (F.col("source") != PROBE) | (F.col("captured_at_upper") < F.col("ends_at"))
    inside = (F.col("captured_at") >= F.col("starts_at")) & (F.col("captured_at") < F.col("ends_at")) & is_whole
    by_id = F.broadcast(
        incarnations.select(
            "cluster_id", "topic", F.col("topic_incarnation").alias("topic_id"), F.lit(True).alias("is_named")
        )
    )
    joined = sightings.join(spans, own & F.coalesce(inside, F.col("i_is_last")), "left").join(
        by_id, ["cluster_id", "topic", "topic_id"], "left"
    )
    incarnation = F.coalesce(F.when(F.col("is_named"), F.col("topic_id")), "topic_incarnation", F.lit("unknown"))
    return joined.withColumn("topic_incarnation", incarnation)


def _columns(sightings: DataFrame) -> DataFrame:
    subject = F.concat_ws("|", "record_id", F.col("ordinal").cast("string"), "offset_kind")
    return sightings.select(
        F.sha2(subject, 256).substr(1, 32).alias("observation_id"),
        "cluster_id",
        "topic",
        "topic_incarnation",
        "partition_id",
        F.col("broker_id").alias("replica_id"),
        "offset_kind",
        "offset",
        "leader_epoch",
        F.col("captured_at").alias("observed_at"),
        F.col("captured_at_upper").alias("observed_at_upper"),
        "source",
        F.array("record_id").alias("evidence"),
        F.lit(None).cast("string").alias("inferred_from"),
        F.lit(MODEL_VERSION).alias("model_version"),
        "file_id",
    )
