"""ZooKeeper's files, written for tests: transactions, transaction logs and snapshots, as the servers lay them out."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

LOG_HEADER = struct.pack(">4siq", b"ZKLG", 2, 0)
#: Times of transactions count from here, epoch milliseconds.
FIRST_MS = 1_700_000_000_000
DIGEST = struct.pack(">iq", 2, 123_456_789)


def integer(value: int) -> bytes:
    return struct.pack(">i", value)


def long(value: int) -> bytes:
    return struct.pack(">q", value)


def buffer(value: bytes | None) -> bytes:
    return integer(-1) if value is None else integer(len(value)) + value


def text(value: str | None) -> bytes:
    return buffer(None if value is None else value.encode())


def acl() -> bytes:
    return integer(1) + integer(31) + text("world") + text("anyone")


def create(path: str, data: str | None, ephemeral: bool = False, parent_cversion: int | None = 1) -> bytes:
    """``CreateTxn``; without ``parent_cversion`` as before 3.4."""
    tail = b"" if parent_cversion is None else integer(parent_cversion)
    return text(path) + text(data) + acl() + bytes([ephemeral]) + tail


def create_container(path: str, data: str | None, parent_cversion: int = 1) -> bytes:
    return text(path) + text(data) + acl() + integer(parent_cversion)


def create_ttl(path: str, data: str | None, ttl_ms: int, parent_cversion: int = 1) -> bytes:
    return create_container(path, data, parent_cversion) + long(ttl_ms)


def set_data(path: str, data: str | None, version: int) -> bytes:
    return text(path) + text(data) + integer(version)


def set_acl(path: str, version: int) -> bytes:
    return text(path) + acl() + integer(version)


def check(path: str, version: int) -> bytes:
    return text(path) + integer(version)


def paths(*values: str) -> bytes:
    """The list of a closed session's znodes."""
    return integer(len(values)) + b"".join(text(value) for value in values)


def multi(*parts: tuple[int, bytes]) -> bytes:
    """``MultiTxn`` of (type, body)."""
    return integer(len(parts)) + b"".join(integer(kind) + buffer(body) for kind, body in parts)


def transaction(
    zxid: int, kind: int, body: bytes = b"", session: int = 7, digest: bytes = b"", time_ms: int | None = None
) -> bytes:
    """Header and body of one transaction."""
    time_ms = FIRST_MS + zxid if time_ms is None else time_ms
    return struct.pack(">qiqqi", session, 1, zxid, time_ms, kind) + body + digest


def record(transaction_bytes: bytes) -> bytes:
    """A transaction as it stands in a log."""
    return struct.pack(">qi", zlib.adler32(transaction_bytes), len(transaction_bytes)) + transaction_bytes + b"B"


def log(*transactions: bytes, tail: bytes = b"") -> bytes:
    """A transaction log."""
    return LOG_HEADER + b"".join(record(each) for each in transactions) + tail


@dataclass(frozen=True)
class Stat:
    """A znode of a snapshot; ``cversion`` as the server stores it."""

    data: bytes | None = b""
    czxid: int = 1
    mzxid: int = 1
    ctime_ms: int = FIRST_MS
    mtime_ms: int = FIRST_MS
    version: int = 0
    cversion: int = 0
    aversion: int = 0
    owner: int = 0
    pzxid: int = 1

    def encoded(self) -> bytes:
        return (
            buffer(self.data)
            + long(-1)
            + struct.pack(
                ">qqqqiiiqq",
                self.czxid,
                self.mzxid,
                self.ctime_ms,
                self.mtime_ms,
                self.version,
                self.cversion,
                self.aversion,
                self.owner,
                self.pzxid,
            )
        )


def seal(before: bytes) -> bytes:
    return long(zlib.adler32(before)) + text("/")


def snapshot(
    nodes: Mapping[str, Stat],
    sessions: Mapping[int, int] | None = None,
    digest_zxid: int | None = None,
    last_zxid: int | None = None,
) -> bytes:
    """A snapshot; ``nodes`` by path, the root (``/``) first and each znode after its parent.

    With ``digest_zxid`` as since 3.6, with ``last_zxid`` as since 3.9.
    """
    sessions = sessions or {}
    data = struct.pack(">4siq", b"ZKSN", 2, -1)
    data += integer(len(sessions)) + b"".join(long(each) + integer(ms) for each, ms in sessions.items())
    data += integer(1) + long(1) + acl()
    data += b"".join(text("" if path == "/" else path) + stat.encoded() for path, stat in nodes.items())
    data += text("/")
    data += seal(data)
    if digest_zxid is not None:
        data += long(digest_zxid) + DIGEST
        data += seal(data)
    if last_zxid is not None:
        data += long(last_zxid)
        data += seal(data)
    return data


def snappy(data: bytes, block_bytes: int = 32 << 10) -> bytes:
    """The data as snappy-java's ``SnappyOutputStream`` writes it."""
    blocks = (data[at : at + block_bytes] for at in range(0, len(data), block_bytes))
    packed = (bytes(pa.compress(block, codec="snappy", asbytes=True)) for block in blocks)
    return b"\x82SNAPPY\0" + integer(1) + integer(1) + b"".join(buffer(block) for block in packed)


def in_blocks(data: bytes, size: int) -> Iterable[bytes]:
    """The data in blocks of this size."""
    return (data[at : at + size] for at in range(0, len(data), size))
