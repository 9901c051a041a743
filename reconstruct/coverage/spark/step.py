"""What each source covers: the spans that evidence exists for, by broker and file, and what is missing, out of order or
too coarse between them; and how right clocks were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingest.lake.plans import union
from ingest.lake.tables.bronze import LOG_KINDS, NOT_OF_KAFKA, SourceKind
from ingest.lake.tables.quality import CLOCK, EVIDENCE_COVERAGE, NOT_CAPTURED
from reconstruct.coverage.gaps import LogFile, gaps
from reconstruct.coverage.levels import coarse_spans
from reconstruct.engine.folds import fold, select_evidence, table_columns
from reconstruct.engine.rows import Row, columns_of, table_row, value_of
from reconstruct.time.line_order import is_in_order

_NO_BROKER: Final = -1
_BROKER_KEY: Final = ("cluster_id", "broker_id")
_LOG_COLUMNS: Final = columns_of(LogFile)
#: What is shown of a segment of a clock.
_CLOCK_COLUMNS: Final = (
    "verdict",
    "reference",
    "offset_lower_ms",
    "offset_upper_ms",
    "zone_offset_minutes",
    "correction_us",
    "pairs_count",
    "dropped_pairs_count",
)
#: Of whom answers are missed while no broker can be asked at all (ingest/capture/brokers/probers.py).
_ALL_BROKERS: Final = "the brokers"
#: What a capture records, by its own words, and the kind it is. Logs are not among them: a capture reads on later where
#: it stopped.
_CAPTURED_AS: Final[Mapping[str, str]] = {
    "probes": SourceKind.OFFSET_PROBE,
    "znodes": SourceKind.ZNODE_SNAPSHOT,
    "checkpoints": SourceKind.REPLICATION_OFFSET_CHECKPOINT,
    "leader epoch checkpoints": SourceKind.LEADER_EPOCH_CHECKPOINT,
}


def evidence_coverage(files: DataFrame, clocks: DataFrame, jumps: DataFrame, missed: DataFrame) -> DataFrame:
    """``bronze.ingested_files`` as ``quality.evidence_coverage``: one row per file that says when it speaks of; one per
    span of a broker's log that is a gap (:mod:`reconstruct.coverage.gaps`) or too coarse
    (:mod:`reconstruct.coverage.levels`); one per file whose lines are out of order, and per time at which its clock
    was set back (:mod:`reconstruct.time.line_order`); one per outage of a capture whose end it tells; and one per
    segment of a broker's clock, the open ends of which are those of the broker's logs. ``jumps`` are
    :func:`reconstruct.events.spark.line_order.jumps_of_files`, ``missed`` is ``bronze.capture_gaps``."""
    every = files.withColumn("broker_id", F.coalesce("broker_id", F.lit(_NO_BROKER)))
    known = every.where("status = 'ingested' AND first_event_time IS NOT NULL")
    parts = (_of_files(known), _of_logs(every, jumps), _of_captures(missed), _of_clocks(known, clocks))
    return union(parts).select(*(F.col(column.name).cast(column.type) for column in EVIDENCE_COVERAGE.columns))


def _of_files(known: DataFrame) -> DataFrame:
    return known.withColumns(
        {
            "coverage": F.lit("covered"),
            "valid_from": F.col("first_event_time"),
            "valid_to": F.col("last_event_time"),
            "records_count": F.col("records_kept_count"),
        }
    )


def _of_logs(every: DataFrame, jumps: DataFrame) -> DataFrame:
    """Gaps, coarse spans and files out of order. A broker's logs are a group: a row per file, of which a broker has
    thousands at most."""
    logs = every.where(F.col("source_kind").isin(*LOG_KINDS) | ~F.col("status").isin("ingested", NOT_OF_KAFKA))
    is_read = F.col("status") == "ingested"
    files = select_evidence(
        logs.join(jumps, ["cluster_id", "file_id"], "left"),
        _BROKER_KEY,
        _LOG_COLUMNS,
        **{name: name for name in _LOG_COLUMNS if name not in ("first", "last", "records", "set_back")},
        first=F.when(is_read, F.unix_micros("first_event_time")),
        last=F.when(is_read, F.unix_micros("last_event_time")),
        records="records_kept_count",
        set_back=F.coalesce("set_back", F.array().cast("array<bigint>")),
    )
    return fold(files, _BROKER_KEY, table_columns(EVIDENCE_COVERAGE), _spans)


def _spans(evidence: Iterable[Row]) -> Iterator[dict[str, Any]]:
    rows = list(evidence)
    broker_id = rows[0]["broker_id"]
    files = [value_of(LogFile, row) for row in rows]
    # files of no known broker may be of several, whose names say nothing of one another
    for gap in gaps(files, LOG_KINDS) if broker_id != _NO_BROKER else ():
        given = {"coverage": "gap", "gap_reason": gap.reason, "records_count": 0}
        yield table_row(EVIDENCE_COVERAGE, gap, broker_id=broker_id, **given)
    for file in files:
        if file.first is None or file.last is None:
            continue
        if is_in_order(file.records, file.jumps_back, file.far_jumps_back):
            jumps = zip(file.set_back[::2], file.set_back[1::2], strict=True)
            spans = [("clock_set_back", to, since) for to, since in jumps]
        else:
            spans = [("out_of_order", file.first, file.last)]
        for coverage, begin, end in spans:
            given = {"coverage": coverage, "valid_from": begin, "valid_to": end}
            yield table_row(EVIDENCE_COVERAGE, file, broker_id=broker_id, records_count=file.records, **given)
    for span in coarse_spans(files):
        given = {"coverage": "too_coarse", "records_count": span.records}
        yield table_row(EVIDENCE_COVERAGE, span, broker_id=broker_id, **given)


def _of_captures(missed: DataFrame) -> DataFrame:
    """Outages of captures. One whose end is not known (the capture was killed) may have been over at once; and where
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
    return spans.withColumns(
        {"coverage": F.lit("gap"), "gap_reason": F.lit(NOT_CAPTURED), "records_count": F.lit(0).cast("bigint")}
    )


def _of_clocks(known: DataFrame, clocks: DataFrame) -> DataFrame:
    logs = known.where(F.col("source_kind").isin(*LOG_KINDS) & (F.col("broker_id") >= 0))
    spans = logs.groupBy("cluster_id", "broker_id").agg(
        F.min("first_event_time").alias("first"), F.max("last_event_time").alias("last")
    )
    begins = _instant("from_us", "first")
    return clocks.join(F.broadcast(spans), ["cluster_id", "broker_id"]).select(
        "cluster_id",
        "broker_id",
        F.lit(CLOCK).alias("source_kind"),
        F.concat(F.lit("segment "), F.col("sequence").cast("string")).alias("source_file"),
        F.lit("covered").alias("coverage"),
        begins.alias("valid_from"),
        F.greatest(begins, _instant("to_us", "last")).alias("valid_to"),
        F.lit(0).alias("records_count"),
        *(F.col(name).alias(f"clock_{name}") for name in _CLOCK_COLUMNS),
    )


def _instant(micros: str, otherwise: str) -> Column:
    return F.coalesce(F.timestamp_micros(micros), F.col(otherwise))
