"""What log records say of offsets and of what replicas did, one row each: the pure functions over bronze's records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake.tables.bronze import SourceKind
from ingest.lake.tables.kept import OFFSET_STATEMENTS
from reconstruct.engine.folds import map_rows
from reconstruct.engine.rows import Row, row_of
from reconstruct.events.fields import fields_of
from reconstruct.events.spark.fields import speaker
from reconstruct.offsets.messages import PRINTED_OFFSETS, REPLICA_EVENTS, logged_replica_events, printed_offsets

_LOGS: Final = (SourceKind.SERVER_LOG, SourceKind.STATE_CHANGE_LOG)
_COLUMNS: Final = {column.name: column.type for column in OFFSET_STATEMENTS.columns}
_WIDEST: Final = {"int": (1 << 31) - 1, "bigint": (1 << 63) - 1}


def offset_statements(records: DataFrame) -> DataFrame:
    """Rows of ``kept.offset_statements``, file by file. Grain: one row per observation of an offset (with
    ``offset_kind``) or act of a replica (with ``kind``) that a record of server.log or state-change.log tells of.

    ``records`` are ``bronze.log_records`` with ``corrected_time``, which ``at_us`` is. ``ordinal`` counts the
    observations and the acts of one record. Records of no known broker say nothing of a replica.
    """
    wanted = records.where(
        F.col("source_kind").isin(*_LOGS)
        & F.col("shape_id").isNotNull()
        & F.col("event_type").isin(*sorted({*PRINTED_OFFSETS, *REPLICA_EVENTS}))
        & speaker().isNotNull()
    )
    lines = wanted.select(
        "cluster_id",
        "file_id",
        "record_id",
        "source_kind",
        "event_type",
        "fields",
        speaker().alias("speaker"),
        F.unix_micros("corrected_time").alias("at_us"),
    )
    return map_rows(lines, _COLUMNS, lambda rows: (made for row in rows for made in statements_of(row)))


def _fits(row: Row) -> bool:
    """Whether its numbers can be Kafka's: damaged text may print longer ones, of which nothing is concluded."""
    numbers = ((name, _WIDEST.get(type_)) for name, type_ in _COLUMNS.items())
    return all(widest is None or row.get(name) is None or row[name] <= widest for name, widest in numbers)


def statements_of(record: Row) -> Iterator[dict[str, Any]]:
    """The rows of one record."""
    return filter(_fits, _statements_of(record))


def _statements_of(record: Row) -> Iterator[dict[str, Any]]:
    of_record = (record["speaker"], record["at_us"], record["record_id"], record["event_type"])
    fields = fields_of(record["fields"])
    given = {name: record[name] for name in ("cluster_id", "file_id", "at_us", "record_id")}
    for statements in (printed_offsets(*of_record, fields), logged_replica_events(*of_record, fields)):
        for ordinal, ((topic, partition_id), statement) in enumerate(statements):
            place = {"topic": topic, "partition_id": partition_id, "ordinal": ordinal, "source": record["source_kind"]}
            yield row_of(statement, **given, **place)
