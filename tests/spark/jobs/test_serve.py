"""``serve`` as users start it, asked by Hive's own JDBC driver: what it lists, answers, and does not do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from dashboards.views import QUESTION_VIEWS
from ingest.lake.delta import Lake
from ingest.lake.tables import TABLES
from jobs.serving.service import KNOWN_SCHEMAS
from jobs.sql.names import LakeNames
from tests import ROOT
from tests.support.lakes.incident import write_incident
from tests.support.statements import REFUSED

USER, PASSWORD = "alice", "öffne: dich"
LEADERS = """SELECT topic, partition_id, leader, to_json(isr) AS isr, CAST(valid_from AS STRING) AS valid_from
    FROM silver.leader_and_isr_timeline ORDER BY ALL"""
FUNCTION = "SELECT topic, partition_id, leader FROM leader_at(TIMESTAMP '2027-01-01') ORDER BY ALL"
QUESTION = "SELECT severity, rule_id, topic, partition_id, explanation FROM questions.findings ORDER BY ALL"


@dataclass
class Served:
    """A running server: its process, the folder that it runs in, its URL, and the lake that it serves."""

    process: subprocess.Popen[str]
    folder: Path
    url: str
    lake: Lake


@dataclass
class Client:
    """One JDBC connection, in the JVM of the tests."""

    connection: Any

    def ask(self, statement: str) -> list[list[str | None]]:
        """The rows, each value as text."""
        made = self.connection.createStatement()
        try:
            return rows_of(made.getResultSet()) if made.execute(statement) else []
        finally:
            made.close()

    def error(self, statement: str) -> str:
        with pytest.raises(Py4JJavaError) as raised:
            self.ask(statement)
        return str(raised.value.java_exception.getMessage())


def commits(lake: Lake) -> set[str]:
    """Each commit to each table of a lake."""
    return {str(path) for path in Path(lake.root).rglob("_delta_log/*.json")}


def rows_of(results: Any) -> list[list[str | None]]:
    width, rows = results.getMetaData().getColumnCount(), []
    while results.next():
        rows.append([results.getString(column + 1) for column in range(width)])
    return rows


@pytest.fixture(scope="module")
def served(spark: Any, empty_lake_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root, folder = tmp_path_factory.mktemp("served") / "lake", tmp_path_factory.mktemp("server")
    shutil.copytree(empty_lake_dir, root)
    lake = Lake(spark, str(root))
    write_incident(lake)
    passwords = root.parent / "passwords"
    passwords.write_text(f"{USER}:{PASSWORD}\n", encoding="utf-8")
    passwords.chmod(0o600)
    command = ["-m", "jobs.cli", "serve", "--lake", str(root), "--port", "0", "--password-file", str(passwords)]
    process = subprocess.Popen(
        [sys.executable, *command, "--master", "local[1]"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        notice = process.stdout.readline()
        found = re.search(r"jdbc:hive2://127\.0\.0\.1:\d+", notice)
        assert found, process.communicate(timeout=60)[1]
        yield Served(process, folder, found.group(), lake)
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def connect(served: Served, spark: Any) -> Any:
    def connected(database: str = "default", password: str = PASSWORD) -> Client:
        properties = spark._jvm.java.util.Properties()
        properties.setProperty("user", USER)
        properties.setProperty("password", password)
        driver = spark._jvm.org.apache.hive.jdbc.HiveDriver()
        return Client(driver.connect(f"{served.url}/{database}", properties))

    return connected


@pytest.fixture(scope="module")
def client(connect: Any) -> Client:
    return connect("gold?spark.sql.runSQLOnFiles=true;spark.sql.session.timeZone=Asia/Tokyo#a=b")


def test_numbers_are_those_of_sql(served, client, spark):
    LakeNames(spark, served.lake.root).name((LEADERS, QUESTION, FUNCTION))
    for statement in (LEADERS, QUESTION, FUNCTION):
        rows = spark.sql(statement).collect()
        assert len(rows) > 0
        assert client.ask(statement) == [[None if value is None else str(value) for value in row] for row in rows]


def test_tools_find_tables_columns_and_keys(client):
    about = client.connection.getMetaData()
    assert {row[0] for row in rows_of(about.getSchemas())} >= {"bronze", "silver", "gold", "quality", "questions"}
    tables = {(row[1], row[2]): row[3] for row in rows_of(about.getTables(None, "%", "%", None))}
    assert tables["gold", "divergences"] == "TABLE"
    assert {f"questions.{name}" for schema, name in tables if schema == "questions"} == set(QUESTION_VIEWS)
    assert set(TABLES) <= {f"{schema}.{name}" for schema, name in tables}
    spec = TABLES["gold.divergences"]
    columns = rows_of(about.getColumns(None, "gold", "divergences", None))
    assert [(row[3], row[11]) for row in columns] == [(column.name, column.comment) for column in spec.columns]
    assert sorted(client.ask("SHOW VIEWS IN `gold`")) == [["metadata_lag"], ["preferred_share"]]
    assert {f"gold.{name}" for (name,) in client.ask("SHOW TABLES IN `gold`")} == {
        name for name in TABLES if name.startswith("gold.")
    }
    keys = rows_of(about.getPrimaryKeys(None, "gold", "divergences"))
    assert tuple(row[3] for row in keys) == spec.key
    assert rows_of(about.getImportedKeys(None, "gold", "divergences")) == []


def test_what_does_more_than_read_is_refused_and_does_nothing(served, client):
    before = commits(served.lake)
    told = {statement: client.error(statement) for statement in REFUSED if statement != "USE gold"}
    by_spark = {statement for statement, error in told.items() if "read-only" not in error}
    assert by_spark == {"SELECT test_of_a_function_of_the_session(1)"}  # there is none in the server
    assert all("\n" not in error and len(error) < 400 for error in told.values())
    assert list(served.folder.iterdir()) == []
    assert commits(served.lake) == before
    assert {row[0] for row in client.ask("SHOW SCHEMAS")} == KNOWN_SCHEMAS
    assert {row[1] for row in client.ask("SHOW TABLES IN gold")} >= {"divergences"}
    assert client.ask("SHOW TABLES IN default") == []


def test_settings_of_a_url_change_nothing(client):
    assert client.ask("SELECT current_timezone(), current_database()") == [["UTC", "gold"]]
    assert client.ask("SELECT '${env:HOME}'") == [["${env:HOME}"]]


def test_a_client_goes_to_a_schema_for_itself_alone(client, connect):
    other = connect("default")
    client.ask("USE silver")
    assert ["silver", "leader_and_isr_timeline", "false"] in client.ask("SHOW TABLES")
    assert other.ask("SHOW TABLES") == []
    other.connection.close()


def test_errors_are_a_sentence(client):
    assert "`nope`" in client.error("SELECT nope FROM gold.divergences")
    assert "\n" not in client.error("SELECT nope FROM gold.divergences")
    assert "PARSE_SYNTAX_ERROR" in client.error("SELECT (")


def test_newer_rows_are_seen(served, client):
    spec = TABLES["gold.divergences"]
    count = "SELECT count(*) FROM gold.divergences"
    ((before,),) = client.ask(count)
    served.lake.append(served.lake.read(spec), spec)
    assert client.ask(count) == [[str(2 * int(before))]]


def test_who_has_no_password_is_not_let_in(connect):
    for wrong in ("", "x"):
        with pytest.raises(Py4JJavaError, match=r"Authentication failed|Error validating"):
            connect(password=wrong)


def test_sigterm_ends_it_though_a_client_is_there(served, client):
    served.process.terminate()
    assert served.process.wait(timeout=20) == 0
