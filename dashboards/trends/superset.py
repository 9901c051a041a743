"""The charts over time for Superset: its own export of a dashboard, of which each chart asks the view of the saved
question that the page of charts asks, through ``serve``."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid5

from dashboards.questions.question import questions
from dashboards.trends.drawing import Chart
from dashboards.trends.gather import CHARTS, WORST_QUESTION, columns
from dashboards.views import question_view
from ingest.lake.delta import Lake

#: Where ``serve`` listens if nothing else is said; to be changed in Superset.
URI: Final = "hive://superset@127.0.0.1:10000/questions"
_NAME: Final = "kafka_state_replay"
_VERSION: Final = "1.0.0"
_NAMESPACE: Final = UUID("6f1c7a52-8f0e-4c57-9a53-0d6f5a1d3b0e")
#: A moment for all files of the archive, so that the same program writes the same bytes.
_MADE: Final = (2026, 1, 1, 0, 0, 0)


def write_superset(lake: Lake, out_dir: str, *, title: str | None = None, progress: Callable[[str], None]) -> str:
    """Write ``OUT_DIR/superset.zip`` and give its path: nothing of the lake's rows is in it, Superset asks for them."""
    path = Path(out_dir) / "superset.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    progress("superset: columns of the questions by day")
    path.write_bytes(export(columns(lake), title or "Kafka state replay: over time"))
    return str(path)


def export(columns: Mapping[str, Mapping[str, str]], title: str) -> bytes:
    """The archive, of the columns of each question's answer and their types. JSON is YAML, which Superset reads."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in _files(columns, title):
            entry = zipfile.ZipInfo(f"{_NAME}/{name}.yaml", _MADE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            written.writestr(entry, json.dumps(content, indent=1))
    return archive.getvalue()


def _files(columns: Mapping[str, Mapping[str, str]], title: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "metadata", {"version": _VERSION, "type": "Dashboard", "timestamp": "2026-01-01T00:00:00+00:00"}
    yield f"databases/{_NAME}", _database()
    for question, of_question in columns.items():
        yield f"datasets/{_NAME}/{question}", _dataset(question, of_question)
    charts = [_over_time(chart) for chart in CHARTS] + [_worst(columns[WORST_QUESTION])]
    for number, chart in enumerate(charts):
        yield f"charts/{number:02d}", chart
    yield f"dashboards/{_NAME}", _dashboard(charts, list(columns), title)


def _id(*of: str) -> str:
    return str(uuid5(_NAMESPACE, "/".join(of)))


def _database() -> dict[str, Any]:
    return {
        "database_name": "Kafka state replay",
        "sqlalchemy_uri": URI,
        "cache_timeout": None,
        "expose_in_sqllab": True,
        "allow_run_async": False,
        "allow_ctas": False,
        "allow_cvas": False,
        "allow_dml": False,
        "allow_file_upload": False,
        "extra": {"allows_virtual_table_explore": True},
        "uuid": _id("database"),
        "version": _VERSION,
    }


def _dataset(question: str, of_question: Mapping[str, str]) -> dict[str, Any]:
    schema, _, view = question_view(question).partition(".")
    return {
        "table_name": view,
        "main_dttm_col": "day" if "day" in of_question else None,
        "description": f"{questions()[question].title} {questions()[question].read}",
        "schema": schema,
        "sql": None,
        "params": None,
        "template_params": None,
        "filter_select_enabled": True,
        "extra": None,
        "uuid": _id("dataset", question),
        "metrics": [],
        "columns": [
            {
                "column_name": name,
                "is_dttm": type_ in ("date", "timestamp"),
                "is_active": True,
                "type": type_.upper(),
                "groupby": True,
                "filterable": True,
                "expression": "",
            }
            for name, type_ in of_question.items()
        ],
        "version": _VERSION,
        "database_uuid": _id("database"),
    }


def _over_time(chart: Chart) -> dict[str, Any]:
    where = {"clause": "WHERE", "expressionType": "SQL", "sqlExpression": chart.where}
    metric = {
        "expressionType": "SIMPLE",
        "column": {"column_name": chart.value},
        "aggregate": "SUM" if chart.adds_up else "MAX",
        "label": chart.value,
    }
    return _chart(
        chart.title,
        chart.question,
        "echarts_timeseries_bar" if chart.adds_up else "echarts_timeseries_line",
        x_axis="day",
        time_grain_sqla=None,
        metrics=[metric],
        groupby=[chart.series] if chart.series else [],
        adhoc_filters=[where],
        row_limit=10_000,
        **({"stack": "Stack"} if chart.adds_up else {}),
    )


def _worst(of_question: Mapping[str, str]) -> dict[str, Any]:
    return _chart(
        "Worst partitions",
        WORST_QUESTION,
        "table",
        query_mode="raw",
        all_columns=list(of_question),
        order_by_cols=[json.dumps(["without_leader_minutes", False])],
        adhoc_filters=[],
        row_limit=100,
    )


def _chart(title: str, question: str, viz_type: str, **params: Any) -> dict[str, Any]:
    return {
        "slice_name": title,
        "description": f"kafka-state-replay ask {question}",
        "viz_type": viz_type,
        "params": {"viz_type": viz_type, **params},
        "query_context": None,
        "cache_timeout": None,
        "uuid": _id("chart", title),
        "version": _VERSION,
        "dataset_uuid": _id("dataset", question),
    }


def _dashboard(charts: list[dict[str, Any]], asked: list[str], title: str) -> dict[str, Any]:
    """The charts two by two, with one filter by cluster."""
    rows = [charts[first : first + 2] for first in range(0, len(charts), 2)]
    position: dict[str, Any] = {
        "DASHBOARD_VERSION_KEY": "v2",
        "ROOT_ID": {"type": "ROOT", "id": "ROOT_ID", "children": ["GRID_ID"]},
        "GRID_ID": {
            "type": "GRID",
            "id": "GRID_ID",
            "children": [f"ROW-{number}" for number in range(len(rows))],
            "parents": ["ROOT_ID"],
        },
        "HEADER_ID": {"type": "HEADER", "id": "HEADER_ID", "meta": {"text": title}},
    }
    for number, row in enumerate(rows):
        row_id, above = f"ROW-{number}", ["ROOT_ID", "GRID_ID"]
        names = [f"CHART-{chart['uuid']}" for chart in row]
        background = {"background": "BACKGROUND_TRANSPARENT"}
        position[row_id] = {"type": "ROW", "id": row_id, "children": names, "parents": above, "meta": background}
        for name, chart in zip(names, row, strict=True):
            meta = {"uuid": chart["uuid"], "sliceName": chart["slice_name"], "width": 6, "height": 50}
            # Superset puts its own number of the chart in place of this one
            meta["chartId"] = charts.index(chart) + 1
            position[name] = {"type": "CHART", "id": name, "children": [], "parents": [*above, row_id], "meta": meta}
    by_cluster = {
        "id": "NATIVE_FILTER-cluster",
        "name": "Cluster",
        "type": "NATIVE_FILTER",
        "filterType": "filter_select",
        "targets": [{"column": {"name": "cluster_id"}, "datasetUuid": _id("dataset", asked[0])}],
        "controlValues": {"multiSelect": True, "enableEmptyFilter": False, "searchAllOptions": False},
        "defaultDataMask": {"filterState": {}, "extraFormData": {}},
        "cascadeParentIds": [],
        "scope": {"rootPath": ["ROOT_ID"], "excluded": []},
    }
    return {
        "dashboard_title": title,
        "description": None,
        "css": "",
        "slug": "kafka-state-replay",
        "uuid": _id("dashboard"),
        "position": position,
        "metadata": {"native_filter_configuration": [by_cluster], "cross_filters_enabled": True},
        "version": _VERSION,
    }
