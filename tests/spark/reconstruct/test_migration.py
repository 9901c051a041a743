"""A recording of a cluster that left ZooKeeper: one timeline of both worlds, and what the program says of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import pytest

from dashboards.questions.question import questions
from ingest.lake.delta import Lake
from ingest.lake.tables import TABLES
from jobs.ask.answer import rows_of
from jobs.sql.names import LakeNames
from reconstruct.metadata_log.spark.migration import migrations, of_one_before_take_over
from tests.support.lakes.shared import SharedLake
from tests.support.metadata_log import MIGRATED, cluster_log

#: What the node's meta.properties says.
CLUSTER: Final = "JaBLjUgdRtih0c9gguBFOw"


@pytest.fixture(scope="module")
def made(migrated: SharedLake) -> Lake:
    LakeNames(migrated.lake.spark, migrated.lake.root).name((questions()["migration"].sql,))
    return migrated.of(CLUSTER)


def rows(lake: Lake, table: str, where: str = "TRUE") -> list[Any]:
    return lake.read(TABLES[table]).where(where).collect()


def test_znodes_and_records_held_the_same(made: Lake) -> None:
    counts = {row["metric"]: row["value"] for row in rows(made, "quality.run_metrics", "subject = 'R60'")}
    assert counts == {"rule_kept_count": 40.0}


def test_the_log_is_known_to_be_whole_where_it_is_given(made: Lake) -> None:
    znodes = made.read(TABLES["silver.znode_changes"])
    log, _ = cluster_log(sorted(MIGRATED.glob("broker-*")))
    (cluster_id,) = migrations(znodes, {})
    for logs, is_whole in (({cluster_id: log}, True), ({}, False)):
        found = migrations(znodes, logs)[cluster_id]
        assert (found.first.is_first, found.last.is_first) == (True, True)
        assert (found.first.is_log_whole, found.last.is_log_whole) == (is_whole, is_whole)


def test_nobody_is_accused(made: Lake) -> None:
    found = rows(made, "gold.divergences", "severity != 'info'")
    assert [(row["rule_id"], row["explanation"]) for row in found] == []


def test_a_topic_is_one_incarnation_before_and_after(made: Lake) -> None:
    found = rows(made, "silver.topic_incarnations")
    assert sorted(row["topic"] for row in found) == ["ledger", "orders", "payments"]


def test_each_epoch_of_a_leader_is_decided_once(made: Lake) -> None:
    found = rows(made, "silver.leader_and_isr_timeline", "topic = 'orders' AND partition_id = 1")
    spans = sorted((row["valid_from"], row["valid_to"] or datetime.max, row["leader_epoch"]) for row in found)
    assert [one[1] for one in spans[:-1]] == [one[0] for one in spans[1:]]
    epochs = [epoch for _, _, epoch in spans]
    assert epochs == sorted(epochs)
    assert {row["inferred_from"] for row in found} <= {None, "commit_not_proven"}
    versions = [row["partition_epoch"] for row in sorted(found, key=lambda row: row["valid_from"])]
    assert versions == list(range(versions[0], versions[0] + len(versions)))


def test_the_quorum_s_controller_follows_that_of_zookeeper(made: Lake) -> None:
    found = sorted(rows(made, "silver.controller_epoch_timeline"), key=lambda row: row["valid_from"])
    assert [row["controller_id"] for row in found][-1] == 101
    assert found[-1]["valid_to"] is None
    assert found[-2]["end_reason"] == "migrated"
    assert found[-2]["valid_to"] == found[-1]["valid_from"]


def test_the_saved_question_says_that_nothing_was_lost(made: Lake) -> None:
    question = questions()["migration"]
    given = dict.fromkeys(question.parameters) | {"cluster": CLUSTER}
    (answer,) = rows_of(made.spark, question, given).collect()
    assert answer["taken_over_by"] == 101
    assert (answer["topics"], answer["partitions"], answer["differing"]) == (3, 7, 0)
    assert answer["pre_migration_at"] < answer["taken_over_at"] < answer["migrated_at"]
    assert answer["finished_at"] is None


def test_every_record_of_it_is_read(made: Lake) -> None:
    assert rows(made, "bronze.rejected_records") == []


def test_a_reader_of_one_topic_takes_no_znode_that_was_written_beside_the_records(made: Lake) -> None:
    znodes = made.read(TABLES["silver.znode_changes"])
    changes = made.read(TABLES["silver.metadata_changes"]).where("topic = 'orders'")
    of_orders = znodes.where("path LIKE '/brokers/topics/orders/%'")
    taken_over = next(iter(migrations(znodes, {}).values())).taken_over_zxid
    every = {row["mzxid"] for row in of_orders.collect()}
    kept = {row["mzxid"] for row in of_one_before_take_over(of_orders, znodes, changes).collect()}
    assert kept == {mzxid for mzxid in every if mzxid <= taken_over}
    assert kept < every
    # without the metadata log the znodes are all that is known
    told = of_one_before_take_over(of_orders, znodes, changes.limit(0)).collect()
    assert {row["mzxid"] for row in told} == every
