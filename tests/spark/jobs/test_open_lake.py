"""The lake in Python: what a notebook asks, and the example notebook itself."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ingest.lake.delta import Lake
from ingest.lake.tables.gold import DIVERGENCES
from ingest.lake.tables.silver import BROKER_LIVENESS_TIMELINE
from kafka_state_replay import OpenLake, UsageError, open_lake
from tests import ROOT
from tests.support.lakes.offsets import OffsetLake
from tests.support.lakes.rows import at
from tests.support.lakes.story import Story


@pytest.fixture
def lake(offset_lake: OffsetLake) -> OpenLake:
    return open_lake(offset_lake.lake.root, offset_lake.lake.spark)


def test_tables_questions_and_statements_are_dataframes(lake, offset_lake):
    cluster = offset_lake.ids["unclean-0.8.2.2"]
    assert {"gold.incidents", "silver.replica_lag", "questions.elections"} <= set(lake.tables())
    elections = lake.ask("elections", cluster=cluster, from_="2026-11-21")
    counted = lake.sql("SELECT count(*) AS n FROM gold.leader_elections WHERE cluster_id = :cluster", cluster=cluster)
    assert elections.count() == counted.collect()[0].n > 0
    assert lake.table("questions.elections").where(f"cluster_id = '{cluster}'").count() == elections.count()
    assert "leader_epoch" in lake.describe("silver.leader_and_isr_timeline")
    assert lake.questions()["incidents"].endswith("?")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda lake: lake.table("gold.nothing"), "there is no table or view"),
        (lambda lake: lake.ask("election"), "did you mean elections"),
        (lambda lake: lake.ask("partition-story"), "needs --topic"),
        (lambda lake: lake.explain("ledger", 0, "noon"), "is no time"),
        (lambda lake: lake.explain("no-such", 0, "2026-11-21"), "no-such"),
        (lambda lake: lake.incident("zz"), "give an incident_id"),
    ],
)
def test_what_there_is_not_is_a_sentence(lake, call, says):
    with pytest.raises(UsageError, match=says):
        call(lake)


def test_an_eligible_leader_replica_would_lead_where_the_isr_is_gone(tmp_path, empty_lake_dir, spark):
    """KIP-966: 3 is out of the ISR, holds all committed records and lives; of the other partition 2, which is away."""
    story = Story("c")
    for broker, until in ((1, None), (2, 50), (3, None)):
        story.add(BROKER_LIVENESS_TIMELINE, broker_id=broker, valid_from=0, valid_to=until)
    for number, elr in enumerate(([3], [2], None)):
        story.assigned("t", number, [1, 2, 3])
        story.led("t", number, (10, 1, 0, [1], {"elr": elr}))
    lake = Lake(spark, str(shutil.copytree(empty_lake_dir, tmp_path / "lake")))
    story.write(lake)
    answer = open_lake(lake.root, spark).ask("would-restart", broker=1, at=at(60).isoformat())
    told = [(row.partition_id, row.effect) for row in answer.orderBy("partition_id").collect()]
    assert told == [(0, "new_leader"), (1, "offline"), (2, "offline")]


def test_a_path_may_be_relative_to_where_the_process_is(offset_lake, monkeypatch):
    root = Path(offset_lake.lake.root)
    monkeypatch.chdir(root.parent)
    opened = open_lake(root.name, offset_lake.lake.spark)
    assert opened.path == str(root)
    assert opened.table("gold.divergences").count() == offset_lake.lake.read(DIVERGENCES).count() > 0
    assert opened.ask("incidents").collect() == open_lake(str(root), offset_lake.lake.spark).ask("incidents").collect()


def test_no_lake_is_a_sentence(offset_lake, tmp_path):
    with pytest.raises(UsageError, match="holds no table of a lake"):
        open_lake(str(tmp_path), offset_lake.lake.spark)


def test_the_example_notebook_runs_from_its_first_cell_to_its_last(offset_lake, monkeypatch, capsys):
    monkeypatch.setenv("LAKE", offset_lake.lake.root)
    notebook = json.loads((ROOT / "examples" / "notebook" / "incident.ipynb").read_text("utf-8"))
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    assert names["lake"].spark is offset_lake.lake.spark  # the session of this process
    assert (names["incidents"].harm == "records_lost").any()
    out = capsys.readouterr().out
    assert "incident " in out
    assert len(names["unclean"]) > 0
