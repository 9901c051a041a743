"""Bytes of a transaction log (``log.*``) to framed records: where each begins and ends, and which are damaged.

A file is a header (``ZKLG``, version, database id), then one record per transaction: its Adler-32 checksum (8 bytes),
its length (4 bytes), its bytes, and a closing ``B``. ZooKeeper allocates a file ahead with zeros, so zeros after the
last record are its regular end and belong to no record; the file's header belongs to the first record.

Records have no mark to search for. After a damaged one the next is found only if the damaged one's length still leads
to its closing ``B`` and a record whose checksum is right follows there; else all that follows is one damaged record.
A last record of which the rest was never written is *torn*: the log is being written, or its writer was killed.
"""

from __future__ import annotations

import struct
import zlib
from enum import Enum
from typing import Final, NamedTuple

from ingest.readers.work import RAW_BYTES

MAGIC: Final = b"ZKLG"
#: A transaction longer than this is not held in memory: it is rejected, with its place and its first bytes.
MAX_TRANSACTION_BYTES: Final = (8 << 20) + (64 << 10)

_FILE_HEADER: Final = struct.Struct(">4siq")
_RECORD_HEADER: Final = struct.Struct(">qi")
_VERSION: Final = 2
_END_OF_RECORD: Final = 0x42


class Frame(NamedTuple):
    """One record's bytes.

    ``length`` counts every byte of it, also those that ``data`` does not hold; ``body`` is the transaction's bytes and
    ``body_at`` where they begin in ``data``. ``number`` counts the file's transactions from 1. ``reason`` says why the
    record cannot be read, NULL where it can; then ``data`` holds its first bytes only and ``body`` nothing.
    """

    offset: int
    length: int
    number: int
    data: bytes
    body: bytes = b""
    body_at: int = 0
    reason: str | None = None
    is_torn: bool = False


class _State(Enum):
    HEADER = 0
    RECORDS = 1
    OVERSIZE = 2  # inside a record that is not held
    ENDED = 3  # in the zeros allocated ahead
    BROKEN = 4  # nothing that follows can be framed


class Framer:
    """Frames the records of a log, or of a part of it that begins at a record, as blocks come.

    :param offset: where in the whole file the first block begins; 0 means that the file's header comes first.
    :param number: number of the first transaction.

    ``complete_end`` is where the last record ends that later bytes cannot change; ``written_end`` where the last byte
    is that is no zero. Both are 0 while there is no record. ``framed`` is the number of transactions up to
    ``complete_end``, those before ``number`` included.
    """

    def __init__(self, offset: int = 0, number: int = 1) -> None:
        self._state = _State.RECORDS if offset else _State.HEADER
        self._buffer = b""
        self._at = 0  # of the next byte to look at, in what is held
        self._buffer_offset = offset  # of the first byte held, in the file
        self._start = offset  # of the record being framed, the file's header included
        self._prefix = b""  # the file's header, until the first record takes it
        self._number = number
        self._suspect: tuple[int, int, bytes] | None = None  # offset, number, first bytes
        self._nonzero_end = offset
        self._complete_end = offset
        self._reason = ""
        self._torn_end = -1
        self._zeros_from = offset
        self._first_bytes = b""
        self._oversize = _Oversize(0, 0, 0)

    @property
    def complete_end(self) -> int:
        return self._nonzero_end if self.is_broken else self._complete_end

    @property
    def written_end(self) -> int:
        has_records = self._complete_end or self.is_broken or self._is_torn()
        return max(self._nonzero_end, self._complete_end) if has_records else 0

    @property
    def framed(self) -> int:
        return self._number - 1 + (1 if self.is_broken else 0)

    @property
    def is_broken(self) -> bool:
        """Whether what was seen up to now cannot all be framed, whatever follows."""
        if self._state is _State.ENDED:
            return self._nonzero_end > self._zeros_from
        return self._state is _State.BROKEN and self._nonzero_end > max(self._torn_end, self._start)

    def take(self, block: bytes) -> list[Frame]:
        """The records that end in this block."""
        block_offset = self._buffer_offset + len(self._buffer)
        content = len(block.rstrip(b"\0"))
        if content:
            self._nonzero_end = block_offset + content
        if self._state in (_State.ENDED, _State.BROKEN):
            self._collect(block)
            self._buffer_offset = block_offset + len(block)
            return []
        self._buffer = self._buffer + block if self._buffer else block
        frames: list[Frame] = []
        while self._step(frames):
            pass
        if self._state in (_State.ENDED, _State.BROKEN):
            self._buffer_offset += len(self._buffer)
            self._buffer, self._at = b"", 0
        elif self._at:
            self._buffer_offset += self._at
            self._buffer, self._at = self._buffer[self._at :], 0
        return frames

    def finish(self) -> list[Frame]:
        """The damaged or torn record that the file ends with, if it does; to be called once, after the last block."""
        if self._state is _State.OVERSIZE:
            length, first = self._oversize.length, self._oversize.first
            self._break(f"a record announces {length} bytes and the file ends before them", torn_end=first)
        is_broken = self.is_broken
        is_torn = not is_broken and self._is_torn()
        if self._state is _State.ENDED and is_broken:
            self._reason = "bytes follow the zeros that end a transaction log, where ZooKeeper stops reading"
        frames: list[Frame] = []
        if self._suspect is not None and not (is_broken and self._state is _State.BROKEN):
            frames.append(self._damaged())
        if is_broken or is_torn:
            first_bytes = self._first_bytes or (self._prefix + self._buffer)[:RAW_BYTES]
            offset, number, data = self._suspect or (self._start, self._number, first_bytes)
            length = self._nonzero_end - offset
            reason = f"{self._reason}: nothing after byte {offset} can be read ({length} bytes)"
            if is_torn:
                reason = f"the file ends inside a transaction: {length} bytes of it were written"
            frames.append(Frame(offset, length, number, data[:length], reason=reason, is_torn=is_torn))
        return frames

    def _is_torn(self) -> bool:
        if self._state is _State.BROKEN:
            return self._start < self._nonzero_end <= self._torn_end
        if self._state in (_State.HEADER, _State.RECORDS):
            return self._nonzero_end > self._buffer_offset + self._at
        return False

    def _step(self, frames: list[Frame]) -> bool:
        """Frame the next record if its bytes are there; False where more are needed, or none can be framed."""
        if self._state is _State.HEADER:
            return self._file_header()
        if self._state is _State.OVERSIZE:
            return self._past_oversize(frames)
        return self._state is _State.RECORDS and self._record(frames)

    def _file_header(self) -> bool:
        has_begun = MAGIC.startswith(self._buffer[: len(MAGIC)].rstrip(b"\0"))
        if not has_begun:
            self._break("the file does not begin with ZKLG and is no transaction log of ZooKeeper")
        if not has_begun or len(self._buffer) < _FILE_HEADER.size:
            return False
        magic, version, _ = _FILE_HEADER.unpack_from(self._buffer)
        if magic != MAGIC or version != _VERSION:
            reason = f"the transaction log is of version {version}: only version {_VERSION} is known"
            self._break(reason, torn_end=_FILE_HEADER.size)
        else:
            self._at = _FILE_HEADER.size
            self._prefix = self._buffer[: _FILE_HEADER.size]
            self._state = _State.RECORDS
        return self._state is _State.RECORDS

    def _record(self, frames: list[Frame]) -> bool:
        buffer, at = self._buffer, self._at
        if len(buffer) - at < _RECORD_HEADER.size:
            return False
        checksum, length = _RECORD_HEADER.unpack_from(buffer, at)
        first = at + _RECORD_HEADER.size
        if length <= 0:
            self._no_record(checksum, length)
            return False
        if length > MAX_TRANSACTION_BYTES:
            self._oversize = _Oversize(length, checksum, self._buffer_offset + first)
            self._collect(self._prefix + buffer[at:first])
            self._at = first
            self._state = _State.OVERSIZE
            return True
        end = first + length
        if len(buffer) <= end:
            return False
        if buffer[end] != _END_OF_RECORD:
            self._break("a record does not end where its length says", torn_end=self._buffer_offset + end)
            return False
        body = buffer[first:end]
        if zlib.adler32(body) != checksum:
            self._suspect_record(end + 1)
        else:
            self._frame(frames, buffer[at : end + 1], body, end + 1)
        return True

    def _no_record(self, checksum: int, length: int) -> None:
        at = self._buffer_offset + self._at
        if length == 0 and checksum == 0:
            self._state = _State.ENDED
            self._zeros_from = at
            self._collect(self._prefix + self._buffer[self._at :])
        else:
            self._break(f"a record announces {length or 'no'} bytes", torn_end=at + _RECORD_HEADER.size)

    def _frame(self, frames: list[Frame], data: bytes, body: bytes, end: int, reason: str | None = None) -> None:
        """Take a record of which the whole is known; one that was suspected before it is damaged on its own."""
        if self._suspect is not None:
            frames.append(self._damaged())
        offset, number, body_at = self._start, self._number, len(self._prefix) + _RECORD_HEADER.size
        data = self._prefix + data
        self._next(end)
        frames.append(Frame(offset, self._start - offset, number, data, body, body_at, reason))

    def _suspect_record(self, end: int) -> None:
        if self._suspect is None:
            first_bytes = (self._prefix + self._buffer[self._at : end])[:RAW_BYTES]
            self._suspect = (self._start, self._number, first_bytes)
        self._next(end)

    def _next(self, end: int) -> None:
        """The record that was framed ends there, in what is held; the next one begins."""
        self._at = end
        self._start = self._complete_end = self._buffer_offset + end
        self._prefix = b""
        self._number += 1

    def _damaged(self) -> Frame:
        assert self._suspect is not None
        offset, number, first_bytes = self._suspect
        self._suspect = None
        length = self._start - offset
        reason = f"the record at byte {offset} does not match its checksum: its {length} bytes are damaged"
        if self._number - number > 1:
            reason = f"{self._number - number} records from byte {offset} on do not match their checksums"
        return Frame(offset, length, number, first_bytes, reason=reason)

    def _past_oversize(self, frames: list[Frame]) -> bool:
        oversize, buffer = self._oversize, self._buffer
        part = buffer[self._at : self._at + oversize.left]
        oversize.take(part)
        self._collect(part)
        self._at += len(part)
        if oversize.left or self._at == len(buffer):
            return False
        if buffer[self._at] != _END_OF_RECORD or not oversize.is_intact:
            reason = f"a record announces {oversize.length} bytes, which do not match its checksum"
            self._break(reason, torn_end=oversize.first)
            return False
        reason = (
            f"a transaction of {oversize.length} bytes, more than the {MAX_TRANSACTION_BYTES >> 20} MiB it may have"
        )
        data, self._prefix = self._first_bytes, b""
        self._frame(frames, data, b"", self._at + 1, reason)
        self._first_bytes = b""
        self._state = _State.RECORDS
        return True

    def _break(self, reason: str, torn_end: int = -1) -> None:
        """Nothing more can be framed; where nothing but zeros follows ``torn_end``, the last record is torn."""
        self._collect((b"" if self._state is _State.OVERSIZE else self._prefix) + self._buffer[self._at :])
        self._reason, self._torn_end = reason, torn_end
        self._state = _State.BROKEN

    def _collect(self, data: bytes) -> None:
        """The first bytes of what cannot be framed, however the blocks divide it."""
        if len(self._first_bytes) < RAW_BYTES:
            self._first_bytes += data[: RAW_BYTES - len(self._first_bytes)]


class _Oversize:
    """A record of which only the checksum is kept."""

    def __init__(self, length: int, checksum: int, first: int) -> None:
        self.length = self.left = length
        self.first = first  # offset of its bytes in the file
        self._checksum = checksum
        self._sum = 1

    def take(self, part: bytes) -> None:
        self._sum = zlib.adler32(part, self._sum)
        self.left -= len(part)

    @property
    def is_intact(self) -> bool:
        return self._sum == self._checksum
