"""Evidence: when there is a log, or a copy of another file, of whom; and where logs are missing or too coarse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dashboards.section import Section
from dashboards.source import Source, by_cluster, ms, top_of_cluster
from ingest.lake.tables import bronze, quality


@dataclass(frozen=True)
class EvidenceInterval:
    """A span of one log file, or of all copies of other files of a kind; ``coverage`` as in
    ``quality.evidence_coverage``."""

    source_kind: str
    broker_id: int
    coverage: str
    gap_reason: str | None
    level_floor: str | None
    file: str
    records: int
    files: int
    from_ms: float | None
    to_ms: float | None


def gather(source: Source) -> Mapping[str, tuple[EvidenceInterval, ...]]:
    """The intervals of ``quality.evidence_coverage``; of a cluster that has none there, the spans of its files."""
    not_of_clocks = F.col("source_kind") != quality.CLOCK
    stated = _intervals(source, source.read(quality.EVIDENCE_COVERAGE).where(not_of_clocks))
    without = [cluster for cluster in source.clusters if cluster not in stated]
    if not without:
        return stated
    files = (
        source.read(bronze.INGESTED_FILES)
        .where(F.col("cluster_id").isin(without))
        .where("status = 'ingested' AND first_event_time IS NOT NULL")
        .withColumns(
            {
                "broker_id": F.coalesce("broker_id", F.lit(-1)),
                "coverage": F.lit("covered"),
                "gap_reason": F.lit(None).cast("string"),
                "valid_from": F.col("first_event_time"),
                "valid_to": F.col("last_event_time"),
                "records_count": F.col("records_kept_count"),
            }
        )
    )
    return stated | _intervals(source, files)


def _intervals(source: Source, rows: DataFrame) -> dict[str, tuple[EvidenceInterval, ...]]:
    log = F.when(F.col("source_kind").isin(list(bronze.LOG_KINDS)), F.col("source_file")).otherwise(F.lit(""))
    grouped = (
        rows.withColumn("file", log)
        .groupBy("cluster_id", "source_kind", "broker_id", "coverage", "gap_reason", "level_floor", "file")
        .agg(
            F.sum("records_count").alias("records"),
            F.count("*").alias("files"),
            ms(F.min("valid_from")).alias("from_ms"),
            ms(F.max("valid_to")).alias("to_ms"),
        )
    )
    order = [*map(F.col, ("source_kind", "broker_id", "from_ms", "file", "coverage"))]
    return by_cluster(EvidenceInterval, top_of_cluster(grouped, order, source.limits.coverage))


SECTION: Final[Section[tuple[EvidenceInterval, ...]]] = Section("timelines/evidence", gather, (), chart=tuple)
