"""The dashboards for Grafana and Superset: what they hold is known to the tools' own models, and nothing is made up."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import date
from types import SimpleNamespace

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from ruamel.yaml import YAML

from dashboards.questions.question import questions
from dashboards.trends.drawing import Point, draw
from dashboards.trends.gather import CHARTS, WORST_QUESTION, ClusterTrends
from dashboards.trends.grafana import dashboard, write_grafana
from dashboards.trends.superset import export
from dashboards.words import visible
from tests.support.lakes.incident import HOSTILE

FIRST, LAST = date(2026, 11, 21), date(2026, 11, 22)
WORST = {
    **{"topic": "ledger", "partition_id": 0, "without_leader_minutes": 1.5, "under_min_isr_minutes": 0.0},
    **{"under_replicated_minutes": 2.0, "elections": 3, "unclean_elections": 1},
}
COLUMNS = {
    name: {"cluster_id": "string", "day": "date", "minutes": "double"}
    for name in {*(chart.question for chart in CHARTS), WORST_QUESTION}
}


def cluster(name="prod", series="ledger", topic="ledger"):
    points = tuple((Point(FIRST, series, 2.0), Point(LAST, series, 1.0)) for _ in CHARTS)
    drawings = tuple(draw(chart, of, FIRST, LAST) for chart, of in zip(CHARTS, points, strict=True))
    return ClusterTrends(name, drawings, (WORST | {"topic": topic},), FIRST, LAST, points)


def missing(written, known, place="$"):
    """What was written and the tool's model does not know."""
    if isinstance(written, dict):
        for name, value in written.items():
            if not isinstance(known, dict) or name not in known:
                yield f"{place}.{name}"
            else:
                yield from missing(value, known[name], f"{place}.{name}")
    elif isinstance(written, list):
        for number, (one, other) in enumerate(zip(written, known, strict=True)):
            yield from missing(one, other, f"{place}[{number}]")
    elif written != known:
        yield place


def test_grafana_s_own_model_knows_every_field_of_a_dashboard():
    register_default_plugins()  # panels' options and styles are judged, too
    made = dashboard(cluster())
    known = json.loads(JSONEncoder().encode(Dashboard.from_json(json.loads(json.dumps(made)))))
    assert list(missing(made, known)) == []
    made["panels"][0]["fieldConfig"]["defaults"]["custom"]["unknown"] = 1
    assert list(missing(made, known)) == ["$.panels[0].fieldConfig.defaults.custom.unknown"]


@pytest.mark.parametrize("text", ["ledger", *HOSTILE])
def test_each_panel_reads_the_file_that_lies_beside_it(monkeypatch, tmp_path, text):
    monkeypatch.setattr("dashboards.trends.grafana.gather", lambda *_: (cluster(text, text, text),))
    folder = write_grafana(None, str(tmp_path), progress=lambda _: None)
    (made,) = (tmp_path / "grafana").glob("*.json")
    assert folder == str(tmp_path / "grafana")
    panels = json.loads(made.read_text())["panels"]
    assert [panel["title"] for panel in panels] == [*(chart.title for chart in CHARTS), "Worst partitions"]
    for panel in panels:
        (target,) = panel["targets"]
        rows = json.loads((tmp_path / "grafana" / target["url"].removeprefix("${url}/")).read_text())
        assert [list(row) for row in rows] == [[column["selector"] for column in target["columns"]]] * len(rows)
        assert rows
    for written in (tmp_path / "grafana").rglob("*.json"):
        plain = json.dumps(json.loads(written.read_text()), ensure_ascii=False)
        assert visible(plain) == plain, "nothing that a screen would obey"
    assert sum(row["value"] for row in json.loads(next(tmp_path.rglob("unclean-elections.json")).read_text())) == 3


def files():
    with zipfile.ZipFile(io.BytesIO(export(COLUMNS, "over time"))) as archive:
        return {name.split("/", 1)[1]: YAML(typ="safe").load(archive.read(name)) for name in archive.namelist()}


def test_superset_s_charts_ask_the_views_of_the_questions_that_the_page_draws():
    found = files()
    datasets = {one["uuid"]: one for name, one in found.items() if name.startswith("datasets/")}
    charts = [one for name, one in found.items() if name.startswith("charts/")]
    asked = [(datasets[one["dataset_uuid"]]["schema"], datasets[one["dataset_uuid"]]["table_name"]) for one in charts]
    names = [*(chart.question for chart in CHARTS), WORST_QUESTION]
    assert asked == [("questions", name.replace("-", "_")) for name in names]
    assert {name.replace("_", "-") for _, name in asked} <= set(questions())
    (database,) = (one for name, one in found.items() if name.startswith("databases/"))
    assert {one["database_uuid"] for one in datasets.values()} == {database["uuid"]}
    (shown,) = (one for name, one in found.items() if name.startswith("dashboards/"))
    placed = [one["meta"]["uuid"] for name, one in shown["position"].items() if name.startswith("CHART-")]
    assert placed == [one["uuid"] for one in charts]
    for chart, drawn in zip(charts, CHARTS, strict=False):
        params = SimpleNamespace(**chart["params"])
        assert (params.x_axis, params.metrics[0]["column"]["column_name"]) == ("day", drawn.value)
        assert params.adhoc_filters[0]["sqlExpression"] == drawn.where


def test_the_same_program_writes_the_same_archive():
    assert export(COLUMNS, "over time") == export(COLUMNS, "over time")
