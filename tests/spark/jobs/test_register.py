"""The lake by name in a catalog: in the session's own, and in a metastore that another program then reads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ingest.lake.delta import Lake
from ingest.lake.tables import TABLES
from ingest.lake.tables.gold import INCIDENT_EVENTS, INCIDENTS
from jobs.command.job import UsageError
from jobs.registering.job import Params, register, run
from tests import ROOT
from tests.support.budget import IS_HARD
from tests.support.lakes.story import Story

METASTORE = "spark.sql.catalogImplementation=hive"
READER = """
from jobs.session.session import build_session
spark = build_session()
print("RESULT", spark.table("kafka_gold.incidents").count(), spark.table("kafka_questions.incidents").count(),
    spark.catalog.getTable("kafka_gold.incidents").tableType, len(spark.catalog.listTables("kafka_questions")))
"""


def lake_of(spark, tables: Path, folder: Path, names=tuple(TABLES)) -> Lake:
    """A lake with these tables and one incident in it."""
    for name in names:
        shutil.copytree(tables / Path(*name.split(".")), folder / Path(*name.split(".")))
    lake = Lake(spark, str(folder))
    story = Story()
    story.add(INCIDENTS, incident_id="1", valid_from=5, valid_to=9, harm="none", summary="Broker 2 died.")
    story.write(lake)
    return lake


@pytest.fixture
def small(spark, empty_lake_dir, tmp_path):
    """A lake of two tables, and the session without the names that the test made."""
    names = (INCIDENTS.full_name, INCIDENT_EVENTS.full_name)
    yield lake_of(spark, empty_lake_dir, tmp_path / "it's a lake", names)
    for schema in ("bronze", "silver", "gold", "quality", "questions"):
        spark.sql(f"DROP SCHEMA IF EXISTS team_{schema} CASCADE")


def test_tables_and_views_are_named_where_they_lie_and_a_name_that_is_taken_stays(
    spark, small, empty_lake_dir, tmp_path
):
    done = register(spark, Params(small.root, prefix="team_"))
    assert done.summary == ("2 tables and 2 views named, as team_gold.incidents",)
    assert spark.table("team_questions.incidents").first().summary == "Broker 2 died."
    story = Story()
    story.add(INCIDENTS, incident_id="2", valid_from=15, valid_to=19, harm="none", summary="Broker 3 died.")
    story.write(small)
    assert spark.table("team_questions.incidents").count() == 2, "what is written later is read"
    assert register(spark, Params(small.root, prefix="team_")) == done, "it can be done again"
    other = lake_of(spark, empty_lake_dir, tmp_path / "other", (INCIDENTS.full_name,))
    refused = register(spark, Params(other.root, prefix="team_"))
    assert (refused.exit_code, len(refused.problems)) == (1, 1)
    assert "team_gold.incidents is another table already" in refused.problems[0]
    assert spark.table("team_gold.incidents").count() == 2
    without = register(spark, Params(other.root, prefix="team_other_", has_views=False))
    assert without.summary == ("1 tables and 0 views named, as team_other_gold.incidents",)
    for schema in ("bronze", "silver", "gold", "quality"):
        spark.sql(f"DROP SCHEMA team_other_{schema} CASCADE")
    assert other.read(INCIDENTS).count() == 1, "a dropped name leaves the lake"


def test_a_catalog_that_ends_with_the_session_is_refused(spark, small):
    with pytest.raises(UsageError, match="ends with it"):
        run(spark, Params(small.root))


if IS_HARD:

    def test_another_program_reads_what_was_registered_in_a_metastore(spark, empty_lake_dir, tmp_path):
        lake = lake_of(spark, empty_lake_dir, tmp_path / "lake")
        (tmp_path / "reader.py").write_text(READER, encoding="utf-8")
        environment = {
            **os.environ,
            **{"PYSPARK_PYTHON": sys.executable, "KAFKA_STATE_REPLAY_CACHE": str(ROOT / ".cache")},
        }

        def submitted(*program: str) -> str:
            submit = str(Path(sys.executable).parent / "spark-submit")
            command = [submit, "--master", "local[1]", "--driver-memory", "1g", "--conf", METASTORE, *program]
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            return done.stdout

        told = submitted(str(ROOT / "jobs" / "registering" / "job.py"), "--lake", lake.root, "--prefix", "kafka_")
        assert f"{len(TABLES)} tables and" in told
        assert (tmp_path / "metastore_db").is_dir()
        views = int(told.split(" tables and ")[1].split()[0])
        result = next(line for line in submitted(str(tmp_path / "reader.py")).splitlines() if "RESULT" in line)
        *counts, questions = result.split()[1:]
        assert counts == ["1", "1", "EXTERNAL"]
        assert 30 < int(questions) < views
