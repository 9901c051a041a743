"""Zstandard, frame by frame and block by block (RFC 8878, section 3).

The library decompresses all that it is given at once, and a few kilobytes may hold gigabytes. So the frames are
taken apart here and it gets one block at a time: a block holds 128 KiB at most.
"""

from __future__ import annotations

import struct
from typing import Final

import zstandard

FRAME_MAGIC: Final = b"\x28\xb5\x2f\xfd"
#: A frame that needs more memory than this is refused, as the zstd program does without ``--long``.
MAX_WINDOW_BYTES: Final = 128 << 20
_SKIPPABLE_MAGIC: Final = b"\x2a\x4d\x18"
_MAX_BLOCK_BYTES: Final = 128 << 10
_RAW, _RLE, _RESERVED = 0, 1, 3


class ZstdError(Exception):
    """What is wrong with a frame."""


def begins_frame(head: bytes) -> bool:
    """Whether these four bytes begin a frame, or one to skip."""
    return head[:4] == FRAME_MAGIC or (len(head) >= 4 and 0x50 <= head[0] <= 0x5F and head[1:4] == _SKIPPABLE_MAGIC)


class ZstdDecoder:
    """Decompresses one frame; the interface is that of :class:`bz2.BZ2Decompressor`.

    A call of :meth:`decompress` gives what one block holds at most, whatever ``max_length``.
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self._stage = self._header
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._has_checksum = False
        self._skipping = 0
        self.needs_input = True
        self.eof = False
        self.unused_data = b""

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """The content of the next block; nothing where more input is needed. :class:`ZstdError` on bad data."""
        self._held += data
        self.needs_input = False
        while not (self.eof or self.needs_input):
            given = self._stage()
            if given:
                return given
        if self.eof and self._held:
            self.unused_data, self._held = bytes(self._held), bytearray()
        return b""

    def _take(self, size: int) -> bytes | None:
        if len(self._held) < size:
            self.needs_input = True
            return None
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken

    def _header(self) -> bytes:
        size = _header_size(self._held)
        if size is None:
            self.needs_input = True
            return b""
        if bytes(self._held[1:4]) == _SKIPPABLE_MAGIC:
            self._skipping = struct.unpack_from("<I", self._held, 4)[0]
            del self._held[:8]
            self._stage = self._skip
            return b""
        header = self._take(size)
        if header is None:
            return b""
        _check(header)
        self._has_checksum = bool(header[4] & 4)
        self._frame = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).decompressobj()
        self._stage = self._block
        return self._feed(header)

    def _skip(self) -> bytes:
        passed = min(self._skipping, len(self._held))
        del self._held[:passed]
        self._skipping -= passed
        self.eof = self._skipping == 0
        self.needs_input = not self.eof
        return b""

    def _block(self) -> bytes:
        if len(self._held) < 3:
            self.needs_input = True
            return b""
        header = int.from_bytes(self._held[:3], "little")
        kind, size = header >> 1 & 3, header >> 3
        if kind == _RESERVED or size > _MAX_BLOCK_BYTES:
            raise ZstdError("a block of a kind or size that does not exist")
        block = self._take(3 + (1 if kind == _RLE else size))
        if block is None:
            return b""
        if header & 1:
            self._stage = self._checksum
        return self._feed(block)

    def _checksum(self) -> bytes:
        if self._has_checksum:
            checksum = self._take(4)
            if checksum is None:
                return b""
            given = self._feed(checksum)
        else:
            given = b""
        self.eof = True
        return given

    def _feed(self, data: bytes) -> bytes:
        assert self._frame is not None
        try:
            return self._frame.decompress(data)
        except zstandard.ZstdError as error:
            raise ZstdError(str(error).removeprefix("zstd decompressor error: ")) from error


def _header_size(held: bytearray) -> int | None:
    """Bytes of the frame's header; NULL where too few are there to say."""
    if len(held) < 5:
        return None
    if bytes(held[1:4]) == _SKIPPABLE_MAGIC:
        return 8 if len(held) >= 8 else None
    single_segment, content_flag, dictionary_flag = held[4] >> 5 & 1, held[4] >> 6, held[4] & 3
    content_bytes = (single_segment, 2, 4, 8)[content_flag]
    return 5 + (1 - single_segment) + (0, 1, 2, 4)[dictionary_flag] + content_bytes


def _check(header: bytes) -> None:
    """Refuse what cannot be decompressed in bounded memory, or not at all."""
    if header[:4] != FRAME_MAGIC:
        raise ZstdError("no frame begins here")
    single_segment, content_flag, dictionary_flag = header[4] >> 5 & 1, header[4] >> 6, header[4] & 3
    if header[4] & 8:
        raise ZstdError("its header has a reserved bit set")
    at = 5
    if single_segment:
        at += (0, 1, 2, 4)[dictionary_flag]
        window = int.from_bytes(header[at:], "little") + (256 if content_flag == 1 else 0)
    else:
        exponent, mantissa = header[5] >> 3, header[5] & 7
        window = (1 << (10 + exponent)) // 8 * (8 + mantissa)
        at += 1
    if window > MAX_WINDOW_BYTES:
        limit = MAX_WINDOW_BYTES >> 20
        raise ZstdError(f"it needs a window of {window >> 20} MiB, and {limit} MiB is the limit: decompress it first")
    dictionary = int.from_bytes(header[at : at + (0, 1, 2, 4)[dictionary_flag]], "little") if not single_segment else 0
    if dictionary or (single_segment and any(header[5 : 5 + (0, 1, 2, 4)[dictionary_flag]])):
        raise ZstdError("it needs a dictionary: decompress it first")
