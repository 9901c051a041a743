"""The draft of a postmortem: what it says, and that text of logs is text in it."""

from __future__ import annotations

import re

from dashboards.sections.incidents import Event, Incident
from dashboards.texts.postmortem import postmortem
from tests.support.lakes.incident import HOSTILE
from tests.unit.dashboards.test_render import Tags, cluster, data, with_finding

DIED = Event(1000.0, 42_000.0, "broker_died", "broker 2 died", 0, ())
OUTAGE = Event(1000.0, 7000.0, "no_live_leader", "12 partitions had no live leader", 12, ("ledger-0", "ledger-1"))
LOSS = Event(7000.0, 7000.0, "records_lost", "240 committed records of 1 partition lost", 1, ("ledger-0",))


def incident(*events, harm="records_lost", summary="Broker 2 died.", **values):
    return Incident("id", summary, "broker_died", "observed", harm, 1000.0, 42_000.0, 1, events=events, **values)


def drawn(*incidents, **sections):
    return postmortem(data(cluster(incidents=incidents, **sections)), "the title")


def cells(page, first):
    return [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith(f"| {first}")]


def test_impact_timeline_causes_and_questions_come_from_the_incidents():
    page = drawn(
        incident(
            DIED,
            OUTAGE,
            LOSS,
            unavailable_partitions_count=12,
            unavailable_ms=48_100.0,
            lost_count_lower=240,
            lost_count_upper=260,
        )
    )
    impact, *timeline = cells(page, "1970-01-01 00:00:0")
    assert impact[2:5] == ["12 partitions", "48.100 s", "240 to 260"]
    assert [row[2] for row in timeline] == [DIED.description, OUTAGE.description, LOSS.description]
    assert timeline[1][3] == "ledger-0, ledger-1 and 10 more"
    assert "* Broker 2 died. Logs tell how the broker went." in page
    assert "can their producers send them again?" in page
    assert "acks=all" not in page  # no partition was under min ISR


def test_what_is_not_over_is_said_so():
    lasting = Incident("id", "s", "broker_lost", "inferred", "unavailable", 1000.0, None, 1, unavailable_ms=None)
    page = drawn(lasting)
    assert "**not over**" in page
    assert "only that its registration ended" in page


def test_a_cluster_without_harm_has_no_table():
    page = drawn(incident(DIED, harm="none"))
    assert "No incident did harm that the evidence shows." in page
    assert "| began |" not in page


def test_what_a_finding_is_known_as_is_a_link():
    page = drawn(incident(DIED), findings=with_finding("x", harm="records_lost", known_issue="KAFKA-7128"))
    assert "Known as [KAFKA-7128](https://issues.apache.org/jira/browse/KAFKA-7128)." in page


def test_text_of_logs_is_text():
    hostile = [f"{text}\n# head" for text in HOSTILE]
    for text in hostile:
        event = Event(1000.0, None, "offline", text, 1, (text,))
        page = drawn(incident(event, summary=text), findings=with_finding(text))
        plain = drawn(incident(Event(1000.0, None, "offline", "x", 1, ("x",)), summary="x"), findings=with_finding("x"))
        assert Tags(page).tags == []
        assert page.count("\n") == plain.count("\n")
        unescaped = re.sub(r"\\.", "", page)
        assert unescaped.count("|") == re.sub(r"\\.", "", plain).count("|")
        assert unescaped.count("](") == 0
