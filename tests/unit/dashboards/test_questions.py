"""The saved questions as files: headers, parameters, and what they lead to."""

from __future__ import annotations

import re

import pytest

from dashboards.questions.question import PARAMETERS, parse, questions
from dashboards.views import VIEWS
from ingest.lake.tables import TABLES
from reconstruct.coverage.questions import QUESTIONS
from reconstruct.findings.rule import EvidenceKind

ALL = list(questions().values())
_TABLE = re.compile(r"\b(?:FROM|JOIN) ((?:bronze|silver|gold|quality)\.\w+)")


def test_the_twenty_five_questions_are_there():
    answered = {number for question in ALL for number in question.numbers}
    assert answered == set(range(1, 26))
    assert set(QUESTIONS) <= answered


@pytest.mark.parametrize("question", ALL, ids=lambda question: question.name)
def test_a_header_says_what_is_so(question):
    assert question.title.endswith("?")
    assert set(question.needs) <= set(EvidenceKind)
    assert set(question.next) <= set(questions()) - {question.name}
    assert set(question.give) <= set(question.parameters)
    assert "cluster" in question.parameters
    named = set(_TABLE.findall(question.sql))
    assert named
    assert named <= {spec.full_name for spec in TABLES.values()} | set(VIEWS)
    assert "ORDER BY cluster_id" in question.sql


@pytest.mark.parametrize("question", ALL, ids=lambda question: question.name)
def test_every_marker_is_a_parameter(question):
    markers = set(re.findall(r"(?<![:'\w]):(\w+)", re.sub(r"'[^']*'", "''", question.sql)))
    assert markers == set(question.parameters) <= set(PARAMETERS)


def test_a_header_that_lacks_a_part_is_named():
    with pytest.raises(ValueError, match=r"s/n.sql lacks read, next"):
        parse("s", "n", "-- Who?\n-- numbers: 1\n-- needs: znodes\nSELECT 1")
