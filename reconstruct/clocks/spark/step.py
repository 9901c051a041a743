"""Clocks on Spark: segments of each broker's clock, and corrected times.

The pairs they are bounded by are those of :mod:`reconstruct.clocks.spark.evidence`, the solving that of
:mod:`reconstruct.clocks.timeline`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ingest.lake.plans import union
from ingest.lake.tables.bronze import LOG_KINDS
from reconstruct.clocks.spark.evidence import logged_marks, tightest
from reconstruct.clocks.timeline import CausalPair, ClockSegment, correction_us, solve_clocks
from reconstruct.engine.folds import fold
from reconstruct.engine.rows import Row, columns_of, row_of, value_of

#: A file that goes back by more than threads of one broker overtake each other was written by a clock set back: µs.
_STEP_BACK_US: Final = 1_000_000
SEGMENT_COLUMNS: Final = {"cluster_id": "string", **columns_of(ClockSegment, correction_us="bigint")}


def clock_segments(pairs: DataFrame, brokers: DataFrame) -> DataFrame:
    """Segments of every broker's clock, :data:`SEGMENT_COLUMNS`; ``brokers`` has ``cluster_id`` and ``broker_id``.

    ``from_us`` and ``to_us`` are printed times, µs; NULL is open. ``correction_us`` is to be subtracted from what
    was printed; NULL where nothing proves a correction.
    """
    named = brokers.where("broker_id IS NOT NULL").select("cluster_id", F.col("broker_id").cast("bigint")).distinct()
    return fold(union([pairs, named]), ("cluster_id",), SEGMENT_COLUMNS, _solve)


def _solve(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """The segments of one cluster's clocks: its rows are pairs, and the brokers that its records name."""
    pairs: list[CausalPair] = []
    named: list[int] = []
    for row in rows:
        if row["broker_id"] is None:
            pairs.append(value_of(CausalPair, row))
        else:
            named.append(row["broker_id"])
    for segment in solve_clocks(pairs, named):
        yield row_of(segment, correction_us=correction_us(segment))


def marks_of(records: DataFrame) -> DataFrame:
    """What ``bronze.log_records`` leave of marks, file by file: rows of ``kept.clock_marks``."""
    matched = records.where("shape_id IS NOT NULL").withColumn("event_id", F.concat("record_id", F.lit(":0")))
    return logged_marks(*(matched.where(F.col("source_kind") == kind) for kind in LOG_KINDS))


def clocks_of(pairs: DataFrame, brokers: DataFrame) -> DataFrame:
    """As :func:`clock_segments`, from the pairs of ``kept.clock_pairs``."""
    return clock_segments(tightest(pairs), brokers)


def is_any_corrected(segments: DataFrame) -> bool:
    """Whether any broker's times are to be corrected: most clusters' are not, and need no pass over their records."""
    return not segments.where("correction_us <> 0").isEmpty()


def correcting(segments: Iterable[Row]) -> list[Row]:
    """The segments of brokers of which a time is corrected: those of all others are taken as they are printed."""
    corrected = {(row["cluster_id"], row["broker_id"]) for row in segments if row["correction_us"]}
    return [row for row in segments if (row["cluster_id"], row["broker_id"]) in corrected]


def as_printed(records: DataFrame) -> DataFrame:
    """Records with ``corrected_time`` where every clock is taken to be right."""
    return records.withColumn("corrected_time", F.col("event_time"))


def with_corrected_time(events: DataFrame, segments: DataFrame) -> DataFrame:
    """Events and ``corrected_time``: ``event_time`` as a right clock in UTC would have printed it.

    It is ``event_time`` itself where nothing proves a correction. ``events`` has ``cluster_id``, ``broker_id``,
    ``event_time``, ``file_id`` and ``byte_offset``. Where a clock that was set back printed a time twice, the record
    belongs to the later time if its file had shown a later one before it.
    """
    of_broker = F.broadcast(
        segments.groupBy("cluster_id", "broker_id").agg(
            F.array_sort(F.collect_list(F.struct("sequence", "from_us", "to_us", "correction_us"))).alias("segments")
        )
    )
    printed = F.unix_micros("event_time")
    holding = F.filter(
        "segments",
        lambda s: (s["from_us"].isNull() | (s["from_us"] <= printed)) & (s["to_us"].isNull() | (printed < s["to_us"])),
    )
    placed = events.join(of_broker, ["cluster_id", "broker_id"], "left").withColumn("holding", holding)
    in_file = (
        Window.partitionBy("cluster_id", "file_id").orderBy("byte_offset").rowsBetween(Window.unboundedPreceding, 0)
    )
    # only a broker whose clock was set has more than one segment: only its files are put in order
    once = placed.where(F.coalesce(F.size("segments"), F.lit(0)) < 2).withColumn(
        "chosen", F.try_element_at("holding", F.lit(1))
    )
    more = placed.where(F.size("segments") >= 2).withColumn("latest", F.max(printed).over(in_file))
    is_behind = F.col("latest") - printed > _STEP_BACK_US
    more = more.withColumn("chosen", F.try_element_at("holding", F.when(is_behind, F.lit(-1)).otherwise(F.lit(1))))
    corrected = F.timestamp_micros(printed - F.coalesce(F.col("chosen.correction_us"), F.lit(0)))
    return once.unionByName(more.drop("latest")).select(
        *(F.col(name) for name in events.columns), corrected.alias("corrected_time")
    )
