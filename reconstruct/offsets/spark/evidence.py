"""All that is known of each partition's offsets in one shape: the input of :mod:`reconstruct.offsets.spark.step`."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingest.lake.plans import union
from ingest.lake.tables.bronze import SourceKind
from ingest.lake.tables.shared import PARTITION_KEY
from ingest.shapes.event_types import EventType
from reconstruct.engine.folds import evidence_columns, select_evidence
from reconstruct.events.spark.fields import text_field
from reconstruct.events.spark.placing import placed_events, with_incarnation
from reconstruct.kept.topics import ALL_TOPICS, Topics
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.messages import LOG_RECORD
from reconstruct.offsets.rules.case import IsrMove, IsrMoveKind
from reconstruct.offsets.spark.observations import placed
from reconstruct.segments.evidence import SegmentFiles
from reconstruct.segments.lines import SEGMENT_ACTS, SegmentLine
from reconstruct.segments.spark.evidence import files_evidence, lines_evidence, segment_files

#: The fields of the kinds of evidence on a partition's offsets, and which kind a row is.
OFFSET_COLUMNS: Final = evidence_columns(
    oe.OffsetObservation, oe.ReplicaEvent, oe.DecidedState, IsrMove, SegmentFiles, SegmentLine
)
_SHRINK: Final = EventType.ISR_SHRINK_PROPOSED
_EXPAND: Final = EventType.ISR_EXPAND_PROPOSED
_WRITTEN: Final = EventType.ISR_UPDATE_COMMITTED
#: No clock shows more, in ms since the epoch; damaged text may.
MOST_MS: Final = 1 << 42


def offset_evidence(
    sightings: DataFrame,
    files: DataFrame,
    statements: DataFrame,
    incarnations: DataFrame,
    replication_events: DataFrame,
    segments: DataFrame,
    leader_and_isr: DataFrame,
    topics: Topics = ALL_TOPICS,
) -> DataFrame:
    """Grain: one row per (partition incarnation, sighting, act of a replica, decided state, move of a replica, segment
    of a copy, or line about segments).

    ``sightings`` of :func:`reconstruct.offsets.spark.observations.offset_observations`, ``files`` are
    ``bronze.ingested_files``, ``statements`` is :func:`reconstruct.offsets.spark.messages.offset_statements`,
    ``leader_and_isr`` is ``silver.leader_and_isr_timeline``, of ``silver.replication_events`` count the changes of an
    ISR that leaders asked for and what tells of segments, ``segments`` is ``bronze.log_segments``. Instants in
    microseconds.
    """
    events = topics.of(replication_events)
    rows = _sightings(topics.of(_bounded(sightings, files)))
    rows = rows.unionByName(_events(topics.of(statements), incarnations))
    known = rows.select(*PARTITION_KEY).distinct()
    # a partition of which nothing but decisions is known has no offsets to bound
    decided = _decided(topics.of(leader_and_isr)).join(known, list(PARTITION_KEY), "left_semi")
    files = files_evidence(placed(segment_files(topics.of(segments)), incarnations), OFFSET_COLUMNS)
    return union([rows, decided, _moves(events), files, lines_evidence(events, OFFSET_COLUMNS)])


def placed_evidence(statements: DataFrame, replication_events: DataFrame) -> DataFrame:
    """Of what records say of offsets, and of the typed events that are evidence of them, what places each: what it says
    stays as long as it is the same record."""
    events = replication_events.where(F.col("event_type").isin(_SHRINK, _EXPAND, _WRITTEN, *SEGMENT_ACTS))
    said = statements.select("cluster_id", "topic", "record_id", "ordinal", "kind", "replica_id", "at_us")
    return union([placed_events(events), said])


def evidence_sources(
    sightings: DataFrame, files: DataFrame, incarnations: DataFrame, segments: DataFrame
) -> list[DataFrame]:
    """Rows by topic from which the evidence follows, beside :func:`placed_evidence` and what is decided of
    partitions."""
    of_copies = _bounded(sightings.where(~_is_line()), files)
    return [of_copies.drop("evidence", "inferred_from", "model_version"), segments, incarnations]


def _bounded(sightings: DataFrame, files: DataFrame) -> DataFrame:
    """Sightings of replicas between two instants (``at_us`` and ``upper_us``), and of epochs; of those in a copied file
    also ``written_after``."""
    at = F.unix_micros("observed_at")
    is_epoch = F.col("offset_kind") == oe.EPOCH_START
    # a copy of which nothing says by when it was made proves of no instant what its file contained then
    longest = sightings.join(F.broadcast(_longest_rounds(sightings)), ["cluster_id", "replica_id"], "left")
    upper = F.coalesce(F.unix_micros("observed_at_upper"), at + F.col("longest_us"))
    bounded = longest.withColumns({"at_us": at, "upper_us": upper})
    named = bounded.where(F.col("replica_id").isNotNull() & (F.expr("at_us + upper_us IS NOT NULL") | is_epoch))
    return named.join(_written_after(files), ["cluster_id", "file_id"], "left")


def _sightings(bounded: DataFrame) -> DataFrame:
    is_line, is_epoch = _is_line(), F.col("offset_kind") == oe.EPOCH_START
    return select_evidence(
        bounded,
        PARTITION_KEY,
        OFFSET_COLUMNS,
        oe.OffsetObservation,
        observed_at=F.coalesce("at_us", F.lit(0)),
        observed_at_upper=F.when(~is_line, F.col("upper_us")),
        source=F.when(is_line, LOG_RECORD).otherwise(F.col("source")),
        evidence_id="evidence[0]",
        copy=F.coalesce(F.when(is_epoch, F.col("file_id")), F.lit("")),
    )


def _is_line() -> Column:
    """Whether a sighting is of a line of a log."""
    return ~F.col("source").isin(*sorted(oe.FILE_SOURCES), SourceKind.LOG_SEGMENT, oe.PROBE)


def _longest_rounds(sightings: DataFrame) -> DataFrame:
    """The longest round of each broker's capture, which its last one, whose end nothing shows, is taken to last."""
    lasted = F.unix_micros("observed_at_upper") - F.unix_micros("observed_at")
    copies = sightings.where(F.col("source").isin(*sorted(oe.FILE_SOURCES)) & F.col("replica_id").isNotNull())
    return copies.groupBy("cluster_id", "replica_id").agg(F.max(lasted).alias("longest_us")).where("longest_us > 0")


def _written_after(files: DataFrame) -> DataFrame:
    """Of each copy of a checkpoint file: when the copy before it began, if the whole file then had another content."""
    folder = F.regexp_replace("source_file", "[^/]*$", "")
    of_file = Window.partitionBy("cluster_id", "broker_id", "source_kind", "folder").orderBy(
        "first_event_time", "file_id"
    )
    before = F.lag(F.struct("first_event_time", "content_hash")).over(of_file)
    is_copy = F.col("source_kind").isin(*sorted(oe.FILE_SOURCES)) & F.col("status").isin("ingested", "empty")
    return (
        files.where(is_copy & F.col("first_event_time").isNotNull())
        .withColumn("folder", folder)
        .withColumn("before", before)
        .where(F.col("before").isNotNull() & ~F.col("before.content_hash").eqNullSafe(F.col("content_hash")))
        .select("cluster_id", "file_id", F.unix_micros("before.first_event_time").alias("written_after"))
    )


def _events(statements: DataFrame, incarnations: DataFrame) -> DataFrame:
    return select_evidence(
        with_incarnation(statements.where("kind IS NOT NULL"), incarnations, F.col("at_us")),
        PARTITION_KEY,
        OFFSET_COLUMNS,
        oe.ReplicaEvent,
        at="at_us",
        evidence_id="record_id",
    )


def _decided(leader_and_isr: DataFrame) -> DataFrame:
    return select_evidence(
        leader_and_isr,
        PARTITION_KEY,
        OFFSET_COLUMNS,
        oe.DecidedState,
        valid_from=F.unix_micros("valid_from"),
        valid_to=F.unix_micros("valid_to"),
        evidence_id="evidence[0]",
    )


def _moves(replication_events: DataFrame) -> DataFrame:
    """One row per (ISR change that a leader asked for, replica moved), and per (ISR written for it, replica), by the
    leaders' own lines."""
    is_shrink, is_written = F.col("event_type") == _SHRINK, F.col("event_type") == _WRITTEN
    changes = replication_events.where(
        F.col("event_type").isin(_SHRINK, _EXPAND, _WRITTEN)
        & F.col("topic_incarnation").isNotNull()
        & F.col("partition_id").isNotNull()
        & F.col("broker_id").isNotNull()
        & F.col("isr").isNotNull()
        & (F.col("old_isr").isNotNull() | is_written)
    )
    moved = F.when(is_shrink, F.array_except("old_isr", "isr")).otherwise(
        F.when(is_written, F.col("isr")).otherwise(F.array_except("isr", "old_isr"))
    )
    return select_evidence(
        changes.select("*", F.explode(moved).alias("member")),
        PARTITION_KEY,
        OFFSET_COLUMNS,
        IsrMove,
        leader="broker_id",
        kind=F.when(is_shrink, IsrMoveKind.LEFT.value)
        .when(is_written, IsrMoveKind.WRITTEN.value)
        .otherwise(IsrMoveKind.JOINED.value),
        end_offset=_printed_of(F.col("member"), 1, 0),
        lag_us=_lag_us(F.col("member")),
        at=F.unix_micros("corrected_time"),
        evidence_id="record_id",
    )


def _printed_of(member: Column, place: int, least: int) -> Column:
    """Of the replicas that the line lists, ``replica:offset[:ms]`` each, one's number at ``place``; NULL where it lists
    none, or one below ``least``."""
    own = F.concat(member.cast("string"), F.lit(":"))
    listed = F.filter(F.split(text_field("out_of_sync"), ","), lambda one: one.startswith(own))
    number = F.get(F.split(F.get(listed, F.lit(0)), ":"), F.lit(place)).try_cast("bigint")
    return F.when(number >= least, number)


def _lag_us(member: Column) -> Column:
    """As :func:`reconstruct.offsets.rules.case.printed_lag_us`, by the line's time as its broker's clock had it."""
    at, caught_up_ms = F.unix_micros("event_time"), _printed_of(member, 2, 1)
    is_known = caught_up_ms <= F.lit(MOST_MS)
    lost = F.when(at % 1_000_000 == 0, 1_000_000).otherwise(1_000)
    return F.when(is_known, at + lost - 1000 * caught_up_ms)
