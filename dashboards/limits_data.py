"""What the report needs to say what cannot be said: which evidence there is of each broker, and the holes in it."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from dashboards.source import Source, by_cluster, ms, top
from ingest.lake.tables import bronze, quality

#: Kafka's logs are rolled by the hour: no file is begun for an hour in which nothing is logged.
_ROLLED_EVERY_MS: Final = 3_600_000
_KINDS_TOLD: Final = 10_000


def held_evidence(source: Source) -> dict[str, list[dict[str, Any]]]:
    """Kinds of source by broker, with the lowest level and the span: of logs by their records, since one stream may
    hold several of them; of everything else by files."""
    broker = F.coalesce("broker_id", F.lit(-1)).alias("broker_id")
    levels = F.array(*map(F.lit, bronze.LOG_LEVELS))
    rank = F.min(F.array_position(levels, F.col("log_level"))).cast("int")
    logs = (
        source.read(bronze.LOG_RECORDS)
        .groupBy("cluster_id", broker, "source_kind")
        .agg(
            F.try_element_at(levels, F.when(rank > 0, rank)).alias("level_floor"),
            ms(F.min("event_time")).alias("from_ms"),
            ms(F.max("event_time")).alias("to_ms"),
        )
    )
    files = (
        source.read(bronze.INGESTED_FILES)
        .where((F.col("status") == "ingested") & ~F.col("source_kind").isin(*bronze.LOG_KINDS))
        .groupBy("cluster_id", broker, "source_kind")
        .agg(
            F.lit(None).cast("string").alias("level_floor"),
            ms(F.min("first_event_time")).alias("from_ms"),
            ms(F.max("last_event_time")).alias("to_ms"),
        )
    )
    order = [F.col("broker_id"), F.col("source_kind")]
    shown = top(logs.unionByName(files), ["cluster_id"], order, _KINDS_TOLD)
    return by_cluster(shown.orderBy("cluster_id", *order).collect())


def evidence_holes(source: Source) -> dict[str, list[dict[str, Any]]]:
    """Gaps, spans that are too coarse, hours between two files of a log that no file speaks of, and outages of a
    capture: of each cluster and cause the longest, with how many there are."""
    is_outage = F.col("gap_reason").eqNullSafe(quality.NOT_CAPTURED)
    is_log = F.col("source_kind").isin(*bronze.LOG_KINDS)
    rows = source.read(quality.EVIDENCE_COVERAGE).where(is_log | is_outage)
    columns = ("cluster_id", "cause", "broker_id", "source_kind", "reason", "level_floor", "from_ms", "to_ms")
    stated = rows.where("coverage <> 'covered'").select(
        "cluster_id",
        F.when(is_outage, F.col("gap_reason")).otherwise(F.col("coverage")).alias("cause"),
        "broker_id",
        "source_kind",
        F.col("gap_reason").alias("reason"),
        "level_floor",
        ms("valid_from").alias("from_ms"),
        ms("valid_to").alias("to_ms"),
    )
    log = Window.partitionBy("cluster_id", "source_kind", "broker_id").orderBy("valid_from", "valid_to", "source_file")
    before = F.max("valid_to").over(log.rowsBetween(Window.unboundedPreceding, -1))
    silent = (
        rows.where("coverage = 'covered' AND broker_id >= 0")
        .select("*", ms(before).alias("from_ms"), ms("valid_from").alias("to_ms"))
        .where(F.col("to_ms") - F.col("from_ms") > _ROLLED_EVERY_MS)
        .withColumns(
            {
                "cause": F.lit("silence"),
                "reason": F.lit(None).cast("string"),
                "level_floor": F.lit(None).cast("string"),
            }
        )
        .select(*columns)
    )
    counted = Window.partitionBy("cluster_id", "cause")
    every = stated.select(*columns).unionByName(silent).withColumn("total", F.count("*").over(counted))
    length = (F.col("to_ms") - F.col("from_ms")).desc()
    order = [length, F.col("from_ms"), F.col("broker_id"), F.col("source_kind"), F.col("level_floor")]
    shown = top(every, ["cluster_id", "cause"], order, source.limits.groups)
    return by_cluster(shown.orderBy("cluster_id", "cause", "from_ms", "broker_id", "source_kind", "to_ms").collect())
