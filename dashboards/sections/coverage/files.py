"""Files: what was read of which kind and broker, and what became of the records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import functions as F

from dashboards.rows import by_cluster
from dashboards.section import Section
from dashboards.source import Source, ms, top_of_cluster
from ingest.lake.tables import bronze

_GROUP: Final = ("source_kind", "broker_id", "status", "level_floor", "time_zone", "kafka_version")
_MOST_GROUPS: Final = 500


@dataclass(frozen=True)
class FileGroup:
    """Files that are alike; ``reason`` and ``example`` are of one of them."""

    source_kind: str
    broker_id: int | None
    status: str
    level_floor: str | None
    time_zone: str | None
    kafka_version: str | None
    files: int
    size_bytes: int
    records_read: int
    records_rejected: int
    from_ms: float | None
    to_ms: float | None
    reason: str | None
    example: str


def gather(source: Source) -> Mapping[str, tuple[FileGroup, ...]]:
    """Files by kind, broker, status, level floor, zone and version."""
    rows = (
        source.read(bronze.INGESTED_FILES)
        .groupBy("cluster_id", *_GROUP)
        .agg(
            F.count("*").alias("files"),
            F.sum("size_bytes").alias("size_bytes"),
            F.sum("records_read_count").alias("records_read"),
            F.sum("records_rejected_count").alias("records_rejected"),
            ms(F.min("first_event_time")).alias("from_ms"),
            ms(F.max("last_event_time")).alias("to_ms"),
            F.min("reason").alias("reason"),
            F.min("source_file").alias("example"),
        )
    )
    order = [F.col(name).asc_nulls_first() for name in _GROUP]
    return by_cluster(FileGroup, top_of_cluster(rows, order, _MOST_GROUPS))


SECTION: Final[Section[tuple[FileGroup, ...]]] = Section("coverage/files", gather, ())
