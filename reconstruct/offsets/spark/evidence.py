"""All that is known of each partition's offsets in one shape: the input of :mod:`reconstruct.offsets.spark.step`."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingest.lake.tables.silver import PARTITION_KEY
from reconstruct.events.spark.placing import with_incarnation
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.messages import LOG_RECORD

#: What a row is: an :class:`OffsetObservation`, a :class:`ReplicaEvent` or a :class:`DecidedState`.
SIGHTING: Final = "sighting"
EVENT: Final = "event"
DECIDED: Final = "decided"

_COLUMNS: Final = {
    "row_kind": "string",
    "replica_id": "int",
    "kind": "string",
    "offset": "bigint",
    "leader": "int",
    "leader_epoch": "int",
    "at": "bigint",
    "at_upper": "bigint",
    "written_after": "bigint",
    "source": "string",
    "evidence_id": "string",
    "isr": "array<int>",
}


def offset_evidence(
    sightings: DataFrame, files: DataFrame, said: DataFrame, incarnations: DataFrame, leader_and_isr: DataFrame
) -> DataFrame:
    """Grain: one row per (partition incarnation, sighting, act of a replica, or decided state).

    ``sightings`` of :func:`reconstruct.offsets.spark.observations.offset_observations`, ``files`` are
    ``bronze.ingested_files``, ``said`` is :func:`reconstruct.offsets.spark.messages.offset_statements`,
    ``leader_and_isr`` is ``silver.leader_and_isr_timeline``. Instants in microseconds.
    """
    rows = _sightings(sightings, files).unionByName(_events(said, incarnations))
    known = rows.select(*PARTITION_KEY).distinct()
    # a partition of which nothing but decisions is known has no offsets to bound
    return rows.unionByName(_decided(leader_and_isr).join(known, list(PARTITION_KEY), "left_semi"))


def _sightings(sightings: DataFrame, files: DataFrame) -> DataFrame:
    is_line = ~F.col("source").isin(*sorted(oe.FILE_SOURCES), "log_segment", oe.PROBE)
    at, upper = F.unix_micros("observed_at"), F.unix_micros("observed_at_upper")
    is_epoch = F.col("offset_kind") == oe.EPOCH_START
    # a copy of which nothing says by when it was made proves of no instant what its file held then
    bounded = sightings.join(F.broadcast(_longest_rounds(sightings)), ["cluster_id", "replica_id"], "left")
    upper = F.coalesce(upper, at + F.col("longest_us"))
    named = bounded.where(F.col("replica_id").isNotNull() & ((at.isNotNull() & upper.isNotNull()) | is_epoch))
    return _select(
        named.join(_written_after(files), ["cluster_id", "file_id"], "left"),
        {
            "row_kind": F.lit(SIGHTING),
            "replica_id": F.col("replica_id"),
            "kind": F.col("offset_kind"),
            "offset": F.col("offset"),
            "leader_epoch": F.col("leader_epoch"),
            "at": F.coalesce(at, F.lit(0)),
            "at_upper": F.when(~is_line, upper),
            "written_after": F.col("written_after"),
            "source": F.when(is_line, LOG_RECORD).otherwise(F.col("source")),
            "evidence_id": F.col("evidence")[0],
        },
    )


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


def _events(said: DataFrame, incarnations: DataFrame) -> DataFrame:
    return _select(
        with_incarnation(said.where("NOT is_sighting"), incarnations, F.col("at_us")),
        {
            "row_kind": F.lit(EVENT),
            "replica_id": F.col("replica_id"),
            "kind": F.col("kind"),
            "offset": F.col("offset"),
            "leader": F.col("leader"),
            "leader_epoch": F.col("leader_epoch"),
            "at": F.col("at_us"),
            "evidence_id": F.col("record_id"),
        },
    )


def _decided(leader_and_isr: DataFrame) -> DataFrame:
    return _select(
        leader_and_isr,
        {
            "row_kind": F.lit(DECIDED),
            "leader": F.col("leader"),
            "leader_epoch": F.col("leader_epoch"),
            "at": F.unix_micros("valid_from"),
            "at_upper": F.unix_micros("valid_to"),
            "evidence_id": F.col("evidence")[0],
            "isr": F.col("isr"),
        },
    )


def _select(rows: DataFrame, given: dict[str, Column]) -> DataFrame:
    """The key and every column; those not given are NULL."""
    columns = [given.get(name, F.lit(None)).cast(type_).alias(name) for name, type_ in _COLUMNS.items()]
    return rows.select(*PARTITION_KEY, *columns)
