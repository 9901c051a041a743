"""Read ZooKeeper's transaction log files (``log.*``): every write to every znode, in the order it happened.

A file is a header (``ZKLG``, version 2, database id), then one record per transaction: its Adler-32 checksum, its
length, its bytes, and a closing ``B``. The bytes are the transaction's header and body in ZooKeeper's own
serialisation (jute: big-endian integers, strings and buffers behind their length); since 3.6 a digest follows, which
is not read. ZooKeeper allocates a file in blocks of zeros, so zeros after the last record are its regular end.

Nothing here opens a file: bytes go in, values come out.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from typing import Final

MAGIC: Final = b"ZKLG"
_SUPPORTED_VERSION: Final = 2
_FILE_HEADER: Final = struct.Struct(">4siq")
_RECORD_HEADER: Final = struct.Struct(">qi")
_TRANSACTION_HEADER: Final = struct.Struct(">qiqqi")
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_END_OF_RECORD: Final = 0x42
_DIGEST_BYTES: Final = 12


class ZookeeperLogError(ValueError):
    """The bytes are not a transaction log, or are damaged before their end; the message says where."""


class Op(StrEnum):
    """What one operation did."""

    CREATE = "create"
    DELETE = "delete"
    SET_DATA = "set_data"
    SET_ACL = "set_acl"
    CHECK = "check"
    CREATE_SESSION = "create_session"
    CLOSE_SESSION = "close_session"
    ERROR = "error"  # refused, and logged all the same: it changed nothing
    OTHER = "other"


class LogEnd(StrEnum):
    """How a file ended."""

    COMPLETE = "complete"  # at its last byte, or in the zeros that ZooKeeper allocates ahead
    CUT = "cut"  # inside a record: the file was copied or stopped while it was written


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of one transaction.

    ``time_ms`` is the leader's clock in epoch milliseconds. ``session`` is the client that asked, as ZooKeeper's
    signed 64-bit id. ``ordinal`` counts the operations of one transaction from 0: only a ``multi`` has more than one.
    ``version`` is the znode's data version after the write (0 for a create). ``paths`` are the ephemeral znodes that
    a closed session takes along, None where the version does not log them (before 3.6). ``error`` is ZooKeeper's
    code of the refusal (negative).
    """

    zxid: int
    ordinal: int
    time_ms: int
    session: int
    cxid: int
    op: Op
    path: str | None = None
    data: bytes | None = None
    version: int | None = None
    ephemeral: bool = False
    paths: tuple[str, ...] | None = None
    error: int | None = None


class _Code(IntEnum):
    """ZooKeeper's codes (``ZooDefs.OpCode``) of the operations that change znodes or sessions."""

    CREATE = 1
    DELETE = 2
    SET_DATA = 5
    SET_ACL = 7
    CHECK = 13
    MULTI = 14
    CREATE2 = 15
    RECONFIG = 16
    CREATE_CONTAINER = 19
    DELETE_CONTAINER = 20
    CREATE_TTL = 21
    ERROR = -1
    CREATE_SESSION = -10
    CLOSE_SESSION = -11


class ZookeeperLog:
    """The operations of one file, in order; iterate once.

    :param data: the whole file.
    :raises ZookeeperLogError: at once where the header is not a transaction log's; while iterating where a record
        that is whole does not match its checksum or cannot be read.

    After the iteration ``end`` says how the file ended, and ``position`` is the offset of the first byte that was not
    read: where to go on when the file has grown.
    """

    def __init__(self, data: bytes) -> None:
        if len(data) < _FILE_HEADER.size or data[:4] != MAGIC:
            raise ZookeeperLogError("not a ZooKeeper transaction log: it does not begin with ZKLG")
        _, version, self.database_id = _FILE_HEADER.unpack_from(data)
        if version != _SUPPORTED_VERSION:
            raise ZookeeperLogError(f"a ZooKeeper transaction log of version {version}: only version 2 is known")
        self._data = data
        self.position = _FILE_HEADER.size
        self.end: LogEnd | None = None

    def __iter__(self) -> Iterator[Operation]:
        while (record := self._next_record()) is not None:
            start = self.position
            checksum, body = record
            if zlib.adler32(body) != checksum:
                raise ZookeeperLogError(f"the record at byte {start} does not match its checksum: the file is damaged")
            try:
                operations = tuple(_operations(_Jute(body)))
            except (struct.error, UnicodeDecodeError, IndexError) as problem:
                raise ZookeeperLogError(f"the record at byte {start} cannot be read: {problem}") from problem
            self.position = start + _RECORD_HEADER.size + len(body) + 1
            yield from operations

    def _next_record(self) -> tuple[int, bytes] | None:
        """Checksum and bytes of the record at the position; None at the end of the file, which is then noted."""
        data, start = self._data, self.position
        if len(data) - start < _RECORD_HEADER.size:
            self.end = LogEnd.CUT if any(data[start:]) else LogEnd.COMPLETE
            return None
        checksum, length = _RECORD_HEADER.unpack_from(data, start)
        if length == 0:
            self.end = LogEnd.COMPLETE if checksum == 0 else LogEnd.CUT
            return None
        if length < 0:
            raise ZookeeperLogError(f"the record at byte {start} has a negative length: the file is damaged")
        first = start + _RECORD_HEADER.size
        if first + length >= len(data) or data[first + length] != _END_OF_RECORD:
            self.end = LogEnd.CUT
            return None
        return checksum, data[first : first + length]


def close_sessions(operations: Iterable[Operation]) -> Iterator[Operation]:
    """The same operations, each closed session followed by the deletions of its ephemeral znodes.

    The deletions carry the transaction of the closing, in the order of the znodes' creation. Give the operations of
    all files in their order: an ephemeral znode created in one file may go with its session in the next.
    """
    owners: dict[str, int] = {}
    for operation in operations:
        yield operation
        if operation.op is Op.CREATE and operation.ephemeral and operation.path is not None:
            owners[operation.path] = operation.session
        elif operation.op is Op.DELETE and operation.path is not None:
            owners.pop(operation.path, None)
        elif operation.op is Op.CLOSE_SESSION:
            known = [path for path, owner in owners.items() if owner == operation.session]
            listed = [path for path in operation.paths or () if path not in owners]
            for ordinal, path in enumerate([*known, *listed], start=1):
                owners.pop(path, None)
                yield replace(operation, op=Op.DELETE, ordinal=ordinal, path=path, paths=None)


class _Jute:
    """A cursor over jute's serialisation."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def header(self) -> tuple[int, int, int, int, int]:
        session, cxid, zxid, time_ms, kind = _TRANSACTION_HEADER.unpack_from(self._data, self._at)
        self._at += _TRANSACTION_HEADER.size
        return session, cxid, zxid, time_ms, kind

    def integer(self) -> int:
        (value,) = _INT.unpack_from(self._data, self._at)
        self._at += _INT.size
        return int(value)

    def boolean(self) -> bool:
        self._at += 1
        return self._data[self._at - 1] != 0

    def buffer(self) -> bytes | None:
        length = self.integer()
        if length < 0:
            return None
        if length > self.left:
            raise IndexError(f"{length} bytes announced, {self.left} left")
        self._at += length
        return self._data[self._at - length : self._at]

    def string(self) -> str:
        return (self.buffer() or b"").decode("utf-8")

    def count(self) -> int:
        """Length of a vector; a missing vector has none."""
        return max(self.integer(), 0)

    def skip_acl(self) -> None:
        for _ in range(self.count()):
            self.integer()
            self.buffer()
            self.buffer()

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return len(self._data) - self._at


def _operations(jute: _Jute) -> Iterator[Operation]:
    session, cxid, zxid, time_ms, kind = jute.header()
    head = Operation(zxid=zxid, ordinal=0, time_ms=time_ms, session=session, cxid=cxid, op=Op.OTHER)
    if kind != _Code.MULTI:
        yield _operation(head, kind, jute)
        return
    parts = [(jute.integer(), jute.buffer() or b"") for _ in range(jute.count())]
    # A multi is all or nothing: the operations before the refused one are logged with their own types.
    refused = any(part_kind == _Code.ERROR for part_kind, _ in parts)
    for ordinal, (part_kind, body) in enumerate(parts):
        operation = _operation(replace(head, ordinal=ordinal), part_kind, _Jute(body))
        yield replace(operation, op=Op.ERROR) if refused else operation


def _operation(head: Operation, kind: int, jute: _Jute) -> Operation:
    match kind:
        case _Code.CREATE | _Code.CREATE2 | _Code.CREATE_CONTAINER | _Code.CREATE_TTL:
            path, data = jute.string(), jute.buffer()
            jute.skip_acl()
            ephemeral = kind in (_Code.CREATE, _Code.CREATE2) and jute.left > 0 and jute.boolean()
            return replace(head, op=Op.CREATE, path=path, data=data, version=0, ephemeral=ephemeral)
        case _Code.DELETE | _Code.DELETE_CONTAINER:
            return replace(head, op=Op.DELETE, path=jute.string())
        case _Code.SET_DATA | _Code.RECONFIG:
            return replace(head, op=Op.SET_DATA, path=jute.string(), data=jute.buffer(), version=jute.integer())
        case _Code.SET_ACL:
            return replace(head, op=Op.SET_ACL, path=jute.string())
        case _Code.CHECK:
            return replace(head, op=Op.CHECK, path=jute.string(), version=jute.integer())
        case _Code.CREATE_SESSION:
            return replace(head, op=Op.CREATE_SESSION)
        case _Code.CLOSE_SESSION:
            # Without the list of paths, nothing follows the header but, since 3.6, the digest.
            listed = jute.left not in (0, _DIGEST_BYTES)
            paths = tuple(jute.string() for _ in range(jute.count())) if listed else None
            return replace(head, op=Op.CLOSE_SESSION, paths=paths)
        case _Code.ERROR:
            return replace(head, op=Op.ERROR, error=jute.integer() if jute.left else None)
        case _:
            return head
