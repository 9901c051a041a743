"""Zstandard, frame by frame and block by block (RFC 8878, section 3).

The library decompresses all that it is output at once, and a few kilobytes may hold gigabytes. So the frames are
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
        self._input = bytearray()
        self._stage = self._header
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._has_checksum = False
        self._skipping = 0
        self.needs_input = True
        self.eof = False
        self.unused_data = b""

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """The content of the next block; nothing where more input is needed. :class:`ZstdError` on bad data."""
        self._input += data
        self.needs_input = False
        while not (self.eof or self.needs_input):
            output = self._stage()
            if output:
                return output
        if self.eof and self._input:
            self.unused_data, self._input = bytes(self._input), bytearray()
        return b""

    def _take(self, size: int) -> bytes | None:
        if len(self._input) < size:
            self.needs_input = True
            return None
        taken = bytes(self._input[:size])
        del self._input[:size]
        return taken

    def _header(self) -> bytes:
        if len(self._input) < 8:  # no frame is shorter, and no skippable frame's header is longer
            self.needs_input = True
            return b""
        if bytes(self._input[1:4]) == _SKIPPABLE_MAGIC:
            self._skipping = struct.unpack_from("<I", self._input, 4)[0]
            del self._input[:8]
            self._stage = self._skip
            return b""
        header = self._take(zstandard.frame_header_size(bytes(self._input[:8])))
        if header is None:
            return b""
        self._has_checksum = _parameters(header).has_checksum
        self._frame = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).decompressobj()
        self._stage = self._block
        return self._feed(header)

    def _skip(self) -> bytes:
        passed = min(self._skipping, len(self._input))
        del self._input[:passed]
        self._skipping -= passed
        self.eof = self._skipping == 0
        self.needs_input = not self.eof
        return b""

    def _block(self) -> bytes:
        if len(self._input) < 3:
            self.needs_input = True
            return b""
        header = int.from_bytes(self._input[:3], "little")
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
            output = self._feed(checksum)
        else:
            output = b""
        self.eof = True
        return output

    def _feed(self, data: bytes) -> bytes:
        assert self._frame is not None
        try:
            return self._frame.decompress(data)
        except zstandard.ZstdError as error:
            raise ZstdError(str(error).removeprefix("zstd decompressor error: ")) from error


def _parameters(header: bytes) -> zstandard.FrameParameters:
    """What a frame's header states; :class:`ZstdError` for what cannot be decompressed in bounded memory, or not at
    all."""
    try:
        stated = zstandard.get_frame_parameters(header)
    except zstandard.ZstdError as error:
        raise ZstdError("no frame begins here, or one of a kind that does not exist") from error
    if stated.window_size > MAX_WINDOW_BYTES:
        limit, needed = MAX_WINDOW_BYTES >> 20, stated.window_size >> 20
        raise ZstdError(f"it needs a window of {needed} MiB, and {limit} MiB is the limit: decompress it first")
    if stated.dict_id:
        raise ZstdError("it needs a dictionary: decompress it first")
    return stated
