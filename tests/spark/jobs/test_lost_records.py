"""Records that a copy of a segment still holds after an election lost them."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from dashboards.questions.question import questions
from ingest.lake.delta import Lake
from ingest.lake.tables.bronze import LOG_SEGMENTS, SourceKind
from ingest.lake.tables.gold import DATA_LOSS_BOUNDS
from ingest.lake.tables.silver import TOPIC_INCARNATIONS
from jobs.ask.answer import rows_of
from jobs.sql.names import LakeNames
from tests.support.lakes.rows import START, append

CLUSTER = "c"
#: Of each copy its broker, topic, directory and records: (offset, leader epoch).
COPIES = (
    (1, "ledger", "data", [(98, 0), (99, 0), (100, 0), (299, 0), (305, 0), (310, 0)]),
    (2, "ledger", "data", [(99, 0), (100, 1), (299, 1)]),
    (3, "ledger", "old", [(100, 0), (299, 1)]),
    (1, "bounded", "data", [(99, 0), (120, 0), (160, 0)]),
    (2, "bounded", "data", [(120, 0)]),
    (3, "bounded", "data", [(170, 0)]),
    (1, "again", "data", [(120, 0)]),
    (1, "known", "data", [(130, 0)]),
)


def segment(broker: int, topic: str, directory: str, records: list[tuple[int, int]]) -> dict[str, Any]:
    return {
        "record_id": f"{directory}-{topic}-{broker}",
        "broker_id": broker,
        "source_file": f"broker-{broker}/{directory}/{topic}-0/00000000000000000000.log",
        "file_kind": SourceKind.LOG_SEGMENT,
        "last_records": [
            {"offset": offset, "leader_epoch": epoch, "timestamp_ms": 1_000 * offset, "key_hash": f"hash-{offset}"}
            for offset, epoch in records
        ],
    }


def metadata(topic_id: str) -> dict[str, Any]:
    return {
        "record_id": f"m-{topic_id}",
        "broker_id": 1,
        "file_kind": SourceKind.PARTITION_METADATA,
        "topic_id": topic_id,
    }


@pytest.fixture(scope="module")
def lake(spark, empty_lake_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lost") / "lake"
    shutil.copytree(empty_lake_dir, folder)
    made = Lake(spark, str(folder))
    common = {"cluster_id": CLUSTER, "partition_id": 0, "is_read": True}
    files = [
        {"topic": topic, "directory": directory, **segment(broker, topic, directory, records)}
        for broker, topic, directory, records in COPIES
    ]
    files.append({"topic": "known", "directory": "data", **metadata("known-2")})
    append(made, LOG_SEGMENTS, [common | file for file in files])
    loss = {"event_at": 10, "cause": "unclean_election", "leader": 2, "previous_leader": 1, "leader_epoch": 1}
    loss |= {"cluster_id": CLUSTER, "lost_from_offset": 100, "lost_to_offset_lower": 299, "lost_to_offset_upper": 309}
    loss |= {"lost_count_lower": 200, "inferred_from": "replication_rules"}
    of_topics = [{"topic": "ledger"}] + [
        {"topic": topic, "topic_incarnation": f"{topic}-{number}"} for topic in ("again", "known") for number in (1, 2)
    ]
    # the epoch of the one began at 100, that of the other between 100 and 150; a later one lost what was gone already
    losses = [*of_topics, {"topic": "ledger", "leader": 3, "leader_epoch": 4, "lost_from_offset": 50, "event_at": 20}]
    losses.append({"topic": "bounded", "lost_count_lower": 150})
    append(made, DATA_LOSS_BOUNDS, [loss | {"evidence": ["election"]} | of_topic for of_topic in losses])
    append(made, TOPIC_INCARNATIONS, [{"cluster_id": CLUSTER} | of_topic for of_topic in of_topics])
    LakeNames(spark, made.root).name()
    return made


def asked(lake: Lake, **given: Any) -> list[Any]:
    question = questions()["lost-records"]
    return rows_of(lake.spark, question, dict.fromkeys(question.parameters) | given).collect()


def test_what_a_new_leader_wrote_others_in_place_of_is_told_by_its_offset_and_key(lake):
    rows = asked(lake, topic="ledger")
    of_first = [row for row in rows if row.lost_in_epoch == 1]
    assert [(row.offset, row.is_gone, row.was_committed, row.held_by) for row in of_first] == [
        (100, "yes", "yes", [1, 3]),
        (299, "yes", "yes", [1]),
        (305, "yes", "maybe", [1]),
        (310, "yes", "no", [1]),
    ]
    later = [(row.offset, row.leader_epoch) for row in rows if row.lost_in_epoch == 4]
    assert later == [(98, 0), (99, 0), (100, 1), (299, 1)], "none that was gone before"
    first = of_first[0]
    assert first.inferred_from == "replication_rules"
    assert (first.key_hash, first.leader_epoch, first.lost_in_epoch) == ("hash-100", 0, 1)
    assert first.record_time.timestamp() == 100
    assert first.lost_at.timestamp() == START.timestamp() + 10
    assert first.evidence == ["election", "data-ledger-1", "old-ledger-3"]


def test_what_the_new_leader_may_have_kept_is_gone_perhaps_and_what_it_kept_is_not(lake):
    """Its epoch began between 100 and 150: its own copy still has 120; of 170 the leader before it had nothing."""
    rows = asked(lake, topic="bounded")
    assert [(row.offset, row.is_gone, row.was_committed) for row in rows] == [
        (160, "yes", "yes"),
        (170, "yes", "maybe"),
    ]


def test_of_a_topic_created_again_only_copies_that_say_which_they_are_count(lake):
    assert asked(lake, topic="again") == []
    assert [(row.offset, row.held_by) for row in asked(lake, topic="known")] == [(130, [1])]
    assert len(asked(lake)) == 4 + 4 + 2 + 1
