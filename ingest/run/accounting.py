"""What a run wrote, counted from the tables themselves, and the rows of ``bronze.ingested_files``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.lake.delta import Lake
from ingest.lake.plans import of_files
from ingest.lake.tables import TableSpec
from ingest.lake.tables.bronze import INGESTED_FILES, LOG_LEVELS, LOG_RECORDS
from ingest.lake.tables.types import arrow_schema
from ingest.readers.batches import table_schema
from ingest.readers.sources import INSTANT_COLUMNS
from ingest.run.planning import FileKey, Planned


class IngestError(Exception):
    """The ingest cannot go on; the message is one sentence that says what to do."""


@dataclass(frozen=True)
class Written:
    """What one table holds of one file; instants in microseconds since 1970."""

    records: int = 0
    bytes: int = 0
    first: int | None = None
    last: int | None = None
    level_floor: str | None = None


def text_frame(spark: SparkSession, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> DataFrame:
    """A small DataFrame of texts, to be broadcast."""
    values = {name: [row[place] for row in rows] for place, name in enumerate(columns)}
    return F.broadcast(spark.createDataFrame(pa.table(values, arrow_schema(dict.fromkeys(columns, "string")))))


def keys_frame(spark: SparkSession, keys: Sequence[FileKey]) -> DataFrame:
    """A small DataFrame of (cluster_id, file_id), to be broadcast."""
    return text_frame(spark, ("cluster_id", "file_id"), keys)


def written(lake: Lake, specs: Sequence[TableSpec], keys: Sequence[FileKey]) -> dict[str, dict[FileKey, Written]]:
    """What these tables hold of these files, by table name: one aggregation, one row per table and file."""
    found: dict[str, dict[FileKey, Written]] = {spec.name: {} for spec in specs}
    if not keys or not specs:
        return found
    parts = [_measures(rows_of_files(lake, spec, keys), spec) for spec in specs]
    rows = (
        reduce(DataFrame.unionAll, parts)
        .groupBy("table", "cluster_id", "file_id")
        .agg(
            F.count("*").alias("records"),
            F.sum("byte_length").alias("bytes"),
            F.unix_micros(F.min("instant")).alias("first"),
            F.unix_micros(F.max("instant")).alias("last"),
            F.min("rank").alias("rank"),
        )
        .collect()
    )
    for row in rows:
        floor = LOG_LEVELS[row["rank"] - 1] if row["rank"] else None
        found[row["table"]][row["cluster_id"], row["file_id"]] = Written(
            row["records"], row["bytes"], row["first"], row["last"], floor
        )
    return found


def rows_of_files(lake: Lake, spec: TableSpec, keys: Sequence[FileKey]) -> DataFrame:
    """What a table holds of these files."""
    return of_files(lake.read(spec), keys_frame(lake.spark, keys), {file_id for _, file_id in keys})


def _measures(rows: DataFrame, spec: TableSpec) -> DataFrame:
    instant = F.col(INSTANT_COLUMNS[spec.name]) if spec.name in INSTANT_COLUMNS else F.lit(None).cast("timestamp")
    levels = F.array(*map(F.lit, LOG_LEVELS))
    rank = F.array_position(levels, F.col("log_level")) if spec is LOG_RECORDS else F.lit(None).cast("bigint")
    return rows.select(
        F.lit(spec.name).alias("table"),
        "cluster_id",
        "file_id",
        "byte_length",
        instant.alias("instant"),
        rank.alias("rank"),
    )


def file_row(
    planned: Planned, kept: Written, rejected: Written, *, time_zone: str, kafka_version: str | None
) -> dict[str, Any]:
    """The file's row in ``bronze.ingested_files``; instants as microseconds since 1970."""
    file = planned.owner.file
    is_fork = planned.key[1] != planned.base_id
    ingested_bytes = kept.bytes + rejected.bytes if is_fork else file.ingestible_bytes if file.is_read else 0
    instants = [instant for instant in (kept.first, kept.last) if instant is not None]
    captured = None if file.captured_at_ms is None else file.captured_at_ms * 1000
    return {
        "cluster_id": planned.owner.cluster_id,
        "file_id": planned.owner.file_id,
        "cluster_source": planned.owner.cluster_source,
        "broker_id": planned.owner.broker_id,
        "source_kind": file.kind,
        "source_file": file.source_file,
        "compression": file.compression,
        "layout": file.layout,
        "time_zone": time_zone if file.is_log and not file.prints_zone else None,
        "kafka_version": file.kafka_version or kafka_version,
        "status": file.status,
        "reason": "it starts like another log: only the records that differ are taken" if is_fork else file.reason,
        "size_bytes": file.size_bytes,
        "ingested_bytes": ingested_bytes,
        "content_hash": file.ingestible_hash if file.is_read else file.content_hash,
        "records_read_count": kept.records + rejected.records,
        "records_kept_count": kept.records,
        "records_rejected_count": rejected.records,
        "first_event_time": instants[0] if instants else captured,
        "last_event_time": instants[-1] if instants else captured,
        "level_floor": kept.level_floor,
    }


def file_rows_frame(spark: SparkSession, rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """The rows as a DataFrame of the spec's columns but the clock's."""
    return spark.createDataFrame(pa.Table.from_pylist([dict(row) for row in rows], schema=table_schema(INGESTED_FILES)))


def conservation_error(planned: Planned, row: Mapping[str, Any], bytes_accounted: int) -> str | None:
    """A sentence where the bytes of a file that grows do not add up; None where each belongs to one record."""
    if planned.owner.file.is_growing and row["status"] == "ingested" and bytes_accounted != row["ingested_bytes"]:
        return (
            f"{row['source_file']}: {row['ingested_bytes']} bytes were read, records account for {bytes_accounted}:"
            " the file may have changed while it was read; ingest it again"
        )
    return None
