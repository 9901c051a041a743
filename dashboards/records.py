"""The bronze records that the report names as evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dashboards.source import Source, grouped
from ingest.lake.tables import TableSpec, bronze
from ingest.lake.tables.bronze import SourceKind


@dataclass(frozen=True)
class Record:
    """Where a record stands, and its text where it is quoted (shortened where long)."""

    source_file: str
    source_line: int | None = None
    source_kind: str = ""
    broker_id: int | None = None
    text: str | None = None


#: Of each bronze table that evidence may name: the source kind, the broker and the text of a record, as Spark SQL.
_TEXTS: Final = (
    (
        bronze.LOG_RECORDS,
        "source_kind",
        "broker_id",
        "concat('[', event_time_text, '] ', coalesce(log_level, ''), ' ', message,"
        " coalesce(concat(' (', logger, ')'), ''), coalesce(concat('\\n', continuation), ''))",
    ),
    (
        bronze.ZNODE_SNAPSHOTS,
        f"'{SourceKind.ZNODE_SNAPSHOT}'",
        "CAST(NULL AS INT)",
        "concat_ws(' ', path, concat('version ', version), concat('mzxid ', mzxid), data)",
    ),
    (bronze.OFFSET_CHECKPOINTS, "source_kind", "broker_id", "concat_ws(' ', topic, partition_id, offset)"),
    (
        bronze.OFFSET_PROBES,
        "source_kind",
        "broker_id",
        "concat_ws(' ', topic, partition_id, 'asked as', replica_id, 'offset', offset)",
    ),
    (
        bronze.LEADER_EPOCH_CHECKPOINTS,
        f"'{SourceKind.LEADER_EPOCH_CHECKPOINT}'",
        "broker_id",
        "concat_ws(' ', directory, 'epoch', leader_epoch, 'starts at', start_offset)",
    ),
    (
        bronze.ZNODE_TRANSACTIONS,
        f"'{SourceKind.ZNODE_TRANSACTION_LOG}'",
        "CAST(NULL AS INT)",
        "concat_ws(' ', concat('zxid ', zxid), operation, full_path, version, data)",
    ),
    (
        bronze.LOG_SEGMENTS,
        "source_kind",
        "broker_id",
        "concat_ws(' ', concat_ws('/', directory, file_name), 'next offset', next_offset)",
    ),
    (bronze.BROKER_CONFIGS, "source_kind", "broker_id", "concat(config_key, '=', config_value)"),
)


def records_by_id(source: Source, quoted: Iterable[str], placed: Iterable[str]) -> dict[str, Record]:
    """The bronze records with these ids. ``quoted`` are wanted with their text, ``placed`` only with their place.

    Ids of no bronze record are left out of the answer.
    """
    with_text = set(quoted)
    missing = with_text | set(placed)
    found: dict[str, Record] = {}
    # Nearly all evidence is log records: the other tables are opened only for what is not among them.
    for tables in (_TEXTS[:1], _TEXTS[1:]):
        if missing:
            rows = reduce(DataFrame.unionByName, [_texts(source, *table) for table in tables])
            found |= _resolve(source, rows, missing, with_text)
            missing -= set(found)
    return found


def _texts(source: Source, spec: TableSpec, kind: str, broker: str, text: str) -> DataFrame:
    """The table's records as they would be read."""
    named = (f"{kind} AS source_kind", f"{broker} AS broker_id", f"{text} AS text")
    return source.read(spec).selectExpr("record_id", "source_file", "source_line", *named)


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
