"""Saved questions about topics that were deleted, created again and moved, against what was done."""

from __future__ import annotations

from typing import Any

import pytest

from dashboards.questions.question import questions
from jobs.ask.answer import rows_of
from tests.spark.dashboards.test_known_answers import SESSION, done, utc
from tests.support.captures.lake import Given, Sources
from tests.support.lakes.shared import SharedLake

LIFECYCLES = ("lifecycle-0.8.2.2", "lifecycle-1.1.1", "lifecycle-3.9.1")
#: Of a lifecycle that its logs alone tell: no znode says what was asked for.
LOGGED = Given(Sources.NO_ZNODES, "lifecycle-3.9.1")

#: Asked to go where they already were: the controller logs that it ignores it.
ALREADY = {"reassign_busy-1.1.1": ("orders-7",)}


@pytest.fixture(scope="module")
def ask(captures: SharedLake, named_lake: SharedLake):
    def asked(name: str, of: Given | str, **given: Any) -> list[Any]:
        one = Given(Sources.ALL, of) if isinstance(of, str) else of
        given |= {"cluster": captures.clusters[one]}
        bound = {parameter: given.get(parameter) for parameter in questions()[name].parameters}
        return rows_of(captures.lake.spark, questions()[name], bound).collect()

    return asked


@pytest.mark.parametrize("given", [*LIFECYCLES, LOGGED], ids=str)
def test_deletions_are_those_that_were_asked_for_and_one_waited_for_a_dead_broker(ask, unpacked, given):
    folder = unpacked(given if isinstance(given, str) else given.capture)
    asked_for = {one["topic"]: one["at"] for one in done(folder, "delete_topic")}
    rows = ask("deletions", given)
    assert {row.topic for row in rows} == set(asked_for) == {"scratch", "doomed"}
    assert all(asked_for[row.topic] <= utc(row.valid_from) < asked_for[row.topic] + SESSION for row in rows)
    (killed, *_), (*_, returned) = done(folder, "signal")[-1:], done(folder, "start_broker")
    assert (killed["signal"], killed["broker"]) == ("SIGKILL", returned["broker"])
    ended = {(row.topic, row.partition_id): utc(row.valid_to) for row in rows}
    assert {place: at > returned["at"] for place, at in ended.items()} == {
        place: place[0] == "doomed" for place in ended
    }, "the topic is gone when its last replica is"
    assert all(row.closed_by for row in rows)


@pytest.mark.parametrize("capture", [*LIFECYCLES, "reassign_busy-1.1.1"])
def test_reassignments_are_those_that_were_asked_for(ask, unpacked, capture):
    wanted: dict[str, list[int]] = {}
    begun: dict[str, Any] = {}
    for one in done(unpacked(capture), "reassign"):
        plan = {name: replicas for name, replicas in one["plan"].items() if name not in ALREADY.get(capture, ())}
        wanted |= plan
        begun |= dict.fromkeys(plan, one["at"])
    rows = {f"{row.topic}-{row.partition_id}": row for row in ask("reassignments", capture)}
    targets = {name: [r for r in row.replicas if r not in (row.removing_replicas or ())] for name, row in rows.items()}
    assert targets == wanted
    for name, row in rows.items():
        assert begun[name] <= utc(row.valid_from) < begun[name] + SESSION
        assert utc(row.valid_to) > utc(row.valid_from)
        assert set(wanted[name]) <= set(row.isr)
        assert row.waiting_for == []


@pytest.mark.parametrize("capture", LIFECYCLES)
def test_topics_that_were_created_again(ask, unpacked, capture):
    created = [one["topic"] for one in done(unpacked(capture), "create_topic")]
    again = {topic for topic in created if created.count(topic) > 1}
    assert {row.topic for row in ask("topics-created-again", capture)} == again
