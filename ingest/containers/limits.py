"""How much one file may unpack to.

A few kilobytes may hold terabytes, and a file in it as many again. Memory does not grow with it, but time does: so what
comes out of one layer of a file, all its streams together, has an end. A layer is a compression or an archive.
"""

from __future__ import annotations

from typing import Final

from ingest.containers.storage import FREE_BYTES, MAX_RATIO, ByteStream
from ingest.containers.streams import damage_of

#: Files in one archive, those of archives in it included, and characters of their names.
MAX_MEMBERS: Final = 200_000
MAX_NAMES_CHARACTERS: Final = 64 << 20
TOO_MUCH: Final = (
    f"it unpacks to more than {FREE_BYTES >> 30} GiB and more than {MAX_RATIO} times its size; what follows is not"
    " read: unpack it and give the folder"
)
TOO_MANY: Final = (
    f"an archive of more than {MAX_MEMBERS} files, or {MAX_NAMES_CHARACTERS >> 20} MiB of names; what follows is not"
    " read: unpack it and give the folder"
)


class Allowance:
    """What is left of the limits of one file of ``size_bytes``."""

    def __init__(self, size_bytes: int) -> None:
        self._bytes = max(FREE_BYTES, MAX_RATIO * size_bytes)
        self._left: dict[int, int] = {}
        self._members = MAX_MEMBERS
        self._characters = MAX_NAMES_CHARACTERS

    def limited(self, stream: ByteStream, layer: int) -> ByteStream:
        """The stream, ended where its layer has given all it may: ``damage`` then says so."""
        return _Limited(stream, self, layer)

    def left(self, layer: int) -> int:
        """Bytes that the layer may still give."""
        return self._left.get(layer, self._bytes)

    def take(self, layer: int, count: int) -> None:
        self._left[layer] = self.left(layer) - count

    def admits(self, member: str) -> bool:
        """Whether one more member may be looked at; counts it."""
        self._members -= 1
        self._characters -= len(member)
        return self._members >= 0 and self._characters >= 0


class _Limited:
    def __init__(self, stream: ByteStream, allowance: Allowance, layer: int) -> None:
        self._stream = stream
        self._allowance = allowance
        self._layer = layer
        self._is_over = False

    @property
    def damage(self) -> str | None:
        return TOO_MUCH if self._is_over else damage_of(self._stream)

    def read(self, size: int, /) -> bytes:
        if self._is_over:
            return b""
        block = self._stream.read(size)
        left = self._allowance.left(self._layer)
        if len(block) > left:
            self._is_over = True
            block = block[:left]
        self._allowance.take(self._layer, len(block))
        return block
