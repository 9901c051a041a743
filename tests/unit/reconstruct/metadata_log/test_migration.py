"""R60 on a cluster that left ZooKeeper: nothing differs, and what is planted is found."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pytest

from reconstruct.findings.verdicts import CANNOT_BE_JUDGED, Verdicts
from reconstruct.metadata_log.migration import DELETION, Migration, Written, judge_migration
from tests.support.metadata_log import MIGRATED, cluster_log
from tests.support.migration import migration_of

MIGRATION, TOPICS = migration_of(MIGRATED)
#: A field of each kind of znode, and another value of it.
CHANGES: Final[dict[str, dict[str, Any]]] = {
    "partition": {"leader": 9, "leader_epoch": 77, "isr": [9]},
    "topic": {"topic_id": "AAAAAAAAAAAAAAAAAAAAAA", "partitions": {}},
    "config": {"config": {"min.insync.replicas": "7"}},
}

NO_SETTINGS: Final = '{"version":1,"config":{}}'


def judged(topic: str, rows: Sequence[Written], migration: Migration = MIGRATION) -> Verdicts:
    verdicts = Verdicts()
    judge_migration(topic, rows, migration, verdicts)
    return verdicts


def last_before(rows: Sequence[Written], zxid: int) -> list[Written]:
    """Of each znode the last write up to a transaction."""
    found = {(row.kind, row.partition_id): row for row in rows if row.is_znode and row.place <= zxid}
    return list(found.values())


def test_what_a_real_migration_took_and_wrote_is_what_its_records_made() -> None:
    counts: Counter[Any] = Counter()
    for topic, rows in TOPICS.items():
        verdicts = judged(topic, rows)
        assert verdicts.findings == []
        counts += verdicts.counts
    assert counts == {("R60", "kept"): 40}


@pytest.mark.parametrize("end", ["first", "last"])
def test_every_znode_that_differs_is_found(end: str) -> None:
    count, zxid = 0, getattr(MIGRATION, end).zxid
    for topic, rows in TOPICS.items():
        for row in last_before(rows, zxid):
            for name, value in CHANGES[row.kind].items():
                wrong = replace(row, value=json.dumps({**json.loads(row.value or "{}"), name: value}))
                bent = [wrong if one is row else one for one in rows]
                assert judged(topic, bent).findings, (topic, row.kind, name)
                count += 1
    assert count >= 20


@pytest.mark.parametrize("end", ["first", "last"])
def test_what_the_records_lack_is_found(end: str) -> None:
    """A topic, a partition or a topic's settings that the migration lost."""
    up_to = getattr(MIGRATION, end)
    lost = 0
    for topic, rows in TOPICS.items():
        for kind, number in {(row.kind, row.partition_id) for row in rows if row.is_znode}:
            was_there = any(
                (row.kind, row.partition_id) == (kind, number) and row.value and row.value != NO_SETTINGS
                for row in last_before(rows, up_to.zxid)
            )
            bent = [row for row in rows if row.is_znode or (row.kind, row.partition_id) != (kind, number)]
            if was_there:
                lost += 1
                assert any(up_to.evidence_id in one.evidence for one in judged(topic, bent).findings)
    assert lost >= 8


def test_a_znode_of_which_a_write_is_hidden_cannot_be_judged() -> None:
    rows = TOPICS["orders"]
    hidden = [
        replace(row, is_known=False) if row.is_znode and row.place > MIGRATION.first.zxid else row for row in rows
    ]
    counts = judged("orders", hidden).counts
    assert counts["R60", CANNOT_BE_JUDGED] >= 3
    assert judged("orders", hidden).findings == []


def test_a_znode_that_is_first_known_later_does_not_say_that_it_was_not_there() -> None:
    unjudged = 0
    for topic, rows in TOPICS.items():
        later = [replace(row, place=row.place + MIGRATION.last.zxid) if row.is_znode else row for row in rows]
        verdicts = judged(topic, later)
        assert verdicts.findings == [], topic
        unjudged += verdicts.counts["R60", CANNOT_BE_JUDGED]
    assert unjudged >= 20


def test_a_topic_of_which_no_znode_is_known_cannot_be_judged() -> None:
    for topic, rows in TOPICS.items():
        verdicts = judged(topic, [row for row in rows if not row.is_znode])
        assert (verdicts.findings, dict(verdicts.counts)) == ([], {("R60", CANNOT_BE_JUDGED): 2})


def test_a_topic_of_which_no_record_is_known_was_lost_if_the_log_is_whole() -> None:
    for topic, rows in TOPICS.items():
        znodes = [row for row in rows if row.is_znode]
        assert judged(topic, znodes).findings
        cut = replace(
            MIGRATION,
            first=replace(MIGRATION.first, is_log_whole=False),
            last=replace(MIGRATION.last, is_log_whole=False),
        )
        verdicts = judged(topic, znodes, cut)
        assert (verdicts.findings, dict(verdicts.counts)) == ([], {("R60", CANNOT_BE_JUDGED): 2})


def test_a_log_that_lacks_records_accuses_nobody() -> None:
    """Whichever is missing of those that concern a topic: only what it cannot have made is judged."""
    offsets = sorted({row.place for rows in TOPICS.values() for row in rows if not row.is_znode})
    offsets = [offset for offset in offsets if offset <= MIGRATION.last.offset]
    counts: Counter[Any] = Counter()
    for offset in offsets:
        migration, topics = migration_of(MIGRATED, {offset})
        assert not migration.last.is_log_whole
        assert migration.first.is_log_whole is (offset > migration.first.offset)
        for topic, rows in topics.items():
            verdicts = judged(topic, rows, migration)
            assert verdicts.findings == [], (offset, topic)
            counts += verdicts.counts
    assert len(offsets) >= 50
    assert counts["R60", CANNOT_BE_JUDGED] >= 50
    assert counts["R60", "kept"] > 25 * len(offsets)


def test_a_log_that_ends_before_what_znodes_may_hold_is_not_whole() -> None:
    """Snapshots of znodes may show them further than the offset that they name."""
    log, _ = cluster_log(sorted(MIGRATED.glob("broker-*")))
    assert MIGRATION.first.is_log_whole
    assert MIGRATION.last.offset == log.told_end - 1
    shown = replace(MIGRATION.last, is_first=False)
    assert not shown.by(log).is_log_whole
    assert not replace(shown, next_offset=log.told_end).by(log).is_log_whole
    assert replace(MIGRATION.first, is_first=False, next_offset=log.told_end - 1).by(log).is_log_whole
    assert not MIGRATION.last.by(None).is_log_whole


def deletion(zxid: int, value: str | None) -> Written:
    return Written(True, DELETION, None, zxid, value, 0, f"{zxid}:deletion")


def test_a_topic_that_was_to_be_deleted_is_not_taken_over() -> None:
    znodes = [row for row in TOPICS["orders"] if row.is_znode]
    zxid = MIGRATION.first.zxid
    for pending in ([deletion(zxid - 9, "{}")], [deletion(zxid + 9, None)]):
        counts = judged("orders", [*znodes, *pending], replace(MIGRATION, last=MIGRATION.first)).counts
        assert counts == {("R60", CANNOT_BE_JUDGED): 1}
    done = [deletion(zxid - 9, "{}"), deletion(zxid - 8, None)]
    assert judged("orders", [*znodes, *done]).findings


def test_settings_that_a_topic_left_behind_are_not_taken_over() -> None:
    settings = [row for row in TOPICS["ledger"] if row.is_znode and row.kind == "config"]
    assert any(row.value != NO_SETTINGS for row in settings)
    verdicts = judged("ledger", settings)
    assert (verdicts.findings, {verdict for _, verdict in verdicts.counts}) == ([], {CANNOT_BE_JUDGED})


def test_a_partition_without_a_state_is_taken_over_as_a_new_one() -> None:
    rows = [row for row in TOPICS["orders"] if row.partition_id != 1 or not row.is_znode]
    taken = next(row for row in rows if row.partition_id == 1)
    state = json.loads(taken.value or "")
    new = {"leader": state["replicas"][0], "leader_epoch": 0, "isr": state["replicas"]}
    first = replace(MIGRATION, last=MIGRATION.first)
    assumed = [replace(row, value=json.dumps(state | new)) if row is taken else row for row in rows]
    assert judged("orders", assumed, first).findings == []
    other = [replace(row, value=json.dumps(state | new | {"isr": [9]})) if row is taken else row for row in rows]
    assert judged("orders", other, first).findings
