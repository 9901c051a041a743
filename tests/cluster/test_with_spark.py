"""Live captures through the program itself: ingested, reconstructed, and the command line from boot to report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from jobs.lab.machines.releases import BY_NAME, NEWEST
from jobs.lab.play import Played, play
from jobs.lab.scenarios.catalogue import SCENARIOS
from tests import ROOT
from tests.cluster.conftest import require_jars
from tests.cluster.live_lake import LiveLake, reconstruct_live
from tests.cluster.processes import processes_of
from tests.cluster.test_scenarios import is_good
from tests.spark.reconstruct.test_capture_scores import SUBJECTS
from tests.support.captures.lake import rows_by_cluster
from tests.support.truth.alignment import Score
from tests.support.truth.score import table

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

PLAYED: Final = (
    ("unclean-election", "3.9.1"),
    ("zombie", "1.1.1"),
    ("reassignment", "2.8.2"),
    ("deletion-dead-broker", "0.8.2.2"),
)


@pytest.fixture(scope="module")
def reconstructed(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> LiveLake[tuple[str, str]]:
    folder = tmp_path_factory.mktemp("live")
    played: dict[tuple[str, str], Played] = {}
    for name, version in PLAYED:
        require_jars(BY_NAME[version])
        played[name, version] = play(SCENARIOS[name], BY_NAME[version], folder / f"{name}-{version}", say=print)
    assert processes_of(folder) == {}
    return reconstruct_live(spark, folder, played)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_tables_hold_what_zookeeper_logged(subject: str, reconstructed: LiveLake[tuple[str, str]]) -> None:
    from ingest.lake.tables import TABLES

    chosen = SUBJECTS[subject]
    rows = rows_by_cluster(reconstructed.lake.read(TABLES[f"silver.{chosen.table}"]), *chosen.columns)
    scores: dict[str, Score] = {
        "-".join(key): chosen.score(truth, rows.get(reconstructed.clusters[key], []))
        for key, truth in reconstructed.truths.items()
    }
    print(f"{subject}\n{table(scores)}")
    assert [f"{name}\n{score.diff()}" for name, score in scores.items() if not is_good(score, one_more=False)] == []


def test_only_what_a_scenario_did_is_an_error(reconstructed: LiveLake[tuple[str, str]]) -> None:
    from ingest.lake.tables import TABLES

    found = reconstructed.lake.read(TABLES["gold.divergences"]).where("severity = 'error'").collect()
    names = {cluster: key for key, cluster in reconstructed.clusters.items()}
    wrong = [
        f"{names[row['cluster_id']]} {row['rule_id']} {row['divergence_type']}: {row['explanation']}"
        for row in found
        if row["rule_id"] not in SCENARIOS[names[row["cluster_id"]][0]].explains
    ]
    assert wrong == []


def test_the_probes_of_a_capture_are_bounds_that_meet(reconstructed: LiveLake[tuple[str, str]]) -> None:
    """Probes are a source like any other: the timeline of offsets may contradict none of them."""
    from ingest.lake.tables import TABLES

    probes = reconstructed.lake.read(TABLES["bronze.offset_probes"])
    assert probes.count() > 400
    offsets = reconstructed.lake.read(TABLES["silver.replica_offset_timeline"])
    crossed = offsets.where(
        "high_watermark_lower > high_watermark_upper OR log_end_offset_lower > log_end_offset_upper"
    )
    assert crossed.collect() == []


def test_the_lab_goes_from_nothing_to_a_report(tmp_path: Path) -> None:
    require_jars(NEWEST)
    environment = {**os.environ, "KAFKA_STATE_REPLAY_DRIVER_MEMORY": "2g"}
    environment.pop("KAFKA_STATE_REPLAY_LAKE", None)
    command = [sys.executable, "-m", "jobs.cli", "lab", "kill", "--out", "played", "--no-open", "--master", "local[2]"]
    finished = subprocess.run(
        command, cwd=tmp_path, env=environment | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    report = tmp_path / "played" / "report" / "index.html"
    assert str(report) in finished.stdout
    assert report.stat().st_size > 10_000
    events = (tmp_path / "played" / "kill-3.9.1" / "events.jsonl").read_text().splitlines()
    assert "SIGKILL" in {json.loads(event).get("signal") for event in events}
    assert not (tmp_path / "played" / "cluster").exists()
    assert processes_of(tmp_path) == {}
