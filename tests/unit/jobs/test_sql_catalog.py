"""What the shell of ``sql`` says of tables, and how it completes their names."""

from __future__ import annotations

import pytest

from dashboards.views import QUESTION_FUNCTIONS
from ingest.lake.tables.incidents import INCIDENTS
from jobs.sql import catalog
from jobs.sql.shell import _meaning_of, completion


def test_the_listing_names_every_table_and_view_with_what_a_row_is():
    lines = catalog.listing().splitlines()
    assert len(lines) == len(catalog.RELATIONS) + len(QUESTION_FUNCTIONS) > 80
    assert [line.split(maxsplit=1)[1] for line in lines if line.startswith("gold.incidents ")] == [INCIDENTS.grain]


def test_a_table_is_described_by_its_columns_and_a_view_by_its_meaning():
    text = catalog.description("GOLD.incidents") or ""
    assert "harm " in text
    assert "One of records_lost, " in text
    view = catalog.description("questions.unclean_elections") or ""
    assert view.startswith("questions.unclean_elections (view)\n")
    assert catalog.description("gold.nothing") is None
    function = catalog.description("leader_at") or ""
    assert function.startswith("leader_at(at TIMESTAMP) (function)\n")
    assert "\npartition_story(topic STRING, partition INT)  " in catalog.listing()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("help", "Tab"),
        ("HELP;", "Tab"),
        ("\\d", "gold.divergences"),
        ("\\d gold.divergences", "severity"),
        ("\\d gold.nothing\x1b[31m", "no table or view gold.nothing\\x1b[31m: \\d lists them"),
    ],
)
def test_help_needs_no_spark(line, says):
    meaning = _meaning_of(line) or ""
    assert says in meaning
    assert "\x1b" not in meaning


@pytest.mark.parametrize("line", ["SELECT 1", "help me", "DESCRIBE gold.divergences", ""])
def test_what_is_sql_is_run(line):
    assert _meaning_of(line) is None


@pytest.mark.parametrize(
    ("begun", "first"),
    [
        ("gold.inc", "gold.incident_events"),
        ("QUESTIONS.u", "questions.unclean_elections"),
        ("l.valid_f", "l.valid_from"),
    ],
)
def test_names_are_completed(begun, first):
    assert completion(begun, 0) == first
    assert completion(begun, 500) is None
