"""What few steps look for among all records of logs is the same as among those that are kept for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake.tables.bronze import INGESTED_FILES, LOG_RECORDS
from ingest.lake.tables.kept import KEY_RECORDS
from ingest.shapes.event_types import EventType
from reconstruct.checkpoints.spark.evidence import is_unreadable
from reconstruct.clocks.spark.step import as_printed
from reconstruct.cluster.spark.controller_lines import is_election, process_start_lines
from reconstruct.cluster.spark.statements import stated_ids
from reconstruct.engine.second_look import is_configuration, printed_log_dirs
from reconstruct.events.spark.fields import int_field
from reconstruct.log_records import key_records, record_counts
from tests.support.lakes.offsets import OffsetLake


def rows(frame: DataFrame) -> list[Any]:
    return sorted(frame.collect(), key=str)


def unreadable_of(logged: DataFrame) -> DataFrame:
    """A record of no known shape, of a checkpoint file that could not be read, which no capture has."""
    of_server = logged.where("source_kind = 'server_log' AND broker_id IS NOT NULL").orderBy("record_id").limit(1)
    made = {"record_id": "r", "event_type": "unrecognised", "cause_type": EventType.CHECKPOINT_MALFORMED}
    unknown = {"shape_id": F.lit(None).cast("string"), "continuation": F.lit("java.io.IOException: Malformed line")}
    return of_server.withColumns({name: F.lit(value) for name, value in made.items()} | unknown)


def test_what_is_looked_for_is_among_the_key_records(offset_lake: OffsetLake) -> None:
    logged, files = as_printed(offset_lake.lake.read(LOG_RECORDS)), offset_lake.lake.read(INGESTED_FILES)
    records = logged.union(unreadable_of(logged))
    key = key_records(records).persist()
    names = ("cluster_id", "file_id", "record_id", "broker_id", "source_kind", "source_file", "corrected_time")
    looked_for: dict[str, Callable[[DataFrame], DataFrame]] = {
        "elections": lambda of: of.where(is_election()).select(*names, int_field("controller_epoch")),
        "starts": process_start_lines,
        "ids": lambda of: stated_ids(of, files),
        "checkpoint files": lambda of: of.where(is_unreadable()).select(*names, "cause_type", "continuation"),
    }
    for name, find in looked_for.items():
        found = rows(find(records))
        assert found, name
        assert rows(find(key)) == found, name
    dirs = records.where(is_configuration()).select("record_id", printed_log_dirs().alias("log_dirs")).dropna()
    assert rows(key.where("log_dirs IS NOT NULL").select("record_id", "log_dirs")) == rows(dirs) != []
    assert key.columns == list(KEY_RECORDS.column_names)
    assert key.count() < records.count() / 10


def test_all_records_are_counted_by_their_hours(offset_lake: OffsetLake) -> None:
    records = offset_lake.lake.read(LOG_RECORDS)
    counts = record_counts(records).persist()
    for column, of in (("records_count", records), ("typed_count", records.where("shape_id IS NOT NULL"))):
        by_kind = counts.groupBy("cluster_id", "file_id", "broker_id", "source_kind").agg(F.sum(column))
        expected = of.groupBy("cluster_id", "file_id", "broker_id", "source_kind").count()
        assert rows(by_kind.where(f"`sum({column})` > 0")) == rows(expected)
    hours = records.select("cluster_id", F.date_trunc("hour", "event_time").alias("hour")).distinct()
    assert rows(counts.select("cluster_id", F.timestamp_micros("hour").alias("hour")).distinct()) == rows(hours)
