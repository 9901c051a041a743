"""Rejected records, by kind of source and reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import functions as F

from dashboards.section import Section
from dashboards.source import Source, by_cluster, most_frequent
from ingest.lake.tables import bronze

_TEXT_CHARACTERS: Final = 300


@dataclass(frozen=True)
class RejectedGroup:
    """Records rejected for one reason, with the first of them; ``groups_total`` and ``records_total`` are of all
    reasons."""

    source_kind: str
    reason: str
    records: int
    groups_total: int
    records_total: int
    source_file: str
    source_line: int | None
    text: str | None


def gather(source: Source) -> Mapping[str, tuple[RejectedGroup, ...]]:
    """The most frequent reasons with one example each, the first by file and line."""
    example = F.min(F.struct("source_file", "source_line", F.substring("raw", 1, _TEXT_CHARACTERS).alias("text")))
    groups = (
        source.read(bronze.REJECTED_RECORDS)
        .groupBy("cluster_id", "source_kind", "reason")
        .agg(F.count("*").alias("records"), example.alias("example"))
        .select("*", "example.*")
    )
    return by_cluster(RejectedGroup, most_frequent(source, groups, ("source_kind", "reason")))


SECTION: Final[Section[tuple[RejectedGroup, ...]]] = Section("coverage/rejected", gather, ())
