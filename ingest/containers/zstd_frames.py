"""Zstandard, frame by frame and block by block (RFC 8878, section 3).

The library decompresses all that it is given at once, and a few kilobytes may hold gigabytes. So it gets one block of
a frame at a time: that holds 128 KiB at most.
"""

from __future__ import annotations

from typing import Final

import zstandard

FRAME_MAGIC: Final = b"\x28\xb5\x2f\xfd"
#: A frame that needs more memory than this is refused, as the zstd program does without ``--long``.
MAX_WINDOW_BYTES: Final = 128 << 20
_SKIPPABLE_MAGIC: Final = b"\x2a\x4d\x18"
_MAX_BLOCK_BYTES: Final = 128 << 10
_RLE, _RESERVED = 1, 3


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
        self._next_size = self._header_size
        self._frame = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).decompressobj()
        self.needs_input = True
        self.unused_data = b""

    @property
    def eof(self) -> bool:
        return self._frame.eof

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """The content of the next block; nothing where more input is needed. :class:`ZstdError` on bad data."""
        self._input += data
        output = b""
        while not (output or self.eof):
            size = self._next_size()
            self.needs_input = not 0 < size <= len(self._input)
            if self.needs_input:
                return b""
            output = self._feed(size)
        if self.eof:
            self.unused_data = self._frame.unused_data + bytes(self._input)
        return output

    def _feed(self, size: int) -> bytes:
        data = bytes(self._input[:size])
        del self._input[:size]
        try:
            return self._frame.decompress(data)
        except zstandard.ZstdError as error:
            raise ZstdError(str(error).removeprefix("zstd decompressor error: ")) from error

    def _header_size(self) -> int:
        """Bytes of the frame's header; of a frame to skip, all that there are."""
        head = bytes(self._input[:18])
        if len(head) < 8:  # no frame is shorter, and no skippable frame's header is longer
            return 8
        if head[1:4] == _SKIPPABLE_MAGIC:
            self._next_size = lambda: len(self._input)
            return len(self._input)
        size = _checked_header_size(head)
        if size <= len(head):
            self._next_size = self._block_size
        return size

    def _block_size(self) -> int:
        """Bytes of the next block with its header."""
        if len(self._input) < 3:
            return 3
        header = int.from_bytes(self._input[:3], "little")
        kind, size = header >> 1 & 3, header >> 3
        if kind == _RESERVED or size > _MAX_BLOCK_BYTES:
            raise ZstdError("a block of a kind or size that does not exist")
        size = 3 + (1 if kind == _RLE else size)
        if header & 1 and size <= len(self._input):
            self._next_size = lambda: 4  # the checksum, where the frame is not over yet
        return size


def _checked_header_size(head: bytes) -> int:
    """Bytes of the header that begins so; :class:`ZstdError` for a frame that cannot be decompressed in bounded
    memory, or not at all."""
    try:
        size = zstandard.frame_header_size(head)
        if size > len(head):
            return size
        stated = zstandard.get_frame_parameters(head)
    except zstandard.ZstdError as error:
        raise ZstdError("no frame begins here, or one of a kind that does not exist") from error
    if stated.window_size > MAX_WINDOW_BYTES:
        limit, needed = MAX_WINDOW_BYTES >> 20, stated.window_size >> 20
        raise ZstdError(f"it needs a window of {needed} MiB, and {limit} MiB is the limit: decompress it first")
    if stated.dict_id:
        raise ZstdError("it needs a dictionary: decompress it first")
    return size
