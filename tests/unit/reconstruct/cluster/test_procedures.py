"""Procedures of controllers: by hand, and of captures of three eras against what was done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ingest.lake.tables.controllers import PROCEDURES
from ingest.lake.tables.gold import ELECTION_KINDS
from ingest.shapes.event_types import EventType
from reconstruct.cluster.controllers import TenureSpan
from reconstruct.cluster.episodes.procedures import MAY_ELECT, Procedure, election_windows, procedures, reigning_windows
from reconstruct.cluster.evidence import ProcedureLine
from reconstruct.cluster.spans import Tenure
from reconstruct.cluster.take_overs import line_windows
from tests.support.captures.packed import Unpacker
from tests.support.captures.text import CaptureText
from tests.support.evidence.partitions import plain_capture

SECOND = 1_000_000
LIFECYCLES = ("lifecycle-0.8.2.2", "lifecycle-1.1.1", "lifecycle-3.9.1")


def span(controller_id: int, epoch: int, start: int, end: int | None = None) -> TenureSpan:
    return TenureSpan(
        Tenure(controller_id, epoch, start * SECOND, end and end * SECOND, (f"epoch-{epoch}",)), None, None
    )


def line(
    event: str, at: float, *partitions: str, controller: int = 1, level: str = "INFO", **named: str
) -> ProcedureLine:
    at_us = int(at * SECOND)
    return ProcedureLine(controller, event, at_us, f"at-{at:g}", "controller.log", at_us, level, partitions, named)


def found(*lines: ProcedureLine, tenures: tuple[TenureSpan, ...] = (span(1, 1, 10),)) -> list[Procedure]:
    return procedures(tenures, line_windows(tenures), lines)


def told(*lines: ProcedureLine) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.procedure, one.about) for one in found(*lines)[1:]]


def test_the_tables_words_are_the_model_s():
    assert tuple(MAY_ELECT) == PROCEDURES
    assert {kind for kinds in MAY_ELECT.values() for kind in kinds} == set(ELECTION_KINDS)


def test_brokers_that_come_go_and_bounce():
    def change(at: float, came: str = "", went: str = "", bounced: str = "") -> ProcedureLine:
        ids = {"added_broker_ids": came, "deleted_broker_ids": went, "bounced_broker_ids": bounced}
        return line(EventType.BROKER_CHANGE, at, **ids)

    assert told(change(11, "3"), change(12, went="2,3"), change(13, bounced="2"), change(14, "1", "2"), change(15)) == [
        ("broker_start", ("3",)),
        ("broker_failure", ("2", "3")),
        ("broker_bounce", ("2",)),
        ("brokers_changed", ("1", "2")),
    ]


def test_what_was_asked_for_by_version():
    assert told(
        line(EventType.TOPIC_CHANGE, 11, "a-0", new_topics="a,b"),
        line(EventType.TOPIC_CHANGE, 12, new_topics="", deleted_topics="a"),
        line(EventType.PARTITION_ADDITION, 13, "a-3"),
        line(
            EventType.TOPIC_DELETION_REQUESTED, 14, level="DEBUG", topics="b"
        ),  # the listener, which INFO does not show
        line(EventType.TOPIC_DELETION_REQUESTED, 15, topics="b"),
        line(EventType.REASSIGNMENT_STARTED, 16, "a-0"),
        line(EventType.REASSIGNMENT_ASSIGNMENT_UPDATED, 17, "a-0", adding_replicas="3", removing_replicas=""),
        line(EventType.LEADER_ELECTION_STARTED, 18, "a-0", election_type="UNCLEAN"),
        line(EventType.LEADER_ELECTION_STARTED, 19, "a-0", election_type="<election_type>"),
        line(EventType.LEADER_ELECTION_STARTED, 20, election_type="PREFERRED"),
        line(EventType.CONTROLLED_SHUTDOWN_REQUESTED, 21, shutting_down_broker_ids="2"),
    ) == [
        ("topic_creation", ("a", "b")),
        ("partition_addition", ("a-3",)),
        ("topic_deletion", ("b",)),
        ("reassignment", ("a-0",)),
        ("reassignment", ("a-0",)),
        ("unclean_election", ("a-0",)),
        ("controlled_shutdown", ("2",)),
    ]


def test_a_preferred_election_that_is_told_again_for_each_partition_is_one():
    lines = [
        line(EventType.PREFERRED_ELECTION_STARTED, 11, "a-0", "a-1"),
        line(EventType.PREFERRED_ELECTION_STARTED, 11.1, "a-0"),
        line(EventType.PREFERRED_ELECTION_STARTED, 11.2, "a-1"),
        line(EventType.PREFERRED_ELECTION_STARTED, 12, "b-0"),
    ]
    assert told(*lines) == [("preferred_election", ("a-0", "a-1")), ("preferred_election", ("b-0",))]


def test_a_watch_that_fired_is_of_the_next_line_of_its_kind():
    _, first, second = found(
        line(EventType.BROKER_CHANGE_NOTIFIED, 11),
        line(EventType.BROKER_CHANGE, 11.5, added_broker_ids="3"),
        line(EventType.TOPIC_CHANGE_NOTIFIED, 20),
        line(EventType.TOPIC_CHANGE, 90, new_topics="late"),
    )
    assert (first.told_at, first.evidence) == (11 * SECOND, ("at-11.5", "at-11"))
    assert (second.told_at, second.evidence) == (None, ("at-90",))


def test_a_procedure_lasts_until_the_same_controller_s_next_and_a_take_over_is_the_first():
    tenures = (span(1, 1, 10, 20), span(2, 2, 20))
    failure = line(EventType.BROKER_CHANGE, 21, controller=2, deleted_broker_ids="1")
    zombie = line(EventType.BROKER_CHANGE, 22, deleted_broker_ids="2")
    before = line(EventType.BROKER_CHANGE, 21, controller=3, added_broker_ids="2")
    assert [
        (one.controller_id, one.controller_epoch, one.procedure, one.until and one.until // SECOND, one.evidence)
        for one in found(failure, zombie, before, tenures=tenures)
    ] == [
        (1, 1, "take_over", 22, ("epoch-1",)),
        (1, 1, "broker_failure", None, ("at-22",)),
        (2, 2, "take_over", 21, ("epoch-2",)),
        (2, 2, "broker_failure", None, ("at-21",)),
        (3, None, "broker_start", None, ("at-21",)),
    ]


def test_what_is_complete_is_of_the_last_that_was_begun_and_of_all_that_it_is_about():
    _, first, second, both, third = found(
        line(EventType.REASSIGNMENT_STARTED, 11, "a-0"),
        line(EventType.REASSIGNMENT_STARTED, 12, "a-0"),
        line(EventType.REASSIGNMENT_COMPLETED, 13, "a-0"),
        line(EventType.TOPIC_DELETION_REQUESTED, 14, topics="b,c"),
        line(EventType.TOPIC_DELETION_COMPLETED, 15, topic="b"),
        line(EventType.REASSIGNMENT_ASSIGNMENT_UPDATED, 16, "d-0", adding_replicas="3", removing_replicas="1"),
        line(
            EventType.REASSIGNMENT_ASSIGNMENT_UPDATED, 17, "d-0", adding_replicas="", removing_replicas="", controller=2
        ),
    )
    assert [one.completed_at for one in (first, second, both, third)] == [None, 13 * SECOND, None, 17 * SECOND]
    assert third.evidence == ("at-16", "at-17")


def test_an_election_is_of_the_last_procedure_that_may_set_it_off():
    every = found(
        line(EventType.BROKER_CHANGE, 11, deleted_broker_ids="3"),
        line(EventType.REASSIGNMENT_STARTED, 12, "a-0"),
        line(EventType.REASSIGNMENT_STARTED, 12.5, "b-0"),
        line(EventType.BROKER_CHANGE, 13, added_broker_ids="3"),
    )
    by_kind: dict[tuple[str, str | None], list[tuple[str, int, int | None]]] = {}
    for one in sorted(election_windows(every), key=lambda one: one.since):
        spans = by_kind.setdefault((one.kind, one.partition), [])
        spans.append((every[one.number].procedure, one.since // SECOND, one.until and one.until // SECOND))
    assert by_kind["offline_partition", None] == [
        ("take_over", 10, 11),
        ("broker_failure", 11, 13),
        ("broker_start", 13, None),
    ]
    assert by_kind["new_partition", None] == [("take_over", 10, None)]
    # of several reassignments at once each has its own partition's, and a new controller goes on with all others
    assert by_kind["reassigned_partition", "a-0"] == [("take_over", 10, 12), ("reassignment", 12, None)]
    assert by_kind["reassigned_partition", "b-0"] == [("take_over", 10, 12), ("reassignment", 12, None)]
    assert by_kind["reassigned_partition", None] == [("take_over", 10, None)]


def test_what_happens_to_the_cluster_is_of_the_controller_that_it_has():
    tenures = (span(1, 1, 10, 20), span(2, 2, 20))
    every = found(line(EventType.BROKER_CHANGE, 15, deleted_broker_ids="3"), tenures=tenures)
    spans = [(number, one.began_at, one.until) for number, one in enumerate(every)]
    assert [
        (every[number].procedure, since // SECOND, until and until // SECOND)
        for number, since, until in reigning_windows(tenures, spans, every)
    ] == [("take_over", 10, 15), ("broker_failure", 15, 20), ("take_over", 20, None)]


def done(folder: Path, what: str) -> list[dict[str, Any]]:
    events = map(json.loads, (folder / "events.jsonl").read_text("utf-8").splitlines())
    return [event for event in events if event["what"] == what]


@pytest.mark.parametrize("name", LIFECYCLES)
def test_all_that_was_asked_for_is_a_procedure(name: str, unpacked: Unpacker):
    """By its instant, at most a second after it was asked for; of a shutdown by SIGTERM, and of a death by SIGKILL."""
    folder = unpacked(name)
    every = plain_capture(CaptureText.read(folder)).cluster.procedures
    asked = {("topic_creation", event["topic"]): event["ts"] for event in done(folder, "create_topic")} | {
        ("topic_deletion", event["topic"]): event["ts"] for event in done(folder, "delete_topic")
    }
    for event in done(folder, "add_partitions"):
        asked |= {("partition_addition", f"{event['topic']}-{number}"): event["ts"] for number in event["assignment"]}
    for event in done(folder, "reassign"):
        asked |= {("reassignment", partition): event["ts"] for partition in event["plan"]}
    kinds = {kind for kind, _ in asked}
    begun = {(one.procedure, subject): one for one in every if one.procedure in kinds for subject in one.about}
    assert set(begun) == set(asked)
    waits = {what: begun[what].began_at / SECOND - at for what, at in asked.items()}
    assert {what: wait for what, wait in waits.items() if not 0 <= wait < 1} == {}
    assert [
        what for what, one in begun.items() if what[0] in ("topic_deletion", "reassignment") and not one.completed_at
    ] == []
    for signal, procedure in (("SIGTERM", "controlled_shutdown"), ("SIGKILL", "broker_failure")):
        brokers = [(str(one["broker"]), one["ts"]) for one in done(folder, "signal") if one["signal"] == signal]
        for broker, at in brokers:
            assert [
                one
                for one in every
                if one.procedure == procedure and one.about == (broker,) and 0 <= one.began_at / SECOND - at < 15
            ], (signal, broker)
    assert [one.controller_epoch for one in every if one.procedure == "preferred_election"]
    assert all(one.told_at is not None for one in every if one.procedure == "broker_start") is (name == LIFECYCLES[0])
