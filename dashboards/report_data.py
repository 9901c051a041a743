"""Everything the report shows, gathered from the lake: bounded collects, plain values.

:func:`gather` gives a dictionary of plain Python values. Instants are milliseconds since 1970 UTC, durations
milliseconds. What a limit cut off is counted beside what is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import functions as F

from dashboards import coverage_data, curve_data, finding_data, lane_data, limits_data, unrecognised_data
from dashboards.limits_words import cannot_be_said
from dashboards.payload import broker_ids
from dashboards.source import Limits, Source, by_cluster, ms, together, top
from ingest.lake.delta import Lake
from ingest.lake.tables import bronze, silver


def gather(lake: Lake, progress: Callable[[str], None], limits: Limits | None = None) -> dict[str, Any]:
    """The report's content: ``checks``, ``clusters_total``, ``limits``, and under ``clusters`` a dictionary each."""
    whole = Source(lake, limits or Limits())
    names = _cluster_ids(whole)
    source = Source(lake, whole.limits, tuple(names[: whole.limits.clusters]), whole.opened)
    if not source.clusters:
        checks = coverage_data.latest_checks(source)
        return {"checks": checks, "clusters": [], "clusters_total": 0, "limits": source.limits}
    progress("report: files, coverage, controllers, brokers")
    tables = together(
        {
            "checks": lambda: coverage_data.latest_checks(source),
            "totals": lambda: coverage_data.cluster_files(source),
            "files": lambda: coverage_data.files_by_kind(source),
            "coverage": lambda: coverage_data.evidence_intervals(source),
            "clocks": lambda: coverage_data.clocks(source),
            "held": lambda: limits_data.held_evidence(source),
            "holes": lambda: limits_data.evidence_holes(source),
            "rejected": lambda: coverage_data.rejected_groups(source),
            "unrecognised": lambda: unrecognised_data.unrecognised_templates(source),
            "controllers": lambda: _tenures(source),
            "liveness": lambda: _liveness(source),
            "rules": lambda: coverage_data.rule_verdicts(source),
            "inferred": lambda: lane_data.inferred_counts(source),
            "finding_counts": lambda: finding_data.finding_counts(source),
            "findings": lambda: finding_data.shown_findings(source),
        }
    )
    checks, totals = tables.pop("checks"), tables.pop("totals")
    spans = _evidence_spans(source, totals)
    starts = {cluster: span[0] for cluster, span in spans.items()}
    ends = {cluster: span[1] for cluster, span in spans.items()}
    progress("report: partitions and availability")
    tables |= together(
        {
            "availability": lambda: lane_data.availability_summary(source, ends),
            "longest": lambda: lane_data.longest_intervals(source, ends),
            "counts": lambda: lane_data.counts_over_time(source, starts, ends),
            "partitions": lambda: lane_data.rank_partitions(source, ends),
            "curves": lambda: curve_data.rank_curves(source),
        }
    )
    tables |= lane_data.lane_rows(source, tables["partitions"])
    progress("report: offsets and losses")
    tables["curves"] = curve_data.with_curves(source, tables["curves"], spans)
    progress("report: the findings' evidence")
    told = {i for rows in tables["findings"].values() for row in rows for i in row["evidence"]}
    placed = {row["evidence"] for rows in tables["segments"].values() for row in rows if row["evidence"]}
    placed |= {i for rows in tables["curves"].values() for row in rows for i in curve_data.evidence_ids(row)}
    records = finding_data.records_by_id(source, told, placed)
    clusters = []
    for cluster in source.clusters:
        own = {name: rows.get(cluster, []) for name, rows in tables.items()}
        own |= {"cluster_id": cluster, "totals": totals.get(cluster, {}), "records": records}
        own["unsaid"] = cannot_be_said(own, broker_ids(own))
        clusters.append(own | {"span": _span(own, spans[cluster])})
    return {"checks": checks, "clusters": clusters, "clusters_total": len(names), "limits": source.limits}


def _cluster_ids(source: Source) -> list[str]:
    """The clusters that files were ingested of, by name; of a lake without files, those of its timeline."""
    for spec in (bronze.INGESTED_FILES, silver.LEADER_AND_ISR_TIMELINE):
        found = source.all(spec).select("cluster_id").distinct().orderBy("cluster_id").limit(1000).collect()
        if found:
            return [row["cluster_id"] for row in found]
    return []


def _evidence_spans(source: Source, totals: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    """First and last instant of each cluster's files; where no file has one, of its timeline; else zero."""
    spans = {cluster: (row["from_ms"], row["to_ms"]) for cluster, row in totals.items() if row["from_ms"] is not None}
    if missing := [cluster for cluster in source.clusters if cluster not in spans]:
        rows = (
            source.read(silver.LEADER_AND_ISR_TIMELINE)
            .groupBy("cluster_id")
            .agg(
                ms(F.min("valid_from")).alias("from_ms"),
                F.greatest(ms(F.max("valid_from")), F.coalesce(ms(F.max("valid_to")), F.lit(0.0))).alias("to_ms"),
            )
        )
        told = {cluster: row[0] for cluster, row in by_cluster(rows.collect()).items()}
        spans |= {
            cluster: (told[cluster]["from_ms"], told[cluster]["to_ms"]) if cluster in told else (0, 0)
            for cluster in missing
        }
    return spans


def _span(rows: Mapping[str, Any], evidence: tuple[float, float]) -> dict[str, Any]:
    """The span of the evidence (``from_ms``, ``to_ms``) and of everything shown (``first_ms``, ``last_ms``)."""
    instants = [
        value
        for name in ("controllers", "liveness", "segments", "assignments", "unavailable", "coverage")
        for row in rows[name]
        for value in (row["from_ms"], row["to_ms"])
        if value is not None
    ]
    instants += [row["at_ms"] for row in rows["findings"]]
    instants += [] if evidence == (0, 0) else evidence
    return {
        "from_ms": evidence[0] or min(instants, default=0),
        "to_ms": evidence[1] or max(instants, default=0),
        "first_ms": min(instants, default=0),
        "last_ms": max(instants, default=0),
        "known": bool(instants),
    }


def _tenures(source: Source) -> dict[str, list[dict[str, Any]]]:
    """The latest tenures of controllers, in order, each with the cluster's total."""
    rows = source.read(silver.CONTROLLER_EPOCH_TIMELINE)
    order = ("controller_epoch", "valid_from", "controller_id", "sequence")
    shown = top(rows, ["cluster_id"], [F.col(name).desc() for name in order], source.limits.tenures)
    totals = rows.groupBy("cluster_id").agg(F.count("*").alias("total"))
    return by_cluster(
        shown.join(F.broadcast(totals), "cluster_id")
        .orderBy("cluster_id", *order)
        .select(
            "cluster_id",
            "controller_id",
            "controller_epoch",
            ms("valid_from").alias("from_ms"),
            ms("valid_to").alias("to_ms"),
            "end_reason",
            "inferred_from",
            "total",
        )
        .collect()
    )


def _liveness(source: Source) -> dict[str, list[dict[str, Any]]]:
    """The latest registrations of brokers, in order, each with the cluster's total."""
    rows = source.read(silver.BROKER_LIVENESS_TIMELINE)
    latest = [F.col("valid_from").desc(), F.col("broker_id"), F.col("sequence").desc()]
    shown = top(rows, ["cluster_id"], latest, source.limits.liveness)
    totals = rows.groupBy("cluster_id").agg(F.count("*").alias("total"))
    return by_cluster(
        shown.join(F.broadcast(totals), "cluster_id")
        .orderBy("cluster_id", "broker_id", "valid_from", "sequence")
        .select(
            "cluster_id",
            "broker_id",
            ms("valid_from").alias("from_ms"),
            ms("valid_to").alias("to_ms"),
            "end_reason",
            ms("ended_before").alias("ended_before_ms"),
            "inferred_from",
            "total",
        )
        .collect()
    )
