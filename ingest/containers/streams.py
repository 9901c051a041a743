"""Small streams that the readers of compressed files and archives are made of.

A stream that ends before its time says why in ``damage``; see :func:`damage_of`.
"""

from __future__ import annotations

from typing import Final, cast

from ingest.containers.storage import ByteStream

#: As much is read or decompressed at a time.
BLOCK_BYTES: Final = 1 << 18


def damage_of(stream: ByteStream) -> str | None:
    """What broke a stream that has been read to its end; None where it was whole."""
    return cast("str | None", getattr(stream, "damage", None))


def skip(stream: ByteStream, count: int) -> int:
    """Read past ``count`` bytes; gives how many there were."""
    left = count
    while left > 0:
        block = stream.read(min(left, BLOCK_BYTES))
        if not block:
            break
        left -= len(block)
    return count - left


def read_up_to(stream: ByteStream, size: int) -> bytes:
    """The next ``size`` bytes, fewer only where the stream ends."""
    first = stream.read(size)
    if len(first) == size or not first:
        return first
    parts = [first]
    left = size - len(first)
    while left > 0:
        block = stream.read(left)
        if not block:
            break
        parts.append(block)
        left -= len(block)
    return b"".join(parts)


class Peekable:
    """A stream whose first bytes can be looked at."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._buffer = b""

    def peek(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer at the end, without taking them."""
        if len(self._buffer) < size:
            self._buffer += read_up_to(self._stream, size - len(self._buffer))
        return self._buffer[:size]

    def put_back(self, data: bytes) -> None:
        """Give ``data`` again before all that follows."""
        self._buffer = data + self._buffer

    def read(self, size: int, /) -> bytes:
        if self._buffer:
            taken, self._buffer = self._buffer[:size], self._buffer[size:]
            return taken
        return self._stream.read(size)

    @property
    def damage(self) -> str | None:
        return damage_of(self._stream)


class Empty:
    """A stream of nothing: for content that must not be read."""

    def read(self, size: int, /) -> bytes:
        return b""


class Part:
    """The next ``length`` bytes of a stream. Where the stream ends before them, ``damage`` is ``cut_off``."""

    def __init__(self, stream: ByteStream, length: int, cut_off: str) -> None:
        self._stream = stream
        self._cut_off = cut_off
        self.left = length
        self.damage: str | None = None

    def read(self, size: int, /) -> bytes:
        if self.left <= 0 or self.damage is not None:
            return b""
        block = self._stream.read(min(size, self.left))
        if not block:
            self.damage = because(self._cut_off, damage_of(self._stream))
        self.left -= len(block)
        return block


def because(damage: str, cause: str | None) -> str:
    """A sentence about damage, with what it comes from, where that is known."""
    return damage if cause is None else f"{damage} ({cause})"
