"""Messages that no shape knows, as a list that a user can send in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from dashboards.rows import by_cluster
from dashboards.section import Section
from dashboards.source import Source, top_of_cluster
from ingest.lake.tables import quality


@dataclass(frozen=True)
class UnrecognisedTemplate:
    """A template with its first record; ``groups_total`` and ``records_total`` are of all templates."""

    records: int
    kafka_version: str
    source_kind: str
    logger: str | None
    log_level: str | None
    template: str
    source_file: str
    source_line: int | None
    groups_total: int
    records_total: int


def gather(source: Source) -> Mapping[str, tuple[UnrecognisedTemplate, ...]]:
    """The most frequent templates."""
    whole = Window.partitionBy("cluster_id")
    rows = source.read(quality.UNRECOGNISED_TEMPLATES).withColumns(
        {
            "records": F.col("records_count"),
            "groups_total": F.count("*").over(whole),
            "records_total": F.sum("records_count").over(whole),
        }
    )
    order = [F.col("records").desc(), *map(F.col, ("source_kind", "logger", "template", "kafka_version"))]
    return by_cluster(UnrecognisedTemplate, top_of_cluster(rows, order, source.limits.groups))


SECTION: Final[Section[tuple[UnrecognisedTemplate, ...]]] = Section("coverage/unrecognised", gather, ())
