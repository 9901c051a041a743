"""What each source covers: the spans that evidence exists for, by broker and file, and what is missing, out of order or
too coarse between them; and how right clocks were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ingest.lake.tables.bronze import LOG_KINDS
from ingest.lake.tables.quality import CLOCK, EVIDENCE_COVERAGE, NOT_CAPTURED
from reconstruct.coverage.gaps import LogFile, gaps
from reconstruct.coverage.levels import coarse_spans
from reconstruct.time.instants import to_datetime, to_micros
from reconstruct.time.line_order import is_in_order

_NO_BROKER: Final = -1
_GIVEN: Final = (
    "cluster_id",
    "broker_id",
    "source_kind",
    "source_file",
    "status",
    "first_event_time",
    "last_event_time",
    "records_kept_count",
    "level_floor",
    "time_zone",
    "jumps_back",
    "far_jumps_back",
)
#: Of whom answers are missed while no broker can be asked at all (ingest/capture/brokers/probers.py).
_ALL_BROKERS: Final = "the brokers"
#: What a capture records, by its own words, and the kind it is. Logs are not among them: a capture reads on later where
#: it stopped.
_CAPTURED_AS: Final[Mapping[str, str]] = {
    "probes": "offset_probe",
    "znodes": "znode_snapshot",
    "checkpoints": "replication_offset_checkpoint",
    "leader epoch checkpoints": "leader_epoch_checkpoint",
}
_ARROW_TYPES: Final = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_ARROW: Final = pa.schema([(c.name, _ARROW_TYPES[c.type]) for c in EVIDENCE_COVERAGE.columns])
_NULLABLE: Final = T.StructType([T.StructField(f.name, f.dataType) for f in EVIDENCE_COVERAGE.struct.fields])


def evidence_coverage(files: DataFrame, clocks: DataFrame, jumps: DataFrame, missed: DataFrame) -> DataFrame:
    """``bronze.ingested_files`` as ``quality.evidence_coverage``: one row per file that says when it speaks of; one per
    span of a broker's log that is a gap (:mod:`reconstruct.coverage.gaps`) or too coarse
    (:mod:`reconstruct.coverage.levels`); one per file whose lines are out of order
    (:mod:`reconstruct.time.line_order`); one per outage of a capture whose end it tells; and one per segment of a
    broker's clock, the open ends of which are those of the broker's logs. ``jumps`` are
    :func:`reconstruct.events.spark.line_order.jumps_of_files`, ``missed`` is ``bronze.capture_gaps``."""
    every = files.withColumn("broker_id", F.coalesce("broker_id", F.lit(_NO_BROKER)))
    known = every.where("status = 'ingested' AND first_event_time IS NOT NULL")
    parts = (_of_files(known), _of_logs(every, jumps), _of_captures(missed), _of_clocks(known, clocks))
    return reduce(DataFrame.unionByName, parts)


def _of_files(known: DataFrame) -> DataFrame:
    empty = [c for c in EVIDENCE_COVERAGE.columns if c.name.startswith("clock_") or c.name == "gap_reason"]
    return known.withColumns(
        {
            "coverage": F.lit("covered"),
            "valid_from": F.col("first_event_time"),
            "valid_to": F.col("last_event_time"),
            "records_count": F.col("records_kept_count"),
        }
        | {column.name: F.lit(None).cast(column.type) for column in empty}
    ).select(*EVIDENCE_COVERAGE.column_names)


def _of_logs(every: DataFrame, jumps: DataFrame) -> DataFrame:
    """Gaps, coarse spans and files out of order. A broker's logs are a group: a row per file, of which a broker has
    thousands at most."""
    logs = every.where(F.col("source_kind").isin(*LOG_KINDS) | (F.col("status") != "ingested"))
    logs = logs.join(jumps, ["cluster_id", "file_id"], "left").select(*_GIVEN)
    return logs.groupBy("cluster_id", "broker_id").applyInArrow(_fold, _NULLABLE)


def _fold(group: pa.Table) -> pa.Table:
    rows = group.to_pylist()
    whose = {"cluster_id": rows[0]["cluster_id"], "broker_id": rows[0]["broker_id"]}
    made = [whose | row for row in _rows([_log_file(row) for row in rows], whose["broker_id"] != _NO_BROKER)]
    return pa.Table.from_pylist(made, schema=_ARROW)


def _rows(files: Sequence[LogFile], is_one_broker: bool) -> Iterator[dict[str, Any]]:
    # files of no known broker may be of several, whose names say nothing of one another
    for gap in gaps(files, LOG_KINDS) if is_one_broker else ():
        yield {
            "source_kind": gap.source_kind,
            "source_file": gap.source_file,
            "coverage": "gap",
            "gap_reason": gap.reason,
            "valid_from": to_datetime(gap.start),
            "valid_to": to_datetime(gap.end),
            "records_count": 0,
        }
    for file in files:
        if file.first is None or file.last is None or is_in_order(file.records, file.jumps_back, file.far_jumps_back):
            continue
        yield {
            "source_kind": file.source_kind,
            "source_file": file.source_file,
            "coverage": "out_of_order",
            "level_floor": file.level_floor,
            "valid_from": to_datetime(file.first),
            "valid_to": to_datetime(file.last),
            "records_count": file.records,
        }
    for span in coarse_spans(files):
        yield {
            "source_kind": span.source_kind,
            "source_file": span.source_file,
            "coverage": "too_coarse",
            "level_floor": span.level_floor,
            "valid_from": to_datetime(span.start),
            "valid_to": to_datetime(span.end),
            "records_count": span.records,
        }


def _log_file(row: Mapping[str, Any]) -> LogFile:
    is_read = row["status"] == "ingested"
    first, last = ((row[name] if is_read else None) for name in ("first_event_time", "last_event_time"))
    return LogFile(
        row["source_kind"],
        row["source_file"],
        row["status"],
        None if first is None else to_micros(first),
        None if last is None else to_micros(last),
        row["records_kept_count"],
        row["level_floor"],
        row["time_zone"],
        row["jumps_back"] or 0,
        row["far_jumps_back"] or 0,
    )


def _of_captures(missed: DataFrame) -> DataFrame:
    """Outages of captures. One whose end is not told (the capture was killed) may have been over at once; and where
    some topics may not be described, the others are."""
    kinds = F.create_map(*(F.lit(word) for pair in _CAPTURED_AS.items() for word in pair))
    spans = (
        missed.withColumn("source_kind", kinds[F.col("missed_source")])
        .where("source_kind IS NOT NULL AND missed_from < missed_to")
        .where(f"missed_source <> 'probes' OR broker_id IS NOT NULL OR missed_of = '{_ALL_BROKERS}'")
        .groupBy(
            "cluster_id",
            "source_kind",
            F.coalesce("broker_id", F.lit(_NO_BROKER)).alias("broker_id"),
            "source_file",
            F.col("missed_from").alias("valid_from"),
        )
        .agg(F.max("missed_to").alias("valid_to"))
    )
    told = {"coverage": F.lit("gap"), "gap_reason": F.lit(NOT_CAPTURED), "records_count": F.lit(0).cast("bigint")}
    rest = [column for column in EVIDENCE_COVERAGE.columns if column.name not in (*spans.columns, *told)]
    return spans.withColumns(told | {column.name: F.lit(None).cast(column.type) for column in rest}).select(
        *EVIDENCE_COVERAGE.column_names
    )


def _of_clocks(known: DataFrame, clocks: DataFrame) -> DataFrame:
    logs = known.where(F.col("source_kind").isin(*LOG_KINDS) & (F.col("broker_id") >= 0))
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
                "gap_reason": F.lit(None).cast("string"),
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
