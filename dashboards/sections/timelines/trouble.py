"""Partitions in trouble at once: how many were offline, under min ISR, under-replicated over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, Window
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
    slice: int
    most: int
    last: int


def gather(source: Source) -> Mapping[str, tuple[CountedKind, ...]]:
    """Per kind the most partitions at once in each slice of the evidence's span."""
    return {key[0]: kinds for key, kinds in counted(source, ("cluster_id",), source.limits.buckets).items()}


def counted(
    source: Source, by: Sequence[str], buckets: int, wanted: DataFrame | None = None
) -> Mapping[tuple[Any, ...], tuple[CountedKind, ...]]:
    """For each value of the columns ``by``, the cluster first, per kind the most partitions at once in each of so many
    slices of the evidence's span; ``wanted`` has those that are asked for, None: all."""
    width = F.greatest((source.end() - source.start()) / buckets, F.lit(1.0))
    begin = F.greatest(ms("valid_from"), source.start())
    end = F.least(F.coalesce(ms("valid_to"), source.end()), source.end())
    intervals = source.read(gold.AVAILABILITY_INTERVALS).where(F.col("kind").isin(list(partitions.COUNTED_KINDS)))
    moves = (
        (intervals if wanted is None else intervals.join(wanted, list(by), "left_semi"))
        .select(*by, "kind", begin.alias("begin"), F.greatest(begin, end).alias("end"))
        .selectExpr(*by, "kind", "stack(2, begin, 1, end, -1) AS (at, move)")
        .groupBy(*by, "kind", "at")
        .agg(F.sum("move").alias("move"))
    )
    running = Window.partitionBy(*by, "kind").orderBy("at").rowsBetween(Window.unboundedPreceding, 0)
    slices = (
        moves.withColumn("partitions", F.sum("move").over(running))
        .withColumn("slice", F.least(F.floor((F.col("at") - source.start()) / width), F.lit(buckets - 1)))
        .groupBy(*by, "kind", "slice")
        .agg(F.max("partitions").alias("most"), F.max_by("partitions", "at").alias("last"))
        .orderBy(*by, "kind", "slice")
    )
    kinds: dict[tuple[Any, ...], list[CountedKind]] = {}
    for (*key, kind), found in grouped(_Slice, slices, (*by, "kind")).items():
        kinds.setdefault(tuple(key), []).append(CountedKind(kind, _counts(found, source.spans[key[0]], buckets)))
    return {key: tuple(found) for key, found in kinds.items()}


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
