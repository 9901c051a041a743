"""Control records of a quorum, written by hand: elections, voters (KIP-853), the log of three nodes that hold them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from reconstruct.metadata_log.evidence import ClusterLog, CopySpan, LogRow, SnapshotFile

SECOND: Final = 1_000_000


def record(offset: int, epoch: int, record_type: str, at: int, batch: int | None = None, **fields: Any) -> LogRow:
    return LogRow(f"{offset}@{epoch}", offset, epoch, record_type, json.dumps(fields), at * SECOND, batch)


def leader_change(offset: int, epoch: int, at: int, leader: int, voters: Sequence[int]) -> LogRow:
    listed = [{"voterId": one} for one in voters]
    fields = {"leaderId": leader, "voters": listed, "grantingVoters": listed[:2]}
    return record(offset, epoch, "LeaderChangeMessage", at, offset, **fields)


def voters(*ids: int) -> list[dict[str, Any]]:
    return [{"voterId": one, "voterDirectoryId": f"dir-{one}"} for one in ids]


def log_of(*rows: LogRow, start: int = 0, snapshots: Sequence[SnapshotFile] = ()) -> ClusterLog:
    """The log of three nodes that all have all of it."""
    epochs = sorted({row.epoch for row in rows if row.snapshot_end is None})
    firsts = [min(row.offset for row in rows if row.epoch == epoch and row.snapshot_end is None) for epoch in epochs]
    ends = [*firsts[1:], 1_000]
    spans = [
        CopySpan(node, epoch, start if index == 0 else first, end)
        for node in (1, 2, 3)
        for index, (epoch, first, end) in enumerate(zip(epochs, firsts, ends, strict=True))
    ]
    return ClusterLog("c", tuple(spans), tuple(snapshots), rows)
