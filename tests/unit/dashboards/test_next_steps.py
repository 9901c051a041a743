"""What to do about an incident: by what happened, what of it lasts, and its findings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dashboards.render import render
from dashboards.report import summary_lines
from dashboards.sections.incidents import Event, Incident
from dashboards.texts.next_steps import next_steps, of_cluster, state
from dashboards.texts.postmortem import postmortem
from ingest.lake.tables.incidents import INCIDENT_EVENT_KINDS
from tests.support.lakes.incident import HOSTILE
from tests.unit.dashboards.test_render import Tags, cluster, data

LED = ("ledger-0", "ledger-1")
DIED = Event(1000.0, None, "broker_died", "broker 2 died", 0, (), broker_id=2)
LEADERLESS = Event(1000.0, None, "no_live_leader", "12 partitions had no live leader", 12, LED, broker_id=2)
UNCLEAN = Event(7000.0, 7000.0, "unclean_election", "1 election", 1, LED[:1], broker_id=2)
LOST = Event(7000.0, 7000.0, "records_lost", "240 records lost", 1, LED[:1], broker_id=2)
FOUND = Event(7000.0, 7000.0, "finding", "1 finding", 1, LED[:1], finding_types=("R08 unclean_election",))


def texts(*events):
    return [str(step) for step in next_steps(events)]


def over(event):
    return replace(event, to_ms=8000.0)


def incident(*events, **values):
    of_all = {"cause": "broker_died", "confidence": "observed", "harm": "records_lost", "from_ms": 1000.0, "total": 1}
    return Incident("id", "Broker 2 died.", **(of_all | {"to_ms": None, "lasting": 1} | values), events=events)


def test_what_still_does_harm_comes_before_what_was_lost_and_why():
    found = texts(FOUND, UNCLEAN, DIED, LOST, LEADERLESS)
    assert [text.split(":")[0].split(" at ")[0] for text in found] == [
        "Before you start broker 2 again, copy the directories of ledger-0 there",
        "Start the brokers that may lead ledger-0, ledger-1 and 10 more, with their directories as they are",
        "Start broker 2 again, or move the replicas away",
        "Tell the owners of ledger that acknowledged records are gone, and have their producers send them again from"
        " where they came. Consumers may have read them before. (ask unclean-elections)",
        "Decide whether ledger may lose records to stay available",
        "Find out why broker 2 died (gone",
        "Look into R08 unclean election",
    ]


def test_topics_of_partitions_that_an_event_does_not_name_are_no_number():
    """An event names ten partitions at most, and nobody counted the topics of the others."""
    many = replace(LOST, partitions=tuple(f"ledger.{number}-0" for number in range(10)), partitions_count=194)
    found = texts(over(many))[0]
    assert found.startswith("Tell the owners of ledger.0, ledger.1, ledger.2 and others (194 partitions) that")
    one = replace(LOST, partitions=tuple(f"ledger-{number}" for number in range(10)), partitions_count=20)
    assert texts(over(one))[0].startswith("Tell the owners of ledger, perhaps others (20 partitions) that")


def test_of_what_is_over_only_causes_and_losses_are_left():
    found = texts(*map(over, (DIED, LEADERLESS, LOST)))
    assert len(found) == 2
    assert not [text for text in found if "where the evidence ends" in text or "Before you start" in text]
    assert "broker 2 died (gone at 1970-01-01 00:00:01.000 UTC)" in found[1]


def test_a_restart_in_order_asks_for_nothing():
    stopped = replace(over(DIED), event_kind="broker_stopped")
    election = replace(over(UNCLEAN), event_kind="election")
    assert texts(stopped, election, over(LEADERLESS), replace(over(LEADERLESS), event_kind="under_replicated")) == []


@pytest.mark.parametrize("kind", INCIDENT_EVENT_KINDS)
def test_every_kind_of_event_that_lasts_or_lost_something_has_its_step(kind):
    quiet = {"controller_elected", "election", "broker_returned", "finding"}
    found = texts(replace(LEADERLESS, event_kind=kind))
    assert bool(found) == (kind not in quiet)
    assert "None" not in "".join(found)


def test_what_documents_say_to_check_of_a_finding_is_said_in_plain_text():
    (step,) = texts(FOUND)
    assert step.startswith("Look into R08 unclean election: gold.leader_elections for who else could have led")
    assert texts(replace(FOUND, finding_types=("R99 nothing_known",))) == []


def test_the_first_paragraphs_say_whether_it_is_over_and_what_to_do():
    of_it = (over(DIED), over(LOST))
    of_all = {"total": 2, "lasting": 1, "last_ms": 8000.0}
    ended = incident(*of_it, to_ms=8000.0, **of_all)
    lasting = incident(LEADERLESS, harm="unavailable", **of_all)
    shown = cluster(incidents=(ended, lasting))
    assert str(of_cluster(shown)[0]).startswith("Start the brokers that may lead ledger-0"), "what lasts first"
    assert state(shown) == "Not over where the evidence ends: 1 of 2 incidents."
    assert state(cluster(incidents=(replace(ended, lasting=0),))) == "2 incidents; all are over since 00:00:08.000 UTC."
    assert state(cluster()) == ""
    page = render(data(shown), "t")
    first_card = page.split('class="card verdict')[1].split("</div>")[0]
    assert "Not over where the evidence ends" in first_card
    assert first_card.count("<li>") == len(of_cluster(shown)) == 3
    assert "<code>kafka-state-replay ask unclean-elections</code>" in first_card
    printed = summary_lines(data(shown))
    assert printed.count("  Broker 2 died.") == 2, "each incident in its words"
    assert [line for line in printed if line.startswith("To do: ")] == [f"To do: {one}" for one in of_cluster(shown)]
    draft = postmortem(data(shown), "t").split("### What we will do")[1]
    assert [line for line in draft.splitlines() if line.startswith("| Tell the owners of ledger")]
    assert "`kafka-state-replay ask offline-partitions`" in draft


@pytest.mark.parametrize("text", HOSTILE)
def test_a_topic_s_name_is_text_in_a_step(text):
    event = replace(LOST, partitions=(f"{text}-0",))
    shown = data(cluster(incidents=(incident(event),)))
    page = Tags(render(shown, "t"))
    assert page.tags == Tags(render(data(cluster(incidents=(incident(LOST),))), "t")).tags
    assert Tags(postmortem(shown, "t")).tags == []
