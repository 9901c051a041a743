"""All that is known of each broker's checkpoints in one shape: the input of :mod:`checkpoint_health`."""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake.tables.silver import PARTITION_KEY
from ingest.shapes.event_types import EventType
from reconstruct.checkpoints.evidence import CHECKPOINT_KINDS, LINE_KINDS
from reconstruct.checkpoints.spark.corners import SERIES

#: What a row is: a :class:`CheckpointCopy`, :class:`RejectedEntry`, :class:`CheckpointEntry`, what a
#: :class:`BrokerLine` is made of, an :class:`AssignedSpan` or a :class:`ProvenHighWatermark`.
COPY: Final = "copy"
BAD: Final = "bad"
ENTRY: Final = "entry"
LINE: Final = "line"
ASSIGNED: Final = "assigned"
PROVEN: Final = "proven"

_GIVEN: Final = {
    "row_kind": "string",
    "cluster_id": "string",
    "broker_id": "int",
    "directory": "string",
    "kind": "string",
    "file_id": "string",
    "topic": "string",
    "topic_incarnation": "string",
    "partition_id": "int",
    "from_us": "bigint",
    "to_us": "bigint",
    "offset": "bigint",
    "is_so": "boolean",
    "text": "string",
    "reason": "string",
    "fields": "map<string,string>",
    "evidence": "array<string>",
}
_UNREADABLE: Final = (EventType.CHECKPOINT_MALFORMED, EventType.CHECKPOINT_ERROR)
_FIELDS_OF_LINES: Final = ("log_end_offset", "high_watermark", "offset", "log_dir", "file", "path", "log_dirs")


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
    parts = [
        _copies(copies),
        _bad(rejected, copies),
        _entries(entries),
        _lines(replication_events),
        _unreadable(records),
        _assigned(assignments, entries),
        _proven(offset_timeline, entries),
    ]
    return reduce(DataFrame.unionByName, parts)


def _select(rows: DataFrame, row_kind: str, **given: str) -> DataFrame:
    """The columns of :data:`_GIVEN`, by SQL expressions; what is not given is NULL."""
    expressions = {"row_kind": f"'{row_kind}'", "cluster_id": "cluster_id", "broker_id": "broker_id", **given}
    return rows.select(
        *(F.expr(expressions.get(name, "NULL")).cast(type_).alias(name) for name, type_ in _GIVEN.items())
    )


def _copies(copies: DataFrame) -> DataFrame:
    return _select(
        copies,
        COPY,
        directory="directory",
        kind="kind",
        file_id="file_id",
        from_us="taken_us",
        to_us="known_until_us",
        offset="entry_count",
        text="content_hash",
    )


def _bad(rejected: DataFrame, copies: DataFrame) -> DataFrame:
    of_checkpoints = rejected.where(F.col("source_kind").isin(*CHECKPOINT_KINDS)).drop("broker_id")
    bad = of_checkpoints.join(copies.select("cluster_id", "broker_id", "file_id"), ["cluster_id", "file_id"])
    return _select(
        bad, BAD, file_id="file_id", from_us="source_line", text="raw", reason="reason", evidence="array(record_id)"
    )


def _entries(entries: DataFrame) -> DataFrame:
    return _select(
        entries,
        ENTRY,
        directory="directory",
        kind="kind",
        topic="topic",
        topic_incarnation="topic_incarnation",
        partition_id="partition_id",
        from_us="taken_us",
        offset="`offset`",
        is_so="begins_run",
        evidence="array(evidence_id)",
    )


def _lines(events: DataFrame) -> DataFrame:
    said = events.where(F.col("event_type").isin(*LINE_KINDS) | F.col("cause_type").isin(*_UNREADABLE))
    speaker = F.coalesce(F.col("fields")["broker_id"].try_cast("int"), F.col("broker_id"))
    pairs = ", ".join(f"'{name}', fields['{name}']" for name in _FIELDS_OF_LINES)
    return _select(
        said.withColumn("broker_id", speaker).where("broker_id IS NOT NULL"),
        LINE,
        kind="event_type",
        topic="topic",
        topic_incarnation="topic_incarnation",
        partition_id="partition_id",
        from_us="unix_micros(corrected_time)",
        text="cause",
        reason="cause_type",
        fields=f"map({pairs})",
        evidence="array(record_id)",
    )


def _unreadable(records: DataFrame) -> DataFrame:
    """Records of no known shape whose exception says that a checkpoint could not be read."""
    said = records.where(
        (F.col("source_kind") == "server_log")
        & F.col("shape_id").isNull()
        & F.col("cause_type").isin(*_UNREADABLE)
        & F.col("broker_id").isNotNull()
    )
    return _select(
        said,
        LINE,
        from_us="unix_micros(corrected_time)",
        text="substring_index(continuation, '\n', 1)",
        reason="cause_type",
        evidence="array(record_id)",
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
    return _select(
        spans.join(replicas, key),
        ASSIGNED,
        topic="topic",
        topic_incarnation="topic_incarnation",
        partition_id="partition_id",
        from_us="unix_micros(valid_from)",
        to_us="unix_micros(valid_to)",
        is_so="array_contains(replicas, broker_id)",
    )


def _proven(timeline: DataFrame, entries: DataFrame) -> DataFrame:
    """Where a file stayed the same for long, what was proven of its replicas' high watermarks meanwhile, if higher."""
    unchanged = entries.where("is_unchanged").select(
        *(F.col(name) for name in SERIES if name not in ("directory", "kind")),
        F.col("offset").alias("held"),
        "unchanged_from_us",
        "unchanged_to_us",
    )
    higher = timeline.withColumnRenamed("replica_id", "broker_id").join(unchanged, [*PARTITION_KEY, "broker_id"])
    start = F.unix_micros("valid_from")
    risen = higher.where(
        (F.col("high_watermark_lower") > F.col("held"))
        & (start >= F.col("unchanged_from_us"))
        & (start <= F.col("unchanged_to_us"))
    )
    return _select(
        risen,
        PROVEN,
        topic="topic",
        topic_incarnation="topic_incarnation",
        partition_id="partition_id",
        from_us="unix_micros(valid_from)",
        to_us="unix_micros(valid_to)",
        offset="high_watermark_lower",
        evidence="evidence",
    )
