"""Partitions: which are drawn, and the leader, ISR, assignment and unavailability of each over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from dashboards.section import Cluster, Partition, Section
from dashboards.source import (
    PARTITION_TYPES,
    PartitionKey,
    R,
    Source,
    by_cluster,
    by_partition,
    lasted_ms,
    spanned,
    top,
    top_of_cluster,
)
from ingest.lake.plans import union
from ingest.lake.tables import gold, silver
from ingest.lake.tables.shared import PARTITION_KEY

#: Kinds of trouble that rank a partition, the worst first.
COUNTED_KINDS: Final = ("offline", "under_min_isr", "under_replicated")
#: Kinds drawn on a partition's lane.
LANE_KINDS: Final = ("offline", "under_min_isr", "reassigning", "deleting")
#: What ranks a partition, most important first; ``infos`` only counts.
_RANKING: Final = ("errors", "warnings", "offline_ms", "under_min_isr_ms", "under_replicated_ms", "segments_count")
_MEASURES: Final = (*_RANKING, "infos")


@dataclass(frozen=True)
class Segment:
    """A row of ``silver.leader_and_isr_timeline``; ``evidence`` is its first record."""

    from_ms: float
    to_ms: float | None
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int | None
    partition_epoch: int | None
    written_by: str | None
    inferred_from: str | None
    evidence: str | None


@dataclass(frozen=True)
class Assignment:
    """The replicas in a span of time."""

    from_ms: float
    to_ms: float | None
    replicas: tuple[int, ...]


@dataclass(frozen=True)
class Unavailable:
    """An interval in which the partition was not as it should be."""

    kind: str
    from_ms: float
    to_ms: float | None
    opened_by: str | None
    closed_by: str | None


@dataclass(frozen=True)
class Totals:
    """How much there is of a cluster; ``without_timeline_total`` counts partitions of which no leader is known."""

    partitions_total: int = 0
    topics_total: int = 0
    segments_total: int = 0
    without_timeline_total: int = 0


@dataclass(frozen=True)
class Lane(Totals, Partition):
    """A partition with what ranks it, and its intervals; beside it the totals of its cluster.

    ``segments_count`` counts the partition's leader-and-ISR intervals, of which ``segments`` has the latest.
    """

    segments_count: int = 0
    offline_ms: float = 0
    errors: int = 0
    warnings: int = 0
    segments: tuple[Segment, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()

    @property
    def is_cut(self) -> bool:
        """Whether not all intervals are drawn."""
        return self.segments_count > len(self.segments)


def gather(source: Source) -> Mapping[str, tuple[Lane, ...]]:
    """The partitions to show of each cluster, most in trouble first, with their intervals.

    Order: findings of severity error, warnings, time offline, under min ISR, under-replicated, intervals, name. Where
    a partition has more intervals than its share, the latest are kept.
    """
    ranked = by_cluster(Lane, _ranked(source))
    keys = [key_of(cluster, lane) for cluster, lanes in ranked.items() for lane in lanes]
    wanted = source.keys(PARTITION_KEY, keys, PARTITION_TYPES)
    each = source.limits.segments_each(len(keys))

    def latest(kind: type[R], rows: DataFrame, *split: str) -> dict[PartitionKey, tuple[R, ...]]:
        order = [F.col("valid_from").desc(), F.col("sequence").desc()]
        kept = top(rows.join(wanted, list(PARTITION_KEY), "left_semi"), [*PARTITION_KEY, *split], order, each)
        return by_partition(kind, spanned(kept).orderBy(*PARTITION_KEY, "valid_from", "sequence"))

    timeline = source.read(silver.LEADER_AND_ISR_TIMELINE)
    trouble = source.read(gold.AVAILABILITY_INTERVALS).where(F.col("kind").isin(list(LANE_KINDS)))
    drawn: dict[str, dict[PartitionKey, Any]] = {
        "segments": latest(Segment, timeline.withColumn("evidence", F.get("evidence", F.lit(0)))),
        "assignments": latest(Assignment, source.read(silver.ASSIGNMENT_TIMELINE)),
        "unavailable": latest(Unavailable, trouble, "kind"),
    }
    return {
        cluster: tuple(
            replace(lane, **{name: rows.get(key_of(cluster, lane), ()) for name, rows in drawn.items()})
            for lane in lanes
        )
        for cluster, lanes in ranked.items()
    }


def key_of(cluster: str, row: Partition) -> PartitionKey:
    """The row's partition, in the order of :data:`~ingest.lake.tables.silver.PARTITION_KEY`."""
    return (cluster, row.topic, row.topic_incarnation, row.partition_id)


def totals(cluster: Cluster) -> Totals:
    """How much there is of the cluster, drawn or not."""
    lanes = cluster.of(SECTION)
    return lanes[0] if lanes else Totals()


def is_judged(cluster: Cluster) -> bool:
    """Whether the cluster has a timeline that rules can be judged on."""
    return totals(cluster).segments_total > 0


def worst_topics(source: Source, fewest: int, count: int) -> DataFrame:
    """The first ``count`` topics of each cluster that has so many partitions, in the order of partitions, with
    ``partitions`` and ``topics_total``."""
    partitions = F.count_distinct("topic_incarnation", "partition_id").alias("partitions")
    measures = [F.sum(name).alias(name) for name in _MEASURES]
    whole = Window.partitionBy("cluster_id")
    totals = {"topics_total": F.count("*").over(whole), "_partitions": F.sum("partitions").over(whole)}
    topics = _measures(source).groupBy("cluster_id", "topic").agg(partitions, *measures).withColumns(totals)
    order = [*(F.col(name).desc() for name in _RANKING), F.col("topic")]
    return top_of_cluster(topics.where(F.col("_partitions") >= fewest), order, count)


def _ranked(source: Source) -> DataFrame:
    per_partition = _measures(source).groupBy(*PARTITION_KEY).agg(*(F.sum(name).alias(name) for name in _MEASURES))
    whole = Window.partitionBy("cluster_id")
    totals = per_partition.select(
        "*",
        F.count("*").over(whole).alias("partitions_total"),
        F.size(F.collect_set("topic").over(whole)).alias("topics_total"),
        F.sum("segments_count").over(whole).alias("segments_total"),
        F.count(F.when(F.col("segments_count") == 0, 1)).over(whole).alias("without_timeline_total"),
    )
    order = [*(F.col(name).desc() for name in _RANKING), *map(F.col, ("topic", "partition_id", "topic_incarnation"))]
    return top_of_cluster(totals, order, source.limits.lanes_per_cluster(len(source.clusters)))


def _measures(source: Source) -> DataFrame:
    """One row per fact that ranks a partition, the other measures zero."""

    def measured(rows: DataFrame, **columns: Column) -> DataFrame:
        filled = [columns.get(name, F.lit(0)).cast("double").alias(name) for name in _MEASURES]
        return rows.select(*PARTITION_KEY, *filled)

    def of(column: str, value: str, amount: Column) -> Column:
        return F.when(F.col(column) == value, amount).otherwise(F.lit(0.0))

    availability = source.read(gold.AVAILABILITY_INTERVALS)
    findings = source.read(gold.DIVERGENCES).where("topic IS NOT NULL AND partition_id IS NOT NULL")
    with_incarnation = findings.where("topic_incarnation IS NOT NULL")
    parts = (
        measured(source.read(silver.LEADER_AND_ISR_TIMELINE), segments_count=F.lit(1)),
        measured(source.read(silver.ASSIGNMENT_TIMELINE)),
        measured(source.read(silver.PARTITION_STATE_TIMELINE)),
        measured(availability, **{f"{kind}_ms": of("kind", kind, lasted_ms(source)) for kind in COUNTED_KINDS}),
        measured(with_incarnation, **{f"{word}s": of("severity", word, F.lit(1.0)) for word in gold.SEVERITIES}),
    )
    return union(parts)


SECTION: Final[Section[tuple[Lane, ...]]] = Section("timelines/partitions", gather, (), chart=tuple, is_long=True)
