"""The lines of a log, whatever the blocks they come in: holes of zeros end a line as line feeds do.

A log that is truncated in place while its writer goes on at its old position (logrotate's ``copytruncate``) begins
with as many zeros as it was long; a machine that crashes leaves zeros behind what was not flushed. The record
behind them stands on the same line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

#: As many zeros in a row are a hole.
_HOLE: Final = b"\0" * 16
_NO_ZERO: Final = re.compile(rb"[^\0]")


class Odd(NamedTuple):
    """What is no whole line. ``kind``: ``long`` for a line that is too long to hold, of which ``data`` is the first
    bytes and ``length`` all of them; ``hole``; ``piece`` for what stands before a hole or the end of the file."""

    data: bytes
    length: int
    kind: str


class LogLines:
    """Reads lines of at most ``longest`` bytes; of what is longer it keeps ``kept`` bytes."""

    def __init__(self, longest: int, kept: int) -> None:
        self._longest = longest
        self._kept = kept
        self._buffer: list[bytes] = []
        self._buffer_bytes = 0
        self._over = 0
        self._hole = 0

    def read(self, source: Iterable[bytes]) -> Iterator[bytes | Odd]:
        """Texts of whole lines, and what is odd, in the order of the bytes."""
        for block in source:
            yield from self._take(block)
        if self._hole:
            yield self._zeros(self._hole)
        if self._over:
            yield Odd(self._buffer[0], self._over, "long")
        elif self._buffer:
            text = b"".join(self._buffer)
            yield Odd(text, len(text), "piece")

    def _take(self, block: bytes) -> Iterator[bytes | Odd]:
        if self._hole:
            rest = block.lstrip(b"\0")
            self._hole += len(block) - len(rest)
            if not rest:
                return
            yield self._zeros(self._hole)
            self._hole, block = 0, rest
        if self._over:
            end = block.find(b"\n")
            if end < 0:
                self._over += len(block)
                return
            yield Odd(self._buffer[0], self._over + end + 1, "long")
            self._over, block = 0, block[end + 1 :]
            self._keep(b"")
        if b"\n" not in block and b"\0" not in block:
            self._buffer.append(block)
            self._buffer_bytes += len(block)
        else:
            text = b"".join([*self._buffer, block]) if self._buffer else block
            if _HOLE in text:
                yield from self._around_holes(text)
            else:
                end = text.rfind(b"\n") + 1
                self._keep(text[end:])
                if end:
                    yield text[:end]
        # A hole that begins within the longest line is one, whatever the blocks.
        if self._buffer_bytes > self._longest + len(_HOLE):
            self._over = self._buffer_bytes
            self._buffer = [b"".join(self._buffer)[: self._kept]]

    def _around_holes(self, text: bytes) -> Iterator[bytes | Odd]:
        position = begin = 0
        while True:
            end = text.find(b"\n", position)
            hole = text.find(_HOLE, position, end if end >= 0 else len(text))
            if 0 <= hole <= position + self._longest:
                if position > begin:
                    yield text[begin:position]
                if hole > position:
                    yield Odd(text[position:hole], hole - position, "piece")
                behind = _NO_ZERO.search(text, hole)
                position = begin = behind.start() if behind else len(text)
                if position == len(text):
                    self._hole = position - hole
                    break
                yield self._zeros(position - hole)
            elif end >= 0:
                position = end + 1
            else:
                break
        if position > begin:
            yield text[begin:position]
        self._keep(text[position:])

    def _keep(self, text: bytes) -> None:
        self._buffer = [text] if text else []
        self._buffer_bytes = len(text)

    def _zeros(self, length: int) -> Odd:
        return Odd(bytes(min(length, self._kept)), length, "hole")
