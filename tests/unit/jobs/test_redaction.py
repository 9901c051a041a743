"""Names of hosts, topics and principals become pseudonyms wherever Kafka writes them; everything else stays."""

from __future__ import annotations

import re

import pytest

from ingest.lake.tables import TABLES
from ingest.lake.tables.spec import Column
from jobs.redaction.lake import OWN_WORDS, may_name
from jobs.redaction.pseudonyms import Kind, Pseudonyms, hosts_in

NAMES = Pseudonyms(
    b"a key",
    topics=frozenset({"payments", "acme.orders.v2", "_schemas", "a"}),
    hosts=frozenset({"kafka-1.acme.example", "kafka"}),
)
T, H, U = (f"{kind}-[0-9a-f]{{10}}" for kind in Kind)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Partition payments-0 of topic payments.", rf"Partition {T}-0 of topic {T}\."),
        ("[payments,3] and [acme.orders.v2,0]", rf"\[{T},3\] and \[{T},0\]"),
        ("/data/acme.orders.v2-11/00000000000000000007.log", rf"/data/{T}-11/00000000000000000007\.log"),
        ('{"topic":"payments","replicas":[1,2]}', rf'\{{"topic":"{T}","replicas":\[1,2\]\}}'),
        ("_schemas-0 __consumer_offsets-12", rf"{T}-0 __consumer_offsets-12"),
        # Node, EndPoint, Broker, Java's addresses
        ("Node db7:9092 (id: 1 rack: null)", rf"Node {H}:9092 \(id: 1 rack: null\)"),
        ("EndPoint(broker,9092,ListenerName(PLAINTEXT),PLAINTEXT)", rf"EndPoint\({H},9092,ListenerName.*"),
        ("BrokerEndPoint(id=1, host=broker:9092)", rf"BrokerEndPoint\(id=1, host={H}:9092\)"),
        ("id:1,host:broker,port:9092", rf"id:1,host:{H},port:9092"),
        ("server zk/10.0.0.3:2181. Will", rf"server {H}/{H}:2181\. Will"),
        ("connected to broker:9092 for sending", rf"connected to {H}:9092 for sending"),
        ("10.0.0.3:9092-10.0.0.4:51234-7", rf"{H}:9092-{H}:51234-7"),
        ("2001:db8::1 at 10:15:30,123", rf"{H} at 10:15:30,123"),
        # settings and znodes
        ("zookeeper.connect=zk1,zk2:2181,zk3:2181/kafka", rf"zookeeper.connect={H},{H}:2181,{H}:2181/kafka"),
        ("controller.quorum.voters=1@c1:9093,2@c2:9093", rf"controller.quorum.voters=1@{H}:9093,2@{H}:9093"),
        (
            '{"endpoints":["SSL://broker:9093"],"host":"broker"}',
            rf'\{{"endpoints":\["SSL://{H}:9093"\],"host":"{H}"\}}',
        ),
        ("kafka-1.acme.example went away", rf"{H} went away"),
        # principals
        ("principal User:alice, from", rf"principal User:{U}, from"),
        ("User:CN=bob,OU=Payments,O=Acme)", rf"User:{U}\)"),
        ("/config/users/carol and /home/dave/logs", rf"/config/users/{U} and /home/{U}/logs"),
    ],
)
def test_names_become_pseudonyms(text: str, expected: str) -> None:
    made = NAMES.text(text)
    assert re.fullmatch(expected, made), made
    assert NAMES.text(made) == made, "what is redacted twice stays as it was"


@pytest.mark.parametrize(
    "text",
    [
        "(ReplicaManager.scala:1234) kafka.server.ReplicaManager at 2026-11-21 03:28:06,155",
        "Kafka version: 3.9.1, 0.10.2.1 is older; offset:12345, leaderEpoch:1001",
        "localhost:9092 127.0.0.1:9092 0.0.0.0:9092 [::1] User:ANONYMOUS User:*",
        "ReplicaFetcherThread-0-1 [ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0]",
        "/brokers/ids/1 /controller_epoch __transaction_state-3",
    ],
)
def test_what_names_nobody_stays(text: str) -> None:
    assert NAMES.text(text) == text
    assert not set(hosts_in(text)) - {"localhost", "127.0.0.1"}


def test_a_name_has_one_pseudonym_by_key_and_none_without_it() -> None:
    assert NAMES.topic("payments") in NAMES.text("payments-0")
    assert NAMES.topic("payments") == Pseudonyms(b"a key").topic("payments")
    assert NAMES.topic("payments") != Pseudonyms(b"another").topic("payments")
    assert NAMES.topic("payments")[6:] != NAMES.host("payments")[5:]


def test_hosts_are_found_where_they_are_written() -> None:
    text = "Registered broker 1 at path /brokers/ids/1 with addresses: PLAINTEXT://edge:9092,INSIDE://b-1.acme:9094"
    assert set(hosts_in(text)) == {"edge", "b-1.acme"}


@pytest.mark.parametrize("text", ["a-" * 100_000, "a:1" * 50_000, "User:" * 50_000, "1:" * 50_000, "://" * 50_000])
@pytest.mark.timeout(60)
def test_long_odd_lines_end(text: str) -> None:
    assert NAMES.text(f"{text} payments-0").endswith(f" {NAMES.topic('payments')}-0")


def test_a_column_of_text_is_rewritten_unless_it_is_known_to_name_nobody() -> None:
    columns = {column.name: column for spec in TABLES.values() for column in spec.columns}
    assert columns.keys() >= OWN_WORDS, "no column is named that is not there"
    assert may_name(Column("anything", "string", "A new column."))
    named = {name for name, column in columns.items() if may_name(column)}
    assert {"topic", "message", "fields", "source_file", "explanation", "raw", "path", "config_value"} <= named
    assert not named & {"record_id", "severity", "partition_id"}
