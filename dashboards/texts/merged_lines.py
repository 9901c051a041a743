"""The lines of all brokers' state-change logs as one log, as Kafka's StateChangeLogMerger gave them, of any layout.

Each file's lines keep their order, whatever their times: a line stands where the latest time of its file up to it does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from dashboards.views import RECORD_TEXTS
from ingest.lake.delta import Lake
from ingest.lake.tables.bronze import LOG_RECORDS, SourceKind
from ingest.lake.tables.events import STATE_CHANGE_EVENTS

#: How Kafka printed a partition up to 0.11; the merger took a line that held one.
_PARTITION: Final = r"\[{topic}, *({partition})\]"
_RECORD: Final = ("cluster_id", "record_id")


@dataclass(frozen=True)
class Selection:
    """Which lines: of these partitions of the topic, printed from ``start`` to ``end``, both included; of the files
    whose path ends with one of ``logs``, or matches ``logs_regex``. None, or nothing, is all.

    ``is_corrected``: by the instants that right clocks would have printed, which put causes before their effects as far
    as clocks are bounded.
    """

    cluster_id: str | None = None
    topic: str | None = None
    partitions: tuple[int, ...] = ()
    start: datetime | None = None
    end: datetime | None = None
    logs: tuple[str, ...] = ()
    logs_regex: str | None = None
    is_corrected: bool = False


def merged_lines(lake: Lake, wanted: Selection) -> DataFrame:
    """One column, ``text``, in order: each record of the selection once, with what followed it (a stack trace)."""
    text = next(columns[-1] for spec, columns in RECORD_TEXTS if spec is LOG_RECORDS)
    rows = lake.read(LOG_RECORDS).where(F.col("source_kind") == SourceKind.STATE_CHANGE_LOG.value)
    rows = rows.join(_events(lake, wanted), list(_RECORD), "left")
    time = F.coalesce("corrected_time", "event_time") if wanted.is_corrected else F.col("event_time")
    in_brackets = F.col("message").rlike(_pattern(wanted))
    chosen = rows.withColumn("at", time).where(F.coalesce("is_wanted", F.lit(False)) | in_brackets)
    for condition in _conditions(wanted):
        chosen = chosen.where(condition)
    file = Window.partitionBy("cluster_id", "file_id").orderBy("byte_offset")
    so_far = F.max("at").over(file.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    ordered = chosen.withColumn("place", so_far).orderBy("place", "broker_id", "source_file", "file_id", "byte_offset")
    return ordered.selectExpr(text)


def _events(lake: Lake, wanted: Selection) -> DataFrame:
    """Of each record whether it names a partition of the selection, and its corrected time."""
    is_wanted = F.col("partition_id").isNotNull()
    if wanted.topic is not None:
        is_wanted &= F.col("topic") == wanted.topic
    if wanted.partitions:
        is_wanted &= F.col("partition_id").isin(*wanted.partitions)
    events = lake.read(STATE_CHANGE_EVENTS).groupBy(*_RECORD)
    return events.agg(
        F.max(F.coalesce(is_wanted, F.lit(False))).alias("is_wanted"), F.min("corrected_time").alias("corrected_time")
    )


def _pattern(wanted: Selection) -> str:
    topic = r"[a-zA-Z0-9._-]+" if wanted.topic is None else re.escape(wanted.topic)
    return _PARTITION.format(topic=topic, partition="|".join(map(str, wanted.partitions)) or "[0-9]+")


def _conditions(wanted: Selection) -> Iterable[Column]:
    if wanted.cluster_id is not None:
        yield F.col("cluster_id") == wanted.cluster_id
    if wanted.start is not None:
        yield F.col("at") >= wanted.start
    if wanted.end is not None:
        yield F.col("at") <= wanted.end
    if wanted.logs:
        yield F.exists(F.array(*map(F.lit, wanted.logs)), lambda name: F.col("source_file").endswith(name))
    if wanted.logs_regex is not None:
        yield F.col("source_file").rlike(wanted.logs_regex)
