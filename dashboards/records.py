"""The bronze records that the report names as evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dashboards.rows import grouped
from dashboards.source import Source
from ingest.lake.tables import bronze


@dataclass(frozen=True)
class Record:
    """Where a record stands, and its text where it is quoted (shortened where long)."""

    source_file: str
    source_line: int | None = None
    source_kind: str = ""
    broker_id: int | None = None
    text: str | None = None


def records_by_id(source: Source, quoted: Iterable[str], placed: Iterable[str]) -> dict[str, Record]:
    """The bronze records with these ids. ``quoted`` are wanted with their text, ``placed`` only with their place.

    Ids of no bronze record are left out of the answer.
    """
    with_text = set(quoted)
    missing = with_text | set(placed)
    found: dict[str, Record] = {}
    # Nearly all evidence is log records: the other tables are opened only for what is not among them.
    for table in (_log_texts, _other_texts):
        if missing:
            found |= _resolve(source, table(source), missing, with_text)
            missing -= set(found)
    return found


def _resolve(source: Source, rows: DataFrame, ids: set[str], with_text: set[str]) -> dict[str, Record]:
    wanted = source.keys(
        ("record_id", "is_quoted"), [(i, i in with_text) for i in sorted(ids)], (pa.string(), pa.bool_())
    )
    matched = rows.join(wanted, "record_id").select(
        "record_id",
        "source_file",
        "source_line",
        "source_kind",
        "broker_id",
        F.when(F.col("is_quoted"), F.substring("text", 1, source.limits.text_characters + 1)).alias("text"),
    )
    ordered = matched.orderBy("record_id", "source_file", "source_line")
    return {record_id: found[0] for (record_id,), found in grouped(Record, ordered, ("record_id",)).items()}


def _texts(rows: DataFrame, kind: Column, broker: Column, text: Column) -> DataFrame:
    """Bronze records as they would be read."""
    return rows.select(
        "record_id",
        "source_file",
        "source_line",
        kind.alias("source_kind"),
        broker.alias("broker_id"),
        text.alias("text"),
    )


def _log_texts(source: Source) -> DataFrame:
    logger = F.when(F.col("logger").isNotNull(), F.concat(F.lit(" ("), "logger", F.lit(")"))).otherwise(F.lit(""))
    text = F.concat(
        F.lit("["),
        "event_time_text",
        F.lit("] "),
        F.coalesce("log_level", F.lit("")),
        F.lit(" "),
        "message",
        logger,
        F.coalesce(F.concat(F.lit("\n"), "continuation"), F.lit("")),
    )
    return _texts(source.read(bronze.LOG_RECORDS), F.col("source_kind"), F.col("broker_id"), text)


def _other_texts(source: Source) -> DataFrame:
    kind, broker, nobody = F.col("source_kind"), F.col("broker_id"), F.lit(None).cast("int")
    znode = F.concat_ws(" ", "path", F.concat(F.lit("version "), "version"), F.concat(F.lit("mzxid "), "mzxid"), "data")
    epochs = F.concat_ws(" ", "directory", F.lit("epoch"), "leader_epoch", F.lit("starts at"), "start_offset")
    tables = [
        _texts(source.read(bronze.ZNODE_SNAPSHOTS), F.lit("znode_snapshot"), nobody, znode),
        _texts(
            source.read(bronze.OFFSET_CHECKPOINTS), kind, broker, F.concat_ws(" ", "topic", "partition_id", "offset")
        ),
        _texts(
            source.read(bronze.OFFSET_PROBES),
            kind,
            broker,
            F.concat_ws(" ", "topic", "partition_id", F.lit("asked as"), "replica_id", F.lit("offset"), "offset"),
        ),
        _texts(source.read(bronze.LEADER_EPOCH_CHECKPOINTS), F.lit("leader_epoch_checkpoint"), broker, epochs),
        _texts(
            source.read(bronze.ZNODE_TRANSACTIONS),
            F.lit("znode_transaction_log"),
            nobody,
            F.concat_ws(" ", F.concat(F.lit("zxid "), "zxid"), "operation", "full_path", "version", "data"),
        ),
        _texts(
            source.read(bronze.LOG_SEGMENTS),
            kind,
            broker,
            F.concat_ws(" ", F.concat_ws("/", "directory", "file_name"), F.lit("next offset"), "next_offset"),
        ),
        _texts(source.read(bronze.BROKER_CONFIGS), kind, broker, F.concat("config_key", F.lit("="), "config_value")),
    ]
    return reduce(DataFrame.unionByName, tables)
