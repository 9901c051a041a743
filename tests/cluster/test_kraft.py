"""A real cluster of Kafka 4, without ZooKeeper: captured by its brokers' answers and its machines' files alone."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic
from kafka.errors import KafkaError

from ingest.capture import BrokerFiles, CaptureParams, CaptureSummary, run_capture
from jobs.lab.machines.kraft import CLUSTER_ID, KraftCluster
from jobs.lab.machines.releases import BY_NAME
from jobs.lab.waiting import wait_for
from jobs.session.pinned_jars import JarsMissing
from tests.cluster.processes import processes_of
from tests.support.truth.offsets import bounds_of, read_evidence

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

ASSIGNMENT = {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}
RECORDS = 40
KILLED = 3
RELEASE = BY_NAME["4.1.1"]


@dataclass
class Captured:
    """What was captured while records were produced and one of three brokers was killed."""

    folder: Path
    summary: CaptureSummary
    acknowledged: dict[int, int]

    def lines(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    folder = tmp_path_factory.mktemp("kraft")
    out = folder / f"kraft-{RELEASE.version}"
    stop = threading.Event()
    summaries: list[CaptureSummary] = []
    try:
        cluster = KraftCluster(
            RELEASE, folder / "cluster", controller_ids=(1,), own_settings={"broker.session.timeout.ms": "4000"}
        )
    except JarsMissing as error:
        pytest.skip(str(error))
    with cluster:
        params = CaptureParams(
            str(out),
            bootstrap_servers=cluster.bootstrap,
            brokers=tuple(
                BrokerFiles(broker.broker_id, (str(broker.logs),), (str(broker.data),), (str(broker.properties),))
                for broker in cluster.brokers.values()
            ),
            interval_s=0.5,
            metadata_every=1,
            log_dirs_every=2,
        )
        thread = threading.Thread(target=lambda: summaries.append(run_capture(params, stop)))
        thread.start()
        try:
            acknowledged = _play(cluster, lambda text: _wait_for(out, text))
        finally:
            stop.set()
            thread.join()
    assert processes_of(folder) == {}
    return Captured(out, summaries[0], acknowledged)


def _play(cluster: KraftCluster, wait: Callable[[str], None]) -> dict[int, int]:
    """Create, produce, kill, produce; gives the first offset that was not acknowledged, by partition."""
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    admin.create_topics([NewTopic("orders", -1, -1, replica_assignments=ASSIGNMENT)])
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all", enable_idempotence=False)
    last = _produce(producer)
    wait('"isr":[1,2,3]')
    cluster.brokers[KILLED].process.kill()
    wait('"isr":[1,2]')
    last = _produce(producer)
    time.sleep(3)
    producer.close(timeout=1)
    admin.close()
    return last


def _produce(producer: KafkaProducer) -> dict[int, int]:
    ends = {}
    for number in range(RECORDS):
        for partition in ASSIGNMENT:
            answer = wait_for("a record is acknowledged", lambda p=partition, n=number: _sent(producer, p, n))
            ends[partition] = answer.offset + 1
    return ends


def _sent(producer: KafkaProducer, partition: int, number: int) -> Any:
    try:
        return producer.send("orders", f"{number:06d}".encode(), partition=partition).get(timeout=10)
    except KafkaError:
        return None


def _wait_for(out: Path, text: str) -> None:
    """Until the descriptions that were captured say so."""
    file = out / "descriptions.jsonl"
    wait_for(f"{text} is captured", lambda: file.exists() and text in file.read_text().replace(" ", ""))


def test_every_replica_tells_its_log_end_and_every_leader_its_high_watermark(captured: Captured) -> None:
    told = {
        (entry["broker"], entry["replica_id"], entry["partition"]): entry["offset"]
        for broker in (1, 2)
        for entry in captured.lines(f"probes-{broker}.jsonl")
        if entry["topic"] == "orders"
    }
    for partition, end in captured.acknowledged.items():
        assert {told[broker, -2, partition] for broker in (1, 2)} == {end}
        assert end in {told.get((broker, -1, partition)) for broker in (1, 2)}
    killed = [entry for entry in captured.lines(f"probes-{KILLED}.jsonl") if entry["topic"] == "orders"]
    assert {entry["partition"] for entry in killed} == set(ASSIGNMENT)


def test_the_brokers_describe_the_cluster_and_each_leader_and_isr(captured: Captured) -> None:
    told = captured.lines("descriptions.jsonl")
    assert {entry["cluster_id"] for entry in told if entry["description"] == "cluster"} == {CLUSTER_ID}
    orders = [entry for entry in told if entry.get("topic") == "orders"]
    assert all(len(entry["topic_id"]) == 22 for entry in orders)
    last = {partition["partition"]: partition for partition in orders[-1]["partitions"]}
    assert {number: sorted(each["isr"]) for number, each in last.items()} == {number: [1, 2] for number in ASSIGNMENT}
    assert last[2]["leader"] in (1, 2)
    assert last[2]["leader_epoch"] > 0
    assert last[2]["offline_replicas"] == [KILLED]


def test_the_lags_of_all_log_directories_are_there(captured: Captured) -> None:
    lags = {
        (entry["broker"], each["partition"]): each["offset_lag"]
        for entry in captured.lines("log-dirs.jsonl")
        if entry.get("topic") == "orders"
        for each in entry["partitions"]
    }
    assert {key for key in lags if key[0] != KILLED} == {(broker, number) for broker in (1, 2) for number in ASSIGNMENT}
    assert {lag for (broker, _), lag in lags.items() if broker != KILLED} == {0}
    assert captured.lines("reassignments.jsonl")[0]["reassignments"] == []


def test_the_active_controller_tells_of_its_quorum(captured: Captured) -> None:
    quorum = [entry for entry in captured.lines("descriptions.jsonl") if entry["description"] == "quorum"]
    assert {entry["leader"] for entry in quorum} == {1}
    assert [voter["id"] for voter in quorum[-1]["voters"]] == [1]
    assert {observer["id"] for entry in quorum for observer in entry["observers"]} == {2, KILLED}
    registered = [
        entry for entry in captured.lines("descriptions.jsonl") if entry["description"] == "registered_brokers"
    ]
    assert {one["id"] for one in registered[-1]["brokers"] if one["is_fenced"]} == {KILLED}


def test_each_node_s_metadata_log_is_copied(captured: Captured) -> None:
    for broker in (1, 2, KILLED):
        folder = captured.folder / f"broker-{broker}" / "__cluster_metadata-0"
        assert list(folder.glob("*.log"))
        assert (folder / "quorum-state").exists()


def test_what_went_away_is_said(captured: Captured) -> None:
    assert any(f"broker {KILLED}" in sentence for sentence in captured.summary.missed)
    assert not any(" 1:" in sentence or " 2:" in sentence for sentence in captured.summary.missed)


def test_the_ingest_takes_it_all_and_no_answer_lies_outside_of_the_bounds(
    captured: Captured, spark: Any, tmp_path: Path
) -> None:
    from ingest.lake.delta import Lake
    from ingest.lake.tables import TABLES
    from ingest.run.pipeline import IngestOptions, ingest_paths
    from reconstruct.pipeline import reconstruct

    lake = Lake(spark, str(tmp_path / "lake"))
    lake.ensure()
    ingest_paths(lake, [str(captured.folder)], IngestOptions(), lambda text: None)
    rejected = lake.read(TABLES["bronze.rejected_records"]).select("source_file", "reason").collect()
    assert rejected == []
    probes = lake.read(TABLES["bronze.offset_probes"])
    assert {row["cluster_id"] for row in probes.select("cluster_id").distinct().collect()} == {CLUSTER_ID}
    assert probes.count() == captured.summary.answers
    reconstruct(lake, progress=lambda text: None)
    errors = lake.read(TABLES["gold.divergences"]).where("severity = 'error'").collect()
    assert [row["explanation"] for row in errors] == []


def test_the_bounds_of_offsets_hold_without_zookeeper(captured: Captured) -> None:
    bounds = bounds_of(read_evidence(captured.folder, with_probes=True))
    orders = {partition[1]: rows for partition, rows in bounds.items() if partition[0] == "orders"}
    assert set(orders) == set(ASSIGNMENT)
    for number, rows in orders.items():
        last = {row.replica_id: row for row in rows if row.log_end_offset_lower is not None}
        end = captured.acknowledged[number]
        assert [last[replica].log_end_offset_lower for replica in (1, 2)] == [end, end]
        for row in rows:
            low, high = row.log_end_offset_lower, row.log_end_offset_upper
            assert low is None or high is None or low <= high, row
