"""The incarnations that log records alone tell of."""

from __future__ import annotations

from pyspark.sql import DataFrame

from ingest.lake.tables.bronze import INGESTED_FILES
from ingest.lake.tables.events import METADATA_CHANGES, ZNODE_CHANGES
from reconstruct.cluster.spark.incarnations import (
    acted_minutes,
    cluster_generations,
    topic_incarnations,
    topic_namings,
)
from reconstruct.events.spark.line_order import jumps_of_files


def logged_incarnations(records: DataFrame) -> DataFrame:
    """From ``bronze.log_records`` with ``corrected_time``."""
    specs = (ZNODE_CHANGES, METADATA_CHANGES, INGESTED_FILES)
    znodes, metadata, files = (records.sparkSession.createDataFrame([], spec.struct) for spec in specs)
    generations = cluster_generations(records, acted_minutes(records), znodes, files, jumps_of_files(records))
    return topic_incarnations(topic_namings(records, generations), znodes, metadata)
