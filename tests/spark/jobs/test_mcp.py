"""The server for assistants over a lake: by the SDK's own client, in this process and as a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from jobs.assistants import tools
from jobs.mcp_job import server_of
from jobs.sql.read_only import reading_only
from tests import ROOT
from tests.support.lakes.offsets import OffsetLake


@pytest.fixture
def call(offset_lake: OffsetLake):
    """Calls a tool of a server over that lake: its text, and whether it is an error."""

    def called(tool: str, /, **arguments: Any) -> tuple[str, bool]:
        if "cluster" in arguments:
            arguments["cluster"] = offset_lake.ids[arguments["cluster"]]

        async def ask() -> tuple[str, bool]:
            server = server_of(tools.LakeTools(lambda: offset_lake.lake.spark, offset_lake.lake.root))
            async with Client(server) as client:
                result = await client.call_tool(tool, arguments)
                return result.content[0].text, bool(result.is_error)

        with reading_only(offset_lake.lake.spark):
            return asyncio.run(ask())

    return called


def test_from_the_worst_incident_to_the_lines_that_show_it(call):
    text, is_error = call("ask", question="incidents", cluster="unclean-0.8.2.2")
    assert not is_error
    answer = json.loads(text)
    worst = answer["rows"][0]
    assert (worst["harm"], worst["cause"]) == ("records_lost", "broker_died")
    assert "incident-events" in answer["ask_next"]
    text, is_error = call("incident", incident_id=worst["incident_id"][:12])
    assert not is_error
    assert worst["summary"] in text
    text, is_error = call("evidence", record_ids=[*worst["evidence"], "0" * 32])
    answer = json.loads(text)
    assert {record["record_id"] for record in answer["records"]} == set(worst["evidence"])
    assert all(record["source_file"] and record["text"] for record in answer["records"])
    assert answer["of_no_record"] == ["0" * 32]


def test_a_decision_is_explained(call):
    text, _ = call("ask", question="unclean-elections", cluster="unclean-0.8.2.2")
    election = json.loads(text)["rows"][0]
    where = {"topic": election["topic"], "partition": election["partition_id"], "at": election["elected_at"]}
    text, is_error = call("explain", cluster="unclean-0.8.2.2", **where)
    assert not is_error
    assert "unclean" in text
    text, is_error = call("explain", topic="no-such-topic", partition=0, at="2026-11-21")
    assert is_error
    assert "no-such-topic" in text


def test_answers_are_bounded_and_only_the_lake_is_read(call, monkeypatch):
    answer = json.loads(call("query", sql="SELECT id FROM range(100)", limit=3)[0])
    assert ([row["id"] for row in answer["rows"]], answer["is_cut"]) == ([0, 1, 2], True)
    monkeypatch.setattr(tools, "MOST_CHARACTERS", 100)
    answer = json.loads(call("query", sql="SELECT repeat('x', 60) AS x FROM range(9)", limit=9)[0])
    assert (len(answer["rows"]), answer["is_cut"]) == (1, True)
    answer = json.loads(call("query", sql="SELECT repeat('x', 200) AS x")[0])
    assert (answer["rows"], "too long" in answer["note"]) == ([], True)
    for statement in ("DROP TABLE gold.incidents", "SELECT * FROM csv.`/etc/passwd`", "SELECT reflect('a', 'b')"):
        text, is_error = call("query", sql=statement)
        assert is_error
        assert "read-only" in text
    text, is_error = call("query", sql="SELECT nope FROM gold.incidents")
    assert is_error
    assert "`nope`" in text


def test_a_question_that_takes_too_long_is_ended_and_the_next_is_answered(call, monkeypatch):
    monkeypatch.setattr(tools, "MOST_SECONDS", 1)
    text, is_error = call("query", sql="SELECT count(*) FROM range(100000000) a JOIN range(100000) b ON a.id <> b.id")
    assert is_error
    assert "ended after 1 s" in text
    monkeypatch.setattr(tools, "MOST_SECONDS", 60)
    assert json.loads(call("query", sql="SELECT 1 AS one")[0])["rows"] == [{"one": 1}]


def test_as_the_process_that_a_client_starts(offset_lake: OffsetLake, tmp_path: Path):
    command = [sys.executable, "-m", "jobs.cli", "mcp", "--lake", offset_lake.lake.root, "--master", "local[1]"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    async def ask() -> Any:
        server = StdioServerParameters(command=command[0], args=command[1:], env=environment, cwd=tmp_path)
        async with Client(server) as client:
            result = await client.call_tool("query", {"sql": "SELECT count(*) AS n FROM gold.incidents"})
            return json.loads(result.content[0].text)

    incidents = offset_lake.lake.spark.sql("SELECT count(*) FROM gold.incidents").collect()[0][0]
    assert asyncio.run(ask())["rows"] == [{"n": incidents}]
