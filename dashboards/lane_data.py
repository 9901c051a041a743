"""The partitions' side of the report: which are shown, their intervals, and how many were unavailable when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from dashboards.source import (
    PARTITION_TYPES,
    Source,
    by_cluster,
    ms,
    of_cluster,
    of_partition,
    plain,
    top,
)
from ingest.lake.tables import gold, silver
from ingest.lake.tables.silver import PARTITION_KEY

#: Kinds whose count over time is drawn, the worst first.
COUNTED_KINDS: Final = ("offline", "under_min_isr", "under_replicated")
#: Kinds drawn on a partition's lane.
LANE_KINDS: Final = ("offline", "under_min_isr", "reassigning", "deleting")
_MEASURES: Final = ("segments", "errors", "warnings", "infos", "offline_ms", "under_min_isr_ms", "under_replicated_ms")

Spans = Mapping[str, Any]


def rank_partitions(source: Source, ends: dict[str, float]) -> dict[str, list[dict[str, Any]]]:
    """The partitions to show of each cluster, most in trouble first, with the cluster's totals on every row.

    Order: findings of severity error, warnings, time offline, under min ISR, under-replicated, intervals, name.
    """
    rows = _measures(source, ends)
    sums = [F.sum(name).alias(name) for name in _MEASURES]
    per_partition = rows.groupBy(*PARTITION_KEY).agg(*sums)
    whole = Window.partitionBy("cluster_id")
    totals = per_partition.select(
        "*",
        F.count("*").over(whole).alias("partitions_total"),
        F.size(F.collect_set("topic").over(whole)).alias("topics_total"),
        F.sum("segments").over(whole).alias("segments_total"),
        F.count(F.when(F.col("segments") == 0, 1)).over(whole).alias("without_timeline_total"),
    )
    worst = [
        F.col(name).desc()
        for name in ("errors", "warnings", "offline_ms", "under_min_isr_ms", "under_replicated_ms", "segments")
    ]
    order = [*worst, F.col("topic"), F.col("partition_id"), F.col("topic_incarnation")]
    shown = top(totals, ["cluster_id"], order, source.limits.lanes_per_cluster(len(source.clusters)))
    return by_cluster(shown.orderBy("cluster_id", *order).collect())


def _measures(source: Source, ends: dict[str, float]) -> DataFrame:
    """One row per fact that ranks a partition, the other measures zero."""
    lasted = F.greatest(F.coalesce(ms("valid_to"), of_cluster(ends)) - ms("valid_from"), F.lit(0.0))

    def measured(rows: DataFrame, **columns: Column) -> DataFrame:
        filled = [columns.get(name, F.lit(0)).cast("double").alias(name) for name in _MEASURES]
        return rows.select(*PARTITION_KEY, *filled)

    def of(column: str, value: str, amount: Column) -> Column:
        return F.when(F.col(column) == value, amount).otherwise(F.lit(0.0))

    availability = source.read(gold.AVAILABILITY_INTERVALS)
    findings = source.read(gold.DIVERGENCES).where("topic IS NOT NULL AND partition_id IS NOT NULL")
    known = findings.where("topic_incarnation IS NOT NULL")
    parts = [
        measured(source.read(silver.LEADER_AND_ISR_TIMELINE), segments=F.lit(1)),
        measured(source.read(silver.ASSIGNMENT_TIMELINE)),
        measured(source.read(silver.PARTITION_STATE_TIMELINE)),
        measured(availability, **{f"{kind}_ms": of("kind", kind, lasted) for kind in COUNTED_KINDS}),
        measured(known, **{f"{word}s": of("severity", word, F.lit(1.0)) for word in gold.SEVERITIES}),
    ]
    union = parts[0]
    for part in parts[1:]:
        union = union.unionByName(part)
    return union


def lane_rows(source: Source, ranked: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The intervals of the shown partitions: ``segments``, ``assignments``, ``unavailable``, each by cluster.

    Where a partition has more than its share the latest are kept; ``number`` counts a lane's intervals from the
    latest backwards, so that what is missing can be told from the partition's total.
    """
    keys = [of_partition(cluster, row) for cluster, rows in ranked.items() for row in rows]
    wanted = source.keys(PARTITION_KEY, keys, PARTITION_TYPES)
    each = source.limits.segments_each(len(keys))
    latest = [F.col("valid_from").desc(), F.col("sequence").desc()]
    place = (*PARTITION_KEY, ms("valid_from").alias("from_ms"), ms("valid_to").alias("to_ms"))

    def of(
        spec_rows: DataFrame, *columns: Column | str, split: tuple[str, ...] = ()
    ) -> dict[str, list[dict[str, Any]]]:
        rows = top(spec_rows.join(wanted, list(PARTITION_KEY), "left_semi"), [*PARTITION_KEY, *split], latest, each)
        return by_cluster(
            rows.select(*place, "sequence", *columns).orderBy(*PARTITION_KEY, "valid_from", "sequence").collect()
        )

    return {
        "segments": of(
            source.read(silver.LEADER_AND_ISR_TIMELINE),
            "leader",
            "leader_epoch",
            "isr",
            "controller_epoch",
            "partition_epoch",
            "written_by",
            "inferred_from",
            F.get("evidence", F.lit(0)).alias("evidence"),
        ),
        "assignments": of(source.read(silver.ASSIGNMENT_TIMELINE), "replicas"),
        "unavailable": of(
            source.read(gold.AVAILABILITY_INTERVALS).where(F.col("kind").isin(list(LANE_KINDS))),
            "kind",
            "opened_by",
            "closed_by",
            split=("kind",),
        ),
    }


def availability_summary(source: Source, ends: dict[str, float]) -> dict[str, list[dict[str, Any]]]:
    """Per kind: intervals, partitions, total, longest and those still open at the end of the evidence."""
    lasted = F.greatest(F.coalesce(ms("valid_to"), of_cluster(ends)) - ms("valid_from"), F.lit(0.0))
    rows = source.read(gold.AVAILABILITY_INTERVALS).withColumn("lasted_ms", lasted)
    summary = rows.groupBy("cluster_id", "kind").agg(
        F.count("*").alias("intervals"),
        F.count_distinct("topic", "topic_incarnation", "partition_id").alias("partitions"),
        F.sum("lasted_ms").alias("total_ms"),
        F.max("lasted_ms").alias("longest_ms"),
        F.count(F.when(F.col("valid_to").isNull(), 1)).alias("open"),
        F.count("inferred_from").alias("inferred"),
        F.min(ms("valid_from")).alias("first_ms"),
    )
    return by_cluster(summary.orderBy("cluster_id", "kind").collect())


def longest_intervals(source: Source, ends: dict[str, float]) -> dict[str, list[dict[str, Any]]]:
    """Per cluster and kind the longest intervals without a leader, or under min ISR."""
    lasted = F.greatest(F.coalesce(ms("valid_to"), of_cluster(ends)) - ms("valid_from"), F.lit(0.0))
    rows = source.read(gold.AVAILABILITY_INTERVALS).where(F.col("kind").isin(["offline", "under_min_isr"]))
    order = [F.col("lasted_ms").desc(), *(F.col(n) for n in ("topic", "topic_incarnation", "partition_id", "sequence"))]
    longest = top(rows.withColumn("lasted_ms", lasted), ["cluster_id", "kind"], order, 20)
    return by_cluster(
        longest.orderBy("cluster_id", "kind", *order)
        .select(
            "cluster_id",
            "kind",
            "topic",
            "topic_incarnation",
            "partition_id",
            "lasted_ms",
            ms("valid_from").alias("from_ms"),
            ms("valid_to").alias("to_ms"),
            "opened_by",
            "closed_by",
            "inferred_from",
        )
        .collect()
    )


def counts_over_time(
    source: Source, starts: dict[str, float], ends: dict[str, float]
) -> dict[str, dict[str, list[list[float]]]]:
    """Per cluster and kind: [start ms of a slice of time, most partitions at once in it], only where it changes."""
    buckets = source.limits.buckets
    width = F.greatest((of_cluster(ends) - of_cluster(starts)) / buckets, F.lit(1.0))
    begin = F.greatest(ms("valid_from"), of_cluster(starts))
    end = F.least(F.coalesce(ms("valid_to"), of_cluster(ends)), of_cluster(ends))
    moves = (
        source.read(gold.AVAILABILITY_INTERVALS)
        .where(F.col("kind").isin(list(COUNTED_KINDS)))
        .select("cluster_id", "kind", begin.alias("begin"), F.greatest(begin, end).alias("end"))
        .select(
            "cluster_id",
            "kind",
            F.explode(
                F.array(
                    F.struct(F.col("begin").alias("at"), F.lit(1).alias("move")),
                    F.struct(F.col("end").alias("at"), F.lit(-1).alias("move")),
                )
            ).alias("m"),
        )
        .groupBy("cluster_id", "kind", "m.at")
        .agg(F.sum("m.move").alias("move"))
    )
    running = Window.partitionBy("cluster_id", "kind").orderBy("at").rowsBetween(Window.unboundedPreceding, 0)
    slices = (
        moves.withColumn("partitions", F.sum("move").over(running))
        .withColumn("slice", F.least(F.floor((F.col("at") - of_cluster(starts)) / width), F.lit(buckets - 1)))
        .groupBy("cluster_id", "kind", "slice")
        .agg(F.max("partitions").alias("most"), F.max_by("partitions", "at").alias("last"))
        .orderBy("cluster_id", "kind", "slice")
    )
    series: dict[str, dict[str, list[list[float]]]] = {}
    for row in map(plain, slices.collect()):
        start, step = (
            starts[row["cluster_id"]],
            max(1.0, (ends[row["cluster_id"]] - starts[row["cluster_id"]]) / buckets),
        )
        points = series.setdefault(row["cluster_id"], {}).setdefault(row["kind"], [])
        carried = points[-1][1] if points else 0
        points.append([round(start + row["slice"] * step), max(row["most"], carried)])
        points.append([round(start + (row["slice"] + 1) * step), row["last"]])
    return {cluster: {kind: _steps(points) for kind, points in kinds.items()} for cluster, kinds in series.items()}


def _steps(points: list[list[float]]) -> list[list[float]]:
    """Points of a staircase without those that change nothing; of two at one instant the later counts."""
    latest: dict[float, float] = {}
    for instant, value in points:
        latest[instant] = value
    steps: list[list[float]] = []
    for instant, value in sorted(latest.items()):
        if not steps or steps[-1][1] != value:
            steps.append([instant, value])
    return steps


def inferred_counts(source: Source) -> dict[str, list[dict[str, Any]]]:
    """Leader-and-ISR intervals per cluster by why they were inferred (NULL: observed)."""
    rows = (
        source.read(silver.LEADER_AND_ISR_TIMELINE)
        .groupBy("cluster_id", "inferred_from")
        .agg(F.count("*").alias("intervals"))
    )
    return by_cluster(rows.orderBy("cluster_id", F.col("inferred_from").asc_nulls_first()).collect())
