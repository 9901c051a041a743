"""Files: what was read of which kind and broker, and what became of the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from dashboards.section import Section
from dashboards.source import FileTotals, Source, by_cluster, grouped, ms, top_of_cluster
from ingest.files.not_of_kafka import in_words
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


@dataclass(frozen=True)
class AmbiguousCluster:
    """A cluster all of whose files may be of several clusters: one log, or the files that lie beside it; or what is not
    read, which is of none."""

    cluster_id: str
    files: int
    files_read: int
    records_read: int
    from_ms: float | None
    to_ms: float | None
    example: str


def ambiguous_clusters(source: Source) -> tuple[AmbiguousCluster, ...]:
    """The clusters of the lake that have no file of which another source says that it is theirs."""
    rows = (
        source.all(bronze.INGESTED_FILES)
        .groupBy("cluster_id")
        .agg(
            *_sums(),
            _files_read(),
            F.min("source_file").alias("example"),
            F.every(F.col("cluster_source") == "ambiguous").alias("is_ambiguous"),
        )
        .where("is_ambiguous")
        .orderBy("example", "cluster_id")
        .limit(1000)
    )
    return grouped(AmbiguousCluster, rows, ()).get((), ())


def totals(source: Source) -> dict[str, FileTotals]:
    """What was read of each cluster."""
    rows = (
        source.read(bronze.INGESTED_FILES)
        .groupBy("cluster_id")
        .agg(
            *_sums(),
            _files_read(),
            F.sum("records_kept_count").alias("records_kept"),
            F.slice(F.array_sort(F.collect_set("kafka_version")), 1, 20).alias("versions"),
            F.slice(F.array_sort(F.collect_set("broker_id")), 1, 2000).alias("brokers"),
        )
    )
    return {cluster: found[0] for cluster, found in by_cluster(FileTotals, rows).items()}


def gather(source: Source) -> Mapping[str, tuple[FileGroup, ...]]:
    """Files by kind, broker, status, level floor, zone and version."""
    rows = (
        source.read(bronze.INGESTED_FILES)
        .groupBy("cluster_id", *_GROUP)
        .agg(*_sums(), F.min("reason").alias("reason"), F.min("source_file").alias("example"))
    )
    others = _passed_over(source)
    order = [F.col(name).asc_nulls_first() for name in _GROUP]
    groups = by_cluster(FileGroup, top_of_cluster(rows, order, _MOST_GROUPS))
    return {
        cluster: tuple(
            replace(group, reason=in_words(others[cluster])) if group.status == bronze.NOT_OF_KAFKA else group
            for group in of_cluster
        )
        for cluster, of_cluster in groups.items()
    }


def _passed_over(source: Source) -> Mapping[str, Counter[str]]:
    """By cluster: how many files of which kind of name are none of Kafka's."""
    counts: dict[str, Counter[str]] = {}
    files = source.read(bronze.INGESTED_FILES).where(F.col("status") == bronze.NOT_OF_KAFKA)
    for row in files.groupBy("cluster_id", "reason").count().collect():
        counts.setdefault(row["cluster_id"], Counter())[row["reason"].rpartition(": ")[2]] += row["count"]
    return counts


def _files_read() -> Column:
    return F.count(F.when(F.col("status") == "ingested", 1)).alias("files_read")


def _sums() -> tuple[Column, ...]:
    return (
        F.count("*").alias("files"),
        F.sum("size_bytes").alias("size_bytes"),
        F.sum("records_read_count").alias("records_read"),
        F.sum("records_rejected_count").alias("records_rejected"),
        ms(F.min("first_event_time")).alias("from_ms"),
        ms(F.max("last_event_time")).alias("to_ms"),
    )


SECTION: Final[Section[tuple[FileGroup, ...]]] = Section("coverage/files", gather, ())
