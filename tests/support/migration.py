"""A cluster that left ZooKeeper, in plain Python: its znodes by a transaction log, its records by a node's log."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Collection
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Final

from ingest.readers.zookeeper.transaction_log import operations
from ingest.readers.zookeeper.transactions import Op, Operation
from reconstruct.metadata_log.evidence import ClusterLog, LogRow
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


def migration_of(folder: Path, lacking: Collection[int] = ()) -> tuple[Migration, dict[str, list[Written]]]:
    """The migration, and by topic what its znodes and records became. The log was given without the offsets
    ``lacking``."""
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
    log, of_topics = _log(folder)
    if lacking:
        log = _without(log, lacking)
        of_topics = {name: [row for row in rows if row.offset not in lacking] for name, rows in of_topics.items()}
    for name, rows in of_topics.items():
        for change in replay_rows(rows, log.of_quorum).changes:
            subject = change.subject
            number = subject.partition_id if subject.kind == "partition" else None
            value = None if change.state is None else json.dumps(asdict(change.state))
            row = Written(False, subject.kind, number, change.offset, value, change.at, change.evidence[0])
            topics.setdefault(name, []).append(row)
    last = next(end for end in reversed(ends) if end.offset < _log(folder)[0].told_end)
    return Migration(taken_over, ends[0], last).by(log), topics


def _without(log: ClusterLog, offsets: Collection[int]) -> ClusterLog:
    spans = []
    for span in log.spans:
        start = span.start
        for at in sorted(one for one in offsets if span.start <= one < span.end):
            spans.append(replace(span, start=start, end=at))
            start = at + 1
        spans.append(replace(span, start=start))
    rows = tuple(row for row in log.rows if row.offset not in offsets)
    return replace(log, spans=tuple(span for span in spans if span.start < span.end), rows=rows)


_WRITES: Final = (Op.CREATE, Op.SET_DATA)


@cache
def _log(folder: Path) -> tuple[ClusterLog, dict[str, list[LogRow]]]:
    return cluster_log(sorted(folder.glob("broker-*")))


@cache
def _operations(folder: Path) -> tuple[Operation, ...]:
    """Of a recording among the tests' data, or of the truth of a play."""
    packed = [lzma.decompress(file.read_bytes()) for file in sorted((folder / "zookeeper").glob("log.*.xz"))]
    files = packed or [file.read_bytes() for file in sorted((folder / "zk-version-2").glob("log.*"))]
    return tuple(one for file in files for one in operations([file]))
