"""Checkpoints, znode snapshots and properties: good entries are kept, bad ones named."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ingest import properties
from ingest.log_dirs import checkpoints
from ingest.work import Kept, Rejected, WorkItem
from ingest.zookeeper import json_snapshots as znodes

ITEM = WorkItem("/f", None, "f", "replication_offset_checkpoint", "c", 1, "f", "f", 0)


def read(
    reader: Callable[..., Iterator[Kept | Rejected]], data: bytes, item: WorkItem = ITEM
) -> tuple[list[dict[str, Any]], list[tuple[int, str]]]:
    rows = list(reader(item, [data]))
    kept = [dict(row.values) for row in rows if isinstance(row, Kept)]
    return kept, [(row.place.line, row.reason) for row in rows if isinstance(row, Rejected)]


def test_an_offset_checkpoint() -> None:
    kept, bad = read(checkpoints.read, b"0\n2\norders 0 12\na-b.c_d 31 0\n")
    assert kept == [
        {"topic": "orders", "partition_id": 0, "offset": 12},
        {"topic": "a-b.c_d", "partition_id": 31, "offset": 0},
    ]
    assert bad == []


def test_what_kafka_would_refuse_is_named_and_the_rest_is_kept() -> None:
    kept, bad = read(checkpoints.read, b"0\n5\norders 0 12\norders x 1\n\norders 0 13\n orders 4 1")
    assert kept == [{"topic": "orders", "partition_id": 0, "offset": 12}]
    assert [line for line, _ in bad] == [4, 5, 6, 7]
    assert "second entry" in bad[2][1]
    _, bad = read(checkpoints.read, b"0\n3\norders 0 12\n")
    assert bad == [(4, "3 entries were announced, 1 are there")]
    _, bad = read(checkpoints.read, b"1\n1\norders 0 12\n")
    assert "version '1'" in bad[0][1]
    assert len(bad) == 3
    assert read(checkpoints.read, b"0\n0\n") == ([], [])
    assert read(checkpoints.read, b"0\n") == ([], [])


def test_a_leader_epoch_checkpoint() -> None:
    item = replace(ITEM, kind="leader_epoch_checkpoint", directory="a-b-7.0123456789abcdef0123456789abcdef-delete")
    kept, bad = read(checkpoints.read, b"0\n2\n0 0\n3 100\n", item)
    assert kept == [
        {"topic": "a-b", "partition_id": 7, "leader_epoch": 0, "start_offset": 0},
        {"topic": "a-b", "partition_id": 7, "leader_epoch": 3, "start_offset": 100},
    ]
    assert bad == []


def test_znodes_lose_their_chroot() -> None:
    item = replace(ITEM, kind="znode_snapshot", chroot="/kafka")
    stat = {"captured_at": 1000, "czxid": 1, "mzxid": 2, "ctime": 5, "mtime": 6, "version": 0}
    data = b"".join(
        json.dumps({"path": path, "data": value, **stat}).encode() + b"\n"
        for path, value in (("/kafka", None), ("/kafka/controller", '{"brokerid":1}'), ("/zookeeper", None))
    )
    kept, bad = read(znodes.read, data + b"{broken\n", item)
    assert [row["path"] for row in kept] == ["/", "/controller"]
    assert (kept[1]["captured_at"], kept[1]["ctime"], kept[1]["data"]) == (1_000_000, 5000, '{"brokerid":1}')
    assert [line for line, _ in bad] == [3, 4]


def test_properties_hide_secrets_and_join_lines() -> None:
    data = (
        b"# comment\n\nbroker.id=3\nlog.dirs = /a,\\\n   /b\nssl.keystore.password=geheim\nssl.keystore.type=JKS\n"
        b'listener.name.x.sasl.jaas.config=org.x password="p";\nzookeeper.connect: a:2181/kafka\nsasl.url=http://u:pw@h/\n'
    )
    kept, bad = read(properties.read, data)
    assert {row["config_key"]: row["config_value"] for row in kept} == {
        "broker.id": "3",
        "log.dirs": "/a,/b",
        "ssl.keystore.password": "[hidden]",
        "ssl.keystore.type": "JKS",
        "listener.name.x.sasl.jaas.config": "[hidden]",
        "zookeeper.connect": "a:2181/kafka",
        "sasl.url": "http://u:[hidden]@h/",
    }
    assert bad == []
