"""Which incarnation of a topic an instant belongs to."""

from __future__ import annotations

from typing import Any

import pytest

from reconstruct.cluster.spark.incarnations import REACTION_MS, Creation, incarnation_spans, incarnations_of

SECOND = 1_000_000
MINUTE = 60 * SECOND
NEVER = 2**62
STORED = "stored"


def test_znodes_alone_part_the_time() -> None:
    assert [name for name, _ in incarnations_of([Creation(9 * MINUTE, "z2", True), Creation(MINUTE, "z1", True)])] == [
        "z1",
        "z2",
    ]
    assert incarnations_of([Creation(9 * MINUTE, "z2", True), Creation(MINUTE, "z1", True)])[1][1] == 9 * MINUTE


def test_a_creation_that_the_log_shows_too_is_one() -> None:
    soon = MINUTE + (REACTION_MS - 1) * 1000
    assert [name for name, _ in incarnations_of([Creation(MINUTE, "z1", True), Creation(soon, "log", False)])] == ["z1"]


def test_creations_between_two_snapshots_are_told_by_the_log() -> None:
    znodes = [Creation(MINUTE, "z1", True), Creation(90 * MINUTE, "z2", True)]
    logged = [Creation(at * MINUTE, f"log{at}", False) for at in (20, 30, 40)]
    names = ["z1", "log20", "log30", "log40", "z2"]
    assert [name for name, _ in incarnations_of([*znodes, *logged], stored_until=90 * MINUTE)] == names
    # two that the log shows by another clock are those of the znodes
    assert [name for name, _ in incarnations_of([*znodes, *logged[:2]], stored_until=90 * MINUTE)] == ["z1", "z2"]


def test_a_logged_creation_long_before_the_first_znode_is_another() -> None:
    found = incarnations_of([Creation(90 * MINUTE, "z1", True), Creation(MINUTE, "log", False)])
    assert [name for name, _ in found] == ["log", "z1"]


def folded(
    *rows: tuple[Any, ...], named_at: int = NEVER, stored_until: int | None = None, is_behind: bool = False
) -> list[tuple[str, int | None]]:
    facts = [
        {
            "at": at,
            "name": name,
            "kind": kind,
            "since": since or None,
            "named_at": min(at, named_at),
            "is_behind": is_behind,
            "stored_until": stored_until if kind == STORED else None,
            "created_at_us": None,
            "evidence_id": f"znode of {name}" if kind == STORED else None,
        }
        for at, name, kind, since in ((*row, 0)[:4] for row in rows)
    ]
    result = list(incarnation_spans(facts))
    znodes = {name for _, name, kind, *_ in rows if kind == STORED}
    for row in result:
        name = row["topic_incarnation"]
        assert row["evidence_id"] == (f"znode of {name}" if name in znodes else name)
    return [(row["topic_incarnation"], row["starts_at_us"]) for row in result]


def test_a_topic_of_logs_alone_is_named_by_its_first_record() -> None:
    assert folded((5, "r0", "first"), (6, "r1", "new:0"), (6, "r2", "new:1")) == [("r0", None)]


def test_a_partition_that_is_new_again_begins_another_incarnation() -> None:
    assert folded(
        (5, "r0", "first"),
        (5, "r0", "new:0"),
        (6, "r1", "new:1"),
        (9 * MINUTE, "r8", "new:1"),
        (9 * MINUTE + 1, "r9", "new:0"),
    ) == [("r0", None), ("r8", 9 * MINUTE)]


def test_a_partition_that_was_named_long_before_it_became_new_had_been_created_before() -> None:
    """The logs begin after its first creation."""
    facts = ((5, "r0", "first"), (9 * MINUTE, "r9", "new:0"))
    assert folded(*facts, named_at=5) == [("r0", None), ("r9", 9 * MINUTE)]
    assert folded(*facts) == [("r0", None)]


def test_a_partition_that_the_same_log_told_of_just_before_it_became_new_had_been_created_before() -> None:
    """A topic that is deleted, and created again within seconds."""
    facts = ((5, "r0", "first"), (MINUTE // 6, "r9", "new:0"))
    assert folded(*facts, named_at=5, is_behind=True) == [("r0", None), ("r9", MINUTE // 6)]
    assert folded(*facts, named_at=5) == [("r0", None)], "by another log: of another clock"


def test_a_creation_after_the_last_change_of_a_znode_is_told_by_the_log_alone() -> None:
    facts = ((5, "r0", "first"), (4, "77", STORED), (9 * MINUTE, "r9", "new:0"))
    assert folded(*facts, named_at=5, stored_until=8 * MINUTE) == [("77", None), ("r9", 9 * MINUTE)]
    assert folded(*facts, named_at=5, stored_until=10 * MINUTE) == [("77", None)]


def test_partitions_added_later_are_of_the_same_incarnation() -> None:
    assert folded((5, "r0", "first"), (5, "r0", "new:0"), (9 * MINUTE, "r8", "new:1")) == [("r0", None)]


def test_logs_that_begin_after_the_creation_belong_to_the_znode() -> None:
    assert folded((5 * MINUTE, "r0", "first"), (MINUTE, "77", STORED)) == [("77", None)]


def test_logs_that_begin_before_the_znode_was_created_again() -> None:
    assert folded(
        (MINUTE, "r0", "first"), (MINUTE, "r0", "new:0"), (50 * MINUTE, "77", STORED), (50 * MINUTE + 9, "r9", "new:0")
    ) == [("r0", None), ("77", 50 * MINUTE)]


@pytest.mark.parametrize(("seconds", "is_behind"), [(540, False), (10, True)])
def test_logs_of_before_a_znode_whose_topic_they_show_created_again(seconds: int, is_behind: bool) -> None:
    """What they tell of first was created before they begin."""
    stored, new = (seconds * SECOND, "77", STORED), (seconds * SECOND + 9, "r9", "new:0")
    assert folded((5, "r0", "first"), stored, new, named_at=5, is_behind=is_behind) == [
        ("r0", None),
        ("77", seconds * SECOND),
    ]


def test_a_cluster_created_again_creates_its_topics_again() -> None:
    assert folded((5, "r0", "first"), (70 * MINUTE, "r7", "again", 69 * MINUTE)) == [("r0", None), ("r7", 69 * MINUTE)]


def test_a_creation_that_is_known_is_the_one_of_the_cluster_created_again() -> None:
    again = (70 * MINUTE, "r7", "again", 69 * MINUTE)
    assert folded((5, "r0", "first"), (6, "a", "new:0"), again, (70 * MINUTE, "r7", "new:0")) == [
        ("r0", None),
        ("r7", 70 * MINUTE),
    ]
    assert folded((5, "r0", "first"), again, (70 * MINUTE - 9, "77", STORED)) == [
        ("r0", None),
        ("77", 70 * MINUTE - 9),
    ]


def test_a_topic_older_than_the_logs_is_another_than_that_of_the_cluster_created_again() -> None:
    again = (70 * MINUTE, "r7", "again", 69 * MINUTE)
    assert folded((5, "r0", "first"), again, (70 * MINUTE, "r7", "new:0")) == [("r0", None), ("r7", 70 * MINUTE)]


def test_another_topic_id_in_brokers_lines_is_another_topic() -> None:
    one = ((5, "r0", "first"), (6, "r1", "new:0"), (7, "a", "id:A"), (MINUTE, "a2", "id:A"))
    assert folded(*one, (9 * MINUTE, "b", "id:B")) == [("r0", None), ("b", 9 * MINUTE)]
    # the creation of which another line tells
    new = (9 * MINUTE - 5, "r9", "new:0")
    assert folded(*one, new, (9 * MINUTE, "b", "id:B")) == [("r0", None), ("r9", 9 * MINUTE - 5)]
    assert folded(*one, (9 * MINUTE, "B", STORED), (MINUTE + 5, "b", "id:B")) == [("r0", None), ("B", 9 * MINUTE)]
    # a broker that was not told of the new topic
    assert folded(*one, (MINUTE - 1, "b", "id:B")) == [("r0", None)]
