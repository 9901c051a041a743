"""Compressed data as streams, their formats recognised by the first bytes.

Memory is bounded whatever the ratio: decompressors are asked for so many bytes at most, and those that would need
more memory than :data:`MEMORY_LIMIT_BYTES` for their window are refused.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from ingest.containers.storage import ByteStream
from ingest.containers.streams import BLOCK_BYTES, because, damage_of
from ingest.containers.zstd_frames import FRAME_MAGIC, MAX_WINDOW_BYTES, ZstdDecoder, ZstdError, begins_frame

#: xz -9 needs 65 MiB, zstd --ultra -22 128 MiB.
MEMORY_LIMIT_BYTES: Final = MAX_WINDOW_BYTES
# What bz2 and lzma have decompressed in the call that meets the damage is lost: ask for little at a time.
_PIECE_BYTES: Final = 4 << 10
_GZIP_MAGIC: Final = b"\x1f\x8b\x08"
_XZ_MAGIC: Final = b"\xfd7zXZ\x00"
_BZIP2_MAGICS: Final = (b"1AY&SY", b"\x17rE8P\x90")


class Decoder(Protocol):
    """Decompresses one member of a format: the interface of :class:`bz2.BZ2Decompressor`."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


@dataclass(frozen=True)
class Codec:
    """A format of compressed data.

    ``begins`` tells from the first :data:`MAGIC_BYTES` bytes; ``magic`` is how every member begins, as far as it is
    the same for all, to know a member that is cut off in it.
    """

    name: str
    magic: bytes
    begins: Callable[[bytes], bool]
    start: Callable[[], Decoder]
    errors: tuple[type[Exception], ...]


class Inflater:
    """Deflate behind the interface of the other decompressors. Where the data is damaged, what comes before the
    damage is given, and the error with the next call."""

    def __init__(self, window_bits: int) -> None:
        self._inflate = zlib.decompressobj(window_bits)
        self._input = b""
        self._error: zlib.error | None = None
        self._may_have_more = False

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    @property
    def needs_input(self) -> bool:
        return not (self._input or self._may_have_more or self.eof or self._error)

    def decompress(self, data: bytes, max_length: int) -> bytes:
        if self._error is not None:
            raise self._error
        data = self._input + data if self._input else data
        before = self._inflate.copy()
        try:
            output = self._inflate.decompress(data, max_length)
        except zlib.error as error:
            self._error = error
            return _salvaged(before, data)
        self._input = self._inflate.unconsumed_tail
        self._may_have_more = len(output) == max_length
        return output


def _salvaged(inflate: zlib._Decompress, data: bytes) -> bytes:
    """What there is before the damage: a piece of output at a time, then a byte of input at a time, since with the
    output's last byte zlib goes on to what follows it."""
    parts = []
    for step in (16 << 10, 256):
        output = b"?" * step
        while data or len(output) == step:
            before = inflate.copy()
            try:
                output = inflate.decompress(data, step)
            except zlib.error:
                inflate = before
                break
            parts.append(output)
            data = inflate.unconsumed_tail
    for at in range(len(data)):
        try:
            parts.append(inflate.decompress(data[at : at + 1]))
        except zlib.error:
            break
    return b"".join(parts)


def _xz() -> Decoder:
    return lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=MEMORY_LIMIT_BYTES)


GZIP: Final = Codec("gzip", _GZIP_MAGIC, lambda head: head[:3] == _GZIP_MAGIC, lambda: Inflater(31), (zlib.error,))
ZSTD: Final = Codec("zstd", FRAME_MAGIC, begins_frame, ZstdDecoder, (ZstdError,))
XZ: Final = Codec("xz", _XZ_MAGIC, lambda head: head[:6] == _XZ_MAGIC, _xz, (lzma.LZMAError,))
BZIP2: Final = Codec(
    "bzip2",
    b"BZh",
    lambda head: head[:3] == b"BZh" and head[3:4] in b"123456789" and head[4:10] in _BZIP2_MAGICS,
    bz2.BZ2Decompressor,
    (OSError, ValueError),
)
#: The raw deflate data of a zip entry.
DEFLATE: Final = Codec("deflate", b"", lambda head: True, lambda: Inflater(-15), (zlib.error,))

CODECS: Final = (GZIP, ZSTD, XZ, BZIP2)
#: So many bytes tell the format.
MAGIC_BYTES: Final = 10


def codec_of(head: bytes) -> Codec | None:
    """The format that data beginning with ``head`` is compressed in; None where it is in none."""
    return next((codec for codec in CODECS if codec.begins(head)), None)


class Decompressed:
    """A compressed stream's content, members one after another, zero bytes between and behind them passed over.

    Where the data is cut off or damaged the stream ends, and ``damage`` says so; all that was whole before that
    point has been given (of bzip2 and xz but for the last 4 KiB before damage). ``only_one`` ends it with the first
    member: what was read beyond is in ``rest``.
    """

    def __init__(self, source: ByteStream, codec: Codec, *, only_one: bool = False) -> None:
        self._source = source
        self._codec = codec
        self._decoder = codec.start()
        self._only_one = only_one
        self._pending = b""
        self._chunk = b""
        self._at = 0
        self._ended = False
        self.rest = b""
        self.damage: str | None = None

    def read(self, size: int, /) -> bytes:
        if self._at >= len(self._chunk):
            self._chunk, self._at = self._next(max(size, BLOCK_BYTES)), 0
        block = self._chunk[self._at : self._at + size]
        self._at += len(block)
        return block

    def _next(self, size: int) -> bytes:
        parts: list[bytes] = []
        left = size
        while left > 0 and not self._ended:
            if self._decoder.eof and not self._begin_next():
                break
            data = b""
            if self._decoder.needs_input:
                data, self._pending = self._pending or self._source.read(BLOCK_BYTES), b""
                if not data:
                    self._end(f"the {self._codec.name} data is cut off here", damage_of(self._source))
                    break
            try:
                part = self._decoder.decompress(data, min(left, self._piece))
            except self._codec.errors as error:
                self._end(f"the {self._codec.name} data is damaged here", str(error))
                break
            parts.append(part)
            left -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    @property
    def _piece(self) -> int:
        return BLOCK_BYTES if isinstance(self._decoder, Inflater) else _PIECE_BYTES

    def _begin_next(self) -> bool:
        """Whether another member follows the one that has ended."""
        rest = self._decoder.unused_data
        if self._only_one:
            self.rest = rest
            self._ended = True
            return False
        while True:
            rest = rest.lstrip(b"\0")
            if len(rest) >= MAGIC_BYTES:
                break
            more = self._source.read(BLOCK_BYTES)
            if not more:
                break
            rest += more
        name = self._codec.name
        if not rest:
            self._ended = True
            self.damage = damage_of(self._source)
        elif self._codec.begins(rest[:MAGIC_BYTES]):
            self._pending = rest
            self._decoder = self._codec.start()
        elif self._codec.magic.startswith(rest):
            self._end(f"the {name} data is cut off here", damage_of(self._source))
        else:
            self._end(f"bytes that are not {name} follow here", None)
        return not self._ended

    def _end(self, damage: str, cause: str | None) -> None:
        self._ended = True
        self.damage = because(damage, cause)
