"""The offsets' part of the report: which partitions get curves, and everything that is drawn of them.

A curve is one partition: what is proven of each replica's high watermark (HW) and log end offset (LEO), who led, what
was elected, where logs were cut, what was lost. Partitions are chosen and steps thinned in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from dashboards.section import Cluster, Section
from dashboards.sections.offsets.rows import (
    Curve,
    Election,
    EvidencedBounds,
    Leader,
    Loss,
    Observation,
    Step,
    Truncation,
)
from dashboards.sections.offsets.steps import SLICE_COLUMNS, slices_of, thinned_steps
from dashboards.sections.offsets.words import Event, events, headline, last_known
from dashboards.sections.timelines.partitions import key_of
from dashboards.source import (
    PARTITION_TYPES,
    PartitionKey,
    Source,
    by_cluster,
    by_partition,
    grouped,
    ms,
    narrowed,
    together,
    top,
    top_of_cluster,
)
from ingest.lake.plans import union
from ingest.lake.tables import gold, silver
from ingest.lake.tables.events import OFFSET_OBSERVATIONS, REPLICATION_EVENTS
from ingest.lake.tables.shared import PARTITION_KEY

#: A line of a log that repeats another follows it within this time.
_RESTATED_WITHIN_MS: Final = 1000
_NAME: Final = ("topic", "partition_id", "topic_incarnation")
#: Instants near which a partition's steps are finest.
_MOST_INSTANTS_NEAR: Final = 3
_OBSERVATIONS_PER_RECORD: Final = 2


@dataclass(frozen=True)
class CurveText:
    """A drawn partition in words."""

    curve: Curve
    headline: str
    events: tuple[Event, ...]
    last_known: tuple[str, ...]


@dataclass(frozen=True)
class OffsetsView:
    """What the template reads: the partitions drawn, those only listed, and how many there are."""

    drawn: tuple[CurveText, ...]
    listed: tuple[Curve, ...]
    total: int


def gather(source: Source) -> Mapping[str, tuple[Curve, ...]]:
    """Per cluster the partitions with offsets or losses, those that are drawn first and filled.

    Order: records proven lost, losses, unclean elections, how far the offsets rose, name. After those drawn follow as
    many as the page lists.
    """
    ranked = _ranked(source)
    drawn = {key_of(cluster, row): row for cluster, rows in ranked.items() for row in rows if row.is_drawn}
    filled = _filled(source, drawn) if drawn else {}
    return {cluster: tuple(filled.get(key_of(cluster, row), row) for row in rows) for cluster, rows in ranked.items()}


def view(cluster: Cluster, curves: tuple[Curve, ...]) -> OffsetsView:
    """The curves with their sentences."""
    stamp = cluster.span.stamp
    return OffsetsView(
        tuple(
            CurveText(row, headline(row, stamp), events(row), last_known(row, stamp)) for row in curves if row.is_drawn
        ),
        tuple(row for row in curves if not row.is_drawn),
        curves[0].curves_total if curves else 0,
    )


def _ranked(source: Source) -> dict[str, tuple[Curve, ...]]:
    count = source.limits.curves_per_cluster(len(source.clusters))
    order = [*(F.col(name).desc() for name in ("lost_lower", "losses_count", "unclean", "rise")), *map(F.col, _NAME)]
    ranked = by_cluster(Curve, top_of_cluster(_measured(source), order, count + source.limits.groups))
    return {
        cluster: tuple(replace(row, is_drawn=number < count) for number, row in enumerate(rows))
        for cluster, rows in ranked.items()
    }


def _filled(source: Source, drawn: Mapping[PartitionKey, Curve]) -> dict[PartitionKey, Curve]:
    """The drawn partitions with everything that is drawn of them."""
    wanted = source.keys(PARTITION_KEY, list(drawn), PARTITION_TYPES)
    queries: dict[str, Callable[..., Any]] = {
        "losses": _losses,
        "elections": _elections,
        "leaders": _leaders,
        "truncations": _truncations,
    }
    parts: dict[str, dict[PartitionKey, Any]] = together(
        {name: partial(query, source, wanted) for name, query in queries.items()}
    )
    steps = _steps(source, drawn, parts["losses"], parts["elections"])
    found = _observations(source, {i for rows in steps.values() for row in rows for i in row.evidence})
    return {
        key: replace(
            row,
            **{name: rows.get(key, ()) for name, rows in parts.items()},
            **_numbered(steps.get(key, ()), found),
        )
        for key, row in drawn.items()
    }


def _numbered(rows: Sequence[EvidencedBounds], found: Mapping[str, Sequence[Observation]]) -> dict[str, Any]:
    """``steps`` and ``observations`` of a curve: each observation once, however many steps rest on it."""
    numbers: dict[str, tuple[int, ...]] = {}
    observations: list[Observation] = []
    for record_id in (record_id for row in rows for record_id in row.evidence):
        if record_id not in numbers:
            own = found.get(record_id, ())
            numbers[record_id] = tuple(range(len(observations), len(observations) + len(own)))
            observations += own
    steps = (
        narrowed(Step, row, observations=tuple(n for record_id in row.evidence for n in numbers[record_id]))
        for row in rows
    )
    return {"steps": tuple(steps), "observations": tuple(observations)}


def _measured(source: Source) -> DataFrame:
    """Grain: one row per partition whose offsets or losses are known, with the cluster's totals."""
    lowest = F.least("high_watermark_lower", "log_end_offset_lower")
    highest = F.greatest("high_watermark_lower", "log_end_offset_lower")
    lost = (
        source.read(gold.DATA_LOSS_BOUNDS)
        .groupBy(*PARTITION_KEY)
        .agg(
            F.count("*").alias("losses_count"),
            F.sum("lost_count_lower").alias("lost_lower"),
            F.sum("lost_count_upper").alias("lost_upper"),
            F.count(F.when(F.col("lost_count_upper").isNull(), 1)).alias("unbounded"),
            F.sum(F.size("diverging_replicas")).alias("diverging"),
            ms(F.min("event_at")).alias("lost_at_ms"),
        )
    )
    rose = (
        source.read(silver.REPLICA_OFFSET_TIMELINE)
        .groupBy(*PARTITION_KEY)
        .agg(
            (F.max(highest) - F.min(lowest)).alias("rise"),
            F.count_distinct("replica_id").alias("replicas"),
            F.count("*").alias("intervals"),
        )
    )
    unclean = source.read(gold.LEADER_ELECTIONS).where("is_unclean").groupBy(*PARTITION_KEY)
    measured = union([lost, rose, unclean.agg(F.count("*").alias("unclean"))])
    counted = [name for name in measured.columns if name not in (*PARTITION_KEY, "lost_at_ms")]
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in counted]
    whole, is_proven = Window.partitionBy("cluster_id"), F.col("lost_lower") > 0
    return (
        measured.groupBy(*PARTITION_KEY)
        .agg(*sums, F.min("lost_at_ms").alias("lost_at_ms"))
        .where("replicas > 0 OR losses_count > 0")
        .select(
            "*",
            F.count("*").over(whole).alias("curves_total"),
            F.count(F.when(F.col("losses_count") > 0, 1)).over(whole).alias("losing_total"),
            F.count(F.when(is_proven, 1)).over(whole).alias("proven_total"),
            F.sum("lost_lower").over(whole).alias("lost_lower_total"),
            F.sum(F.when(is_proven, F.col("lost_upper"))).over(whole).alias("lost_upper_total"),
            F.sum(F.when(is_proven, F.col("unbounded"))).over(whole).alias("unbounded_total"),
            F.count(F.when(F.col("diverging") > 0, 1)).over(whole).alias("diverging_total"),
        )
    )


def _losses(source: Source, wanted: DataFrame) -> dict[PartitionKey, tuple[Loss, ...]]:
    """The worst losses of each partition, in order of time."""
    rows = source.read(gold.DATA_LOSS_BOUNDS).join(wanted, list(PARTITION_KEY), "left_semi")
    order = [F.col("lost_count_lower").desc(), F.col("event_at"), F.col("sequence")]
    worst = top(rows, PARTITION_KEY, order, source.limits.curve_losses).withColumns(
        {"at_ms": ms("event_at"), "evidence": F.slice("evidence", 1, source.limits.evidence_per_finding)}
    )
    return by_partition(Loss, worst.orderBy(*PARTITION_KEY, "at_ms", "sequence"))


def _elections(source: Source, wanted: DataFrame) -> dict[PartitionKey, tuple[Election, ...]]:
    """Each partition's elections: unclean ones first where there are too many."""
    rows = source.read(gold.LEADER_ELECTIONS).join(wanted, list(PARTITION_KEY), "left_semi")
    order = [F.coalesce("is_unclean", F.lit(False)).desc(), F.col("elected_at").desc(), F.col("sequence").desc()]
    latest = top(rows, PARTITION_KEY, order, source.limits.curve_events).withColumns(
        {"at_ms": ms("elected_at"), "evidence": F.get("evidence", F.lit(0))}
    )
    return by_partition(Election, latest.orderBy(*PARTITION_KEY, "at_ms", "sequence"))


def _leaders(source: Source, wanted: DataFrame) -> dict[PartitionKey, tuple[Leader, ...]]:
    """Each partition's latest leaders, one row per leader epoch."""
    rows = source.read(silver.LEADER_AND_ISR_TIMELINE).join(wanted, list(PARTITION_KEY), "left_semi")
    spans = rows.groupBy(*PARTITION_KEY, "leader", "leader_epoch").agg(
        ms(F.min("valid_from")).alias("from_ms"),
        F.when(F.count("valid_to") == F.count("*"), ms(F.max("valid_to"))).alias("to_ms"),
        F.min("sequence").alias("sequence"),
    )
    order = [F.col("from_ms").desc(), F.col("sequence").desc()]
    latest = top(spans, PARTITION_KEY, order, source.limits.curve_events)
    return by_partition(Leader, latest.orderBy(*PARTITION_KEY, "from_ms", "sequence"))


def _truncations(source: Source, wanted: DataFrame) -> dict[PartitionKey, tuple[Truncation, ...]]:
    """Each partition's latest truncations; a line that restates the one before it is left out."""
    rows = (
        source.read(REPLICATION_EVENTS)
        .where("event_type = 'log_truncated'")
        .withColumn("to_offset", F.coalesce("offset", "high_watermark"))
        .where("to_offset IS NOT NULL AND broker_id IS NOT NULL")
        .join(wanted, list(PARTITION_KEY), "left_semi")
        .select(
            *PARTITION_KEY,
            F.col("broker_id").alias("replica_id"),
            "to_offset",
            ms("corrected_time").alias("at_ms"),
            F.col("record_id").alias("evidence"),
        )
    )
    same = Window.partitionBy(*PARTITION_KEY, "replica_id", "to_offset").orderBy("at_ms", "evidence")
    is_restated = F.col("at_ms") - F.lag("at_ms").over(same) <= _RESTATED_WITHIN_MS
    first = rows.withColumn("is_restated", is_restated).where("is_restated IS NULL OR NOT is_restated")
    latest = top(first, PARTITION_KEY, [F.col("at_ms").desc(), F.col("evidence")], source.limits.curve_events)
    return by_partition(Truncation, latest.orderBy(*PARTITION_KEY, "at_ms", "replica_id", "evidence"))


def _steps(
    source: Source,
    drawn: Mapping[PartitionKey, Curve],
    losses: Mapping[PartitionKey, Sequence[Loss]],
    elections: Mapping[PartitionKey, Sequence[Election]],
) -> dict[PartitionKey, tuple[EvidencedBounds, ...]]:
    """The replicas' bounds, thinned to what the page has room for; near losses and unclean elections the finest."""
    each = source.limits.curve_steps_each([row.intervals for row in drawn.values()])
    slices = []
    for key, row in drawn.items():
        near = {loss.at_ms for loss in losses.get(key, ())}
        near |= {election.at_ms for election in elections.get(key, ()) if election.is_unclean}
        per_replica = max(1, each // max(1, row.replicas))
        slices.append((*key, *slices_of(source.spans[key[0]], sorted(near)[:_MOST_INSTANTS_NEAR], per_replica)))
    types = (*PARTITION_TYPES, *SLICE_COLUMNS.values())
    rows = source.read(silver.REPLICA_OFFSET_TIMELINE).join(
        source.keys((*PARTITION_KEY, *SLICE_COLUMNS), slices, types), list(PARTITION_KEY)
    )
    return by_partition(EvidencedBounds, thinned_steps(rows).orderBy(*PARTITION_KEY, "replica_id", "number"))


def _observations(source: Source, ids: set[str]) -> dict[str, tuple[Observation, ...]]:
    """What the records with these ids say of offsets."""
    wanted = source.keys(("record_id",), [(i,) for i in sorted(ids)], (pa.string(),))
    rows = (
        source.read(OFFSET_OBSERVATIONS)
        .select(
            F.get("evidence", F.lit(0)).alias("record_id"),
            *("offset_kind", "offset", "replica_id", "source"),
            ms("observed_at").alias("from_ms"),
            ms("observed_at_upper").alias("to_ms"),
        )
        .join(wanted, "record_id", "left_semi")
        .distinct()
    )
    order = [F.col("offset_kind"), F.col("offset"), F.col("from_ms")]
    first = top(rows, ["record_id"], order, _OBSERVATIONS_PER_RECORD).orderBy("record_id", *order)
    return {record_id: found for (record_id,), found in grouped(Observation, first, ("record_id",)).items()}


SECTION: Final[Section[tuple[Curve, ...]]] = Section(
    "offsets/offsets",
    gather,
    (),
    view,
    chart=lambda curves: tuple(row for row in curves if row.is_drawn),
    is_long=True,
)
