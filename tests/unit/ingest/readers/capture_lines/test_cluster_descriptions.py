"""Descriptions of a cluster: what brokers answer is kept as they say it, bad lines are named, the cluster is found."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ingest.capture import CaptureParams, run_capture
from ingest.containers.storage import list_files
from ingest.files.attribution import Attributed, attribute
from ingest.files.content_facts import DescriptionFacts
from ingest.files.inspection import inspect
from ingest.files.znode_facts import CLUSTER_METADATA
from ingest.lake.tables.bronze import CLUSTER_DESCRIPTIONS, DESCRIPTION_TYPES
from ingest.readers.batches import kept_batches
from ingest.readers.capture_lines.cluster_descriptions import read
from ingest.readers.work import Kept, Rejected, WorkItem
from ingest.run.planning import Action, Planned
from ingest.run.work_items import work_items
from tests.unit.ingest.capture.fake_broker import SINCE_4_0, FakeBroker, FakeCluster

ITEM = WorkItem("/f", None, "f", "cluster_description", "c", None, "f", "f", 0)
HEAD: dict[str, Any] = {"sent_at": 1795232322495.5, "received_at": 1795232322585.3, "broker": 1}
CLUSTER: dict[str, Any] = {
    "description": "cluster",
    "cluster_id": "fake",
    "controller_id": 2,
    "topics": 1,
    "brokers": [{"id": 1, "host": "kafka-1", "port": 9092, "rack": None, "is_fenced": None}],
}
PARTITION: dict[str, Any] = {
    "partition": 3,
    "error_code": 9,
    "leader": 2,
    "leader_epoch": 5,
    "replicas": [2, 1],
    "isr": [2],
    "offline_replicas": [1],
}
TOPIC: dict[str, Any] = {
    "description": "topic",
    "topic": "orders",
    "topic_id": "MbsgeNDwTpyOsjxcXYWlCw",
    "is_internal": False,
    "error_code": 0,
    "partitions": [PARTITION],
}
GONE: dict[str, Any] = {"description": "topic_gone", "topic": "orders"}
LOG_DIR: dict[str, Any] = {"log_dir": "/data", "error_code": 0, "total_bytes": 9, "usable_bytes": -1, "topics": 4}
REPLICA: dict[str, Any] = {"partition": 3, "size": 1 << 40, "offset_lag": 7, "is_future": True}
LOG_DIR_TOPIC: dict[str, Any] = {"log_dir": "/data", "topic": "orders", "partitions": [REPLICA]}
MOVED: dict[str, Any] = {
    "topic": "orders",
    "partition": 3,
    "replicas": [2, 1],
    "adding_replicas": [1],
    "removing_replicas": [],
}
MOVES: dict[str, Any] = {"reassignments": [MOVED]}
#: Of clusters without ZooKeeper only.
OF_KRAFT = ("quorum", "registered_brokers", "topic_elr")
VOTER: dict[str, Any] = {
    "id": 1,
    "directory_id": "k2lcu5IZtQyp8ZgwE4jzHQ",
    "log_end_offset": 77,
    "last_fetch_at": 1795232322400,
    "last_caught_up_at": -1,
}
QUORUM: dict[str, Any] = {
    "description": "quorum",
    "leader": 1,
    "leader_epoch": 5,
    "high_watermark": 76,
    "voters": [VOTER],
    "observers": [VOTER | {"id": 4, "directory_id": None, "last_fetch_at": None, "last_caught_up_at": None}],
}
REGISTERED: dict[str, Any] = {
    "description": "registered_brokers",
    "brokers": [{"id": 1, "host": "a", "port": 9092, "rack": None, "is_fenced": True}],
}
ELR: dict[str, Any] = {
    "description": "topic_elr",
    "topic": "t",
    "partitions": [{"partition": 3, "eligible_leader_replicas": [1], "last_known_elr": []}],
}


def line(entry: dict[str, Any], **changes: Any) -> bytes:
    """A line of a broker's answer; what is changed to ``...`` is left out."""
    return json.dumps({key: value for key, value in (HEAD | entry | changes).items() if value is not ...}).encode() + (
        b"\n"
    )


def read_all(data: bytes, item: WorkItem = ITEM) -> list[Kept | Rejected]:
    rows = list(read(item, [data]))
    assert sum(row.place.length for row in rows) == len(data)
    return rows


def kept(entry: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The columns of a line that have a value, but for those of its place and its instants."""
    (row,) = read_all(line(entry, **changes))
    assert isinstance(row, Kept), row
    (batch,) = kept_batches(CLUSTER_DESCRIPTIONS, ITEM, [row])
    (values,) = batch.to_pylist()
    assert {name: values[name] for name in row.values if not name.endswith("_at")} == {
        name: value for name, value in row.values.items() if not name.endswith("_at")
    }
    return {
        name: value
        for name, value in row.values.items()
        if value is not None and name not in ("sent_at", "received_at", "broker_id")
    }


class TestGoodLines:
    def test_a_line_says_who_answered_and_when(self) -> None:
        (row,) = read_all(line(GONE))
        assert isinstance(row, Kept)
        assert (row.values["sent_at"], row.values["received_at"]) == (1795232322495500, 1795232322585300)
        assert row.values["broker_id"] == 1
        assert set(row.values) <= set(CLUSTER_DESCRIPTIONS.column_names)

    def test_a_cluster(self) -> None:
        assert kept(CLUSTER) == {
            "description_type": "cluster",
            "metadata_cluster_id": "fake",
            "controller_id": 2,
            "topics_count": 1,
            "brokers": [{"broker_id": 1, "host": "kafka-1", "port": 9092, "rack": None, "is_fenced": None}],
        }

    def test_a_topic(self) -> None:
        assert kept(TOPIC) == {
            "description_type": "topic",
            "topic": "orders",
            "topic_id": "MbsgeNDwTpyOsjxcXYWlCw",
            "is_internal": False,
            "error_code": 0,
            "partitions": [
                {
                    "partition_id": 3,
                    "error_code": 9,
                    "leader": 2,
                    "leader_epoch": 5,
                    "replicas": [2, 1],
                    "isr": [2],
                    "offline_replicas": [1],
                }
            ],
        }
        assert kept(GONE) == {"description_type": "topic_gone", "topic": "orders"}

    def test_a_log_directory_and_what_is_in_it(self) -> None:
        assert kept(LOG_DIR) == {
            "description_type": "log_dir",
            "log_dir": "/data",
            "error_code": 0,
            "total_bytes": 9,
            "usable_bytes": -1,
            "topics_count": 4,
        }
        assert kept(LOG_DIR_TOPIC) == {
            "description_type": "log_dir_topic",
            "log_dir": "/data",
            "topic": "orders",
            "replicas": [{"partition_id": 3, "size_bytes": 1 << 40, "offset_lag": 7, "is_future": True}],
        }

    def test_reassignments_and_that_there_is_none(self) -> None:
        moved = {
            "topic": "orders",
            "partition_id": 3,
            "replicas": [2, 1],
            "adding_replicas": [1],
            "removing_replicas": [],
        }
        assert kept(MOVES) == {"description_type": "reassignments", "reassignments": [moved]}
        assert kept(MOVES, reassignments=[]) == {"description_type": "reassignments", "reassignments": []}

    def test_what_a_version_of_the_request_lacks_is_null(self) -> None:
        old = {"leader_epoch": None, "offline_replicas": None}
        assert "metadata_cluster_id" not in kept(CLUSTER, cluster_id=None, controller_id=...)
        (partition,) = kept(TOPIC, topic_id=None, is_internal=None, partitions=[PARTITION | old])["partitions"]
        assert (partition["leader_epoch"], partition["offline_replicas"], partition["isr"]) == (None, None, [2])
        assert "total_bytes" not in kept(LOG_DIR, total_bytes=None, usable_bytes=None)

    def test_what_brokers_may_say_is_no_damage(self) -> None:
        nobody = kept(TOPIC, error_code=5, partitions=[PARTITION | {"leader": -1, "leader_epoch": -1, "isr": []}])
        assert (nobody["error_code"], nobody["partitions"][0]["leader"]) == (5, -1)
        assert kept(CLUSTER, controller_id=-1, brokers=[], topics=0)["controller_id"] == -1
        racked = kept(CLUSTER, brokers=[{"id": 0, "host": "", "port": 0, "rack": ""}])["brokers"]
        assert racked == [{"broker_id": 0, "host": "", "port": 0, "rack": "", "is_fenced": None}]
        assert kept(LOG_DIR_TOPIC, partitions=[REPLICA | {"offset_lag": -1}], more=[{}])["replicas"]

    def test_a_quorum(self) -> None:
        found = kept(QUORUM)
        assert (found["quorum_leader"], found["quorum_epoch"], found["quorum_high_watermark"]) == (1, 5, 76)
        assert found["voters"] == [
            {
                "replica_id": 1,
                "directory_id": "k2lcu5IZtQyp8ZgwE4jzHQ",
                "log_end_offset": 77,
                "last_fetch_at_ms": 1795232322400,
                "last_caught_up_at_ms": -1,
            }
        ]
        assert [(one["replica_id"], one["last_fetch_at_ms"]) for one in found["observers"]] == [(4, None)]

    def test_fenced_brokers_and_eligible_leaders(self) -> None:
        assert [one["is_fenced"] for one in kept(REGISTERED)["brokers"]] == [True]
        assert kept(ELR)["elr"] == [{"partition_id": 3, "eligible_leader_replicas": [1], "last_known_elr": []}]
        assert kept(ELR, partitions=[])["elr"] == []

    def test_the_line_says_whose_it_is_before_the_file_does(self) -> None:
        rows = read_all(line(GONE) + line(GONE, broker=...) + line(GONE, broker=None), replace(ITEM, broker_id=9))
        assert [row.values["broker_id"] for row in rows if isinstance(row, Kept)] == [1, 9, 9]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"{broken\n", "no JSON"),
        (b"[1]\n", "no JSON object"),
        (b"\n", "empty line"),
        (b"{}\n", "no description of a cluster"),
        (line({"description": "quota"}), "no description of a cluster"),
        (line({"description": ["cluster"]}), "no description of a cluster"),
        (line({"description": {}}), "no description of a cluster"),
        (line(CLUSTER, sent_at=...), "a description of a cluster whose sent_at or received_at is no instant"),
        (line(CLUSTER, received_at=1e300), "no instant"),
        (line(CLUSTER, received_at=float("nan")), "no instant"),
        (line(CLUSTER, received_at=True), "no instant"),
        (line(CLUSTER, received_at=HEAD["sent_at"] - 1), "before it was asked for"),
        (line(CLUSTER, broker=...), "nothing says which broker answered"),
        (line(CLUSTER, broker="one"), "whose broker is not a number in range"),
        (line(CLUSTER, broker=-1), "whose broker is not a number in range"),
        (line(CLUSTER, brokers=..., topics=None), "a description of a cluster without brokers, topics"),
        (line(CLUSTER, brokers={}), "whose brokers is no list"),
        (line(CLUSTER, brokers=[7]), "whose brokers [0] is no object"),
        (line(CLUSTER, brokers=[None]), "whose brokers [0] is no object"),
        (line(CLUSTER, brokers=[{"id": 1, "host": "a"}]), "whose brokers [0] has no port"),
        (line(CLUSTER, brokers=[{"id": 1, "host": "\ud800", "port": 1}]), "whose brokers [0] host is no text"),
        (line(CLUSTER, cluster_id=5), "whose cluster_id is no text"),
        (line(CLUSTER, controller_id=1 << 31), "whose controller_id is not a number in range"),
        (line(CLUSTER, topics=1.0), "whose topics is not a number in range"),
        (line(TOPIC, topic=""), "whose topic is empty"),
        (line(TOPIC, topic="\udfff"), "whose topic is no text"),
        (line(TOPIC, partitions=...), "a description of a topic without partitions"),
        (line(TOPIC, is_internal="no"), "whose is_internal is neither true nor false"),
        (line(TOPIC, error_code=1 << 15), "whose error_code is not a number in range"),
        (
            line(TOPIC, partitions=[PARTITION, PARTITION | {"isr": [1, None]}]),
            "whose partitions [1] isr [1] is not a number in range",
        ),
        (line(TOPIC, partitions=[PARTITION | {"leader": True}]), "whose partitions [0] leader is not a number"),
        (line(TOPIC, partitions=[PARTITION | {"partition": -1}]), "whose partitions [0] partition is not a number"),
        (line(TOPIC, partitions=[PARTITION | {"replicas": 10**400}]), "whose partitions [0] replicas is no list"),
        (line(GONE, topic=...), "a topic that is gone without topic"),
        (line(LOG_DIR, log_dir=None), "a description of a log directory without log_dir"),
        (line(LOG_DIR, total_bytes=1 << 63), "whose total_bytes is not a number in range"),
        (line(LOG_DIR_TOPIC, partitions=[REPLICA | {"is_future": 0}]), "whose partitions [0] is_future is neither"),
        (line(QUORUM, voters=...), "a description of a quorum without voters"),
        (line(QUORUM, voters=[VOTER | {"id": -2}]), "whose voters [0] id is not a number in range"),
        (line(ELR, partitions=[{"partition": 0}]), "whose partitions [0] has no eligible_leader_replicas"),
        (line(REGISTERED, brokers=None), "a description of the brokers that are registered without brokers"),
        (line(MOVES, reassignments=None), "an answer to ListPartitionReassignments without reassignments"),
        (line(MOVES, reassignments=[{"topic": "t"}]), "whose reassignments [0] has no partition"),
    ],
)
def test_a_bad_line_says_what_is_wrong_and_costs_no_other(data: bytes, says: str) -> None:
    (row,) = read_all(data)
    assert isinstance(row, Rejected), row
    assert says in row.reason
    assert [type(row) for row in read_all(line(TOPIC) + data + line(GONE))] == [Kept, Rejected, Kept]


class TestWhatBrokersAnswer:
    """The lines that the capture writes of brokers that know one version of each request only."""

    @pytest.fixture
    def cluster(self) -> Iterator[FakeCluster]:
        made = FakeCluster({("orders", 0): ([1, 2], 12, 10), ("orders", 1): ([2, 1], 7, 7), ("audit", 0): ([2], 0, 0)})
        made.reassigning = {("orders", 0): ([3], [2])}
        yield made
        for broker in made.brokers.values():
            broker.close()

    @pytest.mark.parametrize("version", range(13))
    def test_every_line_of_every_version_is_kept(self, cluster: FakeCluster, tmp_path: Path, version: int) -> None:
        known = {**SINCE_4_0, 3: (version, version), 35: (min(version, 4),) * 2}
        one, _ = FakeBroker(cluster, 1, known), FakeBroker(cluster, 2, known)
        out = tmp_path / "c"
        run_capture(CaptureParams(str(out), bootstrap_servers=one.address, rounds=1), threading.Event())
        rows = [
            row
            for name in ("descriptions", "log-dirs", "reassignments")
            if version > 0 or name != "reassignments"  # the answer of version 0 names no controller to ask
            for row in read_all((out / f"{name}.jsonl").read_bytes())
        ]
        found = [row.values for row in rows if isinstance(row, Kept)]
        assert len(found) == len(rows), [row for row in rows if isinstance(row, Rejected)]
        left_out = {"topic_gone", *OF_KRAFT} if version > 0 else {"topic_gone", *OF_KRAFT, "reassignments"}
        assert {row["description_type"] for row in found} == set(DESCRIPTION_TYPES) - left_out
        told = {row["metadata_cluster_id"] for row in found if row["description_type"] == "cluster"}
        assert told == {"fake" if version >= 2 else None}
        (partition,) = (
            part
            for row in found
            if row["broker_id"] == 1 and row["description_type"] == "topic" and row["topic"] == "orders"
            for part in row["partitions"]
            if part["partition_id"] == 1
        )
        assert (partition["leader"], partition["replicas"], partition["isr"]) == (2, [2, 1], [2, 1])
        assert (partition["leader_epoch"] is None) == (version < 7)
        assert (partition["offline_replicas"] is None) == (version < 5)

    def test_a_capture_by_its_brokers_alone_knows_its_cluster(self, cluster: FakeCluster, tmp_path: Path) -> None:
        one, _ = FakeBroker(cluster, 1), FakeBroker(cluster, 2)
        out = tmp_path / "c"
        run_capture(CaptureParams(str(out), bootstrap_servers=one.address, rounds=1), threading.Event())
        found, warnings = owners(out)
        assert {name: owner.cluster_id for name, owner in found.items()} == dict.fromkeys(
            ("descriptions.jsonl", "log-dirs.jsonl", "reassignments.jsonl", "probes-1.jsonl", "probes-2.jsonl"), "fake"
        )
        assert warnings == []
        assert {owner.file.status for owner in found.values()} == {"ingested"}
        assert {owner.broker_id for name, owner in found.items() if not name.startswith("probes")} == {None}


def owners(folder: Path, **options: Any) -> tuple[dict[str, Attributed], list[str]]:
    """The files below a folder by name, and the warnings."""
    settings: dict[str, Any] = {"cluster_id": None, "brokers": {}, "known_cluster": None} | options
    files = [file for found in list_files(str(folder)) for file in inspect(found)]
    attributed, warnings = attribute(files, **settings)
    return {owner.file.source_file: owner for owner in attributed}, warnings


class TestOwners:
    def test_the_cluster_is_found_however_the_bytes_are_cut(self) -> None:
        data = line(TOPIC) + line(CLUSTER) + line(CLUSTER, cluster_id="other")
        for size in range(1, 200):
            facts = DescriptionFacts()
            for start in range(0, len(data), size):
                facts.take(data[start : start + size])
            assert facts.result() == {
                "cluster_id": "fake",
                "cluster_rank": CLUSTER_METADATA,
                "cluster_at": "1795232322495",
            }

    def test_what_only_looks_like_an_id_is_none(self) -> None:
        for entry in (
            line(CLUSTER, cluster_id=None),
            line(CLUSTER, cluster_id="a b"),
            line(GONE, topic='"cluster_id":"x"'),
        ):
            facts = DescriptionFacts()
            facts.take(entry)
            assert facts.result() == {}

    def test_several_ids_in_one_folder_warn_as_those_of_logs_do(self, tmp_path: Path) -> None:
        (tmp_path / "descriptions.jsonl").write_bytes(line(CLUSTER))
        (tmp_path / "meta.properties").write_bytes(b"version=0\nbroker.id=1\ncluster.id=other\n")
        (tmp_path / "log-dirs.jsonl").write_bytes(line(LOG_DIR))
        found, warnings = owners(tmp_path)
        clusters = {name: owner.cluster_id for name, owner in found.items()}
        assert clusters["log-dirs.jsonl"].startswith("unknown-")
        assert clusters == clusters | {"descriptions.jsonl": "fake", "meta.properties": "other"}
        (warning,) = warnings
        assert "files of several clusters (fake, other)" in warning
        given, warnings = owners(tmp_path, cluster_id="mine")
        assert {owner.cluster_id for owner in given.values()} == {"mine"}
        assert warnings == []

    def test_a_broker_s_files_beside_them_do_not_make_descriptions_that_broker_s(self, tmp_path: Path) -> None:
        (tmp_path / "broker-1").mkdir()
        (tmp_path / "broker-1" / "meta.properties").write_bytes(b"version=0\nbroker.id=1\n")
        (tmp_path / "descriptions.jsonl").write_bytes(line(CLUSTER))
        (tmp_path / "broker-1" / "lines.jsonl").write_bytes(line(GONE, broker=...))
        found, _ = owners(tmp_path)
        assert found["descriptions.jsonl"].broker_id is None
        assert found["broker-1/lines.jsonl"].broker_id == 1
        given, _ = owners(tmp_path, brokers={str(tmp_path / "descriptions.jsonl"): 5})
        assert given["descriptions.jsonl"].broker_id == 5

    def test_a_file_that_grows_stays_the_same_whoever_answers_next(self, tmp_path: Path) -> None:
        path = tmp_path / "1795232322495.jsonl"
        whole = line(CLUSTER) + line(TOPIC) + line(CLUSTER, broker=2) + line(GONE, broker=2)
        cut = len(line(CLUSTER) + line(TOPIC))
        path.write_bytes(whole[: cut + 20])
        (first,) = owners(tmp_path)[0].values()
        assert first.file.is_growing
        assert (first.file.ingestible_bytes, first.file.captured_at_ms) == (cut, None)
        path.write_bytes(whole)
        (later,) = owners(tmp_path)[0].values()
        assert later.file_id == first.file_id
        entry = Planned(later, Action.GROWN, later.file_id)
        (item,) = work_items([entry], {entry.key: (len(line(CLUSTER)), 2)}, {}, "UTC")
        rows = read_all(whole[item.offset :], item)
        assert [(row.place.line, row.values["broker_id"]) for row in rows if isinstance(row, Kept)] == [
            (2, 1),
            (3, 2),
            (4, 2),
        ]
