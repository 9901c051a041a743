"""What each source covers: the spans that evidence exists for, by broker and file; and how right clocks were."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingest.tables.quality import CLOCK, EVIDENCE_COVERAGE


def evidence_coverage(files: DataFrame, clocks: DataFrame) -> DataFrame:
    """``bronze.ingested_files`` as ``quality.evidence_coverage``: one row per file that says when it speaks of; and one
    per segment of a broker's clock, the open ends of which are those of the broker's logs."""
    known = files.where("status = 'ingested' AND first_event_time IS NOT NULL").withColumn(
        "broker_id", F.coalesce("broker_id", F.lit(-1))
    )
    return _of_files(known).unionByName(_of_clocks(known, clocks))


def _of_files(known: DataFrame) -> DataFrame:
    clock = [c for c in EVIDENCE_COVERAGE.columns if c.name.startswith("clock_")]
    return known.withColumns(
        {
            "coverage": F.lit("covered"),
            "valid_from": F.col("first_event_time"),
            "valid_to": F.col("last_event_time"),
            "records_count": F.col("records_kept_count"),
        }
        | {column.name: F.lit(None).cast(column.type) for column in clock}
    ).select(*EVIDENCE_COVERAGE.column_names)


def _of_clocks(known: DataFrame, clocks: DataFrame) -> DataFrame:
    logs = known.where(F.col("source_kind").endswith("_log") & (F.col("broker_id") >= 0))
    spans = logs.groupBy("cluster_id", "broker_id").agg(
        F.min("first_event_time").alias("first"), F.max("last_event_time").alias("last")
    )
    begins = _instant("from_us", "first")
    return (
        clocks.join(F.broadcast(spans), ["cluster_id", "broker_id"])
        .withColumns(
            {
                "source_kind": F.lit(CLOCK),
                "source_file": F.concat(F.lit("segment "), F.col("sequence").cast("string")),
                "coverage": F.lit("covered"),
                "level_floor": F.lit(None).cast("string"),
                "valid_from": begins,
                "valid_to": F.greatest(begins, _instant("to_us", "last")),
                "records_count": F.lit(0).cast("bigint"),
                "clock_verdict": F.col("verdict"),
                "clock_reference": F.col("reference_clock"),
                "clock_offset_lower_ms": F.col("offset_lower_ms"),
                "clock_offset_upper_ms": F.col("offset_upper_ms"),
                "clock_zone_offset_minutes": F.col("zone_offset_minutes"),
                "clock_correction_us": F.col("correction_us"),
                "clock_pairs_count": F.col("pairs_count"),
                "clock_dropped_pairs_count": F.col("dropped_pairs_count"),
            }
        )
        .select(*EVIDENCE_COVERAGE.column_names)
    )


def _instant(micros: str, otherwise: str) -> Column:
    return F.coalesce(F.timestamp_micros(micros), F.col(otherwise))
