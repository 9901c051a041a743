"""ZooKeeper's own snapshots (``snapshot.*``), from blocks of bytes to znodes.

A file is a header (``ZKSN``, version, database id), the sessions with their timeouts, the lists of permissions, the
znodes, each after its parent, the path ``/`` that ends them, and a seal: the Adler-32 checksum of all before it and
again ``/``. Since 3.6 the transaction of the tree's digest and a seal of its own follow, since 3.9 the last
transaction and a seal.

ZooKeeper reads no snapshot that is cut off or that does not match its seal.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

from ingest.readers.work import RAW_BYTES
from ingest.readers.zookeeper.jute import Cursor, JuteError, ShortError

MAGIC: Final = b"ZKSN"

_VERSION: Final = 2
_HEADER: Final = struct.Struct(">4siq")
_SESSION: Final = struct.Struct(">qi")
_STAT: Final = struct.Struct(">qqqqqiiiqq")
_END_OF_NODES: Final = b"\0\0\0\x01/"
_SEAL: Final = struct.Struct(">q5s")
#: Kafka's znodes are at most some ten levels deep; the path to the znode being read is held.
_MAX_DEPTH: Final = 1024
_MAX_PATH_BYTES: Final = 64 << 10
_NAME: Final = re.compile(r"snapshot\.([0-9a-fA-F]{1,16})(?:\.(?:gz|snappy))?")


class SnapshotNode(NamedTuple):
    """One znode: where its bytes lie in the uncompressed file, and its stat as the server keeps it.

    ``path`` is ``/`` for the root. ``parent`` is the number (from 0) of its parent among the file's znodes, -1 for the
    root. ``child_creates`` is the stored ``cversion``, which counts the children ever created.
    """

    offset: int
    raw: bytes
    parent: int
    path: str
    data: bytes | None
    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    child_creates: int
    acl_version: int
    ephemeral_owner: int
    pzxid: int


class Ending(Enum):
    """What the file's bytes amount to."""

    WHOLE = "whole"  # all znodes are there and match their seal
    CUT = "cut"  # the file ends before its seal
    DAMAGED = "damaged"  # no snapshot, or one that nothing vouches for


def snapshot_zxid(name: str) -> int | None:
    """The transaction in a file's name, ``snapshot.<hexadecimal>``: the last one before the snapshot was begun.

    ``name`` may be a path, or a member of an archive; NULL for another name.
    """
    found = _NAME.fullmatch(re.split(r"[/!\\]", name)[-1])
    zxid = int(found.group(1), 16) if found else -1
    return zxid if 0 <= zxid < 1 << 63 else None


def node_of(raw: bytes, offset: int = 0, parent: int = -1) -> SnapshotNode:
    """The znode that these bytes hold; they are one znode's, as :class:`SnapshotParser` gave them."""
    cursor = Cursor(raw)
    node = _node(cursor, cursor.string() or "", offset, parent)
    return node._replace(raw=raw)


class _Stage(Enum):
    HEADER = 0
    SESSIONS = 1
    LISTS = 2
    PERMISSIONS = 3
    NODES = 4
    SEAL = 5
    TRAILER = 6
    DAMAGED = 7


class SnapshotParser:
    """Gives the znodes of one snapshot as its blocks come; after :meth:`finish` says what the file is.

    :param on_session: called with each session and its timeout in ms.

    ``ending`` and ``reason`` (NULL for a whole snapshot) hold after :meth:`finish`. ``size`` is the number of bytes
    taken, ``rest_offset`` where what is not part of the snapshot begins (of a cut one: the value that is cut off),
    ``rest`` its first bytes and ``rest_reason`` what it is. ``seals`` is what stands between the last znode and there
    in a whole one. ``last_zxid`` is the last transaction before the snapshot's *end*, where a version since 3.6 wrote
    it.
    """

    def __init__(self, on_session: Callable[[int, int], None] | None = None) -> None:
        self.ending = Ending.CUT
        self.reason: str | None = None
        self.size = 0
        self.rest_offset = 0
        self.rest = b""
        self.rest_reason: str | None = None
        self.last_zxid: int | None = None
        self.first_bytes = b""
        self.seals = b""
        self.node_count = 0
        self._on_session = on_session
        self._stage = _Stage.HEADER
        self._left = 0  # sessions, or lists, to come
        self._permissions = 0  # to come of this list
        self._buffer = b""
        self._offset = 0  # of what is held
        self._sum = 1  # Adler-32 of all before what is held
        self._ancestors: list[tuple[str, int]] = []  # path as stored, number

    def take(self, block: bytes) -> list[SnapshotNode]:
        """The znodes that end in this block."""
        self.size += len(block)
        if len(self.first_bytes) < RAW_BYTES:
            self.first_bytes += block[: RAW_BYTES - len(self.first_bytes)]
        if self._stage is _Stage.DAMAGED:
            return []
        if self._stage is _Stage.TRAILER:
            self._buffer += block[: max(0, RAW_BYTES - len(self._buffer))]
            return []
        self._buffer = self._buffer + block if self._buffer else block
        cursor = Cursor(self._buffer)
        nodes: list[SnapshotNode] = []
        begins = 0
        try:
            while self._stage not in (_Stage.TRAILER, _Stage.DAMAGED):
                begins = cursor.at
                self._element(cursor, nodes)
        except ShortError:
            cursor.at = begins
        except JuteError as error:
            self._damage(f"{error} at byte {self._offset + begins}")
        self._drop(cursor.at)
        return nodes

    def finish(self) -> None:
        """To be called once, after the last block."""
        self.rest_offset, self.rest = self._offset, self._buffer[:RAW_BYTES]
        if self._stage is _Stage.DAMAGED:
            self.ending = Ending.DAMAGED
        elif self._stage is _Stage.TRAILER:
            self.ending = Ending.WHOLE
            self._trailer()
        else:
            self.ending = Ending.CUT
            if self._stage is _Stage.SEAL:
                self.rest_offset -= len(_END_OF_NODES)
                self.rest = _END_OF_NODES + self.rest
            self.reason = self.rest_reason = (
                f"the snapshot is cut off after {self.size} bytes and {self.node_count} znodes: ZooKeeper would not"
                " read it, and znodes may be missing"
            )

    def _drop(self, count: int) -> None:
        self._sum = zlib.adler32(self._buffer[:count], self._sum)
        self._buffer = self._buffer[count:]
        self._offset += count

    def _damage(self, what: str) -> None:
        self.reason = f"the snapshot is damaged: {what}"
        self._stage = _Stage.DAMAGED

    def _element(self, cursor: Cursor, nodes: list[SnapshotNode]) -> None:
        match self._stage:
            case _Stage.HEADER:
                self._header(cursor)
            case _Stage.SESSIONS:
                self._session(cursor)
            case _Stage.LISTS:
                self._list(cursor)
            case _Stage.PERMISSIONS:
                self._permission(cursor)
            case _Stage.NODES:
                self._next_node(cursor, nodes)
            case _:
                self._seal(cursor)

    def _header(self, cursor: Cursor) -> None:
        magic, version, _ = cursor.struct(_HEADER)
        if magic != MAGIC:
            raise JuteError("the file does not begin with ZKSN")
        if version != _VERSION:
            raise JuteError(f"version {version} of the format is not known, only {_VERSION} is,")
        self._left = cursor.count()
        self._stage = _Stage.SESSIONS

    def _session(self, cursor: Cursor) -> None:
        if not self._left:
            self._left = cursor.count()
            self._stage = _Stage.LISTS
            return
        session, timeout_ms = cursor.struct(_SESSION)
        self._left -= 1
        if self._on_session is not None:
            self._on_session(session, timeout_ms)

    def _list(self, cursor: Cursor) -> None:
        if not self._left:
            self._stage = _Stage.NODES
            return
        cursor.long()
        self._permissions = cursor.count()
        self._left -= 1
        self._stage = _Stage.PERMISSIONS

    def _permission(self, cursor: Cursor) -> None:
        if not self._permissions:
            self._stage = _Stage.LISTS
            return
        cursor.integer()
        cursor.buffer()
        cursor.buffer()
        self._permissions -= 1

    def _next_node(self, cursor: Cursor, nodes: list[SnapshotNode]) -> None:
        begins = cursor.at
        path = cursor.string()
        if path == "/":
            self._stage = _Stage.SEAL
            return
        parent = self._parent(path, cursor.at - begins)
        node = _node(cursor, path or "", self._offset + begins, parent)
        self._ancestors.append((path or "", self.node_count))
        self.node_count += 1
        nodes.append(node._replace(raw=self._buffer[begins : cursor.at]))

    def _parent(self, path: str | None, size: int) -> int:
        if path is None or (self.node_count > 0) != path.startswith("/") or size > _MAX_PATH_BYTES:
            raise JuteError("a znode's path is none")
        if not self.node_count:
            return -1
        parent = path.rpartition("/")[0]
        while self._ancestors and self._ancestors[-1][0] != parent:
            self._ancestors.pop()
        if not self._ancestors or len(self._ancestors) >= _MAX_DEPTH:
            raise JuteError("a znode does not follow its parent")
        return self._ancestors[-1][1]

    def _seal(self, cursor: Cursor) -> None:
        begins = cursor.at
        value, end = cursor.struct(_SEAL)
        if end != _END_OF_NODES or value != zlib.adler32(self._buffer[:begins], self._sum):
            self._damage("it does not match its checksum, so that nothing vouches for any of its znodes")
        else:
            self._stage = _Stage.TRAILER
            self.seals = _END_OF_NODES + self._buffer[begins : cursor.at]

    def _trailer(self) -> None:
        """The digest's transaction and the last transaction, each with a seal, where they are there."""
        data, at = self._buffer, 0
        for section in (_digest_section, Cursor.long):
            cursor = Cursor(data, at)
            try:
                zxid = section(cursor)
                sealed = zlib.adler32(data[: cursor.at], self._sum)
                value, end = cursor.struct(_SEAL)
            except JuteError:
                continue
            if end == _END_OF_NODES and value == sealed:
                at, self.last_zxid = cursor.at, zxid
        self.seals += data[:at]
        self.rest_offset += at
        self.rest = data[at:][:RAW_BYTES]
        if self.rest_offset < self.size:
            self.rest_reason = f"{self.size - self.rest_offset} bytes after the seal of the snapshot are not known"


def _node(cursor: Cursor, path: str, offset: int, parent: int) -> SnapshotNode:
    data = cursor.buffer()
    (_, czxid, mzxid, ctime, mtime, version, creates, acl_version, owner, pzxid) = cursor.struct(_STAT)
    return SnapshotNode(
        offset, b"", parent, path or "/", data, czxid, mzxid, ctime, mtime, version, creates, acl_version, owner, pzxid
    )


def _digest_section(cursor: Cursor) -> int:
    zxid = cursor.long()
    if cursor.integer() < 2:
        cursor.buffer()
    else:
        cursor.long()
    return zxid
