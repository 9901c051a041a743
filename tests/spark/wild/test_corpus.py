"""Extracts of folders that people published, each of a shape that once fooled the program: nobody is accused falsely.

An extract below ``tests/data/wild`` is a few lines and files as they were written; only names of hosts and of people's
folders are replaced. All are clusters of the lake that tests share. What is true of an extract is listed with it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pytest

from checks.results import CheckReport
from tests.support.lakes.shared import EXTRACTS, SharedLake

#: The first test may pay for the lake that all share.
pytestmark = pytest.mark.timeout(1800)

#: By extract: (severity, divergence type) of every finding above info that is true of it.
TRUE: Final[dict[str, list[tuple[str, str]]]] = {
    # one broker that starts again at the same leader epoch, its older logs rotated away; a topic created again after
    # the last snapshot of znodes
    "restart-and-recreation": [],
    # brokers of one folder that rolled each other's hourly logs away; a cluster between whose hours another one ran, of
    # which nothing states the id: controller epoch 26 and then 5, leader epoch 27 and then 10
    "hours-of-two-clusters": [],
    # three clusters one after the other in one folder; of the last one an election of 0.10.2 from outside of the ISR
    "one-folder-of-several-clusters": [("warning", "unclean_election")],
    # ten clusters one after the other, all in one file of each log
    "ten-clusters-in-an-hour": [],
    # two clusters in one state-change.log of three weeks: controller epoch 10, then 1 and 6
    "months-in-one-file": [],
    # a topic created again every few minutes, of which ZooKeeper's snapshots show two creations
    "topic-created-again-and-again": [],
    # a topic deleted, and created again nine seconds later, ten seconds after its log begins
    "deleted-and-created-again-in-seconds": [],
    # two clusters side by side in one folder: the one's controller epochs 7, 8 and 9, between them the other's 1 and 2
    "two-clusters-take-turns": [],
    # a controller's tenure in logs that were rolled each hour: partitions of one replica are created in one, and their
    # brokers stop in the next
    "hours-of-one-tenure": [],
    # hours of three brokers of one folder; of the controller's tenure only later lines are left
    "lines-of-three-brokers-rolled-away": [],
    # controller epochs 1, 2, 3 and then 1 again within an hour: ZooKeeper was wiped; the line
    # that names a cluster is made
    "epochs-fall-in-an-hour": [],
    # two brokers of one folder, the starts rolled away: controller epoch 5, and 45 minutes later another one's epoch 1
    "two-brokers-after-zookeeper-was-wiped": [],
    # a clock that was set back by three and a half seconds between the sending of requests and their receipt
    "clock-set-back-in-a-request": [],
    # a broker that hung for 26 minutes as it opened a log, and then for eleven: what its controller sent again and
    # again it refused at last, by several threads at once
    "received-again-while-it-hung": [],
    # started with log.dirs=/tmp/kafka-logs, and then with another directory, which it creates
    "other-log-dirs": [("warning", "log_directory_wiped")],
    # the log directory went away while the broker ran
    "data-removed-while-running": [("warning", "checkpoint_missing")],
    # a log directory that was removed twice, under two clusters and then under one
    "log-directory-made-twice": [("error", "log_directory_wiped")],
    # a node of KRaft whose storage was formatted anew for another cluster, in a file that names none
    "formatted-anew": [("warning", "log_directory_wiped")],
    # the hour of server.log that held a start was overwritten by ZooKeeper's, started in the same folder
    "hour-of-a-start-overwritten": [],
    # five weeks of clusters one after the other, in hourly logs that two brokers of one folder rolled away for each
    # other: controller epoch 23 and then 2, 4 and then 2, 6 and then 1, some without the first election; a deletion
    # while the only broker is being shut down
    "weeks-of-clusters-of-two-brokers": [],
    # clusters one after the other in one folder: one broker, two, five
    "clusters-of-five-brokers-in-one-folder": [],
    # a cluster a day, each of controller epoch 1, the older ones without an id
    "first-elections-rolled-away": [],
    # three brokers one day, and on the next one broker alone: controller epoch 5 and then 2
    "one-broker-after-three": [],
    # a topic of a cluster with ZooKeeper, and a day later one of its name with another id, of a broker without
    "topic-of-another-id": [],
    # the Thai calendar: 2565 is 2022
    "buddhist-years": [],
    # two quorums of three nodes, started from Compose files that set one cluster id
    "one-id-of-two-quorums": [],
    # a node that was formatted alone, and a quorum of the same id whose first node has the same number
    "a-node-alone-with-the-id-of-a-quorum": [],
}
#: By extract: how many clusters with a metadata log it holds.
WITH_METADATA_LOG: Final = {"one-id-of-two-quorums": 2, "a-node-alone-with-the-id-of-a-quorum": 2}


@pytest.fixture(scope="module")
def findings(extracts: SharedLake, shared_checks: CheckReport) -> dict[str, list[Any]]:
    """By extract: its findings above info."""
    from ingest.lake.tables.bronze import INGESTED_FILES
    from ingest.lake.tables.gold import DIVERGENCES

    lake = extracts.of(*extracts.extracts)
    assert any("543 before" in warning for warning in extracts.warnings)
    logged = lake.read(INGESTED_FILES).where("cluster_id = 'g5YEYUEAQqOD3K9YTYyF4w'").agg({"last_event_time": "max"})
    assert logged.collect()[0][0].year == 2022
    assert [one for one in shared_checks.failed_gates if one.startswith("gold.")] == [], "gold would not be published"
    found: dict[str, list[Any]] = {name: [] for name in TRUE}
    for row in lake.read(DIVERGENCES).where("severity <> 'info'").collect():
        found[extracts.extracts[row["cluster_id"]]].append(row)
    return found


def test_every_extract_is_judged() -> None:
    assert sorted(TRUE) == sorted(folder.name for folder in EXTRACTS.iterdir() if folder.is_dir())


def test_no_finding_above_info_is_false(findings: dict[str, list[Any]], capsys: pytest.CaptureFixture[str]) -> None:
    false: Counter[str] = Counter()
    explained: list[str] = []
    for name, rows in findings.items():
        unexpected = Counter((row["severity"], row["divergence_type"]) for row in rows) - Counter(TRUE[name])
        for row in rows:
            if unexpected[row["severity"], row["divergence_type"]] > 0:
                unexpected[row["severity"], row["divergence_type"]] -= 1
                false[row["severity"]] += 1
                explained.append(f"{name}: {row['severity']} {row['rule_id']}: {row['explanation']}")
    with capsys.disabled():
        counts = f"{false['error']} false errors, {false['warning']} false warnings"
        print(f"\n{len(findings)} extracts of public folders: {counts}")
    assert not explained, "\n".join(explained)


def test_every_quorum_of_an_extract_is_a_cluster_with_its_own_history(extracts: SharedLake) -> None:
    from ingest.lake.tables.events import METADATA_CHANGES

    rows = extracts.lake.read(METADATA_CHANGES).where("subject_kind = 'broker'").select("cluster_id").distinct()
    ids = [row["cluster_id"] for row in rows.collect()]
    assert Counter(extracts.extracts[id_] for id_ in ids if id_ in extracts.extracts) == WITH_METADATA_LOG


@pytest.mark.parametrize("name", TRUE)
def test_what_is_true_of_an_extract_is_found(findings: dict[str, list[Any]], name: str) -> None:
    assert not Counter(TRUE[name]) - Counter((row["severity"], row["divergence_type"]) for row in findings[name])
