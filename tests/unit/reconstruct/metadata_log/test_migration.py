"""R60 on a cluster that left ZooKeeper: nothing differs, and what is planted is found."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pytest

from reconstruct.findings.verdicts import CANNOT_BE_JUDGED, Verdicts
from reconstruct.metadata_log.migration import Migration, Written, judge_migration
from tests.support.metadata_log import MIGRATED
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


@pytest.mark.parametrize("is_znode", [True, False], ids=["no records", "no znodes"])
def test_a_topic_of_which_one_side_knows_nothing_cannot_be_judged(is_znode: bool) -> None:
    """A log without its head, or znodes without those of topics, lost nothing."""
    for topic, rows in TOPICS.items():
        verdicts = judged(topic, [row for row in rows if row.is_znode is is_znode])
        assert (verdicts.findings, dict(verdicts.counts)) == ([], {("R60", CANNOT_BE_JUDGED): 1})
