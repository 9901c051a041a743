"""Znode snapshots: good entries are kept, bad ones named."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ingest.readers.capture_lines import znode_snapshots as znodes
from ingest.readers.work import Kept, Rejected, WorkItem

ITEM = WorkItem("/f", None, "f", "replication_offset_checkpoint", "c", 1, "f", "f", 0)


def read(
    reader: Callable[..., Iterator[Kept | Rejected]], data: bytes, item: WorkItem = ITEM
) -> tuple[list[dict[str, Any]], list[tuple[int, str]]]:
    rows = list(reader(item, [data]))
    kept = [dict(row.values) for row in rows if isinstance(row, Kept)]
    return kept, [(row.place.line, row.reason) for row in rows if isinstance(row, Rejected)]


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
