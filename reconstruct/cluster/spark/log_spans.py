"""What each file of a broker's logs covers, whether its times jump back, and whether other brokers write to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from ingest.lake.delta import in_order
from reconstruct.cluster.spark.controller_lines import level_floor
from reconstruct.cluster.view import LogSpan
from reconstruct.events.spark.fields import speaker
from reconstruct.events.spark.line_order import jump_counts, most_back, with_jumps
from reconstruct.time.line_order import JUMP_BACK_US, is_in_order

#: What a roll appends to the name of a log, and what is behind it.
_ROLLED: Final = re.compile(r"(?<=\.log)[^/!]*$")


def _at() -> Column:
    return F.unix_micros("corrected_time").alias("at")


def log_spans(state_changes: DataFrame) -> DataFrame:
    """What each file of a state-change log covers; one file may hold the lines of several brokers."""
    log = ("cluster_id", "broker_id", "file_id")
    lines = state_changes.where(F.col("event_id").endswith(":0")).select(
        "cluster_id",
        speaker().alias("broker_id"),
        F.coalesce(F.col("broker_id") != speaker(), F.lit(True)).alias("is_unnamed"),
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
            F.count_if("is_unnamed").alias("unnamed_lines"),
            *jump_counts(),
            most_back(),
            level_floor(),
        )
    )


def set_back_logs(replication_events: DataFrame) -> DataFrame:
    """The server logs in which the times of what is read jump back, with their brokers, and by how much at the most."""
    log = ("cluster_id", "broker_id", "file_id")
    lines = replication_events.select(*log, "source_file", "byte_offset", _at())
    jumps = with_jumps(lines.where("broker_id IS NOT NULL AND at IS NOT NULL"), *log)
    by_file = jumps.groupBy(*log).agg(F.max("source_file").alias("source_file"), *jump_counts(), most_back())
    return by_file.where(F.col("most_back_us") > JUMP_BACK_US)


def as_log_spans(rows: Sequence[Row]) -> Iterator[tuple[Row, LogSpan]]:
    """What :func:`log_spans` gives, each with its row, in the order of time."""
    shared = _shared_logs(rows)
    for row in in_order(rows, "cluster_id", "broker_id", "start", "end", "file_id"):
        yield row, _log_span(row, _log_of(row) in shared)


def _log_span(row: Row, is_shared: bool) -> LogSpan:
    in_order = is_in_order(row["lines"], row["jumps_back"], row["far_jumps_back"])
    return LogSpan(row["start"], row["end"], row["level_floor"], in_order, is_shared, row["most_back_us"] or 0)


def _log_of(row: Row) -> tuple[str, str]:
    """A log with the files that were rolled of it, by its cluster and its name without what a roll appends."""
    return str(row["cluster_id"]), _ROLLED.sub("", row["source_file"])


def _shared_logs(spans: Iterable[Row]) -> set[tuple[str, str]]:
    """The logs that several brokers' processes write, which were started from one folder. In the stream of a container
    platform each line names its process besides, and none is lost."""
    writers: dict[tuple[str, str], dict[str, set[int]]] = {}
    mixed = set()
    for row in spans:
        writers.setdefault(_log_of(row), {}).setdefault(row["file_id"], set()).add(row["broker_id"])
        if row["unnamed_lines"]:
            mixed.add(row["file_id"])
    return {
        log
        for log, files in writers.items()
        if len(set().union(*files.values())) > 1
        and all(len(of_file) == 1 or file_id in mixed for file_id, of_file in files.items())
    }
