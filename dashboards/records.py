"""The bronze records that the report names as evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dashboards.source import Source, grouped
from dashboards.views import RECORD_TEXTS
from ingest.lake.plans import union
from ingest.lake.tables import TableSpec


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
    for tables in (RECORD_TEXTS[:1], RECORD_TEXTS[1:]):
        if missing:
            rows = union(_texts(source, *table) for table in tables)
            found |= _resolve(source, rows, missing, with_text)
            missing -= set(found)
    return found


def _texts(source: Source, spec: TableSpec, columns: Iterable[str]) -> DataFrame:
    """The table's records as they would be read."""
    return source.read(spec).selectExpr("record_id", "source_file", "source_line", *columns)


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
