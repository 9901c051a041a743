"""The lines that tell when which broker was controller in which epoch, from records of logs or from typed events."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingest.lake.tables.bronze import LOG_LEVELS
from ingest.shapes.event_types import EventType
from reconstruct.events.spark.fields import int_field, speaker, text_field

ELECTED: Final = (EventType.CONTROLLER_EPOCH_INCREMENTED, EventType.CONTROLLER_ELECTED)
_HOUR_US: Final = 3600 * 1_000_000


def is_election() -> Column:
    """Whether a line of controller.log says that its broker raised the epoch."""
    return F.col("event_type").isin(*ELECTED) & text_field("controller_epoch").isNotNull()


def level_floor() -> Column:
    """The lowest level of a group's records, as ``level_floor``."""
    levels = F.array(*map(F.lit, LOG_LEVELS))
    return F.try_element_at(levels, F.min(F.array_position(levels, F.col("log_level"))).cast("int")).alias(
        "level_floor"
    )


def controller_acts(state_changes: DataFrame) -> DataFrame:
    """What controllers did themselves, not what a broker heard from them: a broker's line names the broker.

    Grain: one row per (cluster, controller, epoch, file of a state-change log, hour), with its first line.
    """
    at = F.unix_micros("corrected_time")
    controller_id, epoch = int_field("controller_id"), int_field("controller_epoch")
    place = F.struct("corrected_time", "file_id", "byte_offset")
    return (
        state_changes.where(controller_id.isNotNull() & epoch.isNotNull() & text_field("broker_id").isNull())
        .groupBy(
            "cluster_id",
            controller_id.alias("controller_id"),
            epoch.alias("epoch"),
            "source_file",
            F.floor(at / _HOUR_US).alias("hour"),
        )
        .agg(
            F.min(at).alias("at"),
            F.min_by("record_id", place).alias("evidence_id"),
            level_floor(),
        )
    )


def process_start_lines(server_lines: DataFrame) -> DataFrame:
    """The lines with which a broker's process starts, with its ``speaker_id``: NULL where one folder's brokers do not
    say which of them it is."""
    return server_lines.where(F.col("event_type") == EventType.BROKER_SERVER_STARTING).select(
        "cluster_id",
        F.unix_micros("corrected_time").alias("at"),
        F.col("record_id").alias("evidence_id"),
        speaker().alias("speaker_id"),
        "source_file",
    )
