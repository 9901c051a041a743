"""Airflow's own reading of the example: `make test-cluster` installs it beside, in `.cache/airflow`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests import ROOT

pytestmark = pytest.mark.cluster

_AIRFLOW = ROOT / ".cache" / "airflow"
_READ = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1])
tasks = {dag.dag_id: [[task.task_id, task.application_args] for task in dag.tasks] for dag in bag.dags.values()}
print(json.dumps({"errors": bag.import_errors, "tasks": tasks}))
"""


def test_airflow_reads_the_dags(tmp_path: Path):
    environment = {**os.environ, "AIRFLOW_HOME": str(tmp_path), "PYTHONPATH": ""}
    command = [str(_AIRFLOW / "bin" / "python"), "-c", _READ, str(ROOT / "examples" / "airflow")]
    read = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    found = json.loads(read.stdout.splitlines()[-1])
    assert found["errors"] == {}
    tasks = found["tasks"]
    assert {dag: [name for name, _ in named] for dag, named in tasks.items()} == {
        "kafka_state_replay": ["run"],
        "kafka_state_replay_upkeep": ["maintain"],
    }
    assert "--wait" in tasks["kafka_state_replay"][0][1]
