"""The report: one HTML file that needs nothing but a browser, and a summary for the terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from dashboards import overview, words
from dashboards.gather import ReportData, gather
from dashboards.render import render, write_whole
from dashboards.scope import Scope
from dashboards.section import Cluster
from dashboards.sections import findings, incidents
from dashboards.sections.checks import Checks, latest_checks
from dashboards.sections.incidents import Incident
from dashboards.sections.timelines import partitions
from dashboards.source import Limits, Source
from dashboards.texts import next_steps
from dashboards.texts.postmortem import postmortem
from ingest.lake.delta import Lake

#: Incidents and findings in the terminal, and clusters there.
_EXPLAINED: Final = 3
_CLUSTERS: Final = 3
#: The folder of the checks' Data Docs, beside the page.
DATA_DOCS: Final = "data-docs"


@dataclass(frozen=True)
class ReportFile:
    """Where the report is, and what it says; ``title`` is its heading, None where it names cluster and time itself."""

    path: str
    data: ReportData
    title: str | None

    @property
    def summary(self) -> tuple[str, ...]:
        """What the terminal says of it, a line each (the path is not repeated there)."""
        return summary_lines(self.data)


def write_report(
    lake: Lake,
    out_dir: str,
    *,
    title: str | None = None,
    progress: Callable[[str], None],
    limits: Limits | None = None,
    scope: Scope | None = None,
    before_checks: bool = False,
) -> ReportFile:
    """Write ``OUT_DIR/index.html`` from the lake as it is, checked or not; the page says which tables are missing or
    empty.

    It links to the Data Docs of the checks where they lie beside it, in ``OUT_DIR/data-docs``. The same lake gives the
    same bytes. ``before_checks`` says that a run of the checks is still to come, for :func:`add_checks`: what earlier
    ones found is not shown. The file is replaced in one step. Raises ``OSError`` where ``out_dir`` cannot be written,
    :class:`~dashboards.scope.NothingInScope` where nothing is what ``scope`` names.
    """
    page = Path(out_dir) / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    data = gather(lake, progress, limits, scope)
    progress("report: writing the page")
    if before_checks:
        data = replace(data, checks=Checks())
    return _written(ReportFile(str(page), data, title))


def write_postmortem(
    lake: Lake,
    out_dir: str,
    *,
    title: str | None = None,
    progress: Callable[[str], None],
    scope: Scope | None = None,
) -> ReportFile:
    """Write ``OUT_DIR/postmortem.md``, the draft of a postmortem, from the lake as it is; as :func:`write_report`."""
    page = Path(out_dir) / "postmortem.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    data = gather(lake, progress, scope=scope)
    return _written(ReportFile(str(page), data, title), postmortem)


def add_checks(lake: Lake, report: ReportFile) -> ReportFile:
    """Write the same page again with what the latest run of the checks found."""
    return _written(replace(report, data=replace(report.data, checks=latest_checks(Source(lake, report.data.limits)))))


def _written(report: ReportFile, render: Callable[[ReportData, str], str] = render) -> ReportFile:
    """The report, written as it is now, with a link to the Data Docs where they are there by now."""
    data, page = report.data, Path(report.path)
    docs = f"{DATA_DOCS}/index.html"
    if data.checks.verdicts and (page.parent / docs).is_file():
        data = replace(data, checks=replace(data.checks, docs=docs))
    write_whole(page, render(data, report.title or _title(data)))
    return replace(report, data=data)


def _title(data: ReportData) -> str:
    if not data.clusters:
        return "Kafka state replay"
    names = words.listing((words.visible(cluster.cluster_id) for cluster in data.clusters), 3)
    span = data.clusters[0].span
    begun = f", {words.instant(span.from_ms)[:16]}" if len(data.clusters) == 1 and span.is_known else ""
    return f"Kafka state replay: {names}{begun}"


def summary_lines(data: ReportData) -> tuple[str, ...]:
    """What the terminal shows: per cluster its size, its verdict and the most severe findings.

    Up to three clusters are summed up, the others counted.
    """
    lines = [data.scope.sentence] if data.scope.sentence else []
    for cluster in data.clusters[:_CLUSTERS]:
        lines += _cluster_lines(cluster, 1 if len(data.clusters) > 1 else _EXPLAINED)
    if data.clusters_total > _CLUSTERS:
        lines.append(f"{data.clusters_total - _CLUSTERS:,} more clusters")
    if not data.clusters:
        lines.append("Nothing to report: the lake holds no records. Run 'ingest PATH' and 'reconstruct' first.")
    if not data.checks.verdicts:
        lines.append("Not checked: 'check' was not run on this lake.")
    elif data.checks.broken:
        lines.append(data.checks.verdict)
    return tuple(lines)


def _first_sentence(text: str) -> str:
    first, end, _ = text.partition(". ")
    return f"{first}{end.rstrip()}"


def _cluster_lines(cluster: Cluster, explained: int) -> list[str]:
    totals, span, brokers = cluster.totals, cluster.span, overview.broker_ids(cluster)
    of_partitions = partitions.totals(cluster)
    named = f"Cluster {words.visible(cluster.cluster_id)}"
    versions = words.listing(words.visible(version) for version in totals.versions) or "version unknown"
    listed = f"{words.count(len(brokers), 'broker')} ({words.listing(map(str, brokers), 8)})"
    lines = [f"{named}: {listed if brokers else 'no broker known'}, Kafka {versions}"]
    if span.is_known:
        lines.append(
            f"Evidence: {words.instant(span.from_ms)} to {words.instant(span.to_ms)} UTC"
            f" ({words.duration(span.to_ms - span.from_ms)})"
        )
    found = cluster.of(findings.SECTION)
    findings_sentence, *others = overview.verdict(cluster)
    told: tuple[Incident, ...] = cluster.of(incidents.SECTION)[:explained]
    lines += [
        f"Records: {totals.records_read or 0:,} read, {totals.records_kept or 0:,} kept,"
        f" {totals.records_rejected or 0:,} rejected, from {words.count(totals.files_read, 'file')}",
        f"Timelines: {words.count(of_partitions.partitions_total, 'partition')}"
        f" of {words.count(of_partitions.topics_total, 'topic')},"
        f" {words.count(of_partitions.segments_total, 'leader-and-ISR interval')},"
        f" {words.count(overview.tenures_total(cluster), 'controller tenure')}",
        *filter(None, [found.harm, overview.losses(cluster), next_steps.state(cluster)]),
        *(f"  {words.visible(one.summary)}" for one in told),
        *(f"To do: {step}" for step in next_steps.of_cluster(cluster)),
        *others,
        findings_sentence,
    ]
    for row in found.worst[:explained]:
        place = f"{row.place}: " if row.place else ""
        harm = f"{words.named(row.harm)}, " if row.harm and row.proves_harm else ""
        lines.append(
            f"  {harm}{row.severity} {words.visible(row.rule_id)} at {words.instant(row.at_ms)}, {place}"
            f"{words.visible(_first_sentence(row.explanation))}"
        )
    return lines
