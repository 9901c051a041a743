"""All that is known of each broker's checkpoints in one shape: the input of :mod:`reconstruct.checkpoints`."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingest.lake.plans import union
from ingest.lake.tables.bronze import SourceKind
from ingest.lake.tables.shared import PARTITION_KEY
from ingest.shapes.event_types import EventType
from reconstruct.checkpoints.evidence import (
    CHECKPOINT_KINDS,
    LINE_KINDS,
    ROLE_KINDS,
    AssignedSpan,
    BrokerLine,
    CheckpointCopy,
    CheckpointEntry,
    ProvenHighWatermark,
    RejectedEntry,
    RoleLines,
)
from reconstruct.checkpoints.spark.corners import SERIES
from reconstruct.engine.folds import evidence_columns, select_evidence
from reconstruct.events.spark.fields import long_field, speaker

#: Whose evidence a row is.
BROKER_KEY: Final = ("cluster_id", "broker_id")
_REPLICA: Final = ("topic", "topic_incarnation", "partition_id")
#: The fields of the kinds of evidence on a broker's checkpoints, and what their values are made of besides.
CHECKPOINT_COLUMNS: Final = evidence_columns(
    CheckpointCopy,
    RejectedEntry,
    CheckpointEntry,
    BrokerLine,
    RoleLines,
    AssignedSpan,
    ProvenHighWatermark,
    file_id="string",
    topic="string",
    topic_incarnation="string",
    partition_id="int",
    known_until="bigint",
    source_line="bigint",
    cause_type="string",
    fields="map<string,string>",
)
_UNREADABLE: Final = (EventType.CHECKPOINT_MALFORMED, EventType.CHECKPOINT_ERROR)


def checkpoint_evidence_rows(
    copies: DataFrame,
    entries: DataFrame,
    rejected: DataFrame,
    replication_events: DataFrame,
    records: DataFrame,
    assignments: DataFrame,
    offset_timeline: DataFrame,
) -> DataFrame:
    """Grain: one row per (broker, piece of evidence). Instants in microseconds.

    ``copies`` and ``entries`` of :mod:`reconstruct.checkpoints.spark.corners`, the others as
    :func:`reconstruct.checkpoints.spark.step.checkpoint_findings` takes them.
    """
    return union(
        [
            _copies(copies),
            _bad(rejected, copies),
            _entries(entries),
            *_lines(replication_events),
            _unreadable(records),
            _assigned(assignments, entries),
            _proven(offset_timeline, entries),
        ]
    )


def _select(rows: DataFrame, kind: type, /, **given: str) -> DataFrame:
    return select_evidence(rows, BROKER_KEY, CHECKPOINT_COLUMNS, kind, **given)


def _of_replicas(rows: DataFrame, kind: type, /, **given: str) -> DataFrame:
    return _select(rows, kind, **{name: name for name in _REPLICA}, **given)


def _copies(copies: DataFrame) -> DataFrame:
    given = {"taken_at": "taken_us", "known_until": "known_until_us", "content": "content_hash"}
    return _select(copies, CheckpointCopy, file_id="file_id", **given)


def _bad(rejected: DataFrame, copies: DataFrame) -> DataFrame:
    of_checkpoints = rejected.where(F.col("source_kind").isin(*CHECKPOINT_KINDS)).drop("broker_id")
    bad = of_checkpoints.join(copies.select(*BROKER_KEY, "file_id"), ["cluster_id", "file_id"])
    own = {name: name for name in ("file_id", "source_line")}
    return _select(bad, RejectedEntry, text="raw", evidence_id="record_id", **own)


def _entries(entries: DataFrame) -> DataFrame:
    return _of_replicas(entries, CheckpointEntry, taken_at="taken_us")


def _lines(events: DataFrame) -> list[DataFrame]:
    """Each line; but of those that say when a replica was told its role, one row for all of it."""
    wanted = events.where(F.col("event_type").isin(*LINE_KINDS) | F.col("cause_type").isin(*_UNREADABLE))
    whose = {"broker_id": speaker(), "at": F.unix_micros("corrected_time")}
    lines = wanted.withColumns(whose).where("broker_id IS NOT NULL")
    with_offset = {event_type: name for event_type, (_, name) in ROLE_KINDS.items() if name}
    event = F.col("event_type")
    offset = F.coalesce(*(F.when(event == event_type, long_field(name)) for event_type, name in with_offset.items()))
    of_one = F.col("topic").isNotNull() & F.col("partition_id").isNotNull()
    is_told = event.isin(*ROLE_KINDS) & of_one & (offset.isNotNull() | ~event.isin(*with_offset))
    of_replica = lines.where(is_told).groupBy(*BROKER_KEY, *_REPLICA, "event_type")
    told = of_replica.agg(F.array_sort(F.collect_list(F.struct("at", offset.alias("offset")))).alias("told"))
    return [
        _of_replicas(
            lines.where(~is_told),
            BrokerLine,
            event_type="event_type",
            cause_type="cause_type",
            fields="fields",
            evidence_id="record_id",
        ),
        _of_replicas(told, RoleLines, instants="told.at", offsets="array_compact(told.offset)"),
    ]


def is_unreadable() -> Column:
    """Whether a log record is of no known shape, and its exception says that a checkpoint could not be read."""
    is_unknown = (F.col("source_kind") == SourceKind.SERVER_LOG) & F.col("shape_id").isNull()
    return is_unknown & F.col("cause_type").isin(*_UNREADABLE) & F.col("broker_id").isNotNull()


def _unreadable(records: DataFrame) -> DataFrame:
    return _select(
        records.where(is_unreadable()),
        BrokerLine,
        at="unix_micros(corrected_time)",
        cause="substring_index(continuation, '\n', 1)",
        cause_type="cause_type",
        evidence_id="record_id",
    )


def _assigned(assignments: DataFrame, entries: DataFrame) -> DataFrame:
    """Of each replica with an entry: every interval of its partition's assignment, and that there is none after the
    last where that ended."""
    key = list(PARTITION_KEY)
    replicas = entries.select(*key, "broker_id").distinct()
    last_to = F.max(F.struct(F.coalesce("valid_to", F.timestamp_micros(F.lit(1 << 60))), "valid_to"))
    ends = assignments.groupBy(*key).agg(last_to["valid_to"].alias("valid_from")).where("valid_from IS NOT NULL")
    spans = assignments.select(*key, "valid_from", "valid_to", "replicas").unionByName(
        ends.selectExpr(
            *key, "valid_from", "CAST(NULL AS timestamp) AS valid_to", "CAST(array() AS array<int>) AS replicas"
        )
    )
    return _of_replicas(
        spans.join(replicas, key),
        AssignedSpan,
        start="unix_micros(valid_from)",
        end="unix_micros(valid_to)",
        is_assigned="array_contains(replicas, broker_id)",
    )


def _proven(timeline: DataFrame, entries: DataFrame) -> DataFrame:
    """Where a file stayed the same for long, what was proven of its replicas' high watermarks meanwhile, if higher."""
    unchanged = entries.where("is_unchanged").select(
        *(F.col(name) for name in SERIES if name not in ("directory", "kind")),
        F.col("offset").alias("offset_in_file"),
        "unchanged_from_us",
        "unchanged_to_us",
    )
    higher = timeline.withColumnRenamed("replica_id", "broker_id").join(unchanged, [*PARTITION_KEY, "broker_id"])
    start = F.unix_micros("valid_from")
    risen = higher.where(
        (F.col("high_watermark_lower") > F.col("offset_in_file"))
        & (start >= F.col("unchanged_from_us"))
        & (start <= F.col("unchanged_to_us"))
    )
    return _of_replicas(
        risen,
        ProvenHighWatermark,
        start="unix_micros(valid_from)",
        end="unix_micros(valid_to)",
        offset="high_watermark_lower",
    )
