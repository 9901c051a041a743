"""The last records of a segment: their offsets, leader epochs, times and hashes of their keys.

A record that an election or a cut lost is still in a copy of the log that had it, near its end. What is kept of it
tells a team which of its records that was; neither keys nor values are kept. Batches of formats 0 and 1 say no leader
epoch: nothing would tell a lost record from one written at its offset later, so theirs are left out.
"""

from __future__ import annotations

import io
import struct
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final

import pyarrow as pa
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatch

from ingest.containers import snappy
from ingest.containers.streams import read_up_to

#: Records are sought in the last batches, so many bytes of them as they are in the file; in none that alone has more.
TAIL_BYTES: Final = 1 << 20
MOST_RECORDS: Final = 4_096
#: A compressed batch that holds more is left out.
MOST_PLAIN_BYTES: Final = 4 << 20
#: As a team can compute it of a key of its own: the first digits of its SHA-256.
HASH_DIGITS: Final = 16
#: The end of the year 9999, ms since 1970: no timestamp column holds more.
MAX_TIMESTAMP_MS: Final = 253_402_300_799_999
_CODECS: Final[Mapping[int, str]] = {
    DefaultRecordBatch.CODEC_GZIP: "gzip",
    DefaultRecordBatch.CODEC_LZ4: "lz4",
    DefaultRecordBatch.CODEC_ZSTD: "zstd",
}
_HEADER_BYTES: Final = DefaultRecordBatch.HEADER_STRUCT.size
_ATTRIBUTES_AT: Final = DefaultRecordBatch.ATTRIBUTES_OFFSET
_ATTRIBUTES: Final = struct.Struct(">h")


class Tail:
    """The last batches of format 2, whole and intact, of a log that is walked."""

    def __init__(self) -> None:
        self._batches: deque[bytes] = deque()
        self._bytes = 0

    def add(self, batch: bytes) -> None:
        """One more, behind those before it; the first ones go where there are too many bytes."""
        self._batches.append(batch)
        self._bytes += len(batch)
        while self._bytes > TAIL_BYTES:
            self._bytes -= len(self._batches.popleft())

    def records(self) -> list[dict[str, Any]]:
        """What ``bronze.log_segments`` keeps of the last :data:`MOST_RECORDS`, in the order of their offsets."""
        found: list[list[dict[str, Any]]] = []
        count = 0
        for batch in reversed(self._batches):
            if count >= MOST_RECORDS:
                break
            found.append(list(_records(batch)))
            count += len(found[-1])
        return [record for records in reversed(found) for record in records][-MOST_RECORDS:]


def _records(data: bytes) -> Iterator[dict[str, Any]]:
    """Of one batch, up to the first that is none of it; nothing of control records, which no producer sent, nor of a
    batch that cannot be decompressed. A time that no column holds, or none, is NULL."""
    batch = DefaultRecordBatch(data)
    if batch.is_control_batch:
        return
    if batch.compression_type:
        plain = _decompressed(data[_HEADER_BYTES:], batch.compression_type)
        if plain is None:
            return
        batch = DefaultRecordBatch(_with_records(data, plain))
    epoch = batch.leader_epoch if batch.leader_epoch >= 0 else None
    with suppress(CorruptRecordError):
        for record in batch:
            if not batch.base_offset <= record.offset <= batch.last_offset:
                return
            has_time = 0 <= record.timestamp <= MAX_TIMESTAMP_MS
            key_hash = None if record.key is None else sha256(record.key).hexdigest()[:HASH_DIGITS]
            yield {
                "offset": record.offset,
                "leader_epoch": epoch,
                "timestamp_ms": record.timestamp if has_time else None,
                "key_hash": key_hash,
            }


def _with_records(batch: bytes, plain: bytes) -> bytes:
    """The batch as if its records had not been compressed."""
    (attributes,) = _ATTRIBUTES.unpack_from(batch, _ATTRIBUTES_AT)
    header = bytearray(batch[:_HEADER_BYTES])
    _ATTRIBUTES.pack_into(header, _ATTRIBUTES_AT, attributes & ~DefaultRecordBatch.CODEC_MASK)
    return bytes(header) + plain


def _decompressed(data: bytes, compression: int) -> bytes | None:
    """The records of a batch; None where its codec is unknown, its data are damaged, or there are too many of them."""
    try:
        if compression in _CODECS:
            plain = pa.CompressedInputStream(pa.BufferReader(data), _CODECS[compression]).read(MOST_PLAIN_BYTES + 1)
        elif compression != DefaultRecordBatch.CODEC_SNAPPY:
            return None
        elif data.startswith(snappy.MAGIC):
            stream = snappy.SnappyStream(io.BytesIO(data))
            plain = read_up_to(stream, MOST_PLAIN_BYTES + 1)
            if stream.damage is not None:
                return None
        else:  # of producers that do not frame it, which brokers take as well (SnappyInputStream)
            plain = snappy.uncompressed_block(data)
    except (OSError, ValueError):
        return None
    return plain if len(plain) <= MOST_PLAIN_BYTES else None
