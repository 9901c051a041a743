"""Markup, formulas and terminal codes in every name and line of a lake are text in whatever a command prints or writes.

What a browser makes of the report is in ``tests/spark/dashboards/test_report.py``, of Data Docs in
``tests/unit/checks/test_gate.py``.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from ingest.lake.delta import Lake
from jobs import cli
from jobs.assistants.tools import LakeTools
from jobs.mcp_job import server_of
from jobs.sql.output import no_formula
from jobs.sql.read_only import reading_only
from tests.support.budget import IS_HARD
from tests.support.lakes import incident

HOSTILE = incident.HOSTILE
#: By number those whose partition and incident are explained: markup, terminal codes and formulas, or all.
EXPLAINED = {number: text for number, text in enumerate(HOSTILE) if IS_HARD or number in (0, 3, 5)}
#: A name that a user, or a script that passes one on, may give.
_NAME = "\x1b[31m\u202e</script>|=1+1"
_QUESTIONS = ("offline-partitions", "elections", "incidents", "incident-events", "findings")
_BY_ID = "SELECT message, source_file, logger FROM bronze.log_records WHERE record_id LIKE 'h%' ORDER BY record_id"


@pytest.fixture(scope="module")
def lake(spark: Any, empty_lake_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    folder = tmp_path_factory.mktemp("planted") / "lake"
    shutil.copytree(empty_lake_dir, folder)
    planted = Lake(spark, str(folder))
    incident.write_hostile(planted)
    return planted


@pytest.fixture
def ask(lake: Lake, capsys: pytest.CaptureFixture[str]):
    """Run a command on the lake: (exit code, standard output, standard error)."""

    def run(*argv: str) -> tuple[int, str, str]:
        code = cli.main([*argv, "--lake", lake.root])
        return code, *capsys.readouterr()

    return run


def is_shown(text: str) -> bool:
    """Whether a terminal shows the text and obeys nothing in it."""
    return all(each.isprintable() or each in "\n\t" for each in text)


class Tags(HTMLParser):
    """The elements of a page, or of Markdown, which HTML inside of it makes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [f"{name}={value}" for name, value in attrs]


def is_text_in_markdown(text: str, columns: int | None = None) -> bool:
    """Whether Markdown makes no element, link or further cell of what was planted."""
    plain = re.sub(r"\\.", "", text)
    cells = {line.count("|") for line in plain.splitlines() if line.startswith("|")}
    return Tags(text).tags == [] and "](" not in plain and (columns is None or cells == {columns + 1})


def test_sql_in_every_format(ask):
    code, out, err = ask("sql", _BY_ID)
    assert (code, is_shown(out), is_shown(err)) == (0, True, True)
    assert len(out.splitlines()) == len(HOSTILE) + 2
    _, out, _ = ask("sql", "-q", _BY_ID, "--format", "csv")
    assert [row[0] for row in list(csv.reader(io.StringIO(out, newline="")))[1:]] == [no_formula(t) for t in HOSTILE]
    _, out, _ = ask("sql", "-q", _BY_ID, "--format", "json")
    assert [row["message"] for row in json.loads(out)] == list(HOSTILE)
    assert is_shown(out)
    _, out, _ = ask("sql", "-q", _BY_ID, "--format", "markdown")
    assert is_shown(out)
    assert is_text_in_markdown(out, columns=3)


def test_csv_on_a_terminal_is_shown_and_not_obeyed(ask, monkeypatch):
    monkeypatch.setattr("sys.stdout", terminal := io.StringIO())
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    assert ask("sql", "-q", _BY_ID, "--format", "csv")[0] == 0
    assert is_shown(terminal.getvalue())
    assert "\\x1b[31mescape" in terminal.getvalue()


@pytest.mark.parametrize("question", _QUESTIONS)
def test_answers_of_saved_questions(ask, question):
    code, out, err = ask("ask", question)
    assert (code, is_shown(out), is_shown(err)) == (0, True, True)
    assert len(out.splitlines()) > len(HOSTILE)
    _, out, _ = ask("ask", question, "--format", "markdown", "-q")
    assert is_text_in_markdown(out)


def test_explanations_and_merged_lines(ask):
    for number, text in EXPLAINED.items():
        code, out, err = ask("explain", "--topic", text, "--partition", str(number), "--at", "2026-11-21T10:00")
        assert (code in (0, 1), is_shown(out), is_shown(err)) == (True, True, True), err
        code, out, err = ask("explain", "--incident", f"1d{number}{number}")
        assert (code, is_shown(out), is_shown(err)) == (0, True, True), err
        assert len(out.splitlines()) < 40
    code, out, err = ask("explain", "--topic", "other", "--partition", "0", "--at", "2026-11-21", "-q")
    assert (code, out, is_shown(err), err.count("\n")) == (1, "", True, 1)
    assert "\\x1b[31mescape" in err
    code, out, err = ask("merge")
    assert (code, is_shown(out), is_shown(err)) == (0, True, True)
    assert "\\x1b[31mescape" in out


@pytest.mark.parametrize("kind", ["html", "markdown", "trends", "grafana"])
def test_reports_and_what_the_terminal_says_of_them(ask, tmp_path, kind):
    code, out, err = ask("report", "--out", str(tmp_path), "--format", kind)
    assert (code, is_shown(out), is_shown(err)) == (0, True, True), err
    (page,) = tmp_path.iterdir()
    if kind == "grafana":
        for data in page.rglob("*.json"):
            assert is_shown(json.dumps(json.loads(data.read_text(encoding="utf-8")), ensure_ascii=False))
        return
    written = page.read_text(encoding="utf-8")
    if kind == "markdown":
        assert is_shown(written)
        assert is_text_in_markdown(written)
    else:
        made = Tags(written)
        assert made.tags.count("script") <= 2
        assert "img" not in made.tags
        assert not [one for one in made.attributes if re.match(r"on|(?:href|src|action)=\s*javascript:", one, re.I)]


@pytest.mark.parametrize(
    "argv",
    [
        ("sql", f"SELECT * FROM gold.`{_NAME}`"),
        ("sql", f"SELECT `{_NAME}` FROM gold.incidents"),
        ("ask", _NAME),
        ("ask", "elections", "--at", _NAME),
        ("ask", "elections", "--from", _NAME),
        ("explain", "--topic", _NAME, "--partition", "0", "--at", "2026-11-21"),
        ("explain", "--incident", _NAME),
        ("report", "--topic", _NAME, "--out", "report"),
        ("merge", "--start-time", _NAME),
        ("ingest", f"no-such-{_NAME}"),
        ("check", "--thresholds", f"no-such-{_NAME}"),
    ],
)
def test_errors_are_one_line_that_a_terminal_shows(ask, argv, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = ask(*argv, "-q")
    assert code in (1, 2)
    assert (is_shown(out), is_shown(err), err.count("\n")) == (True, True, 1), err


def test_answers_to_assistants(lake):
    async def told() -> list[tuple[str, bool]]:
        async with Client(server_of(LakeTools(lambda: lake.spark, lake.root))) as client:
            at = {"partition": 0, "at": "2026-11-21T10:00"}
            calls: list[tuple[str, dict[str, Any]]] = [
                ("query", {"sql": _BY_ID}),
                ("query", {"sql": f"SELECT * FROM gold.`{_NAME}`"}),
                ("ask", {"question": "incidents"}),
                ("ask", {"question": _NAME}),
                ("explain", {"topic": "other", **at}),
                ("evidence", {"record_ids": ["a0"]}),
                *(("explain", {"topic": text, **at}) for text in EXPLAINED.values()),
                *(("incident", {"incident_id": f"1d{number}{number}"}) for number in EXPLAINED),
            ]
            results = [await client.call_tool(name, arguments) for name, arguments in calls]
            return [(result.content[0].text, bool(result.is_error)) for result in results]

    with reading_only(lake.spark):
        answers = asyncio.run(told())
    assert [text for text, _ in answers if not is_shown(text)] == []
    assert [row["message"] for row in json.loads(answers[0][0])["rows"]] == list(HOSTILE)
    assert [is_error for _, is_error in answers[1:6]] == [True, False, True, True, False]
    assert not any(is_error for _, is_error in answers[-len(EXPLAINED) :])


if IS_HARD:

    def test_data_docs(ask, tmp_path):
        code, out, err = ask("check", "--docs", str(tmp_path))
        assert code in (0, 3)
        assert (is_shown(out), is_shown(err)) == (True, True)
        pages = [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.html")]
        assert pages
        for page in pages:
            assert "<img src=x" not in page
            assert "document.title='PWNED'</script>" not in page
