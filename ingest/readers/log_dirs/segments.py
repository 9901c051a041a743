"""The batches of a segment (``.log``), walked as a stream: which are whole, and where the log ends.

A segment is a sequence of batches: offset (8 bytes), length of the rest (4), and the rest, whose fifth byte is the
message format. Formats 0 and 1 hold one message, or a compressed wrapper whose offset is that of the last message
inside; format 2 holds a header and many records. After a crash Kafka walks them in the same way, and cuts the
segment where the first one is not whole or not intact (``LogSegment.recover``). What it would cut is not counted
here, and ``problem`` says what it is.

Memory: one block of the source and the tail's batches, whatever a batch's size; checksums are computed piece by piece.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import google_crc32c

from ingest.readers.log_dirs.samples import Sample
from ingest.readers.log_dirs.tail import MAX_TIMESTAMP_MS, TAIL_BYTES, Tail

#: Bytes up to the end of the message format, which Kafka reads first: it takes fewer than one more for no batch.
_TO_MAGIC: Final = 17
_LENGTH_END: Final = 12
#: The least length that any batch can have: a message of format 0 without key and value.
_LEAST_LENGTH: Final = 14
_LEAST_LENGTH_V1: Final = 22
_V2_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_LEGACY_HEADER: Final = struct.Struct(">qiIbb")
_V1_TIMESTAMP: Final = struct.Struct(">q")
_START: Final = struct.Struct(">qiib")
#: Where the bytes that a checksum covers begin.
_CRC_FROM_V2: Final = 21
_CRC_FROM_LEGACY: Final = 16
_COMPRESSED: Final = 0x07
#: Offsets of a segment are kept relative to its base, in 31 bits.
_MOST_OFFSETS: Final = 1 << 31
_LAST_OFFSET: Final = (1 << 63) - 2

_Checksum = Callable[[int, bytes], int]


@dataclass(frozen=True)
class SegmentSummary:
    """What a segment holds; the fields are the columns of ``bronze.log_segments``, times in microseconds since 1970."""

    size_bytes: int
    valid_bytes: int
    batches_count: int
    first_offset: int | None
    next_offset: int
    last_leader_epoch: int | None
    message_format: int | None
    max_timestamp: int | None
    problem: str | None
    sampled_one_in: int
    sampled_positions: list[int]
    sampled_offsets: list[int]
    sampled_timestamps: list[int]
    last_records: list[dict[str, Any]]


def summarise(source: Iterable[bytes], base_offset: int) -> SegmentSummary:
    """Walk the batches of a segment whose name says ``base_offset``; the source is read to its end."""
    stream = _Stream(source)
    walk = _Walk(base_offset)
    problem = None
    while True:
        head = stream.peek(_V2_HEADER.size)
        if not head:
            break
        problem = walk.step(head, stream)
        if problem is not None:
            break
    size = stream.drain()
    if problem is not None:
        cut = size - walk.valid_bytes
        if stream.zeros_from <= walk.valid_bytes:
            problem = "zeros, allocated ahead or left by a crash"
        problem = f"{cut} bytes from byte {walk.valid_bytes} on are no part of the log: {problem}"
    elif walk.max_timestamp > MAX_TIMESTAMP_MS:
        problem = f"the largest timestamp of its records, {walk.max_timestamp} ms, lies beyond the year 9999"
    has_timestamp = 0 <= walk.max_timestamp <= MAX_TIMESTAMP_MS
    return SegmentSummary(
        size_bytes=size,
        valid_bytes=walk.valid_bytes,
        batches_count=walk.batches_count,
        first_offset=walk.first_offset,
        next_offset=walk.next_offset,
        last_leader_epoch=walk.leader_epoch,
        message_format=walk.magic,
        max_timestamp=walk.max_timestamp * 1000 if has_timestamp else None,
        problem=problem,
        sampled_one_in=walk.sample.one_in,
        sampled_positions=walk.sample.column(0),
        sampled_offsets=walk.sample.column(1),
        sampled_timestamps=walk.sample.column(2),
        last_records=walk.tail.records(),
    )


class _Stream:
    """A source of blocks, looked at and consumed from its front; it remembers where trailing zeros begin."""

    def __init__(self, source: Iterable[bytes]) -> None:
        self._blocks = iter(source)
        self._block = b""
        self._position = 0
        self._taken = 0
        self.zeros_from = 0

    def _next(self) -> bytes:
        for block in self._blocks:
            if block:
                kept = len(block.rstrip(b"\0"))
                if kept:
                    self.zeros_from = self._taken + len(self._block) + kept
                return bytes(block)
        return b""

    def peek(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer at the end, without consuming them."""
        while len(self._block) - self._position < size:
            block = self._next()
            if not block:
                break
            self._taken += self._position
            self._block = self._block[self._position :] + block
            self._position = 0
        return self._block[self._position : self._position + size]

    def take(self, size: int) -> Iterator[bytes]:
        """Consume the next ``size`` bytes, fewer at the end, in pieces of a block at most."""
        while size > 0:
            if self._position == len(self._block):
                block = self._next()
                if not block:
                    return
                self._taken += self._position
                self._block, self._position = block, 0
            piece = self._block[self._position : self._position + size]
            self._position += len(piece)
            size -= len(piece)
            yield piece

    def drain(self) -> int:
        """Consume the rest; the number of bytes that the whole source had."""
        while True:
            self._taken += len(self._block)
            self._block, self._position = b"", 0
            block = self._next()
            if not block:
                return self._taken
            self._block = block


class _Walk:
    """Where the walk stands: after the last batch that was whole and intact."""

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self.valid_bytes = 0
        self.batches_count = 0
        self.first_offset: int | None = None
        self.next_offset = base_offset
        self.leader_epoch: int | None = None
        self.magic: int | None = None
        self.max_timestamp = -1
        #: of batches: where each begins, its first offset (at least), the largest timestamp before it (-1: none).
        self.sample = Sample()
        self.tail = Tail()

    def step(self, head: bytes, stream: _Stream) -> str | None:
        """Go over one batch; what is wrong with it, and then nothing has changed."""
        if len(head) <= _TO_MAGIC:
            return f"a batch cut off in its header, of which {len(head)} bytes are there"
        offset, length, _, magic = _START.unpack_from(head)
        if length < _LEAST_LENGTH:
            return f"a batch with a length of {length}, less than any can have"
        if magic == 2:
            return self._step_v2(head, length, stream)
        if magic in (0, 1):
            return self._step_legacy(head, offset, length, magic, stream)
        return f"a batch of message format {magic}, which is none"

    def _step_v2(self, head: bytes, length: int, stream: _Stream) -> str | None:
        if length < _V2_HEADER.size - _LENGTH_END:
            return f"a batch with a length of {length}, less than one of format 2 can have"
        if len(head) < _V2_HEADER.size:
            return _cut_off(length, len(head))
        base, _, epoch, _, crc, _, last_delta, _, max_timestamp, *_ = _V2_HEADER.unpack(head)
        pieces: list[bytes] | None = [] if _LENGTH_END + length <= TAIL_BYTES else None
        problem = _checked(stream, length, _CRC_FROM_V2, google_crc32c.extend, crc, pieces)
        problem = problem or self._misplaced(base, base + last_delta)
        if problem is not None:
            return problem
        if pieces is not None:
            self.tail.add(b"".join(pieces))
        self._accept(base, base + last_delta, length, 2, max_timestamp)
        self.leader_epoch = epoch if epoch >= 0 else None
        return None

    def _step_legacy(self, head: bytes, offset: int, length: int, magic: int, stream: _Stream) -> str | None:
        if magic == 1 and length < _LEAST_LENGTH_V1:
            return f"a message with a length of {length}, less than one of format 1 can have"
        _, _, crc, _, attributes = _LEGACY_HEADER.unpack_from(head)
        timestamp = -1
        if magic == 1 and len(head) >= _LEGACY_HEADER.size + _V1_TIMESTAMP.size:
            (timestamp,) = _V1_TIMESTAMP.unpack_from(head, _LEGACY_HEADER.size)
        problem = _checked(stream, length, _CRC_FROM_LEGACY, _crc32, crc) or self._misplaced(offset, offset)
        if problem is not None:
            return problem
        # The first offset inside a wrapper is known only when it is decompressed.
        self._accept(None if attributes & _COMPRESSED else offset, offset, length, magic, timestamp)
        self.leader_epoch = None
        return None

    def _misplaced(self, first: int, last: int) -> str | None:
        if last < first:
            return f"a batch that begins at offset {first} and ends before it, at {last}"
        if last < self._base_offset:
            return f"a batch that ends at offset {last}, below the base offset {self._base_offset}"
        if last - self._base_offset >= _MOST_OFFSETS or last > _LAST_OFFSET:
            return f"a batch that ends at offset {last}, further from the base offset than a segment can reach"
        if self.batches_count and first < self.next_offset:
            return f"a batch that begins at offset {first}, while the one before it ends at {self.next_offset - 1}"
        return None

    def _accept(self, first: int | None, last: int, length: int, magic: int, timestamp: int) -> None:
        if not self.batches_count:
            self.first_offset = first
        self.sample.add(self.valid_bytes, self.next_offset if first is None else first, self.max_timestamp)
        self.batches_count += 1
        self.valid_bytes += _LENGTH_END + length
        self.next_offset = last + 1
        self.magic = magic
        self.max_timestamp = max(self.max_timestamp, timestamp)


def _checked(
    stream: _Stream, length: int, crc_from: int, checksum: _Checksum, expected: int, pieces: list[bytes] | None = None
) -> str | None:
    """Consume a batch; what is wrong with it where it is cut off or its checksum fails. ``pieces`` gets its bytes."""
    start = 0
    for piece in stream.take(crc_from):
        start += len(piece)
        if pieces is not None:
            pieces.append(piece)
    crc, done = 0, 0
    for piece in stream.take(_LENGTH_END + length - crc_from):
        crc = checksum(crc, piece)
        done += len(piece)
        if pieces is not None:
            pieces.append(piece)
    if start + done < _LENGTH_END + length:
        return _cut_off(length, start + done)
    if crc != expected:
        return f"a batch of {_LENGTH_END + length} bytes whose checksum does not hold"
    return None


def _cut_off(length: int, found: int) -> str:
    return f"a batch of {_LENGTH_END + length} bytes cut off, of which {found} are there"


def _crc32(crc: int, data: bytes) -> int:
    return zlib.crc32(data, crc)
