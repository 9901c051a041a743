"""How often the times of a file jump back, on Spark: :mod:`reconstruct.time.line_order` says what follows."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingest.lake.tables.bronze import LOG_KINDS
from reconstruct.time.line_order import FAR_BACK_US, JUMP_BACK_US

_BACK: Final = "back_us"


def with_jumps(lines: DataFrame, *log: str) -> DataFrame:
    """Lines with ``back_us``: how much earlier each is than the line before it, of those that share ``log``.

    ``lines`` have ``byte_offset`` and ``at``, µs.
    """
    in_file = Window.partitionBy(*log).orderBy("byte_offset")
    return lines.withColumn(_BACK, F.lag("at").over(in_file) - F.col("at"))


def jump_counts() -> list[Column]:
    """What :func:`with_jumps` gives, counted: ``jumps_back`` and ``far_jumps_back``."""
    return [
        F.count_if(F.col(_BACK) > JUMP_BACK_US).alias("jumps_back"),
        F.count_if(F.col(_BACK) > FAR_BACK_US).alias("far_jumps_back"),
    ]


def most_back() -> Column:
    """By how much the times of a group of what :func:`with_jumps` gives jump back at the most, µs: ``most_back_us``."""
    return F.max(_BACK).alias("most_back_us")


def jumps_of_files(records: DataFrame) -> DataFrame:
    """Grain: one row per (cluster, log file) of a known broker any of whose times jump back: how often, and of the
    first and the last time that they jump far the time jumped to and the time jumped from, in ``set_back``.

    ``records`` are those of ``bronze.log_records`` with ``corrected_time``. A file that mixes the logs of brokers that
    nothing tells apart has several clocks, whose times jump back and forth.
    """
    log = ("cluster_id", "broker_id", "file_id")
    lines = records.where(F.col("source_kind").isin(*LOG_KINDS) & F.col("broker_id").isNotNull()).select(
        *log, "byte_offset", F.unix_micros("corrected_time").alias("at")
    )
    counted = with_jumps(lines.where("at IS NOT NULL"), *log).groupBy(*log).agg(*jump_counts(), _far_jumps())
    return counted.where("jumps_back > 0").drop("broker_id")


def _far_jumps() -> Column:
    is_far = F.col(_BACK) > FAR_BACK_US
    jump, offset = F.when(is_far, F.array("at", F.col("at") + F.col(_BACK))), F.when(is_far, F.col("byte_offset"))
    ends = F.array(F.min_by(jump, offset), F.max_by(jump, offset))
    return F.flatten(F.array_distinct(F.array_compact(ends))).alias("set_back")
