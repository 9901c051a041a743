"""A cluster that left ZooKeeper, in plain Python: its znodes by a transaction log, its records by a node's log."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Final

from ingest.readers.zookeeper.transaction_log import operations
from ingest.readers.zookeeper.transactions import Op, Operation
from reconstruct.metadata_log.migration import Migration, UpTo, Written
from reconstruct.metadata_log.timeline import replay_rows
from reconstruct.model.znode_paths import (
    CONTROLLER_PATH,
    MIGRATION_PATH,
    PARTITION_STATE_PATTERN,
    TOPIC_CONFIG_PATTERN,
    TOPIC_PATTERN,
)
from tests.support.metadata_log import cluster_log

_KINDS: Final = {
    "topic": re.compile(TOPIC_PATTERN),
    "partition": re.compile(PARTITION_STATE_PATTERN),
    "config": re.compile(TOPIC_CONFIG_PATTERN),
}


def migration_of(folder: Path) -> tuple[Migration, dict[str, list[Written]]]:
    """The migration, and by topic what its znodes and records became."""
    operations_ = [one for one in _operations(folder) if one.path is not None and one.op in (*_WRITES, Op.DELETE)]
    taken_over = next(
        one.zxid
        for one in operations_
        if one.path == CONTROLLER_PATH and one.data and json.loads(one.data).get("kraftControllerEpoch", -1) >= 0
    )
    first_named: dict[int, Operation] = {}
    for one in operations_:
        if one.path == MIGRATION_PATH and one.data:
            first_named.setdefault(json.loads(one.data)["kraft_metadata_offset"], one)
    offsets = sorted(offset for offset in first_named if offset >= 0)
    ends = [
        UpTo(first_named[offset].zxid, offset, following, first_named[offset].time_ms * 1000, f"migration:{offset}")
        for offset, following in zip(offsets, [*offsets[1:], None], strict=True)
    ]
    topics: dict[str, list[Written]] = {}
    for one in operations_:
        for kind, pattern in _KINDS.items():
            if (match := pattern.match(one.path or "")) is not None:
                number = int(match[2]) if kind == "partition" else None
                value = None if one.op is Op.DELETE or one.data is None else one.data.decode()
                row = Written(True, kind, number, one.zxid, value, one.time_ms * 1000, f"{one.zxid}:{one.path}")
                topics.setdefault(match[1], []).append(row)
    log, of_topics = cluster_log(sorted(folder.glob("broker-*")))
    for name, rows in of_topics.items():
        for change in replay_rows(rows, log.of_quorum).changes:
            subject = change.subject
            number = subject.partition_id if subject.kind == "partition" else None
            value = None if change.state is None else json.dumps(asdict(change.state))
            row = Written(False, subject.kind, number, change.offset, value, change.at, change.evidence[0])
            topics.setdefault(name, []).append(row)
    return Migration(taken_over, ends[0], ends[-1]), topics


_WRITES: Final = (Op.CREATE, Op.SET_DATA)


def _operations(folder: Path) -> Iterator[Operation]:
    for file in sorted((folder / "zookeeper").glob("log.*.xz")):
        yield from operations([lzma.decompress(file.read_bytes())])
