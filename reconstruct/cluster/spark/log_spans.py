"""What each file of a broker's logs covers, whether its times jump back, and whether other brokers write to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from ingest.lake.plans import in_order
from ingest.lake.tables.bronze import SourceKind
from reconstruct.cluster.spans import LogSpan
from reconstruct.cluster.spark.controller_lines import level_floor
from reconstruct.events.spark.fields import speaker
from reconstruct.events.spark.line_order import jump_counts, most_back, with_jumps
from reconstruct.time.line_order import JUMP_BACK_US, is_in_order

#: What a roll appends to the name of a log, and what is behind it.
_ROLLED: Final = re.compile(r"(?<=\.log)[^/!]*$")
#: A file of a log, and who speaks in it.
_LOG: Final = ("source_kind", "cluster_id", "broker_id", "file_id")


def log_lines(state_changes: DataFrame, replication_events: DataFrame) -> DataFrame:
    """The lines of state-change logs and of server logs, as :func:`log_spans` takes them, from ``silver``'s events."""
    of_state_changes = _lines(
        state_changes,
        SourceKind.STATE_CHANGE_LOG,
        broker_id=speaker(),
        is_unnamed=F.coalesce(F.col("broker_id") != speaker(), F.lit(True)),
        log_level=F.col("log_level"),
    )
    of_servers = _lines(
        replication_events,
        SourceKind.SERVER_LOG,
        broker_id=F.col("broker_id"),
        is_unnamed=F.lit(False),
        log_level=F.lit(None).cast("string"),
    )
    return of_state_changes.unionByName(of_servers)


def _lines(events: DataFrame, source_kind: str, **given: Column) -> DataFrame:
    lines = events.where(F.col("event_id").endswith(":0")).select(
        F.lit(source_kind).alias("source_kind"),
        "cluster_id",
        *(column.alias(name) for name, column in given.items()),
        "file_id",
        "source_file",
        "byte_offset",
        F.unix_micros("corrected_time").alias("at"),
    )
    return lines.where("broker_id IS NOT NULL AND at IS NOT NULL")


def log_spans(lines: DataFrame) -> DataFrame:
    """What each file of a state-change log covers, which may hold the lines of several brokers; and, of the server logs
    in which the times of what is read jump back, by how much at the most. File by file, as rows of ``kept.log_spans``.
    """
    of_file = (
        with_jumps(lines, *_LOG)
        .groupBy(*_LOG)
        .agg(
            F.max("source_file").alias("source_file"),
            F.min("at").alias("start"),
            F.max("at").alias("end"),
            F.count("*").alias("lines"),
            F.count_if("is_unnamed").alias("unnamed_lines"),
            *jump_counts(),
            most_back(),
            level_floor(),
        )
    )
    is_state_change_log = F.col("source_kind") == SourceKind.STATE_CHANGE_LOG
    return of_file.where(is_state_change_log | (F.col("most_back_us") > JUMP_BACK_US))


def as_log_spans(rows: Sequence[Row]) -> Iterator[tuple[Row, LogSpan]]:
    """The state-change logs of what :func:`log_spans` gives, each with its row, in the order of time."""
    of_state_changes = [row for row in rows if row["source_kind"] == SourceKind.STATE_CHANGE_LOG]
    shared = _shared_logs(of_state_changes)
    for row in in_order(of_state_changes, "cluster_id", "broker_id", "start", "end", "file_id"):
        yield row, _log_span(row, _log_of(row) in shared)


def _log_span(row: Row, is_shared: bool) -> LogSpan:
    in_order = is_in_order(row["lines"], row["jumps_back"], row["far_jumps_back"])
    level, most_back_us = row["level_floor"], row["most_back_us"] or 0
    return LogSpan(row["start"], row["end"], level, in_order, is_shared, most_back_us, row["file_id"])


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
