"""What must not reach the lake."""

from __future__ import annotations

import json
import lzma
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.lake.tables.bronze import ZNODE_SNAPSHOTS
from ingest.readers.batches import kept_batches, rejected_batches
from ingest.readers.capture_lines import znode_snapshots
from ingest.readers.identity import record_ids
from ingest.readers.logs import records
from ingest.readers.secrets import HIDDEN, masked_lines, masked_text, masked_texts, masked_value, masked_znode
from ingest.readers.work import Place, Rejected
from ingest.shapes import match
from tests import ROOT
from tests.fuzz.invariants import item

#: What is planted, and must not come out.
_PLANTED = "hunter2"


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("ssl.keystore.password", "hunter2", HIDDEN),
        ("listener.name.x.sasl.jaas.config", "Login required password=x;", HIDDEN),
        ("ssl.keystore.type", "PKCS12", "PKCS12"),
        ("delegation.token.max.lifetime.ms", "604800000", "604800000"),
        ("zookeeper.connect", "z:2181/kafka", "z:2181/kafka"),
        ("listener", "https://me:hunter2@host", f"https://me:{HIDDEN}@host"),
        ("custom.options", "user=a password=hunter2", HIDDEN),
    ],
)
def test_values(key: str, value: str, shown: str) -> None:
    assert masked_value(key, value) == shown


@pytest.mark.parametrize(
    "text",
    [
        "login with password=hunter2",
        'user x password: "a hunter2" failed',
        r'{"password":"a\"hunter2","port":1}',
        r"{\"password\":\"hunter2\",\"port\":1}",
        "DB_PASS=hunter2 and hunter2",
        "  - KAFKA_PASSWORD=hunter2",
        "export SASL_TOKEN='hunter2'",
        "KAFKA_CLIENT_PASSWORDS: a,hunter2",
        "GET / Authorization: Basic hunter2",
        "Authorization: Bearer hunter2",
        "sent Bearer ABCDEFGHhunter2hunter2",
        'PlainLoginModule required username="a" user_alice="hunter2";',
        'sasl.jaas.config = com.example.Module required a="b hunter2";',
        "jdbc:postgresql://app:hunter2@db/x",
        "https://app:hu@hunter2@db/x",
        "redis://:hunter2@cache:6379",
        "https://hunter2hunter2hunter2@example.com/x",
        "java -Djavax.net.ssl.keyStorePassword=hunter2 -Xmx1g",
        "tool --password hunter2 --verbose",
        "salt=c2FsdA==,stored_key=hunter2,server_key=hunter2,iterations=4096",
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nhunter2, and the end is missing",
        "id eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.hunter2",
        "<password>hunter2</password>",
        "x {password: a,token: hunter2} y",
        "x password=a,host=b;token : hunter2 y",
        "props['password'] = 'hunter2'",
        "https://login/x?client_secret=hunter2&grant=1",
        "AccountName=a;AccountKey=hunter2==",
        "Set-Cookie: session=hunter2; path=/",
        "SaslAuth(password=hunter2, user=3)",
        '"secretKey" => "hunter2"',
        "curl -u name:hunter2 https://host/x",
        "$ curl -fsSu 'name:hunter2' host",
        "ran curl -X POST --proxy-user name:hunter2 host",
        "SSL_KEY=hunter2",
        "env STRIPE_LIVE_KEY=hunter2 java -jar x",
        "  tls.key: hunter2",
    ],
)
def test_a_secret_in_a_text_is_hidden_and_nothing_is_hidden_twice(text: str) -> None:
    shown = masked_text(text)
    assert _PLANTED not in shown
    assert HIDDEN in shown
    assert masked_text(shown) == shown
    assert masked_texts(["before", text.replace("\n", " "), "after"])[1] != text
    assert list(masked_texts(["before", "after"])) == ["before", "after"]


@pytest.mark.parametrize(
    "text",
    [
        "ssl.key.password = null",
        "ssl.keystore.password = [hidden]",
        "a token has expired, and the key is of no use",
        "delegation.token.expiry.time.ms = 86400000",
        "ssl.keystore.location = /etc/kafka/k.jks",
        '{"requestApiKey":2,"requestApiKeyName":"LIST_OFFSETS"}',
        "RequestHeader(apiKey=UPDATE_METADATA, apiVersion=8)",
        "partitionStates={tokens-0=PartitionState(leader=1, isr=[1]), password-resets-1=(offset=5)}",
        "listeners = PLAINTEXT://host:9092, voters 1@host:9093",
        "PEM -----BEGIN CERTIFICATE-----",
        "curl -u name https://host:9092/x, curl --unix-socket a:b",
        "PRIMARY_KEY=id PUBLIC_KEY=abc KAFKA_KEY_CONVERTER=x key=INVALID_KEY: 3",
        "the key: 7, CACHE_KEY: 3",
    ],
)
def test_what_only_sounds_like_a_secret_is_left(text: str) -> None:
    assert masked_text(text) == text


def test_no_message_of_kafkas_is_changed() -> None:
    with lzma.open(ROOT / "tests/data/message-templates.jsonl.xz", "rt") as lines:
        entries = [json.loads(line) for line in lines]
    messages = [entry["example"] for entry in entries if entry.get("example")]
    assert len(messages) > 500
    assert [text for text in messages if masked_text(text) != text] == []
    assert masked_texts(messages) == messages


@given(st.lists(st.text(alphabet="pasword=: \"'\\é\n@/[]hiden", max_size=40) | st.just("PASSWORD=x y"), max_size=5))
def test_many_texts_are_masked_as_each_is(texts: list[str]) -> None:
    assert list(masked_texts(texts)) == [masked_text(text) for text in texts]


def test_a_secret_that_ends_in_later_lines_is_hidden_whole() -> None:
    first, more = masked_lines("key: -----BEGIN PRIVATE KEY-----", "hunter2\n-----END PRIVATE KEY-----\n\tat x")
    assert _PLANTED not in f"{first}{more}"
    assert masked_lines("a failure", "java.io.IOException: b\n\tat c") == (
        "a failure",
        "java.io.IOException: b\n\tat c",
    )
    assert masked_lines("password=x", "\tat c") == ("password=[hidden]", "\tat c")


@pytest.mark.parametrize(
    "part", ["password=", "-password ", "pass='\\", "//a:", "eyJ-", "Bearer ", "x.", "\\", "=", "basic =", "curl -u "]
)
def test_the_time_grows_as_the_text(part: str) -> None:
    """What grows with the square would take hours."""
    began = time.process_time()
    masked_text(part * (300_000 // len(part)) + "password")
    assert time.process_time() - began < 10


def _log(text: str) -> bytes:
    head = "[2026-11-21 04:47:10,100] INFO"
    return "".join(f"{head} {line} (kafka.server.KafkaServer)\n" for line in text.split("\n")).encode()


def _texts(found: Iterator[pa.RecordBatch | Rejected], data: bytes) -> str:
    """All that the tables would hold of an item."""
    work = item("server_log", data)
    given = list(found)
    batches = [one for one in given if not isinstance(one, Rejected)]
    batches += rejected_batches(work, [one for one in given if isinstance(one, Rejected)])
    assert sum(batch.num_rows for batch in batches) > 0
    return json.dumps([batch.to_pylist() for batch in batches], default=str)


@pytest.mark.parametrize(
    ("layout", "data"),
    [
        ("bracketed", _log("connecting with password=hunter2\nb\nc\nd\ne\nf\ng")),
        ("bracketed", _log("a")[:-1] + b"\n\tat x\nCaused by: https://u:hunter2@h/\n" + _log("b")),
        ("bracketed", b"KAFKA_PASSWORD=hunter2\nDB_PASS='hunter2'\n" + _log("a")),
        ("bracketed", b'services:\n  kafka:\n    environment:\n      KAFKA_PASSWORD: "hunter2"\n' + _log("a")),
        ("bracketed", b'{"sasl.jaas.config": "X required password=\\"hunter2\\";"}\n' + _log("a")),
    ],
)
def test_a_log_gives_no_row_with_a_secret(layout: str, data: bytes) -> None:
    work = item("server_log", data, layout=layout)
    shown = _texts(records.read(work, [data], match), data)
    assert _PLANTED not in shown
    assert HIDDEN in shown


def test_ids_and_places_do_not_depend_on_what_is_hidden() -> None:
    """A lake of before goes on: the same bytes are the same record."""
    data = _log("password=hunter2")
    (batch,) = (one for one in records.read(item("server_log", data, layout="bracketed"), [data], match))
    assert not isinstance(batch, Rejected)
    row = batch.to_pylist()[0]
    assert row["byte_length"] == len(data)
    assert row["record_id"] == record_ids("f")(0, data)


def test_a_rejected_znode_shows_no_credentials() -> None:
    entry = {
        "captured_at": 1,
        "path": "/other/config/users/alice",
        "mzxid": 1,
        "data": '{"config":{"SCRAM-SHA-256":"salt=x,stored_key=hunter2"}}',
    }
    data = json.dumps(entry).encode() + b"\n"
    work = item("znode_snapshot", data, chroot="/kafka")
    shown = _texts(kept_batches(ZNODE_SNAPSHOTS, work, znode_snapshots.read(work, [data])), data)
    assert _PLANTED not in shown
    assert "/other/config/users/alice" in shown


def test_a_reason_shows_no_secret() -> None:
    rows = [Rejected(Place(0, 1, 1, b""), "token=hunter2 is no number")]
    (batch,) = rejected_batches(item("server_log", b""), rows)
    assert batch.to_pylist()[0]["reason"].startswith("token=[hidden]")


def test_credentials_in_znodes_are_hidden_whole() -> None:
    assert masked_znode("/config/users/alice", '{"config":{"SCRAM-SHA-256":"salt=x"}}') == HIDDEN
    assert masked_znode("/kafka/delegation_token/tokens/abc", "anything") == HIDDEN
    assert masked_znode("/config/users", None) is None


def test_of_another_programs_znodes_nothing_is_shown() -> None:
    assert masked_znode(None, "anything") == HIDDEN
    assert masked_znode(None, "") == ""


def test_of_a_config_only_what_is_secret_is_hidden() -> None:
    data = '{"version":1,"config":{"ssl.key.password":"x","min.insync.replicas":"2"}}'
    assert json.loads(masked_znode("/config/brokers/1", data) or "") == {
        "version": 1,
        "config": {"ssl.key.password": HIDDEN, "min.insync.replicas": "2"},
    }


@pytest.mark.parametrize("data", ['{"version":1,"config":{"min.insync.replicas":"2"}}', "no json", '{"config":3}', ""])
def test_data_without_secrets_is_left_as_it_is(data: str) -> None:
    assert masked_znode("/config/topics/t", data) == data


def test_other_znodes_lose_what_sounds_like_a_secret() -> None:
    assert masked_znode("/brokers/ids/1", '{"host":"h","password":"x"}') == '{"host":"h","password":"[hidden]"}'
    assert masked_znode("/brokers/ids/1", '{"host":"h","port":1}') == '{"host":"h","port":1}'
