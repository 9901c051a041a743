"""Everything the report shows, gathered from the lake: bounded collects into dataclasses.

Instants are milliseconds since 1970 UTC, durations milliseconds. What a limit cut off is counted beside what is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pyspark.sql import functions as F

from dashboards.cards import SECTIONS
from dashboards.payload import evidence_ids
from dashboards.records import records_by_id
from dashboards.scope import Scope
from dashboards.section import Cluster, Span
from dashboards.sections import findings
from dashboards.sections.checks import Checks, latest_checks
from dashboards.sections.cluster import brokers, controllers
from dashboards.sections.coverage import files
from dashboards.sections.timelines import evidence, partitions
from dashboards.source import FileTotals, Limits, Source, ms, plain, together
from ingest.lake.delta import Lake
from ingest.lake.tables import bronze, silver


@dataclass(frozen=True)
class ReportData:
    """What the page is made of; ``clusters_total`` counts also those that are not shown. A table lists
    the ``ambiguous`` ones instead."""

    clusters: tuple[Cluster, ...] = ()
    clusters_total: int = 0
    checks: Checks = field(default_factory=Checks)
    limits: Limits = field(default_factory=Limits)
    scope: Scope = field(default_factory=Scope)
    ambiguous: tuple[files.AmbiguousCluster, ...] = ()


def gather(
    lake: Lake, progress: Callable[[str], None], limits: Limits | None = None, scope: Scope | None = None
) -> ReportData:
    """The report's content, from the lake as it is. Raises :class:`~dashboards.scope.NothingInScope`."""
    whole = Source(lake, limits or Limits(), scope=scope or Scope())
    progress("report: files and checks")
    asked: dict[str, Callable[[Source], Any]] = {
        "ambiguous": files.ambiguous_clusters,
        "clusters": _cluster_ids,
        "checks": latest_checks,
    }
    of_lake: dict[str, Any] = together({name: partial(query, whole) for name, query in asked.items()})
    ambiguous, every = of_lake["ambiguous"], of_lake["clusters"]
    apart = {row.cluster_id for row in ambiguous}
    names = [name for name in every if name not in apart] or every
    if names is every:
        ambiguous = ()
    if (holders := whole.scope.clusters(whole.all)) is not None:
        names = [name for name in every if name in holders]
    source = replace(whole, clusters=tuple(names[: whole.limits.clusters]))
    if not source.clusters:
        return ReportData(checks=of_lake["checks"], limits=source.limits, scope=source.scope)
    source = replace(source, totals=files.totals(source))
    spans = _evidence_spans(source)
    source = replace(source, spans={name: source.scope.clipped(*span) for name, span in spans.items()})
    progress("report: findings, timelines, offsets and coverage")
    longest_first = sorted(SECTIONS, key=lambda section: not section.is_long)
    data = together({section.name: partial(section.gather, source) for section in longest_first})
    clusters = [
        Cluster(
            number,
            name,
            {section: rows[name] for section, rows in data.items() if name in rows},
            source.totals.get(name, FileTotals()),
        )
        for number, name in enumerate(source.clusters)
    ]
    progress("report: the findings' evidence")
    quoted = {i for cluster in clusters for i in evidence_ids(cluster.of(findings.SECTION).worst)}
    placed = {i for cluster in clusters for i in _charted_evidence(cluster)}
    records = records_by_id(source, quoted, placed)
    return ReportData(
        tuple(
            replace(cluster, span=_span(cluster, source.spans[cluster.cluster_id]), records=records)
            for cluster in clusters
        ),
        len(names),
        of_lake["checks"],
        source.limits,
        source.scope,
        ambiguous,
    )


def _cluster_ids(source: Source) -> list[str]:
    """The clusters that files were ingested of, by name; of a lake without files, those of its timeline."""
    for spec in (bronze.INGESTED_FILES, silver.LEADER_AND_ISR_TIMELINE):
        found = source.all(spec).select("cluster_id").distinct().orderBy("cluster_id").limit(1000).collect()
        if found:
            return [row["cluster_id"] for row in found]
    return []


def _evidence_spans(source: Source) -> dict[str, tuple[float, float]]:
    """First and last instant of each cluster's files; where no file has one, of its timeline; else zero."""
    spans = {
        cluster: (row.from_ms, row.to_ms)
        for cluster, row in source.totals.items()
        if row.from_ms is not None and row.to_ms is not None
    }
    if missing := [cluster for cluster in source.clusters if cluster not in spans]:
        rows = (
            source.read(silver.LEADER_AND_ISR_TIMELINE)
            .groupBy("cluster_id")
            .agg(
                ms(F.min("valid_from")).alias("from_ms"),
                F.greatest(ms(F.max("valid_from")), F.coalesce(ms(F.max("valid_to")), F.lit(0.0))).alias("to_ms"),
            )
        )
        found = {row["cluster_id"]: (plain(row["from_ms"]), plain(row["to_ms"])) for row in rows.collect()}
        spans |= {cluster: found.get(cluster, (0, 0)) for cluster in missing}
    return spans


def _charted_evidence(cluster: Cluster) -> Iterator[str]:
    for section in SECTIONS:
        if section.chart:
            yield from evidence_ids(section.chart(cluster.of(section)))


def _span(cluster: Cluster, extent: tuple[float, float]) -> Span:
    """The span of the evidence and of everything shown."""
    lanes = cluster.of(partitions.SECTION)
    spanned: tuple[Any, ...] = (
        *cluster.of(controllers.SECTION),
        *cluster.of(brokers.SECTION),
        *cluster.of(evidence.SECTION),
        *(row for lane in lanes for row in (*lane.segments, *lane.assignments, *lane.unavailable)),
    )
    instants = [value for row in spanned for value in (row.from_ms, row.to_ms) if value is not None]
    instants += [row.at_ms for row in cluster.of(findings.SECTION).worst]
    instants += [] if extent == (0, 0) else extent
    return Span(
        from_ms=extent[0] or min(instants, default=0),
        to_ms=extent[1] or max(instants, default=0),
        first_ms=min(instants, default=0),
        last_ms=max(instants, default=0),
        is_known=bool(instants),
    )
