"""What one pass over files of ZooKeeper, or over our snapshots of znodes, gathers: how far they go, which cluster is in
them, and when."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Final

from ingest.readers.identity import digest
from ingest.readers.zookeeper.columns import chroot_of, micros
from ingest.readers.zookeeper.snapshot_format import Ending, SnapshotNode, SnapshotParser, snapshot_zxid
from ingest.readers.zookeeper.transaction_framing import Frame, Framer
from ingest.readers.zookeeper.transaction_log import parts_of
from ingest.readers.zookeeper.transactions import Op, Operation

#: Cluster evidence by rank: what states the id, best first. The option --cluster stands before all.
CLUSTER_ZNODE, CLUSTER_LOG, CLUSTER_METADATA, CLUSTER_META, CLUSTER_BIRTH = 1, 2, 3, 4, 5
#: Kafka's cluster ids are 22 characters of base 64; people give their own.
_CLUSTER_ID: Final = re.compile(r"[A-Za-z0-9_.\-]{1,64}\Z")

#: As much of the first record is its file's identity.
_FIRST_RECORD_BYTES: Final = 64 << 10
_FILE_HEADER_BYTES: Final = 16
#: More candidates than any ZooKeeper has clusters: a hostile file must not fill the memory.
_MAX_CANDIDATES: Final = 1000


class _Cluster:
    """The chroot, the id and the birth of the Kafka cluster whose znodes are named.

    The first sighting of each counts, so that a log that grows keeps its answers.
    """

    def __init__(self) -> None:
        self._chroots: dict[str, None] = {}
        self._births: dict[str, tuple[int, int]] = {}
        self._ids: dict[str, str] = {}

    def named(self, path: str) -> None:
        """A znode that exists, or is written."""
        if "/brokers/" in path and len(self._chroots) < _MAX_CANDIDATES:
            chroot = chroot_of(path)
            if chroot is not None:
                self._chroots.setdefault(chroot)

    def born(self, path: str, czxid: int, ctime_ms: int) -> None:
        if path.endswith("/brokers") and len(self._births) < _MAX_CANDIDATES:
            self._births.setdefault(path, (czxid, ctime_ms))

    def stated(self, path: str, data: bytes | str | None) -> None:
        if path.endswith("/cluster/id") and len(self._ids) < _MAX_CANDIDATES:
            found = _cluster_id(data)
            if found is not None:
                self._ids.setdefault(path, found)

    def result(self) -> dict[str, Any]:
        chroot = next(iter(self._chroots), "")
        stated = self._ids.get(f"{chroot}/cluster/id")
        if stated is not None and not _CLUSTER_ID.match(stated):
            stated = None
        birth = self._births.get(f"{chroot}/brokers")
        birth_id = f"unknown-{digest(*birth)[:16]}" if birth else None
        return {
            "chroot": chroot,
            "birth_id": birth_id,
            "cluster_id": stated or birth_id,
            "cluster_rank": CLUSTER_ZNODE if stated else CLUSTER_BIRTH if birth_id else 0,
        }


def _cluster_id(data: bytes | str | None) -> str | None:
    try:
        return str(json.loads(data or b"")["id"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


class TransactionLogFacts:
    """Of a transaction log, fed block by block.

    The bytes to read of a log that may still be written end with its last record that later bytes cannot change; of one
    that is final, with the last byte that is no zero, a torn last record included. Where a log is damaged, that is in
    both cases all that was written: its reader rejects those bytes by itself. ``first_line`` stands for the first
    record's bytes without the file's header, 64 KiB at most.
    """

    def __init__(self, *, is_final: bool) -> None:
        self._is_final = is_final
        self._framer = Framer()
        self._cluster = _Cluster()
        self._hash = hashlib.sha256()
        self._complete_hash = self._hash.copy()
        self._size = 0
        self._zeros = 0  # taken, and not hashed yet
        self._first_record: bytes | None = None
        self._first_time_ms: int | None = None
        self._is_damaged = False

    def take(self, block: bytes) -> None:
        frames = self._framer.take(block)
        self._take_hash(block)
        for frame in frames:
            self._frame(frame)

    def result(self) -> dict[str, Any]:
        """To be called once, after the last block."""
        framer = self._framer
        ending = framer.finish()
        end, end_hash = framer.complete_end, self._hash if framer.is_broken else self._complete_hash
        if self._is_final:
            end, end_hash = framer.written_end, self._hash
        for frame in ending:
            self._frame(frame)
        is_empty = self._first_record is None and not self._is_damaged
        return {
            "status": "empty" if is_empty else None,
            "reason": "no transaction is written yet" if is_empty else None,
            "complete_bytes": end,
            "complete_hash": (end_hash if end else hashlib.sha256()).hexdigest(),
            "line_count": framer.framed,
            "first_line": None if self._first_record is None else digest(self._first_record),
            "cluster_at": str(self._first_time_ms or ""),
        } | self._cluster.result()

    def _take_hash(self, block: bytes) -> None:
        """Zeros at the end wait until a byte follows that is none."""
        content = len(block.rstrip(b"\0"))
        if not content:
            self._zeros += len(block)
        else:
            while self._zeros:
                count = min(self._zeros, 1 << 20)
                self._hash.update(bytes(count))
                self._zeros -= count
            complete = max(0, self._framer.complete_end - self._size)
            if 0 < complete <= content:
                self._hash.update(block[:complete])
                self._complete_hash = self._hash.copy()
                self._hash.update(block[complete:content])
            else:
                self._hash.update(block[:content])
            self._zeros = len(block) - content
        self._size += len(block)

    def _frame(self, frame: Frame) -> None:
        if self._first_record is None and not frame.is_torn:
            header = _FILE_HEADER_BYTES if frame.data.startswith(b"ZKLG") else 0
            self._first_record = frame.data[header : header + _FIRST_RECORD_BYTES]
        self._is_damaged = self._is_damaged or (frame.reason is not None and not frame.is_torn)
        for part in parts_of(frame) or ():
            self._operation(part.operation)

    def _operation(self, operation: Operation) -> None:
        time_ms = operation.time_ms
        if operation.ordinal == 0 and micros(time_ms) is not None:
            self._first_time_ms = time_ms if self._first_time_ms is None else min(self._first_time_ms, time_ms)
        path = operation.path
        if path is None or operation.op not in (Op.CREATE, Op.SET_DATA):
            return
        self._cluster.named(path)
        self._cluster.stated(path, operation.data)
        if operation.op is Op.CREATE:
            self._cluster.born(path, operation.zxid, time_ms)


class SnapshotFacts:
    """Of one of ZooKeeper's snapshots, fed block by block, uncompressed.

    ``name`` is the file's name or path: ``snapshot.<hexadecimal>`` says after which transaction it was begun
    (``snapshot_zxid``). ``captured_at_ms`` is the last write that it holds of those up to that transaction, of all its
    writes where that is not known.
    """

    def __init__(self, name: str) -> None:
        self._parser = SnapshotParser()
        self._cluster = _Cluster()
        self._zxid = snapshot_zxid(name)
        self._captured_at_ms = 0

    def take(self, block: bytes) -> None:
        for node in self._parser.take(block):
            self._node(node)

    def result(self) -> dict[str, Any]:
        """To be called once, after the last block."""
        self._parser.finish()
        status, reason = None, None
        if self._parser.ending is Ending.DAMAGED:
            status, reason = "rejected", self._parser.reason
        elif not self._captured_at_ms:
            status, reason = "empty", "no znode was written before this snapshot was begun"
        return {
            "status": status,
            "reason": reason,
            "captured_at_ms": self._captured_at_ms or None,
            "snapshot_zxid": self._zxid,
            "line_count": self._parser.node_count,
            "cluster_at": str(self._captured_at_ms or ""),
        } | self._cluster.result()

    def _node(self, node: SnapshotNode) -> None:
        for zxid, time_ms in ((node.czxid, node.ctime_ms), (node.mzxid, node.mtime_ms)):
            if (self._zxid is None or zxid <= self._zxid) and micros(time_ms) is not None:
                self._captured_at_ms = max(self._captured_at_ms, time_ms)
        self._cluster.named(node.path)
        self._cluster.born(node.path, node.czxid, node.ctime_ms)
        self._cluster.stated(node.path, node.data)


class JsonSnapshotFacts:
    """Of a snapshot of the znodes as JSON lines."""

    def __init__(self) -> None:
        self._buffer = b""
        self._captured_at: int | None = None
        self._cluster = _Cluster()

    def take(self, block: bytes) -> None:
        *whole, self._buffer = (self._buffer + block).split(b"\n")
        for line in whole:
            if self._captured_at is None or b'/brokers"' in line or b'/brokers/ids"' in line or b'/cluster/id"' in line:
                self._line(line)

    def result(self) -> dict[str, Any]:
        if self._buffer:
            self._line(self._buffer)
        return {
            "captured_at_ms": self._captured_at,
            "cluster_at": str(self._captured_at or ""),
        } | self._cluster.result()

    def _line(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
            path = entry["path"]
            if self._captured_at is None:
                captured_at = int(entry["captured_at"])
                self._captured_at = captured_at if micros(captured_at) is not None else None
            if path.endswith("/brokers/ids"):
                self._cluster.named(path)
            elif path.endswith("/brokers"):
                self._cluster.born(path, int(entry["czxid"]), int(entry["ctime"]))
            else:
                self._cluster.stated(path, entry.get("data"))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            return
