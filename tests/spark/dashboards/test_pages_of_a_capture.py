"""The report of a real capture in a real browser: no errors, no network, and its numbers are those of SQL."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dashboards.questions.question import questions
from dashboards.report import write_report
from dashboards.sections.availability import KIND_WORDS
from dashboards.words import visible
from jobs.ask.answer import rows_of
from jobs.session.progress import silent
from jobs.sql.output import json_objects
from tests.support.browser import Browser, Page
from tests.support.lakes.offsets import OffsetLake
from tests.support.lakes.shared import SharedLake

CAPTURE = "unclean-0.8.2.2"


@pytest.fixture(scope="module")
def sql(offset_lake: OffsetLake, named_lake: SharedLake):
    """The rows of a statement of the capture's cluster (``{c}``), or of a saved question, as objects of JSON."""
    spark, cluster = offset_lake.lake.spark, offset_lake.ids[CAPTURE]

    def rows(statement: str) -> list[dict[str, Any]]:
        if statement in questions():
            question = questions()[statement]
            found = rows_of(spark, question, dict.fromkeys(question.parameters) | {"cluster": cluster})
        else:
            found = spark.sql(statement.format(c=cluster))
        return [json.loads(text) for text in json_objects(found)]

    return rows


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="module")
def page(offset_lake: OffsetLake, named_lake: SharedLake, saved: Path, tmp_path_factory: pytest.TempPathFactory):
    of_capture = named_lake.of(offset_lake.ids[CAPTURE])
    report = write_report(of_capture, str(tmp_path_factory.mktemp("report")), progress=silent)
    with Browser() as browser:
        browser.saves_to(saved)
        yield browser.open(Path(report.path))


def cells(page: Page, card: str, heading: str | None = None) -> list[list[str]]:
    """The rows of the first table of a card, or of the first one below a heading in it."""
    first = f"document.querySelector('#{card} table')"
    below = f"[...document.querySelectorAll('#{card} h4')].find(h => h.textContent === {json.dumps(heading)})"
    table = f"{below}.nextElementSibling.querySelector('table')" if heading else first
    return page.value(f"[...{table}.tBodies[0].rows].map(r => [...r.cells].map(c => c.innerText.trim()))")


def test_the_page_opens_without_error_and_without_network(page: Page):
    page.wait_for("document.documentElement.dataset.ready !== undefined")
    assert page.errors == []
    assert page.requests == []
    assert page.value("document.documentElement.scrollWidth <= innerWidth")


def test_the_findings_that_the_page_saves_are_those_of_sql(page: Page, sql, saved: Path):
    listed = json.loads(page.saved("[data-saves=json]", saved / "findings-1.json"))
    asked = {row["explanation"] + row["detected_at"]: row for row in sql("findings")}
    assert len(listed) == len(asked) > 3
    for row in listed:
        known = asked[row["explanation"] + row["detected_at"]]
        known["evidence"] = known["evidence"][:5]
        assert {name: row[name] for name in known} == known


def test_the_incidents_and_the_times_without_a_leader_are_those_of_sql(page: Page, sql):
    text = page.value("document.querySelector('#incidents-0').textContent")
    incidents = sql("incidents")
    assert incidents
    assert [row["summary"] for row in incidents if visible(row["summary"]) not in text] == []
    kinds = Counter(row["kind"] for row in sql("SELECT kind FROM gold.availability_intervals WHERE cluster_id = '{c}'"))
    shown = {row[0]: int(row[2].replace(",", "")) for row in cells(page, "availability-0")}
    assert shown == {KIND_WORDS[kind]: count for kind, count in kinds.items()}


def test_what_a_stop_would_have_done_is_what_the_question_answers(page: Page, sql):
    heading = "If a broker had stopped when the evidence ends"
    shown = {int(row[0]): [int(number) for number in row[1:6]] for row in cells(page, "availability-0", heading)}
    effects = Counter((row["broker_id"], row["effect"]) for row in sql("would-restart"))
    brokers = {broker for broker, _ in effects}
    names = ("offline", "refuses_writes", "new_leader", "fewer_replicas")
    assert shown == {
        broker: [sum(n for (of, _), n in effects.items() if of == broker), *(effects[broker, name] for name in names)]
        for broker in brokers
    }
    assert sum(numbers[1] + numbers[3] for numbers in shown.values()) > 0


def test_the_leaders_that_are_drawn_are_those_of_sql(page: Page, sql):
    timeline = sql(
        "SELECT leader, isr FROM silver.leader_and_isr_timeline WHERE cluster_id = '{c}' AND topic = 'ledger'"
        " AND partition_id = 0 ORDER BY sequence"
    )
    lane = "[...document.querySelectorAll('.lanes .row')].find(row => row.dataset.name === 'ledger-0').row.lane"
    drawn = page.value(f"{lane}.segments.map(s => ({{leader: s.leader, isr: s.isr}}))")
    assert drawn == timeline
    assert len(drawn) > 3
