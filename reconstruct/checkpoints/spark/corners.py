"""Checkpoint files and their entries as :mod:`reconstruct.checkpoints.evidence` wants them.

Entries that only rise show nothing between the first and the last: those are left out here, so that what a
broker's fold is given grows with what happened to its files, not with copies times partitions.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from ingest.lake.tables.shared import PARTITION_KEY
from reconstruct.checkpoints.evidence import CHECKPOINT_KINDS, HIGH_WATERMARKS, RECOVERY_POINTS

FILE: Final = ("cluster_id", "broker_id", "directory", "kind")
SERIES: Final = (*FILE, *PARTITION_KEY[1:])
#: No broker may leave its file unwritten for less than this: of shorter spans nothing is kept.
UNCHANGED_FOR_US: Final = 5_000_000
#: What stands before ``FILE`` or ``FILE/MILLISECONDS``.
_DIRECTORY: Final = r"^(.*?)/?[a-z-]+-offset-checkpoint(?:\.gz)?(?:/\d{12,14}(?:\.gz)?)?$"


def checkpoint_copies(files: DataFrame, starts: DataFrame) -> DataFrame:
    """Grain: one row per copy of an offset checkpoint of a known broker.

    ``files`` are ``bronze.ingested_files``, ``starts`` (``cluster_id``, ``broker_id``, ``start_us``) those of
    processes. ``number`` counts the dated copies of a file in their order; ``is_turn`` marks those whose entries all
    count: the last before a start or before a round without the file, and the last of a long unchanged span.
    ``known_until_us`` is the last instant of the cluster's files.
    """
    known = files.groupBy("cluster_id").agg(F.max(F.unix_micros("last_event_time")).alias("known_until_us"))
    copies = files.where(
        F.col("source_kind").isin(*CHECKPOINT_KINDS)
        & F.col("broker_id").isNotNull()
        & F.col("status").isin("ingested", "empty")
    ).select(
        "cluster_id",
        "broker_id",
        F.regexp_extract("source_file", _DIRECTORY, 1).alias("directory"),
        F.col("source_kind").alias("kind"),
        F.unix_micros("first_event_time").alias("taken_us"),
        "file_id",
        "content_hash",
        F.col("records_kept_count").cast("int").alias("entry_count"),
    )
    in_directory = Window.partitionBy("cluster_id", "broker_id", "directory").orderBy("taken_us")
    of_directory = Window.partitionBy("cluster_id", "broker_id", "directory")
    of_file = Window.partitionBy(*FILE).orderBy("taken_us", "file_id")
    numbered = copies.select(
        "*",
        F.dense_rank().over(in_directory).alias("round"),
        F.max("taken_us").over(of_directory).alias("last_us"),
        F.row_number().over(of_file).alias("number"),
        F.lead("taken_us").over(of_file).alias("next_us"),
        (~F.col("content_hash").eqNullSafe(F.lag("content_hash").over(of_file))).cast("int").alias("is_changed"),
    )
    spans = numbered.select(
        "*",
        F.lead("round").over(of_file).alias("next_round"),
        F.sum("is_changed").over(of_file).alias("span"),
    )
    of_span = Window.partitionBy(*FILE, "span")
    measured = spans.select(
        "*",
        F.min("taken_us").over(of_span).alias("unchanged_from_us"),
        F.max("taken_us").over(of_span).alias("unchanged_to_us"),
    )
    is_left_out = F.coalesce(F.col("next_round") > F.col("round") + 1, F.col("taken_us") < F.col("last_us"))
    is_unchanged = (F.col("taken_us") == F.col("unchanged_to_us")) & (
        F.col("unchanged_to_us") - F.col("unchanged_from_us") >= UNCHANGED_FOR_US
    )
    by_broker = starts.groupBy("cluster_id", "broker_id").agg(F.collect_set("start_us").alias("starts"))
    until = F.coalesce("next_us", F.lit((1 << 63) - 1))
    is_before_start = F.exists("starts", lambda start: (start > F.col("taken_us")) & (start <= F.col("until")))
    return (
        measured.withColumn("until", until)
        .join(F.broadcast(by_broker), ["cluster_id", "broker_id"], "left")
        .join(F.broadcast(known), "cluster_id")
        .select(
            *FILE,
            "taken_us",
            "file_id",
            "content_hash",
            "entry_count",
            "number",
            "known_until_us",
            "unchanged_from_us",
            "unchanged_to_us",
            is_unchanged.alias("is_unchanged"),
            (is_left_out | is_unchanged | F.coalesce(is_before_start, F.lit(False))).alias("is_turn"),
        )
    )


def corner_entries(sightings: DataFrame, copies: DataFrame) -> DataFrame:
    """Grain: one row per entry that says something: where a replica's entries begin, end, fall or recover, or its copy
    is a turn; and their neighbours. ``begins_run``: the copy before has no entry of that replica.

    ``sightings`` of :func:`reconstruct.offsets.spark.observations.offset_observations`, ``copies`` of
    :func:`checkpoint_copies`.
    """
    dated = copies.where("taken_us IS NOT NULL").drop("broker_id")
    entries = (
        sightings.where(F.col("source").isin(HIGH_WATERMARKS, RECOVERY_POINTS) & F.col("replica_id").isNotNull())
        .join(dated, ["cluster_id", "file_id"])
        .select(
            *(F.col("replica_id").alias("broker_id") if name == "broker_id" else F.col(name) for name in SERIES),
            "taken_us",
            "number",
            "offset",
            F.col("evidence")[0].alias("evidence_id"),
            "is_turn",
            "is_unchanged",
            "unchanged_from_us",
            "unchanged_to_us",
        )
    )
    series = Window.partitionBy(*SERIES).orderBy("number", "evidence_id")
    begins = F.coalesce(F.lag("number").over(series) < F.col("number") - 1, F.lit(True))
    ends = F.coalesce(F.lead("number").over(series) > F.col("number") + 1, F.lit(True))
    before, after = F.lag("offset").over(series), F.lead("offset").over(series)
    highest = F.max("offset").over(series.rowsBetween(Window.unboundedPreceding, -1))
    falls = (F.col("offset") < before) | (after < F.col("offset"))
    recovers = (F.col("offset") >= highest) & (before < highest)
    marked = entries.select(
        "*",
        begins.alias("begins_run"),
        (begins | ends | _true(falls) | _true(recovers) | F.col("is_turn")).alias("is_corner"),
    )
    return marked.withColumn("counts", _beside(series)).where("counts").drop("counts", "is_corner", "is_turn")


def _true(condition: Column) -> Column:
    return F.coalesce(condition, F.lit(False))


def _beside(series: WindowSpec) -> Column:
    near = [F.lag("is_corner").over(series), F.col("is_corner"), F.lead("is_corner").over(series)]
    return _true(near[0]) | near[1] | _true(near[2])
