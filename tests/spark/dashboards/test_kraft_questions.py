"""Every saved question, asked of a cluster without ZooKeeper: what each has to answer is in ``kraft_answers``."""

from __future__ import annotations

from typing import Final

import pytest

from dashboards.questions.question import questions
from dashboards.sections.coverage import limits
from dashboards.source import Limits, Source
from tests.spark.dashboards.kraft_answers import (
    availability,
    brokers,
    controllers,
    evidence,
    incidents,
    offsets,
    partitions,
    trends,
)
from tests.spark.dashboards.kraft_answers.asked import ANSWERS, Asked
from tests.support.budget import IS_HARD
from tests.support.lakes.kraft import WHOLE
from tests.support.lakes.shared import SharedLake

#: Their functions are in :data:`ANSWERS` once they are imported.
FOLDERS: Final = (availability, brokers, controllers, evidence, incidents, offsets, partitions, trends)
#: What is asked in every run: what only a quorum has, and what its records have to tell in place of znodes.
EVERY_RUN: Final = frozenset(
    [
        "active-controllers",
        "broker-lives",
        "clocks",
        "deletions",
        "elections",
        "fenced-brokers",
        "findings",
        "isr-changes",
        "leader-at",
        "metadata-images",
        "missing-voters",
        "non-preferred-leaders",
        "offline-partitions",
        "partition-story",
        "propagation",
        "quorum",
        "reassignments",
        "topics-created-again",
        "two-brokers-down",
        "unclean-elections",
    ]
)


@pytest.fixture(scope="module")
def ask(kraft_lake: SharedLake, named_lake: SharedLake) -> Asked:
    return Asked(kraft_lake)


def test_every_question_has_a_known_answer() -> None:
    assert set(ANSWERS) == set(questions())


@pytest.mark.parametrize("name", sorted(questions() if IS_HARD else EVERY_RUN))
def test_answer(name: str, ask: Asked) -> None:
    ANSWERS[name](ask)


def test_nothing_is_called_missing_that_a_node_never_writes(kraft_lake: SharedLake) -> None:
    gathered = limits.gather(Source(kraft_lake.lake, Limits(), (WHOLE,)))[WHOLE]
    said = limits.cannot_be_said(gathered, [1, 2, 3, 101, 102, 103], ["4.3.1"]).sentences
    missing = [one.text.partition(" was given")[0] for one in said if one.text.startswith("No ")]
    assert [text for text in missing if "controller.log" in text] == []
    # of a controller nothing but its server.properties
    assert [text for text in missing if "101" in text and "server.properties" not in text] == []
