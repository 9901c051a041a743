"""Segments and indexes as a broker writes them, for tests: batches by kafka-python, offsets and epochs as the
leader assigns them (neither is covered by a batch's checksum)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import google_crc32c
from kafka.record import MemoryRecordsBuilder

from ingest.readers.work import Kept, Rejected, WorkItem

GZIP = 1
BASE_TIMESTAMP_MS = 1_700_000_000_000


def batch(
    offset: int, count: int = 1, *, magic: int = 2, compression: int = 0, epoch: int = 0, value: bytes = b"value"
) -> bytes:
    """One batch of format 2, or ``count`` messages of format 0 or 1 (one wrapper of them where compressed)."""
    first = offset if magic < 2 and not (compression and magic == 1) else 0
    builder = MemoryRecordsBuilder(magic, compression, 1 << 24, offset=first)
    for i in range(count):
        builder.append(BASE_TIMESTAMP_MS + offset % (1 << 32) + i, b"key", value)
    builder.close()
    data = bytearray(builder.buffer())
    if magic == 2:
        struct.pack_into(">qxxxxi", data, 0, offset, epoch)
        struct.pack_into(">i", data, 8, len(data) - 12)
    elif compression:
        struct.pack_into(">q", data, 0, offset + count - 1)
    return bytes(data)


def segment(offset: int, batches: int, per_batch: int = 1, **options: Any) -> bytes:
    """Batches of ``per_batch`` records each, the first of them at ``offset``."""
    return b"".join(batch(offset + i * per_batch, per_batch, **options) for i in range(batches))


def offset_index(*entries: tuple[int, int], ahead: int = 0) -> bytes:
    """(relative offset, position) entries, and ``ahead`` more of zeros."""
    return b"".join(struct.pack(">ii", *entry) for entry in entries) + bytes(8 * ahead)


def time_index(*entries: tuple[int, int], ahead: int = 0) -> bytes:
    """(timestamp, relative offset) entries, and ``ahead`` more of zeros."""
    return b"".join(struct.pack(">qi", *entry) for entry in entries) + bytes(12 * ahead)


def producer_snapshot(producers: int, version: int = 1) -> bytes:
    """A producer snapshot of that many producers."""
    entry = struct.pack(">qhiqiqiq", 7, 0, 3, 99, 0, BASE_TIMESTAMP_MS, 0, -1)
    body = struct.pack(">i", producers) + entry * producers
    return struct.pack(">hI", version, google_crc32c.extend(0, body)) + body


def blocks(data: bytes, size: int) -> Iterator[bytes]:
    """The bytes in blocks of ``size``."""
    for start in range(0, len(data), size):
        yield data[start : start + size]


def item(kind: str, **known: Any) -> WorkItem:
    """A work item of that kind; broker 1, cluster c."""
    defaults: dict[str, Any] = {
        "location": "f",
        "member": None,
        "source_file": "f",
        "cluster_id": "c",
        "broker_id": 1,
        "file_id": "f",
        "record_base": "f",
        "end": 0,
    }
    return WorkItem(kind=kind, **(defaults | known))


def kept(rows: Iterable[Kept | Rejected]) -> list[dict[str, Any]]:
    """The values of the kept records."""
    return [dict(row.values) for row in rows if isinstance(row, Kept)]


def rejected(rows: Iterable[Kept | Rejected]) -> list[tuple[int, str]]:
    """(line, reason) of the rejected records."""
    return [(row.place.line, row.reason) for row in rows if isinstance(row, Rejected)]


def assert_tiled(rows: Sequence[Kept | Rejected], size: int) -> None:
    """Every byte up to ``size`` belongs to exactly one record."""
    end = 0
    for row in rows:
        assert row.place.offset == end, f"a gap or overlap at byte {end}"
        end += row.place.length
    assert end == size
