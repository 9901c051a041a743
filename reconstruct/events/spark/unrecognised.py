"""Messages that no shape knows, by template: what a user can send in, so that a shape can be made of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.shapes.templates import normalised_template

UNKNOWN_VERSION: Final = "unknown"

_PLACE: Final = ("record_id", "source_file", "source_line", "log_level")
_OF_FILE: Final = ("cluster_id", "file_id", "broker_id", "source_kind", "logger", "template")
_GROUP: Final = ("cluster_id", "kafka_version", "source_kind", "logger", "template")


def unrecognised_messages(records: DataFrame) -> DataFrame:
    """Of each file of records (``bronze.log_records``) the templates of its messages: rows of
    ``kept.unrecognised_messages``."""
    unrecognised = records.where(F.col("event_type") == "unrecognised").select(
        *_OF_FILE[:-1], "event_time", *_PLACE, "message"
    )
    schema = unrecognised.drop("message").schema.simpleString()[len("struct<") : -1] + ",template:string"
    named = unrecognised.mapInArrow(_with_templates, schema)
    return named.groupBy(*_OF_FILE).agg(
        F.count("*").alias("records_count"),
        F.min("event_time").alias("first_event_time"),
        F.max("event_time").alias("last_event_time"),
        F.min(F.struct("event_time", *_PLACE)).alias("example"),
    )


def unrecognised_templates(messages: DataFrame, files: DataFrame) -> DataFrame:
    """One row per (``cluster_id``, ``kafka_version``, ``source_kind``, ``logger``, ``template``).

    ``messages`` are :func:`unrecognised_messages`, ``files`` ``bronze.ingested_files``. The version is that which any
    log of the broker states, several with commas between, :data:`UNKNOWN_VERSION` where none does; ``logger`` is empty
    where the layout prints none. The example is the first record, by time and id.
    """
    return (
        messages.join(F.broadcast(_versions(files)), _BROKER, "left")
        .withColumns(
            {
                "kafka_version": F.coalesce("kafka_version", F.lit(UNKNOWN_VERSION)),
                "logger": F.coalesce("logger", F.lit("")),
            }
        )
        .groupBy(*_GROUP)
        .agg(
            F.sum("records_count").alias("records_count"),
            F.min("first_event_time").alias("first_event_time"),
            F.max("last_event_time").alias("last_event_time"),
            F.min("example").alias("example"),
        )
        .select(
            *_GROUP,
            "records_count",
            F.col("example.log_level").alias("log_level"),
            "first_event_time",
            "last_event_time",
            F.col("example.record_id").alias("example_record_id"),
            F.col("example.source_file").alias("source_file"),
            F.col("example.source_line").alias("source_line"),
        )
    )


_BROKER: Final = ["cluster_id", "broker_id"]


def _versions(files: DataFrame) -> DataFrame:
    """The version of each broker whose logs state one."""
    stated = files.where(F.col("kafka_version").isNotNull() & F.col("broker_id").isNotNull())
    versions = F.concat_ws(",", F.array_sort(F.collect_set("kafka_version")))
    return stated.groupBy(*_BROKER).agg(versions.alias("kafka_version"))


def _with_templates(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The last column, ``message``, replaced by its template."""
    for batch in batches:
        templates = [normalised_template(message or "") for message in batch.column("message").to_pylist()]
        others = batch.drop_columns(["message"])
        yield pa.RecordBatch.from_arrays(
            [*others.columns, pa.array(templates, pa.string())], names=[*others.schema.names, "template"]
        )
