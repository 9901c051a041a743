"""The report: one HTML file that needs nothing but a browser, and a summary for the terminal."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboards import words
from dashboards.render import cluster_view, render
from dashboards.report_data import gather
from dashboards.source import Limits
from ingest.lake.delta import Lake

_EXPLAINED = 3
#: The folder of the checks' Data Docs, beside the page.
DATA_DOCS = "data-docs"


@dataclass(frozen=True)
class ReportFile:
    """Where the report is, and what the terminal says of it, a line each (the path is not repeated there)."""

    path: str
    summary: tuple[str, ...]


def write_report(
    lake: Lake,
    out_dir: str,
    *,
    title: str | None = None,
    progress: Callable[[str], None],
    limits: Limits | None = None,
) -> ReportFile:
    """Write ``OUT_DIR/index.html`` from the lake as it is, checked or not; missing and empty tables are said so.

    It links to the Data Docs of the checks where they lie beside it, in ``OUT_DIR/data-docs``. The same lake gives the
    same bytes. The file is replaced in one step. Raises ``OSError`` where ``out_dir`` cannot be written.
    """
    folder = Path(out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    data = gather(lake, progress, limits)
    docs = f"{DATA_DOCS}/index.html"
    data = {**data, "checks": {**data["checks"], "docs": docs if (folder / docs).is_file() else None}}
    named = title or _title(data)
    progress("report: writing the page")
    page = folder / "index.html"
    draft = folder / f".index.html.{os.getpid()}"
    try:
        draft.write_text(render(data, named), encoding="utf-8")
        draft.replace(page)
    finally:
        draft.unlink(missing_ok=True)
    return ReportFile(str(page), summary_lines(data))


def _title(data: Mapping[str, Any]) -> str:
    clusters = data["clusters"]
    if not clusters:
        return "Kafka state replay"
    named = f"Kafka state replay: {words.listing((words.visible(c['cluster_id']) for c in clusters), 3)}"
    span = clusters[0]["span"]
    return f"{named}, {words.instant(span['from_ms'])[:16]}" if len(clusters) == 1 and span["known"] else named


def summary_lines(data: Mapping[str, Any]) -> tuple[str, ...]:
    """What the terminal shows: per cluster its size, its verdict and the most severe findings.

    Up to three clusters are told in full, the others counted.
    """
    lines: list[str] = []
    for number, cluster in enumerate(data["clusters"][:3]):
        lines += _cluster_lines(cluster_view(number, cluster), 1 if len(data["clusters"]) > 1 else _EXPLAINED)
    if data["clusters_total"] > 3:
        lines.append(f"{data['clusters_total'] - 3:,} more clusters")
    if not data["clusters"]:
        lines.append("Nothing to report: the lake holds no records. Run 'ingest PATH' and 'reconstruct' first.")
    if not data["checks"]["verdicts"]:
        lines.append("Not checked: 'check' was not run on this lake.")
    elif data["checks"]["broken"]:
        lines.append(f"{words.count(len(data['checks']['broken']), 'check')} of the tables failed.")
    return tuple(lines)


def _cluster_lines(view: Mapping[str, Any], explained: int) -> list[str]:
    totals, span, brokers = view["totals"], view["span"], view["brokers"]
    versions = words.listing(words.visible(v) for v in totals.get("versions") or []) or "version unknown"
    lines = [
        f"Cluster {words.visible(view['cluster_id'])}: {words.count(len(brokers), 'broker')}"
        f" ({words.listing(map(str, brokers), 8)}), Kafka {versions}"
        if brokers
        else f"Cluster {words.visible(view['cluster_id'])}: no broker known, Kafka {versions}",
    ]
    if span["known"]:
        lines.append(
            f"Evidence: {words.instant(span['from_ms'])} to {words.instant(span['to_ms'])} UTC"
            f" ({words.duration(span['to_ms'] - span['from_ms'])})"
        )
    lines += [
        f"Records: {int(totals.get('records_read') or 0):,} read, {int(totals.get('records_kept') or 0):,} kept,"
        f" {int(totals.get('records_rejected') or 0):,} rejected, from {words.count(totals.get('files_read'), 'file')}",
        f"Timelines: {words.count(view['partitions_total'], 'partition')}"
        f" of {words.count(view['topics_total'], 'topic')},"
        f" {words.count(view['segments_total'], 'leader-and-ISR interval')},"
        f" {words.count(view['tenures_total'], 'controller tenure')}",
        *filter(None, [view["loss_verdict"]]),
        *view["verdict"][1:],
        view["verdict"][0],
    ]
    for row in view["findings"][:explained]:
        place = f"{row['place']}: " if row["place"] else ""
        lines.append(
            f"  {row['severity']} {words.visible(row['rule_id'])} at {words.instant(row['at_ms'])}, {place}"
            f"{words.visible(row['explanation'])}"
        )
    return lines
