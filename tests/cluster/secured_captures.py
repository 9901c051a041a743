"""Captures of a secured cluster, and what they must hold and must not."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from kazoo.client import KazooClient

from ingest.capture import CaptureParams, CaptureSummary, run_capture
from jobs import cli
from tests.cluster.secured import PASSWORDS, SECRETS, Secured

WRONG: Final = "wrong-Secret-99"
#: What must be nowhere: the passwords, and what SCRAM credentials are made of.
NOWHERE: Final = (*SECRETS, WRONG, "stored_key", "server_key")
#: The user may not read these: they are left out, and that is said.
UNREADABLE: Final = "/kafka-acl"
ROUNDS: Final = 8

Properties = Mapping[str, str]


def captured(
    cluster: Secured, out: Path, properties: Properties, *, bootstrap: str | None = None, zookeeper: str | None = None
) -> tuple[CaptureSummary, list[str]]:
    """Capture some rounds; the summary, and all that was said."""
    said: list[str] = []
    params = CaptureParams(str(out), zookeeper, bootstrap, rounds=ROUNDS, interval_s=0.3, client_properties=properties)
    summary = run_capture(params, threading.Event(), said.append)
    return summary, [*said, *summary.missed, repr(params)]


def capture_argv(folder: Path, properties: Properties) -> list[str]:
    file = folder / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return ["capture", "--out", str(folder / "c"), "--client-properties", str(file)]


def assert_refused(argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command ends with one sentence and exit code 1."""
    code = cli.main([*argv, "--rounds", "2"])
    printed = capsys.readouterr()
    assert printed.out == ""
    problems = [line for line in printed.err.splitlines() if not line.startswith("capturing into ")]
    assert len(problems) == 1, problems
    assert problems[0].startswith("kafka-state-replay: ")
    assert re.search(sentence, problems[0]), problems[0]
    assert code == 1
    assert not any(secret in printed.err for secret in NOWHERE)


def assert_probed(cluster: Secured, folder: Path, topics: tuple[str, ...]) -> None:
    """The log end offset of every replica and the high watermark of every leader, as the producer was told of them."""
    partitions = {key: end for key, end in cluster.ends.items() if key[0] in topics}
    assert partitions
    led: dict[tuple[str, int], set[int]] = {}
    for broker in cluster.cluster.brokers:
        rows = lines(folder / f"probes-{broker}.jsonl")
        for replica_id in (-2, -1):
            found = {(row["topic"], row["partition"]): row["offset"] for row in rows if row["replica_id"] == replica_id}
            assert found == {key: partitions[key] for key in found}
            if replica_id == -2:
                assert found.keys() == partitions.keys()
            else:
                for key in found:
                    led.setdefault(key, set()).add(broker)
    assert led.keys() == partitions.keys()
    assert all(len(leaders) == 1 for leaders in led.values())


def assert_no_secret(folder: Path, *printed: str) -> None:
    """No password is in any file of the capture, nor in what was said."""
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            found = [secret for secret in NOWHERE if secret.encode() in content]
            assert not found, f"{path} holds {found}"
    for text in printed:
        assert not [secret for secret in NOWHERE if secret in text], text


def truth(cluster: Secured) -> dict[str, tuple[Any, int]]:
    """Every znode that may be read, by a client of its own: data as text (secret ones hidden), and the last write."""
    options = {"mechanism": "DIGEST-MD5", "username": "watch", "password": PASSWORDS["watch"]}
    client = KazooClient(cluster.zookeeper, sasl_options=options)
    client.start()
    try:
        found: dict[str, tuple[Any, int]] = {}
        pending = ["/"]
        while pending:
            parent = pending.pop()
            for name in client.get_children(parent):
                path = f"{parent.rstrip('/')}/{name}"
                if path in ("/zookeeper", UNREADABLE):
                    continue
                data, stat = client.get(path)
                text = data.decode() if data else None
                found[path] = "[hidden]" if path.startswith("/config/users/") else text, stat.mzxid
                pending.append(path)
        return found
    finally:
        client.stop()
        client.close()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
