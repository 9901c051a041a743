"""What must not reach the lake."""

from __future__ import annotations

import json

import pytest

from ingest.readers.secrets import HIDDEN, masked_value, masked_znode


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("ssl.keystore.password", "hunter2", HIDDEN),
        ("listener.name.x.sasl.jaas.config", "Login required password=x;", HIDDEN),
        ("ssl.keystore.type", "PKCS12", "PKCS12"),
        ("delegation.token.max.lifetime.ms", "604800000", "604800000"),
        ("zookeeper.connect", "z:2181/kafka", "z:2181/kafka"),
        ("listener", "https://me:hunter2@host", f"https://me:{HIDDEN}@host"),
    ],
)
def test_values(key: str, value: str, shown: str) -> None:
    assert masked_value(key, value) == shown


def test_credentials_in_znodes_are_hidden_whole() -> None:
    assert masked_znode("/config/users/alice", '{"config":{"SCRAM-SHA-256":"salt=x"}}') == HIDDEN
    assert masked_znode("/kafka/delegation_token/tokens/abc", "anything") == HIDDEN
    assert masked_znode("/config/users", None) is None


def test_of_a_config_only_what_is_secret_is_hidden() -> None:
    data = '{"version":1,"config":{"ssl.key.password":"x","min.insync.replicas":"2"}}'
    assert json.loads(masked_znode("/config/brokers/1", data) or "") == {
        "version": 1,
        "config": {"ssl.key.password": HIDDEN, "min.insync.replicas": "2"},
    }


@pytest.mark.parametrize("data", ['{"version":1,"config":{"min.insync.replicas":"2"}}', "no json", '{"config":3}', ""])
def test_data_without_secrets_is_left_as_it_is(data: str) -> None:
    assert masked_znode("/config/topics/t", data) == data


def test_other_znodes_are_left_as_they_are() -> None:
    assert masked_znode("/brokers/ids/1", '{"config":{"password":"x"}}') == '{"config":{"password":"x"}}'
