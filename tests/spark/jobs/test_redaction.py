"""What is shared of a lake with ``redact`` or ``report --redact`` names no host, topic or principal of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ingest.lake.delta import Lake, PinnedLake
from ingest.lake.tables import TABLES
from ingest.lake.tables import bronze as b
from jobs import report_job
from jobs.command.job import UsageError
from jobs.redaction import job
from jobs.redaction.lake import HIDDEN, RedactedLake
from tests.support.lakes.incident import write_incident
from tests.support.lakes.story import Story

TOPIC = "acme-payments"
#: Names that are planted: nothing that is shared may hold one of them, in any case of letters.
PLANTED = (TOPIC, "b7.acme.example", "10.20.30.40", "edgehost", "alice", "carol", "zkhost", "hunter2", "dave")


@pytest.fixture(scope="module")
def lake(spark, empty_lake_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The story of an incident, and beside it what names hosts and principals."""
    lake = Lake(spark, str(shutil.copytree(empty_lake_dir, tmp_path_factory.mktemp("names") / "lake")))
    write_incident(lake, topic=TOPIC)
    story = Story()
    connected = "Controller 2 connected to b7.acme.example:9092 (id: 1 rack: null) for sending state change requests"
    story.log("n1", 2, "controller_log", 40, 300, connected, shape_id="s", event_type="controller_connected")
    story.log(
        "n2",
        1,
        "server_log",
        900,
        301,
        f"User:alice from /10.20.30.40:51234 may not write {TOPIC}-1 at b7.acme.example",
        shape_id="s",
        fields={"topic": TOPIC, "host": "edgehost", "principal": "User:alice"},
        continuation=f"java.net.ConnectException: b7.acme.example\n\tat Log({TOPIC}-0.scala:12)",
        source_file="/home/dave/incident/broker-1/logs/server.log",
    )
    story.log("n3", 1, "server_log", 901, 302, "what carol calls hunter2 nobody knows")
    story.add(b.REJECTED_RECORDS, record_id="n4", source_kind="server_log", raw="secret of carol: hunter2")
    data = '{"endpoints":["SSL://b7.acme.example:9093"],"host":"edgehost","port":9092}'
    story.add(b.ZNODE_SNAPSHOTS, record_id="n5", path="/brokers/ids/1", data=data)
    story.add(b.ZNODE_SNAPSHOTS, record_id="n6", path="/config/users/carol", data="{}")
    story.add(b.ZNODE_SNAPSHOTS, record_id="n7", path=f"/brokers/topics/{TOPIC}", data='{"partitions":{"0":[1]}}')
    story.add(b.BROKER_CONFIGS, config_key="zookeeper.connect", config_value="zkhost,b7.acme.example:2181/kafka")
    story.add(b.CLUSTER_DESCRIPTIONS, brokers=[{"broker_id": 1, "host": "edgehost", "port": 9092}])
    story.write(lake)
    return lake


def test_a_copy_names_nobody_and_has_every_row(lake: Lake, tmp_path: Path) -> None:
    out = str(tmp_path / "copy")
    report = job.run(lake.spark, job.Params(lake.root, out))
    assert "topics" in report.summary[0]
    copy = Lake(lake.spark, out)
    ids = [column.name for column in b.LOG_RECORDS.columns if column.name.endswith("_id")]
    assert copy.read(b.LOG_RECORDS).select(*ids).exceptAll(lake.read(b.LOG_RECORDS).select(*ids)).count() == 0
    filled = [spec for spec in TABLES.values() if lake.rows_count(spec)]
    assert len(filled) >= 15
    for spec in filled:
        assert copy.rows_count(spec) == lake.rows_count(spec), spec.full_name
        text = str(PinnedLake(copy).read(spec).collect()).lower()
        assert [planted for planted in PLANTED if planted in text] == [], spec.full_name
    with pytest.raises(UsageError, match="holds a lake"):
        job.run(lake.spark, job.Params(lake.root, out))


def test_what_is_told_is_told_of_pseudonyms(lake: Lake) -> None:
    redacted = RedactedLake(lake)
    names = redacted.pseudonyms
    assert TOPIC in names.topics
    assert {"b7.acme.example", "edgehost", "zkhost"} <= names.hosts
    lines = {row["record_id"]: row for row in redacted.read(b.LOG_RECORDS).collect()}
    host = names.host("b7.acme.example")
    assert lines["n1"]["message"].startswith(f"Controller 2 connected to {host}:9092 (id: 1")
    assert f"may not write {names.topic(TOPIC)}-1 at {host}" in lines["n2"]["message"]
    assert lines["n2"]["fields"]["topic"] == names.topic(TOPIC)
    assert lines["n3"]["message"] == HIDDEN
    assert RedactedLake(lake).pseudonyms.topic(TOPIC) == names.topic(TOPIC)


@pytest.mark.parametrize(("format_", "page"), [("html", "index.html"), ("markdown", "postmortem.md")])
def test_a_report_names_nobody(lake: Lake, tmp_path: Path, format_: str, page: str) -> None:
    params = report_job.Params(lake.root, str(tmp_path), format=format_, topic=TOPIC, is_redacted=True)
    assert report_job.run(lake.spark, params).exit_code == 0
    text = (tmp_path / page).read_text("utf-8")
    assert RedactedLake(lake).pseudonyms.topic(TOPIC) in text
    assert [planted for planted in PLANTED if planted in text.lower()] == []


def test_trends_are_drawn_from_a_copy() -> None:
    with pytest.raises(UsageError, match="make a copy of the lake by `redact`"):
        report_job.Params("lake", "out", format="trends", is_redacted=True)
