"""The lines that tell when which broker was controller in which epoch, from records of logs or from typed events."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingest.lake.tables.bronze import LOG_LEVELS
from ingest.shapes.event_types import EventType
from reconstruct.events.spark.fields import int_field, speaker, text_field

ELECTED: Final = (EventType.CONTROLLER_EPOCH_INCREMENTED, EventType.CONTROLLER_ELECTED)
_MINUTE_US: Final = 60 * 1_000_000
_MINUTES_OF_HOUR: Final = 60


def is_election() -> Column:
    """Whether a line of controller.log says that its broker raised the epoch."""
    return F.col("event_type").isin(*ELECTED) & text_field("controller_epoch").isNotNull()


def is_process_start() -> Column:
    """Whether with a line of server.log a broker's process starts."""
    return F.col("event_type") == EventType.BROKER_SERVER_STARTING


def level_floor() -> Column:
    """The lowest level of a group's records, as ``level_floor``."""
    return _level_at(_lowest()).alias("level_floor")


def _levels() -> Column:
    return F.array(*map(F.lit, LOG_LEVELS))


def _lowest() -> Column:
    """The place of the lowest level of a group's records among the levels."""
    return F.min(F.array_position(_levels(), F.col("log_level")))


def _level_at(place: Column) -> Column:
    return F.try_element_at(_levels(), place.cast("int"))


def controller_minutes(state_changes: DataFrame) -> DataFrame:
    """What controllers did themselves, not what a broker heard from them: a broker's line names the broker. File by
    file, as rows of ``kept.controller_minutes``."""
    at = F.unix_micros("corrected_time")
    controller_id, epoch = int_field("controller_id"), int_field("controller_epoch")
    first = F.min(F.struct(at.alias("at"), "byte_offset", F.col("record_id").alias("evidence_id")))
    return (
        state_changes.where(controller_id.isNotNull() & epoch.isNotNull() & text_field("broker_id").isNull())
        .groupBy(
            "cluster_id",
            "file_id",
            "source_file",
            controller_id.alias("controller_id"),
            epoch.alias("epoch"),
            F.floor(at / _MINUTE_US).alias("minute"),
        )
        .agg(first.alias("first"), _lowest().alias("lowest"))
        .select("*", "first.*")
        .drop("first")
    )


def controller_acts(minutes: DataFrame) -> DataFrame:
    """Of what :func:`controller_minutes` gives: one row per (cluster, controller, epoch, name of a state-change log,
    hour), with its first line; and one for each minute whose first line follows a minute of another epoch in that log,
    as where a cluster began again within the hour.
    """
    log = ("cluster_id", "controller_id", "epoch", "source_file")
    place = F.struct("at", "file_id", "byte_offset")
    of_logs = minutes.groupBy(*log, "minute").agg(
        F.min("at").alias("at"), F.min_by("evidence_id", place).alias("evidence_id"), F.min("lowest").alias("lowest")
    )
    of_hour = Window.partitionBy(*log, F.floor(F.col("minute") / _MINUTES_OF_HOUR))
    in_file = Window.partitionBy("cluster_id", "source_file").orderBy("at", "evidence_id")
    return (
        of_logs.withColumns(
            {
                "level_floor": _level_at(F.min("lowest").over(of_hour)),
                "is_first": F.row_number().over(of_hour.orderBy("at", "evidence_id")) == 1,
                "is_turn": F.col("epoch") != F.lag("epoch").over(in_file),
            }
        )
        .where("is_first OR is_turn")
        .select("cluster_id", "controller_id", "epoch", "source_file", "at", "evidence_id", "level_floor")
    )


def process_start_lines(server_lines: DataFrame) -> DataFrame:
    """The lines with which a broker's process starts, with its ``speaker_id``: NULL where one folder's brokers do not
    say which of them it is."""
    return server_lines.where(is_process_start()).select(
        "cluster_id",
        F.unix_micros("corrected_time").alias("at"),
        F.col("record_id").alias("evidence_id"),
        speaker().alias("speaker_id"),
        "source_file",
    )
