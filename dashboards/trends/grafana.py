"""The charts over time for Grafana: a dashboard of each cluster, and beside it the points of each chart as JSON.

No free data source of Grafana's speaks the protocol of ``serve``; that called Infinity reads JSON from a web server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from dashboards import words
from dashboards.questions.question import questions
from dashboards.render import write_whole
from dashboards.scope import Scope
from dashboards.trends.drawing import Chart, Point
from dashboards.trends.gather import WORST_QUESTION, ClusterTrends, gather
from ingest.lake.delta import Lake

#: The dashboard's variables: its data source, and where the folder of the data is to be had.
_SOURCE: Final = {"type": "yesoreyeram-infinity-datasource", "uid": "${infinity}"}
_DEFAULT_URL: Final = "http://127.0.0.1:8000"
_SCHEMA_VERSION: Final = 39
_TYPES: Final = {"day": "timestamp", "series": "string", "topic": "string"}
_WORST: Final = (
    *("topic", "partition_id", "without_leader_minutes", "under_min_isr_minutes", "under_replicated_minutes"),
    *("elections", "unclean_elections"),
)


@dataclass(frozen=True)
class _Panel:
    """What one panel shows: rows of these columns, as lines or bars where they have a ``day``, else as a table."""

    title: str
    question: str
    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    chart: Chart | None = None

    @property
    def file(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-") + ".json"


def write_grafana(
    lake: Lake, out_dir: str, *, title: str | None = None, progress: Callable[[str], None], scope: Scope | None = None
) -> str:
    """Write ``OUT_DIR/grafana/UID.json`` for each cluster, its data below ``OUT_DIR/grafana/UID``, and give the path of
    the folder. A cluster keeps its UID. The same lake gives the same bytes. Raises as
    :func:`~dashboards.trends.page.write_trends`."""
    folder = Path(out_dir) / "grafana"
    folder.mkdir(parents=True, exist_ok=True)
    progress("grafana: asking the questions by day")
    for cluster in gather(lake, scope):
        of_cluster = folder / uid(cluster)
        of_cluster.mkdir(exist_ok=True)
        for panel in _panels(cluster):
            write_whole(of_cluster / panel.file, json.dumps(panel.rows, indent=1))
        write_whole(of_cluster.with_suffix(".json"), json.dumps(dashboard(cluster, title), indent=1))
    return str(folder)


def uid(cluster: ClusterTrends) -> str:
    """Grafana's id of the cluster's dashboard, and the folder of its data."""
    return f"kafka-state-replay-{sha256(cluster.cluster_id.encode()).hexdigest()[:12]}"


def dashboard(cluster: ClusterTrends, title: str | None = None) -> dict[str, Any]:
    """The dashboard in Grafana's own form (schema version 39, Grafana 10 and later)."""
    name = words.visible(cluster.cluster_id)
    return {
        "uid": uid(cluster),
        "title": f"{title or 'Kafka state replay'}: {name}",
        "description": "What the cluster decided and did, day by day (UTC), by kafka-state-replay report.",
        "tags": ["kafka", "kafka-state-replay"],
        "timezone": "utc",
        "editable": True,
        "graphTooltip": 1,
        "schemaVersion": _SCHEMA_VERSION,
        "time": {
            "from": f"{cluster.first.isoformat()}T00:00:00.000Z",
            "to": f"{(cluster.last + timedelta(days=1)).isoformat()}T00:00:00.000Z",
        },
        "templating": {
            "list": [
                {"type": "datasource", "name": "infinity", "label": "Infinity", "query": _SOURCE["type"], "hide": 0},
                {"type": "textbox", "name": "url", "label": "Folder of the data", "query": _DEFAULT_URL, "hide": 0},
            ]
        },
        "annotations": {"list": []},
        "panels": [_panel(cluster, number, panel) for number, panel in enumerate(_panels(cluster))],
    }


def _panels(cluster: ClusterTrends) -> Iterator[_Panel]:
    for drawing, points in zip(cluster.drawings, cluster.points, strict=True):
        chart = drawing.chart
        columns = ("day", "series", "value") if chart.series else ("day", "value")
        yield _Panel(chart.title, chart.question, columns, tuple(_rows(points, columns)), chart)
    if cluster.worst is not None:
        rows = ({name: _plain(row[name]) for name in _WORST} for row in cluster.worst)
        yield _Panel("Worst partitions", WORST_QUESTION, _WORST, tuple(rows))


def _rows(points: Sequence[Point], columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    for point in points:
        day = f"{point.day.isoformat()}T00:00:00Z"
        row = {"day": day, "series": words.visible(point.series), "value": point.value}
        yield {name: row[name] for name in columns}


def _plain(value: Any) -> Any:
    return words.visible(value) if isinstance(value, str) else value if isinstance(value, int) else float(value)


def _panel(cluster: ClusterTrends, number: int, panel: _Panel) -> dict[str, Any]:
    chart = panel.chart
    named = "${__field.labels.series}" if chart and chart.series else panel.title
    drawn = {
        "drawStyle": "bars" if chart and chart.adds_up else "line",
        "fillOpacity": 80 if chart and chart.adds_up else 0,
        "showPoints": "auto",
        "stacking": {"mode": "normal" if chart and chart.adds_up else "none", "group": "A"},
    }
    shown = {
        "type": "timeseries",
        "fieldConfig": {"defaults": {"displayName": named, "min": 0, "custom": drawn}, "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    }
    table = {"type": "table", "fieldConfig": {"defaults": {}, "overrides": []}, "options": {"showHeader": True}}
    return {
        "id": number + 1,
        "title": panel.title,
        "description": f"{questions()[panel.question].read} (kafka-state-replay ask {panel.question})",
        "gridPos": {"h": 8, "w": 12, "x": 12 * (number % 2), "y": 8 * (number // 2)},
        "datasource": _SOURCE,
        **(shown if chart else table),
        "targets": [
            {
                "refId": "A",
                "datasource": _SOURCE,
                "type": "json",
                "source": "url",
                "parser": "backend",
                "format": "timeseries" if chart else "table",
                "url": f"${{url}}/{uid(cluster)}/{panel.file}",
                "url_options": {"method": "GET", "data": ""},
                "root_selector": "",
                "columns": [
                    {"selector": name, "text": name, "type": _TYPES.get(name, "number")} for name in panel.columns
                ],
                "filters": [],
            }
        ],
    }
