"""A recording of a real KRaft quorum to timelines: all that its metadata log decided, and nothing beside."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final

import pytest

from dashboards.questions.question import questions
from ingest.lake.delta import Lake
from ingest.lake.tables import TABLES
from jobs.ask.answer import rows_of
from jobs.sql.names import LakeNames
from reconstruct.explain.explain import Span
from reconstruct.explain.spark.step import Question, explain
from reconstruct.model.metadata_log.image import applied, replay
from reconstruct.model.metadata_log.values import Image, Kind, PartitionState, TopicState
from reconstruct.quorum.timeline import quorum_timeline
from tests.support.lakes.shared import QUORUM_OUTAGE, SharedLake
from tests.support.metadata_log import NODES, cluster_log, copy_of, log_of
from tests.support.quorum import OUTAGE, facts_of

#: What the nodes' meta.properties say.
CLUSTER: Final = "kraft-of-a-test-0000AA"
#: The saved questions that are asked of it.
ASKED: Final = (
    "fenced-brokers",
    "partition-story",
    "active-controllers",
    "missing-voters",
    "two-brokers-down",
    "quorum",
)


@pytest.fixture(scope="module")
def made(quorum: SharedLake) -> Lake:
    LakeNames(quorum.lake.spark, quorum.lake.root).name([questions()[name].sql for name in ASKED])
    return quorum.of(CLUSTER)


@pytest.fixture(scope="module")
def decided() -> dict[tuple[str, str, int], list[PartitionState]]:
    """By topic, its id and partition, the states in their order, as the log replayed at once has them."""
    found: dict[tuple[str, str, int], list[PartitionState]] = defaultdict(list)
    image: Image = {}
    names: dict[str, str] = {}
    for record in max((log_of(node) for node in NODES), key=len):
        for subject, state in applied(image, record).changes:
            if isinstance(state, TopicState):
                names[state.topic_id] = state.name
            if subject.kind is Kind.PARTITION and isinstance(state, PartitionState):
                found[names[subject.name], subject.name, subject.partition_id].append(state)
        image = replay([record], image)
    return found


def rows(lake: Lake, name: str, *order: str) -> list[Any]:
    return lake.read(TABLES[name]).orderBy(*order).collect()


def by_partition(found: list[Any]) -> dict[tuple[str, str, int], list[Any]]:
    parts: dict[tuple[str, str, int], list[Any]] = defaultdict(list)
    for row in found:
        parts[row["topic"], row["topic_incarnation"], row["partition_id"]].append(row)
    return parts


def test_leader_and_isr_are_every_state_that_the_log_decided(made: Lake, decided: Any) -> None:
    found = by_partition(rows(made, "silver.leader_and_isr_timeline", "sequence"))
    assert {
        key: [(r["leader"], r["leader_epoch"], tuple(r["isr"]), r["partition_epoch"]) for r in of]
        for key, of in found.items()
    } == {key: [(s.leader, s.leader_epoch, s.isr, s.partition_epoch) for s in of] for key, of in decided.items()}
    replicas = ("elr", "last_known_elr", "directories")
    assert {key: [tuple(tuple(r[name]) for name in replicas) for r in of] for key, of in found.items()} == {
        key: [(s.elr, s.last_known_elr, s.directories) for s in of] for key, of in decided.items()
    }
    assert {row["inferred_from"] for of in found.values() for row in of} == {None}
    assert {row["controller_epoch"] for of in found.values() for row in of} == {1, 3}


def test_assignments_are_those_of_the_log(made: Lake, decided: Any) -> None:
    found = by_partition(rows(made, "silver.assignment_timeline", "sequence"))
    expected = {}
    for key, states in decided.items():
        assigned = [(s.replicas, s.adding_replicas, s.removing_replicas) for s in states]
        expected[key] = [one for index, one in enumerate(assigned) if index == 0 or assigned[index - 1] != one]
    given = {
        key: [tuple(tuple(r[name] or ()) for name in ("replicas", "adding_replicas", "removing_replicas")) for r in of]
        for key, of in found.items()
    }
    assert given == expected


def test_each_topic_id_is_an_incarnation(made: Lake, decided: Any) -> None:
    found = rows(made, "silver.topic_incarnations", "topic")
    assert {(row["topic"], row["topic_incarnation"]) for row in found} == {key[:2] for key in decided}
    created = {row["record_id"]: row for row in rows(made, "bronze.metadata_records", "offset")}
    for row in found:
        (record,) = (created[one] for one in row["evidence"])
        assert (record["record_type"], record["appended_at"]) == ("TopicRecord", row["valid_from"])
        assert row["inferred_from"] is None


def test_controllers_and_brokers_are_those_of_the_quorum(made: Lake) -> None:
    tenures = rows(made, "silver.controller_epoch_timeline", "controller_epoch")
    assert [(row["controller_epoch"], row["controller_id"]) for row in tenures] == [(1, 1), (2, 3), (3, 2), (4, 1)]
    live = rows(made, "silver.broker_liveness_timeline", "broker_id", "sequence")
    assert [(row["broker_id"], row["end_reason"]) for row in live] == [
        (1, "controlled_shutdown"),
        (1, None),
        (2, None),
        (3, "registration_lost"),
        (3, None),
    ]


def test_every_change_cites_the_record_that_made_it(made: Lake) -> None:
    changes = rows(made, "silver.metadata_changes", "offset")
    records = {row["record_id"]: row for row in rows(made, "bronze.metadata_records", "offset")}
    assert len(changes) > 30
    for row in changes:
        (record,) = (records[one] for one in row["evidence"])
        assert (record["offset"], record["leader_epoch"]) == (row["offset"], row["leader_epoch"])
        assert (record["record_type"], record["appended_at"]) == (row["record_type"], row["changed_at"])
        assert row["commitment"] == "committed"
        assert row["state"] is None or json.loads(row["state"])


def test_nothing_is_found_against_the_metadata_log(made: Lake) -> None:
    found = rows(made, "gold.divergences", "divergence_id")
    assert [(row["rule_id"], row["explanation"]) for row in found if row["severity"] != "info"] == []


def asked(lake: Lake, name: str, **given: Any) -> list[Any]:
    assert name in ASKED
    question = questions()[name]
    return rows_of(lake.spark, question, dict.fromkeys(question.parameters) | given | {"cluster": CLUSTER}).collect()


def test_each_fencing_is_told_with_what_it_took_away(made: Lake) -> None:
    found = {(row["broker_id"], row["what"]): row for row in asked(made, "fenced-brokers")}
    fenced = found[3, "fenced"]
    assert (fenced["leaders_lost"], fenced["isr_lost"]) == (1, 4)
    assert {what for broker, what in found if broker == 2} == {"registered", "unfenced"}
    assert {"asked to be shut down", "shut down"} <= {what for broker, what in found if broker == 1}


def test_the_story_of_a_partition_has_its_records(made: Lake, decided: Any) -> None:
    story = asked(made, "partition-story", topic="ledger", partition=0)
    records = [row for row in story if row["source"] == "metadata log"]
    (states,) = (of for key, of in decided.items() if (key[0], key[2]) == ("ledger", 0))
    assert len(records) == len(states)
    assert {row["what"] for row in records} == {"PartitionRecord", "PartitionChangeRecord"}


def test_a_decision_is_explained_from_the_log(quorum: SharedLake) -> None:
    at = 1_795_427_376_125_000  # 2026-11-23 09:49:36.125 UTC
    told = explain(quorum.lake, Question("ledger", 0, Span(at, at + 1), CLUSTER))
    assert "leader 2 elected, leader epoch 1" in told
    assert "Leader 1 was in controlled shutdown since 09:49:36.125." in told


def test_the_timeline_of_the_quorum_cites_its_records(made: Lake) -> None:
    found = rows(made, "silver.quorum_timeline", "sequence")
    records = {row["record_id"]: row for row in rows(made, "bronze.metadata_records", "offset")}
    led = [row for row in found if row["began_by"] == "leader_elected"]
    assert [(row["epoch"], row["leader_id"], row["offset"]) for row in led] == [
        (1, 1, 0),
        (2, 3, 62),
        (3, 2, 72),
        (4, 1, 166),
    ]
    for row in led:
        (record,) = (records[one] for one in row["evidence"])
        assert (record["offset"], record["appended_at"]) == (row["offset"], row["valid_from"])
        assert (row["source"], row["inferred_from"], row["kraft_version"]) == ("metadata_log", None, 0)
    assert all(one["valid_to"] == after["valid_from"] for one, after in pairwise(found))


def test_the_lines_of_an_outage_and_the_answers_in_it_make_one_timeline(outage: SharedLake) -> None:
    found = rows(outage.of(QUORUM_OUTAGE), "silver.quorum_timeline", "sequence")
    log, _ = cluster_log(sorted(OUTAGE.glob("broker-103")))
    in_python = [
        span.interval.value
        for span in quorum_timeline(facts_of(OUTAGE), log.of_quorum)
        if span.interval.value.leader_id
    ]
    led = [row for row in found if row["began_by"] == "leader_elected"]
    assert [(row["epoch"], row["leader_id"], tuple(row["granted_by"]), row["offset"]) for row in led] == [
        (value.epoch, value.leader_id, value.granted_by, value.offset) for value in in_python
    ]
    assert [row["began_by"] for row in found if row["began_by"] != "members_described"] == [
        "election_started",
        "leader_elected",
        "leader_resigned",
        "election_started",
        "election_started",
        "leader_elected",
    ]
    assert [row["end_reason"] for row in found if row["end_reason"]] == ["majority_lost"]
    answers = map(json.loads, (OUTAGE / "descriptions.jsonl").read_text().splitlines())
    observed = [sorted(one["id"] for one in answer["observers"]) for answer in answers]
    assert [row["observers"] for row in found if row["began_by"] == "members_described"] == [
        now for before, now in pairwise([None, *observed]) if now != before
    ]
    assert max(row["high_watermark"] or 0 for row in found if row["epoch"] == 3) == 124
    assert {row["source"] for row in found} == {"metadata_log", "node_log", "description"}


def test_each_time_as_active_controller_is_told_with_its_end(made: Lake) -> None:
    found = asked(made, "active-controllers")
    assert [(row["epoch"], row["leader"], row["next_leader"]) for row in found] == [
        (1, 1, 3),
        (2, 3, 2),
        (3, 2, 1),
        (4, 1, None),
    ]
    assert [row["end_reason"] for row in found] == ["superseded", "superseded", "superseded", None]
    assert all(one["led_to"] == after["led_from"] for one, after in pairwise(found))
    assert {row["epochs_tried"] for row in found} == {0}


def test_voters_without_answers_are_told_by_their_copies(made: Lake) -> None:
    found = asked(made, "missing-voters")
    ends = {int(node.name[-1]): copy_of(node).spans[-1].end for node in NODES}
    assert {row["voter"]: row["log_end"] for row in found} == ends
    assert {(row["is_missing"], row["to_spare"]) for row in found} == {(None, None)}
    assert sum(row["votes"] for row in found) == 8


def test_who_would_lead_without_two_brokers(made: Lake, decided: Any) -> None:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    last = {(key[0], key[2]): states[-1] for key, states in decided.items()}
    found = asked(made, "two-brokers-down", at=at, topic="ledger")
    assert found
    for row in found:
        state = last[row["topic"], row["partition_id"]]
        left = [one for one in state.replicas if one not in row["stopped"]]
        if state.leader not in row["stopped"]:
            assert (row["may_lead"], row["next_leader"]) == ("no_change", state.leader)
        else:
            expected = next((one for one in left if one in state.isr), None)
            assert row["next_leader"] == expected
            assert row["may_lead"] == ("isr" if expected else "unclean" if left else "offline")
    assert all(2 in row["stopped"] for row in asked(made, "two-brokers-down", at=at, broker=2))


def test_who_led_the_quorum_by_whose_votes(made: Lake) -> None:
    led = asked(made, "quorum")
    assert [(row["epoch"], row["leader"]) for row in led] == [(1, 1), (2, 3), (3, 2), (4, 1)]
    assert {tuple(row["voters"]) for row in led} == {(1, 2, 3)}
    assert all(row["leader"] in row["granted_by"] and len(row["granted_by"]) >= 2 for row in led)
    assert [row["epochs_without_leader"] for row in led] == [None, 0, 0, 0]
    assert all(one["ended_at"] == after["elected_at"] for one, after in pairwise(led))
