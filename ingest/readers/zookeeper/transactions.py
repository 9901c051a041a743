"""One transaction of ZooKeeper's log, from its bytes to its operations.

The bytes are the transaction's header and body in jute; since 3.6 a digest of the tree may follow, which is not read.
Layouts: ``TxnHeader`` and the ``...Txn`` records of ``zookeeper.jute``, codes: ``ZooDefs.OpCode``.
"""

from __future__ import annotations

import struct
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple

from ingest.readers.zookeeper.columns import CONTAINER_OWNER, ttl_owner
from ingest.readers.zookeeper.jute import Cursor, JuteError

_HEADER: Final = struct.Struct(">qiqqi")
#: Version (int) and digest (long) that follow a transaction since 3.6.
_DIGEST_BYTES: Final = 12


class Op(StrEnum):
    """What one operation did: the vocabulary of ``bronze.znode_transactions.operation``."""

    CREATE = "create"
    DELETE = "delete"
    SET_DATA = "set_data"
    SET_ACL = "set_acl"
    CHECK = "check"
    CREATE_SESSION = "create_session"
    CLOSE_SESSION = "close_session"
    ERROR = "error"  # refused, and logged all the same: it changed nothing
    OTHER = "other"


class Operation(NamedTuple):
    """One operation of one transaction.

    ``time_ms`` is the leader's clock in epoch milliseconds. ``session`` is the client that asked, as ZooKeeper's
    signed 64-bit id. ``ordinal`` counts the operations of one transaction from 0: a ``multi`` has several, and a
    closed session that lists its ephemeral znodes is followed by their deletions.
    ``version`` is the znode's data version after the write (0 for a create), of a check the version asked for;
    ``paths`` the ephemeral znodes that a closed session takes along, None where they are not logged (before 3.6).
    ``error`` is ZooKeeper's code of the refusal (negative), of a multi's operation the one that refused the multi;
    such operations keep the path and data that were asked for.
    ``parent_cversion`` is the child version that a create gives its parent, None where it is not logged (before 3.4).
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
    ttl_ms: int | None = None
    is_container: bool = False
    session_timeout_ms: int | None = None
    acl_version: int | None = None
    parent_cversion: int | None = None

    @property
    def ephemeral_owner(self) -> int:
        """Of a create: what stands in the znode's stat."""
        if self.is_container:
            return CONTAINER_OWNER
        if self.ttl_ms is not None:
            return ttl_owner(self.ttl_ms)
        return self.session if self.ephemeral else 0


class Part(NamedTuple):
    """An operation, and where its bytes end in those of the transaction; the last one's end where they do."""

    operation: Operation
    end: int


class _Code(IntEnum):
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


#: The first values of an operation: zxid, ordinal, time_ms, session, cxid.
_Head = tuple[int, int, int, int, int]


def parts(body: bytes) -> list[Part]:
    """The operations of one transaction, at least one; an unknown one is ``other``.

    :raises JuteError: where the bytes are no transaction.
    """
    cursor = Cursor(body)
    session, cxid, zxid, time_ms, code = cursor.struct(_HEADER)
    head = (zxid, 0, time_ms, session, cxid)
    if code == _Code.MULTI:
        found = _multi(head, cursor)
    elif code == _Code.CLOSE_SESSION:
        found = _close_session(head, cursor)
    else:
        found = [Part(_operation(head, code, cursor), cursor.at)]
    if not found:
        return [Part(Operation(*head, Op.OTHER), len(body))]
    found[-1] = Part(found[-1].operation, len(body))
    return found


def _multi(head: _Head, cursor: Cursor) -> list[Part]:
    found: list[Part] = []
    zxid, _, time_ms, session, cxid = head
    refusal: int | None = None
    refused = False
    for ordinal in range(cursor.count()):
        code = cursor.integer()
        body = Cursor(cursor.buffer() or b"")
        operation = _operation((zxid, ordinal, time_ms, session, cxid), code, body)
        found.append(Part(operation, cursor.at))
        if operation.op is Op.ERROR:
            refused = True
            refusal = refusal or operation.error or None
    if not refused:
        return found
    # A multi is all or nothing: what came before the refused operation is logged with its own type.
    return [part if part.operation.op is Op.ERROR else _refused(part, refusal) for part in found]


def _refused(part: Part, error: int | None) -> Part:
    return Part(part.operation._replace(op=Op.ERROR, error=error), part.end)


def _close_session(head: _Head, cursor: Cursor) -> list[Part]:
    zxid, _, time_ms, session, cxid = head
    after_header = cursor.at
    first = after_header + 4
    listed = _listed_paths(cursor)
    if listed is None:
        return [Part(Operation(*head, Op.CLOSE_SESSION), after_header)]
    closing = Operation(*head, Op.CLOSE_SESSION, paths=tuple(path for path, _ in listed))
    deletions = [
        Part(Operation(zxid, ordinal, time_ms, session, cxid, Op.DELETE, path), end)
        for ordinal, (path, end) in enumerate(listed, start=1)
    ]
    return [Part(closing, first), *deletions]


def _listed_paths(cursor: Cursor) -> list[tuple[str, int]] | None:
    """The paths and where each ends; None where there is no list: then nothing or the digest alone follows."""
    found: list[tuple[str, int]] = []
    try:
        count = cursor.integer()
        for _ in range(count):
            path = cursor.string()
            if path is None or not path.startswith("/"):
                return None
            found.append((path, cursor.at))
    except JuteError:
        return None
    return found if count >= 0 and cursor.left in (0, _DIGEST_BYTES) else None


def _operation(head: _Head, code: int, cursor: Cursor) -> Operation:
    match code:
        case _Code.SET_DATA | _Code.RECONFIG:
            return Operation(*head, Op.SET_DATA, _path(cursor), cursor.buffer(), cursor.integer())
        case _Code.CHECK:
            return Operation(*head, Op.CHECK, _path(cursor), None, cursor.integer())
        case _Code.ERROR:
            return Operation(*head, Op.ERROR, error=cursor.integer() if cursor.left else None)
        case _Code.CREATE | _Code.CREATE2 | _Code.CREATE_CONTAINER | _Code.CREATE_TTL:
            return _create(head, code, cursor)
        case _Code.DELETE | _Code.DELETE_CONTAINER:
            return Operation(*head, Op.DELETE, _path(cursor))
        case _Code.SET_ACL:
            path = _path(cursor)
            cursor.skip_acls()
            return Operation(*head, Op.SET_ACL, path, acl_version=cursor.integer())
        case _Code.CREATE_SESSION:
            return Operation(*head, Op.CREATE_SESSION, session_timeout_ms=cursor.integer())
        case _:
            return Operation(*head, Op.OTHER)


def _create(head: _Head, code: int, cursor: Cursor) -> Operation:
    path, data = _path(cursor), cursor.buffer()
    cursor.skip_acls()
    has_flag = code in (_Code.CREATE, _Code.CREATE2)
    ephemeral = cursor.boolean() if has_flag else False
    # Before 3.4 a create ended with its flag.
    parent_cversion = cursor.integer() if not has_flag or cursor.left else None
    return Operation(
        *head,
        Op.CREATE,
        path,
        data,
        0,
        ephemeral,
        parent_cversion=parent_cversion,
        ttl_ms=cursor.long() if code == _Code.CREATE_TTL else None,
        is_container=code == _Code.CREATE_CONTAINER,
    )


def _path(cursor: Cursor) -> str:
    path = cursor.string()
    if path is None or not path.startswith("/"):
        raise JuteError("a znode's path does not begin with /")
    return path
