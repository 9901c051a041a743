"""Partitions in trouble at once: how many were offline, under min ISR, under-replicated over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from dashboards.section import Section
from dashboards.sections.timelines import partitions
from dashboards.source import Source, grouped, ms
from ingest.lake.tables import gold


@dataclass(frozen=True)
class Count:
    """How many partitions from this instant on."""

    at_ms: float
    partitions: int


@dataclass(frozen=True)
class CountedKind:
    """A kind of trouble, and how many partitions were in it: a row only where the number changes."""

    kind: str
    counts: tuple[Count, ...]


@dataclass(frozen=True)
class _Slice:
    kind: str
    slice: int
    most: int
    last: int


def gather(source: Source) -> Mapping[str, tuple[CountedKind, ...]]:
    """Per kind the most partitions at once in each slice of the evidence's span."""
    buckets = source.limits.buckets
    width = F.greatest((source.end() - source.start()) / buckets, F.lit(1.0))
    begin = F.greatest(ms("valid_from"), source.start())
    end = F.least(F.coalesce(ms("valid_to"), source.end()), source.end())
    moves = (
        source.read(gold.AVAILABILITY_INTERVALS)
        .where(F.col("kind").isin(list(partitions.COUNTED_KINDS)))
        .select("cluster_id", "kind", begin.alias("begin"), F.greatest(begin, end).alias("end"))
        .selectExpr("cluster_id", "kind", "stack(2, begin, 1, end, -1) AS (at, move)")
        .groupBy("cluster_id", "kind", "at")
        .agg(F.sum("move").alias("move"))
    )
    running = Window.partitionBy("cluster_id", "kind").orderBy("at").rowsBetween(Window.unboundedPreceding, 0)
    slices = (
        moves.withColumn("partitions", F.sum("move").over(running))
        .withColumn("slice", F.least(F.floor((F.col("at") - source.start()) / width), F.lit(buckets - 1)))
        .groupBy("cluster_id", "kind", "slice")
        .agg(F.max("partitions").alias("most"), F.max_by("partitions", "at").alias("last"))
        .orderBy("cluster_id", "kind", "slice")
    )
    kinds: dict[str, list[CountedKind]] = {}
    for (cluster, kind), found in grouped(_Slice, slices, ("cluster_id", "kind")).items():
        kinds.setdefault(cluster, []).append(CountedKind(kind, _counts(found, source.spans[cluster], buckets)))
    return {cluster: tuple(found) for cluster, found in kinds.items()}


def _counts(slices: Iterable[_Slice], span: tuple[float, float], buckets: int) -> tuple[Count, ...]:
    """The slices as a staircase, without steps that change nothing; of two at one instant the later counts."""
    start, width = span[0], max(1.0, (span[1] - span[0]) / buckets)
    latest: dict[float, int] = {}
    carried = 0
    for row in slices:
        latest[round(start + row.slice * width)] = max(row.most, carried)
        latest[round(start + (row.slice + 1) * width)] = carried = row.last
    counts: list[Count] = []
    for at_ms, number in sorted(latest.items()):
        if not counts or counts[-1].partitions != number:
            counts.append(Count(at_ms, number))
    return tuple(counts)


SECTION: Final[Section[tuple[CountedKind, ...]]] = Section("timelines/trouble", gather, (), chart=tuple)
