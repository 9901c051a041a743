"""What snappy-java compressed, such as ZooKeeper's snapshots (``snapshot.*.snappy``), as streams.

The framing is snappy-java's ``SnappyOutputStream``: a header of 16 bytes, then blocks, each behind its length.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from ingest.containers.storage import ByteStream

NAME: Final = "snappy"
MAGIC: Final = b"\x82SNAPPY\0"

_HEADER_BYTES: Final = 16
#: The writer's blocks are 32 KiB unless it was configured otherwise.
_MAX_BLOCK_BYTES: Final = 8 << 20
_SOURCE_BYTES: Final = 1 << 18


class SnappyStream:
    """Uncompresses a stream, block after block. Where the data is cut off or damaged it ends, and ``damage`` says so;
    all blocks that were whole before that point have been given."""

    def __init__(self, source: ByteStream) -> None:
        self._source = source
        self._packed = b""
        self._plain = b""
        self._at = 0
        self.damage: str | None = None
        self._ended = False
        if self._need(_HEADER_BYTES) and self._packed.startswith(MAGIC):
            self._packed = self._packed[_HEADER_BYTES:]
        else:
            self._end("the snappy data is cut off in its header")

    def read(self, size: int, /) -> bytes:
        while self._at == len(self._plain):
            if self._ended:
                return b""
            self._plain, self._at = self._next_block(), 0
        block = self._plain[self._at : self._at + size]
        self._at += len(block)
        return block

    def _next_block(self) -> bytes:
        if not self._need(4):
            self._end("the snappy data is cut off here" if self._packed else None)
            return b""
        if self._packed.startswith(MAGIC[:4]):  # a stream that follows another
            if not self._need(_HEADER_BYTES):
                self._end("the snappy data is cut off here")
            self._packed = self._packed[_HEADER_BYTES:]
            return b""
        size = int.from_bytes(self._packed[:4], "big")
        if not 0 < size <= _MAX_BLOCK_BYTES:
            self._end(f"the snappy data is damaged here (a block of {size} bytes)")
            return b""
        if not self._need(4 + size):
            self._end("the snappy data is cut off here")
            return b""
        block, self._packed = self._packed[4 : 4 + size], self._packed[4 + size :]
        return self._uncompressed(block)

    def _uncompressed(self, block: bytes) -> bytes:
        try:
            return uncompressed_block(block)
        except (OSError, ValueError) as error:
            self._end(f"the snappy data is damaged here ({error})")
            return b""

    def _need(self, size: int) -> bool:
        """Whether so many packed bytes are there, after reading more where they are not."""
        while len(self._packed) < size:
            more = self._source.read(_SOURCE_BYTES)
            if not more:
                return False
            self._packed += more
        return True

    def _end(self, damage: str | None) -> None:
        self._ended = True
        self.damage = damage


def uncompressed_block(block: bytes) -> bytes:
    """A block without a stream's header around it, as C's library makes it; ``OSError`` or ``ValueError`` where it is
    damaged, or of more than 8 MiB."""
    size = _announced(block)
    if size is None or size > _MAX_BLOCK_BYTES:
        raise ValueError("a block that is too long")
    return bytes(pa.decompress(block, decompressed_size=size, codec="snappy", asbytes=True))


def _announced(block: bytes) -> int | None:
    """The uncompressed size that a block begins with: seven bits a byte, lowest first."""
    size = 0
    for place, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return size
    return None
