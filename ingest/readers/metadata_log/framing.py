"""Bytes of a metadata log's segment or snapshot to its batches: where each begins and ends, and which are damaged.

Batches are of message format 2, never compressed (``BatchAccumulator``), and end with the file; zeros at the end are
none. A batch whose checksum fails leads on to the next by its length; behind one that has no possible length nothing
can be found.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import google_crc32c

from ingest.readers.work import RAW_BYTES

#: A batch is appended with 8 MiB at most (KafkaRaftClient.MAX_BATCH_SIZE_BYTES), a snapshot's with as much.
MAX_BATCH_BYTES: Final = (8 << 20) + (64 << 10)
HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_START: Final = struct.Struct(">qiib")
_LENGTH_END: Final = 12
_CRC_FROM: Final = 21


class Batch(NamedTuple):
    """``length`` counts all of its bytes; ``data`` holds them, or the first of them where ``reason`` says why it cannot
    be read. ``number`` counts the batches of the file from 1."""

    offset: int
    length: int
    number: int
    data: bytes
    reason: str | None = None


class BatchFramer:
    """Frames batches as blocks come, from one that begins at ``offset`` on. ``complete_end`` is where the last one ends
    that later bytes cannot change."""

    def __init__(self, offset: int = 0, number: int = 1) -> None:
        self._buffer = b""
        self.complete_end = offset
        self._number = number
        self._lost: str | None = None
        self._lost_bytes = 0
        self._zeros = 0

    @property
    def framed(self) -> int:
        return self._number - 1

    @property
    def is_lost(self) -> bool:
        """Whether bytes that can be no batch, whatever follows, were seen."""
        return self._lost is not None

    def take(self, block: bytes) -> list[Batch]:
        """The batches that end in this block."""
        if self._lost is not None:
            self._lose(block)
            return []
        self._buffer += block
        found, at = [], 0
        while self._lost is None and len(self._buffer) - at >= _START.size:
            _, length, _, magic = _START.unpack_from(self._buffer, at)
            size = _LENGTH_END + length
            if magic != 2 or not HEADER.size <= size <= MAX_BATCH_BYTES:
                self._lost = f"no batch of message format 2 begins at byte {self.complete_end}"
            elif len(self._buffer) - at < size:
                break
            else:
                found.append(self._batch(self._buffer[at : at + size]))
                at += size
        self._buffer = self._buffer[at:]
        if self._lost is not None:
            rest, self._buffer = self._buffer, b""
            self._lose(rest)
        return found

    def finish(self) -> list[Batch]:
        """What the file ends with that is no batch; to be called once, after the last block."""
        if self._lost is None and self._buffer:
            self._lost = "the batch is cut off: the file ends in it"
            rest, self._buffer = self._buffer, b""
            self._lose(rest)
        size = self._lost_bytes - self._zeros
        if self._lost is None or size <= 0:
            return []
        return [Batch(self.complete_end, size, self._number, self._buffer[:size], self._lost)]

    def _batch(self, data: bytes) -> Batch:
        (stated,) = struct.unpack_from(">I", data, _CRC_FROM - 4)
        is_intact = google_crc32c.value(data[_CRC_FROM:]) == stated
        reason = None if is_intact else f"the checksum of the batch at byte {self.complete_end} does not hold"
        found = Batch(self.complete_end, len(data), self._number, data if is_intact else data[:RAW_BYTES], reason)
        self.complete_end += len(data)
        self._number += 1
        return found

    def _lose(self, block: bytes) -> None:
        """Count what cannot be framed, and the zeros at its end; its first bytes are held."""
        self._lost_bytes += len(block)
        kept = len(block.rstrip(b"\0"))
        self._zeros = len(block) - kept if kept else self._zeros + len(block)
        self._buffer += block[: max(0, RAW_BYTES - len(self._buffer))]
