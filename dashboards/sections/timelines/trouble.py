"""Partitions in trouble at once: how many were offline, under min ISR, under-replicated over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from dashboards.rows import grouped
from dashboards.section import Cluster, Section
from dashboards.sections.timelines import partitions
from dashboards.source import Source, ms
from ingest.lake.tables import gold

#: Kinds whose count over time is drawn, the worst first.
COUNTED_KINDS: Final = partitions.COUNTED_KINDS


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
class TroubleView:
    """What the template reads. ``span_ms``: the evidence, which is cut into slices."""

    kinds: tuple[CountedKind, ...]
    span_ms: float
    judged: bool


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
        .withColumn("slice", F.least(F.floor((F.col("at") - source.start()) / width), F.lit(buckets - 1)))
        .groupBy("cluster_id", "kind", "slice")
        .agg(F.max("partitions").alias("most"), F.max_by("partitions", "at").alias("last"))
        .orderBy("cluster_id", "kind", "slice")
    )
    kinds: dict[str, list[CountedKind]] = {}
    for (cluster, kind), found in grouped(_Slice, slices, ("cluster_id", "kind")).items():
        kinds.setdefault(cluster, []).append(CountedKind(kind, _counts(found, source.spans[cluster], buckets)))
    return {cluster: tuple(found) for cluster, found in kinds.items()}


def view(cluster: Cluster, kinds: tuple[CountedKind, ...]) -> TroubleView:
    """The kinds with the width of a slice."""
    return TroubleView(
        kinds,
        cluster.span.to_ms - cluster.span.from_ms,
        partitions.is_judged(cluster),
    )


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


SECTION: Final[Section[tuple[CountedKind, ...]]] = Section("timelines/trouble", gather, (), view, chart=tuple)
