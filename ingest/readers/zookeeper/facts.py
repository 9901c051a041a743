"""What one pass over the blocks of ZooKeeper's files gathers: how far they go, whose they are, and when they speak."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from ingest.readers.zookeeper.columns import chroot_of, micros
from ingest.readers.zookeeper.snapshot_format import Ending, SnapshotNode, SnapshotParser, snapshot_zxid
from ingest.readers.zookeeper.transaction_framing import Frame, Framer
from ingest.readers.zookeeper.transaction_log import parts_of
from ingest.readers.zookeeper.transactions import Op, Operation

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

    def stated(self, path: str, data: bytes | None) -> None:
        if path.endswith("/cluster/id") and len(self._ids) < _MAX_CANDIDATES:
            found = _cluster_id(data)
            if found is not None:
                self._ids.setdefault(path, found)

    def result(self) -> dict[str, Any]:
        chroot = next(iter(self._chroots), None)
        base = chroot or ""
        return {
            "chroot": chroot,
            "chroots": tuple(self._chroots),
            "birth": self._births.get(f"{base}/brokers"),
            "cluster_id": self._ids.get(f"{base}/cluster/id"),
        }


def _cluster_id(data: bytes | None) -> str | None:
    try:
        return str(json.loads(data or b"")["id"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


class TransactionLogFacts:
    """What a transaction log says, fed block by block.

    :meth:`result` gives

    * ``complete_bytes``, ``complete_hash``: up to the end of the last record that later bytes cannot change: what to
      read of a log that may still be written. Where a log is damaged, that is all that was written.
    * ``written_bytes``, ``written_hash``: up to the last byte that is no zero, a torn last record included: what to
      read of a log that is finished. Hashes are SHA-256, hexadecimal; both sizes are 0 without any record.
    * ``line_count``: transactions in the first; ``is_torn``: whether the second holds a part of one more.
    * ``damage``: what is wrong, in a sentence; NULL for an intact log. A reader rejects these bytes by itself.
    * ``first_record``: the first record's bytes without the file's header, 64 KiB at most: the log's identity; NULL
      without a whole one.
    * ``first_zxid``, ``last_zxid``: of the records that can be read; NULL without any.
    * ``first_time_ms``, ``last_time_ms``: earliest and latest time of these, epoch milliseconds.
    * ``chroot``, ``cluster_id``, ``birth`` (creation zxid, creation time in epoch ms, of Kafka's ``brokers`` znode),
      NULL where the log does not say; ``chroots`` are all that were seen, the first of which is ``chroot``.
    """

    def __init__(self) -> None:
        self._framer = Framer()
        self._cluster = _Cluster()
        self._hash = hashlib.sha256()
        self._complete_hash = self._hash.copy()
        self._size = 0
        self._zeros = 0  # taken, and not hashed yet
        self._first_record: bytes | None = None
        self._zxids: tuple[int, int] | None = None
        self._times: tuple[int, int] | None = None
        self._damage: str | None = None
        self._result: dict[str, Any] | None = None

    def take(self, block: bytes) -> None:
        frames = self._framer.take(block)
        self._take_hash(block)
        for frame in frames:
            self._frame(frame)

    def result(self) -> dict[str, Any]:
        if self._result is None:
            self._result = self._finish()
        return self._result

    def _finish(self) -> dict[str, Any]:
        framer = self._framer
        ending = framer.finish()
        complete, written = framer.complete_end, framer.written_end
        if framer.is_broken:
            self._complete_hash = self._hash
        for frame in ending:
            self._frame(frame)
        empty = hashlib.sha256().hexdigest()
        return {
            "complete_bytes": complete,
            "complete_hash": self._complete_hash.hexdigest() if complete else empty,
            "written_bytes": written,
            "written_hash": self._hash.hexdigest() if written else empty,
            "line_count": framer.framed,
            "is_torn": any(frame.is_torn for frame in ending),
            "damage": self._damage,
            "first_record": self._first_record,
            "first_zxid": self._zxids[0] if self._zxids else None,
            "last_zxid": self._zxids[1] if self._zxids else None,
            "first_time_ms": self._times[0] if self._times else None,
            "last_time_ms": self._times[1] if self._times else None,
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
        if frame.reason is not None and not frame.is_torn and self._damage is None:
            self._damage = frame.reason
        for part in parts_of(frame) or ():
            self._operation(part.operation)

    def _operation(self, operation: Operation) -> None:
        zxid, time_ms = operation.zxid, operation.time_ms
        if operation.ordinal == 0 and micros(time_ms) is not None:
            self._zxids = (zxid, zxid) if self._zxids is None else (self._zxids[0], zxid)
            first, last = self._times or (time_ms, time_ms)
            self._times = (min(first, time_ms), max(last, time_ms))
        path = operation.path
        if path is None or operation.op not in (Op.CREATE, Op.SET_DATA):
            return
        self._cluster.named(path)
        self._cluster.stated(path, operation.data)
        if operation.op is Op.CREATE:
            self._cluster.born(path, zxid, time_ms)


class SnapshotFacts:
    """What one of ZooKeeper's snapshots says, fed block by block, uncompressed.

    :param name: the file's name or path; ``snapshot.<hexadecimal>`` says after which transaction it was begun.

    :meth:`result` gives

    * ``snapshot_zxid``: that transaction, NULL for another name. (What a version since 3.6 writes into the file is
      ``last_zxid``, the last transaction before the snapshot's *end*: what came between may be missing from it.)
    * ``captured_at_ms``: the last write that the snapshot holds of those up to ``snapshot_zxid``, epoch milliseconds;
      of all its writes where that is not known; NULL where it holds none.
    * ``damage``: what is wrong, in a sentence; NULL for a whole snapshot. ``is_readable`` is false where nothing of it
      can be kept.
    * ``line_count``: its znodes; ``chroot``, ``chroots``, ``cluster_id``, ``birth`` as :class:`TransactionLogFacts`.
    """

    def __init__(self, name: str) -> None:
        self._parser = SnapshotParser()
        self._cluster = _Cluster()
        self._zxid = snapshot_zxid(name)
        self._captured_at_ms = 0
        self._result: dict[str, Any] | None = None

    def take(self, block: bytes) -> None:
        for node in self._parser.take(block):
            self._node(node)

    def result(self) -> dict[str, Any]:
        if self._result is None:
            self._parser.finish()
            self._result = {
                "snapshot_zxid": self._zxid,
                "last_zxid": self._parser.last_zxid,
                "captured_at_ms": self._captured_at_ms or None,
                "damage": self._parser.reason,
                "is_readable": self._parser.ending is not Ending.DAMAGED,
                "line_count": self._parser.node_count,
            } | self._cluster.result()
        return self._result

    def _node(self, node: SnapshotNode) -> None:
        for zxid, time_ms in ((node.czxid, node.ctime_ms), (node.mzxid, node.mtime_ms)):
            if (self._zxid is None or zxid <= self._zxid) and micros(time_ms) is not None:
                self._captured_at_ms = max(self._captured_at_ms, time_ms)
        self._cluster.named(node.path)
        self._cluster.born(node.path, node.czxid, node.ctime_ms)
        self._cluster.stated(node.path, node.data)
