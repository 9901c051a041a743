"""Superset's own import of what `report --format superset` writes, and its charts asked of `serve`.

`make test-cluster` installs Superset beside, in `.cache/superset`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dashboards.trends.gather import CHARTS
from tests import ROOT

pytestmark = pytest.mark.cluster

_SUPERSET = ROOT / ".cache" / "superset"
_PROGRAM = [sys.executable, "-m", "jobs.cli"]
_CONFIG = "SECRET_KEY = 'of a test'\nPREVENT_UNSAFE_DB_CONNECTIONS = False\nSQLALCHEMY_DATABASE_URI = 'sqlite:///{}'\n"
#: Imports the archive given, moves its database to the port given, and prints what each chart is answered.
_IMPORT = """
import json, sys
from superset.app import create_app
app = create_app()
with app.app_context():
    from flask import g
    from flask_appbuilder import Model
    from superset.extensions import appbuilder, db, security_manager
    Model.metadata.create_all(db.engine)
    appbuilder.add_permissions(update_perms=True)
    security_manager.sync_role_definitions()
    g.user = security_manager.add_user("me", "me", "me", "me@example.org", security_manager.find_role("Admin"), "me")
    from superset.commands.dashboard.importers.dispatcher import ImportDashboardsCommand
    from superset.commands.importers.v1.utils import get_contents_from_bundle
    from zipfile import ZipFile
    with ZipFile(sys.argv[1]) as bundle:
        ImportDashboardsCommand(get_contents_from_bundle(bundle), overwrite=True).run()
    from superset.charts.schemas import ChartDataQueryContextSchema
    from superset.commands.chart.data.get_data_command import ChartDataCommand
    from superset.models.core import Database
    from superset.models.dashboard import Dashboard
    database = db.session.query(Database).one()
    database.set_sqlalchemy_uri(f"hive://me@127.0.0.1:{sys.argv[2]}/questions")
    db.session.commit()
    (shown,) = db.session.query(Dashboard).all()
    answers = {}
    for chart in shown.slices:
        params = json.loads(chart.params)
        over_time = "x_axis" in params
        query = {
            "columns": [params["x_axis"], *params["groupby"]] if over_time else params["all_columns"],
            "extras": {"where": params["adhoc_filters"][0]["sqlExpression"] if over_time else ""},
            "row_limit": params["row_limit"],
            **({"metrics": params["metrics"]} if over_time else {}),
        }
        source = {"id": chart.datasource_id, "type": "table"}
        context = ChartDataQueryContextSchema().load({"datasource": source, "queries": [query], "force": True})
        (answer,) = ChartDataCommand(context).run()["queries"]
        answers[chart.slice_name] = [answer["error"], answer["data"]]
    print(json.dumps({"title": shown.dashboard_title, "answers": answers}, default=str))
"""


def run_program(*arguments: str) -> str:
    command = [*_PROGRAM, *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_superset_imports_the_dashboard_and_its_charts_get_the_answers_of_the_questions(tmp_path: Path):
    lake, out = str(tmp_path / "lake"), tmp_path / "out"
    run_program("demo", "--lake", lake, "--out", str(out), "-q")
    run_program("report", "--lake", lake, "--out", str(out), "--format", "superset", "-q")
    (tmp_path / "superset_config.py").write_text(_CONFIG.format(tmp_path / "superset.db"), encoding="utf-8")
    environment = {**os.environ, "SUPERSET_CONFIG_PATH": str(tmp_path / "superset_config.py"), "PYTHONPATH": ""}
    serve = [*_PROGRAM, "serve", "--lake", lake, "--port", "0", "-q"]
    with subprocess.Popen(serve, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = server.stdout.readline().split("127.0.0.1:")[1].split(",")[0]
            command = [str(_SUPERSET / "bin" / "python"), "-c", _IMPORT, str(out / "superset.zip"), port]
            done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        finally:
            server.terminate()
    assert done.returncode == 0, done.stderr[-5000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["title"] == "Kafka state replay: over time"
    assert {title for title, _ in found["answers"].items()} == {*(chart.title for chart in CHARTS), "Worst partitions"}
    assert {error for error, _ in found["answers"].values()} == {None}
    of_chart = {title: rows for title, (_, rows) in found["answers"].items()}
    assert sum(row["unclean_elections"] for row in of_chart["Unclean elections"]) == 2
    asked = run_program("ask", "worst-partitions", "--lake", lake, "--format", "json", "-q")
    same = ("topic", "partition_id", "without_leader_minutes", "elections")
    worst = [[row[name] for name in same] for row in of_chart["Worst partitions"]]
    assert sorted(worst) == sorted([row[name] for name in same] for row in json.loads(asked))
