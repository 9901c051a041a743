"""The messages that no shape knows, for the report's list that a user can send in."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Window
from pyspark.sql import functions as F

from dashboards.source import Source, by_cluster, top
from ingest.lake.tables import quality


def unrecognised_templates(source: Source) -> dict[str, list[dict[str, Any]]]:
    """The most frequent templates with their source, logger, version and first record, and totals over all of them."""
    whole = Window.partitionBy("cluster_id")
    rows = source.read(quality.UNRECOGNISED_TEMPLATES)
    totals = rows.select(
        "cluster_id",
        F.col("records_count").alias("records"),
        "kafka_version",
        "source_kind",
        "logger",
        "log_level",
        "template",
        "source_file",
        "source_line",
        F.count("*").over(whole).alias("groups_total"),
        F.sum("records_count").over(whole).alias("records_total"),
    )
    order = [F.col("records").desc(), *(F.col(name) for name in ("source_kind", "logger", "template", "kafka_version"))]
    return by_cluster(top(totals, ["cluster_id"], order, source.limits.groups).orderBy("cluster_id", *order).collect())
