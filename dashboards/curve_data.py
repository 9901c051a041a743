"""The offsets' side of the report: which partitions get curves, and everything that is drawn of them.

A curve is one partition: what is proven of each replica's high watermark (HW) and log end offset (LEO), who led, what
was elected, where logs were cut, what was lost. Partitions are chosen and steps thinned in Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from dashboards.curve_steps import SLICE_COLUMNS, slices_of, thinned_steps
from dashboards.source import PARTITION_TYPES, Source, by_cluster, ms, of_partition, plain, together, top
from ingest.lake.tables import gold, silver
from ingest.lake.tables.silver import PARTITION_KEY

#: A line of a log that says what another line said already follows it within this time.
_RESTATED_WITHIN_MS: Final = 1000
_MEASURES: Final = (
    "losses_count",
    "lost_lower",
    "lost_upper",
    "unbounded",
    "diverging",
    "unclean",
    "rise",
    "replicas",
    "intervals",
)
_NAME: Final = ("topic", "partition_id", "topic_incarnation")
Rows = dict[str, list[dict[str, Any]]]


def rank_curves(source: Source) -> Rows:
    """Per cluster the partitions with offsets or losses, those to draw first, with the cluster's totals on every row.

    Order: records proven lost, losses, unclean elections, how far the offsets rose, name. ``is_drawn`` says which are
    drawn; of the others as many follow as the page lists.
    """
    drawn = source.limits.curves_per_cluster(len(source.clusters))
    order = [*(F.col(name).desc() for name in ("lost_lower", "losses_count", "unclean", "rise")), *map(F.col, _NAME)]
    shown = top(_measured(source), ["cluster_id"], order, drawn + source.limits.groups)
    ranked = by_cluster(shown.orderBy("cluster_id", *order).collect())
    for rows in ranked.values():
        for number, row in enumerate(rows):
            row["is_drawn"] = number < drawn
    return ranked


def with_curves(source: Source, ranked: Rows, spans: Mapping[str, tuple[float, float]]) -> Rows:
    """The rows of :func:`rank_curves`; those drawn with ``steps``, ``leaders``, ``elections``, ``truncations``,
    ``losses``, and ``sightings`` by the ids that ``steps`` name as evidence.

    ``spans`` are first and last instant of each cluster's evidence, ms since 1970.
    """
    drawn = [(of_partition(cluster, row), row) for cluster, rows in ranked.items() for row in rows if row["is_drawn"]]
    if not drawn:
        return ranked
    wanted = source.keys(PARTITION_KEY, [key for key, _ in drawn], PARTITION_TYPES)
    parts = together(
        {
            "losses": lambda: _losses(source, wanted),
            "elections": lambda: _elections(source, wanted),
            "leaders": lambda: _leaders(source, wanted),
            "truncations": lambda: _truncations(source, wanted),
        }
    )
    parts["steps"] = _steps(source, drawn, spans, parts)
    ids = {i for rows in parts["steps"].values() for step in rows for i in step["evidence"]}
    sightings = _sightings(source, ids)
    filled = {}
    for key, row in drawn:
        own = {name: rows.get(key, []) for name, rows in parts.items()}
        named = {i: sightings[i] for step in own["steps"] for i in step["evidence"] if i in sightings}
        filled[key] = row | own | {"sightings": named}
    return {cluster: [filled.get(of_partition(cluster, row), row) for row in rows] for cluster, rows in ranked.items()}


def evidence_ids(curve: Mapping[str, Any]) -> set[str]:
    """The records whose place the page names: those of elections, truncations and losses."""
    ids = {row["evidence"] for name in ("elections", "truncations") for row in curve.get(name, ()) if row["evidence"]}
    return ids | {i for loss in curve.get("losses", ()) for i in loss["evidence"]}


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
    parts = (rose, unclean.agg(F.count("*").alias("unclean")))
    known = reduce(lambda rows, part: rows.unionByName(part, allowMissingColumns=True), parts, lost)
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _MEASURES]
    whole, is_proven = Window.partitionBy("cluster_id"), F.col("lost_lower") > 0
    return (
        known.groupBy(*PARTITION_KEY)
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


def _grouped(rows: DataFrame, *order: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Collected rows by their partition."""
    grouped: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows.orderBy(*PARTITION_KEY, *order).collect():
        values = plain(row)
        grouped.setdefault(tuple(values.pop(name) for name in PARTITION_KEY), []).append(values)
    return grouped


def _losses(source: Source, wanted: DataFrame) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """The worst losses of each partition, in order of time."""
    rows = source.read(gold.DATA_LOSS_BOUNDS).join(wanted, list(PARTITION_KEY), "left_semi")
    order = [F.col("lost_count_lower").desc(), F.col("event_at"), F.col("sequence")]
    return _grouped(
        top(rows, PARTITION_KEY, order, source.limits.curve_losses).select(
            *PARTITION_KEY,
            ms("event_at").alias("at_ms"),
            "sequence",
            *("cause", "leader", "previous_leader", "leader_epoch"),
            *("lost_from_offset", "lost_to_offset_lower", "lost_to_offset_upper"),
            *("lost_count_lower", "lost_count_upper", "diverging_replicas", "diverging_offsets"),
            F.slice("evidence", 1, source.limits.evidence_per_finding).alias("evidence"),
        ),
        "at_ms",
        "sequence",
    )


def _elections(source: Source, wanted: DataFrame) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Each partition's elections: unclean ones first where there are too many."""
    rows = source.read(gold.LEADER_ELECTIONS).join(wanted, list(PARTITION_KEY), "left_semi")
    order = [F.coalesce("is_unclean", F.lit(False)).desc(), F.col("elected_at").desc(), F.col("sequence").desc()]
    return _grouped(
        top(rows, PARTITION_KEY, order, source.limits.curve_events).select(
            *PARTITION_KEY,
            ms("elected_at").alias("at_ms"),
            *("sequence", "election_kind", "previous_leader", "previous_isr", "observed_leader", "leader_epoch"),
            "is_unclean",
            F.get("evidence", F.lit(0)).alias("evidence"),
        ),
        "at_ms",
        "sequence",
    )


def _leaders(source: Source, wanted: DataFrame) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Each partition's latest leaders, one row per leader epoch."""
    rows = source.read(silver.LEADER_AND_ISR_TIMELINE).join(wanted, list(PARTITION_KEY), "left_semi")
    spans = rows.groupBy(*PARTITION_KEY, "leader", "leader_epoch").agg(
        ms(F.min("valid_from")).alias("from_ms"),
        F.when(F.count("valid_to") == F.count("*"), ms(F.max("valid_to"))).alias("to_ms"),
        F.min("sequence").alias("sequence"),
    )
    latest = [F.col("from_ms").desc(), F.col("sequence").desc()]
    return _grouped(top(spans, PARTITION_KEY, latest, source.limits.curve_events), "from_ms", "sequence")


def _truncations(source: Source, wanted: DataFrame) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Each partition's latest truncations; a line that restates the one before it is left out."""
    rows = (
        source.read(silver.REPLICATION_EVENTS)
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
    said_before = F.col("at_ms") - F.lag("at_ms").over(same) <= _RESTATED_WITHIN_MS
    first = rows.withColumn("again", said_before).where("again IS NULL OR NOT again").drop("again")
    latest = [F.col("at_ms").desc(), F.col("evidence")]
    return _grouped(top(first, PARTITION_KEY, latest, source.limits.curve_events), "at_ms", "replica_id", "evidence")


def _steps(
    source: Source,
    drawn: Sequence[tuple[tuple[Any, ...], Mapping[str, Any]]],
    spans: Mapping[str, tuple[float, float]],
    parts: Mapping[str, Mapping[tuple[Any, ...], Sequence[Mapping[str, Any]]]],
) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """The replicas' bounds, thinned to what the page has room for; near losses and unclean elections the finest."""
    each = source.limits.curve_steps_each([row["intervals"] for _, row in drawn])
    told = []
    for key, row in drawn:
        at = [loss["at_ms"] for loss in parts["losses"].get(key, ())]
        at += [e["at_ms"] for e in parts["elections"].get(key, ()) if e["is_unclean"]]
        told.append((*key, *slices_of(spans[key[0]], sorted(set(at))[:3], max(1, each // max(1, row["replicas"])))))
    kinds = (*PARTITION_TYPES, *SLICE_COLUMNS.values())
    slices = source.keys((*PARTITION_KEY, *SLICE_COLUMNS), told, kinds)
    rows = source.read(silver.REPLICA_OFFSET_TIMELINE).join(slices, list(PARTITION_KEY))
    return _grouped(thinned_steps(rows), "replica_id", "number")


def _sightings(source: Source, ids: set[str]) -> dict[str, list[dict[str, Any]]]:
    """What the records with these ids say of offsets: kind, offset, the span in which it was so, source, replica."""
    wanted = source.keys(("record_id",), [(i,) for i in sorted(ids)], (pa.string(),))
    rows = (
        source.read(silver.OFFSET_OBSERVATIONS)
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
    found: dict[str, list[dict[str, Any]]] = {}
    for row in map(plain, top(rows, ["record_id"], order, 2).orderBy("record_id", *order).collect()):
        found.setdefault(row.pop("record_id"), []).append(row)
    return found
