"""What few steps look for among all records of logs: found in one pass, and kept file by file, since later runs would
go through all of them again for a handful."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake.tables.kept import KEY_RECORDS, RECORD_COUNTS
from reconstruct.checkpoints.spark.evidence import is_unreadable
from reconstruct.cluster.spark.controller_lines import is_election, is_process_start
from reconstruct.cluster.spark.statements import may_state_id
from reconstruct.engine.second_look import is_configuration, printed_log_dirs
from reconstruct.time.instants import HOUR_US


def record_counts(records: DataFrame) -> DataFrame:
    """Rows of ``kept.record_counts`` from ``bronze.log_records``."""
    hour = (F.floor(F.unix_micros("event_time") / HOUR_US) * HOUR_US).alias("hour")
    counts = F.count("*").alias("records_count"), F.count("shape_id").alias("typed_count")
    counted = records.groupBy("cluster_id", "file_id", "broker_id", "source_kind", hour).agg(*counts)
    return counted.select(*RECORD_COUNTS.column_names)


def key_records(records: DataFrame) -> DataFrame:
    """Rows of ``kept.key_records`` from ``bronze.log_records`` with ``corrected_time``."""
    of_events = is_election() | is_process_start() | may_state_id()
    looked_for = records.where(of_events | is_configuration() | is_unreadable())
    made = {
        "fields": F.when(~is_configuration(), F.col("fields")),
        "continuation": F.when(is_unreadable(), F.col("continuation")),
        "log_dirs": F.when(is_configuration(), printed_log_dirs()),
    }
    return looked_for.withColumns(made).select(*KEY_RECORDS.column_names)
