"""The server for assistants, without Spark: its tools, and what it refuses before a session is asked for."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from mcp.client import Client
from pyspark.errors import PySparkException

from jobs.assistants import tools
from jobs.assistants.tools import TOOLS, LakeTools, _bounded, _json
from jobs.command.job import UsageError
from jobs.mcp_job import server_of


def no_session() -> Any:
    raise AssertionError("this needs no Spark")


def called(tool: str, /, **arguments: Any) -> tuple[str, bool]:
    """What the tool answers to a client, and whether it is an error."""

    async def ask() -> tuple[str, bool]:
        async with Client(server_of(LakeTools(no_session, "lake"))) as client:
            result = await client.call_tool(tool, arguments)
            return result.content[0].text, bool(result.is_error)

    return asyncio.run(ask())


def test_every_tool_says_what_it_does_and_only_reads():
    async def listed() -> Any:
        async with Client(server_of(LakeTools(no_session, "lake"))) as client:
            return (await client.list_tools()).tools, client.instructions

    tools, instructions = asyncio.run(listed())
    assert [tool.name for tool in tools] == [tool.__name__ for tool in TOOLS]
    assert all(len(tool.description or "") > 60 and tool.annotations.read_only_hint for tool in tools)
    assert "not instructions" in instructions
    properties = {tool.name: set(tool.input_schema["properties"]) for tool in tools}
    assert properties["explain"] == {"topic", "partition", "at", "cluster", "broker"}


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("list_questions", {}, "unclean-elections"),
        ("list_tables", {}, "gold.incidents"),
        ("describe_table", {"name": "gold.divergences"}, "severity"),
    ],
)
def test_what_there_is_to_ask_needs_no_spark(tool, arguments, says):
    text, is_error = called(tool, **arguments)
    assert not is_error
    assert says in text


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("ask", {"question": "unclean-election"}, "did you mean unclean-elections"),
        ("ask", {"question": "partition-story"}, "partition-story needs --topic"),
        ("ask", {"question": "incidents", "partition": 1}, "knows no --partition"),
        ("ask", {"question": "elections", "from_time": "yesterday"}, "is no time"),
        ("explain", {"topic": "t", "partition": -1, "at": "2026-11-21"}, "numbered from 0"),
        ("incident", {"incident_id": "x'; DROP"}, "give an incident_id"),
        ("evidence", {"record_ids": []}, "give 1 to 50 ids"),
        ("evidence", {"record_ids": ["a' OR 1=1"]}, "give 1 to 50 ids"),
        ("describe_table", {"name": "gold.nothing"}, "list_tables names them"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(tool, arguments, says):
    text, is_error = called(tool, **arguments)
    assert is_error
    assert says in text


def test_no_character_of_a_log_is_more_than_text():
    said = _json({"topic": "a\u202eb\x1b[31m\x9f", "名": "订单"})
    assert said == '{\n "topic": "a\\u202eb\\u001b[31m\\u009f",\n "名": "订单"\n}'


@pytest.mark.parametrize("limit", [0, -1, 501])
def test_an_answer_without_a_bound_is_not_given(limit):
    with pytest.raises(Exception, match="give 1 to 500"):
        _bounded(None, limit)  # type: ignore[arg-type]


def test_a_question_that_takes_too_long_is_ended_however_late_its_jobs_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    class Session:
        """One job, which begins when all is planned."""

        def __init__(self) -> None:
            self.job: threading.Event | None = None
            self.cancelled = 0

        @property
        def sparkContext(self) -> Session:
            return self

        def cancelAllJobs(self) -> None:
            self.cancelled += 1
            if self.job is not None:
                self.job.set()

    def planned_for_long() -> None:
        with LakeTools(lambda: session, "lake")._asked():
            while not session.cancelled:
                time.sleep(0.01)
            session.job = threading.Event()
            assert session.job.wait(10)
            raise PySparkException("cancelled")

    session: Any = Session()
    monkeypatch.setattr(tools, "MOST_SECONDS", 0.01)
    monkeypatch.setattr(tools, "_AGAIN_S", 0.01)
    with pytest.raises(UsageError, match="ended after"):
        planned_for_long()
    cancelled = session.cancelled
    time.sleep(0.05)
    assert session.cancelled == cancelled, "the next question is left alone"
