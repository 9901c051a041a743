"""What each file of a broker's logs covers, and whether its times jump back, and whether other brokers write to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from reconstruct.cluster.spark.controller_lines import level_floor
from reconstruct.cluster.view import LogSpan
from reconstruct.events.spark.fields import speaker
from reconstruct.events.spark.line_order import jump_counts, most_back, with_jumps
from reconstruct.time.line_order import JUMP_BACK_US, is_in_order


def _at() -> Column:
    return F.unix_micros("corrected_time").alias("at")


def log_spans(state_changes: DataFrame) -> DataFrame:
    """What each file of a state-change log covers; one file may hold the lines of several brokers."""
    log = ("cluster_id", "broker_id", "file_id")
    lines = state_changes.where(F.col("event_id").endswith(":0")).select(
        "cluster_id",
        speaker().alias("broker_id"),
        "file_id",
        "source_file",
        "byte_offset",
        "log_level",
        _at(),
    )
    return (
        with_jumps(lines.where("broker_id IS NOT NULL AND at IS NOT NULL"), *log)
        .groupBy(*log)
        .agg(
            F.min("at").alias("start"),
            F.max("at").alias("end"),
            F.count("*").alias("lines"),
            F.max("source_file").alias("source_file"),
            *jump_counts(),
            most_back(),
            level_floor(),
        )
        .orderBy("cluster_id", "broker_id", "start", "end", "file_id")
    )


def set_back_logs(replication_events: DataFrame) -> DataFrame:
    """The server logs in which the times of what is read jump back, with their brokers, and by how much at the most."""
    log = ("cluster_id", "broker_id", "file_id")
    lines = replication_events.select(*log, "source_file", "byte_offset", _at())
    jumps = with_jumps(lines.where("broker_id IS NOT NULL AND at IS NOT NULL"), *log)
    by_file = jumps.groupBy(*log).agg(F.max("source_file").alias("source_file"), *jump_counts(), most_back())
    return by_file.where(F.col("most_back_us") > JUMP_BACK_US)


def as_log_spans(rows: Sequence[Row]) -> Iterator[tuple[Row, LogSpan]]:
    """What :func:`log_spans` gives, each with its row."""
    for row in rows:
        yield row, _log_span(row)


def _log_span(row: Row) -> LogSpan:
    in_order = is_in_order(row["lines"], row["jumps_back"], row["far_jumps_back"])
    return LogSpan(row["start"], row["end"], row["level_floor"], in_order)
