"""Bytes of a log to framed records: which lines belong together, and where each byte went.

Every byte belongs to exactly one record. A record begins with a line that its layout's header matches;
the lines after it, up to the next such line, are its own. Lines before the first header, lines that are too
long to hold and what follows them are framed too, with the reason why they cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ingest.logs.layouts import Reading
from ingest.storage import ByteStream

#: A record longer than this is not held in memory: it is rejected, with its place and its first bytes.
MAX_RECORD_BYTES: Final = 8 << 20
#: As much of a rejected record is kept.
RAW_BYTES: Final = 64 << 10
BLOCK_BYTES: Final = 1 << 20

NO_HEADER: Final = "no record of the file's layout begins at or before these lines"
TOO_LONG: Final = f"longer than {MAX_RECORD_BYTES >> 20} MiB, more than a record may hold"


class Framed(NamedTuple):
    """One record's bytes.

    ``length`` counts every byte, line ends included, also those that ``data`` does not hold. ``header`` is the
    match of the layout's header on ``content[0]``; ``reason`` says why there is none. ``content`` is the lines
    as the process wrote them, unwrapped, without line ends.
    """

    offset: int
    length: int
    line: int
    data: bytes
    content: list[bytes]
    header: re.Match[bytes] | None
    reason: str | None


class Line(NamedTuple):
    """One line: its bytes with its line end, cut to :data:`RAW_BYTES` where it is too long; its whole length."""

    data: bytes
    length: int


def blocks(stream: ByteStream, limit: int | None = None) -> Iterator[bytes]:
    """The stream's bytes in blocks, ``limit`` bytes at most."""
    left = limit
    while left is None or left > 0:
        block = stream.read(BLOCK_BYTES if left is None else min(BLOCK_BYTES, left))
        if not block:
            return
        if left is not None:
            left -= len(block)
        yield block


def lines(source: Iterable[bytes]) -> Iterator[list[Line]]:
    """The lines of a sequence of blocks, a block's worth at a time. Only line feeds end a line."""
    held = b""
    over = 0
    for block in source:
        if over:
            end = block.find(b"\n")
            if end < 0:
                over += len(block)
                continue
            yield [Line(held[:RAW_BYTES], over + end + 1)]
            held, over, block = b"", 0, block[end + 1 :]
        parts = (held + block if held else block).split(b"\n")
        held = parts.pop()
        yield [Line(part + b"\n", len(part) + 1) for part in parts]
        if len(held) > MAX_RECORD_BYTES:
            over = len(held)
            held = held[:RAW_BYTES]
    if over:
        yield [Line(held, over)]
    elif held:
        yield [Line(held, len(held))]


def frame(source: Iterable[bytes], reading: Reading, offset: int = 0, line: int = 1) -> Iterator[Framed]:
    """Frame the records of a log, or of a part of it that begins at a record.

    ``offset`` and ``line`` say where in the whole file the first block begins.
    """
    match = reading.layout.header.match
    unwrap = reading.wrapper.unwrap if reading.wrapper else None
    data: list[bytes] = []
    content: list[bytes] = []
    header: re.Match[bytes] | None = None
    reason: str | None = None
    start, start_line, length, held = offset, line, 0, 0
    partial = False
    for group in lines(source):
        for whole, size in group:
            begins = None
            too_long = size > MAX_RECORD_BYTES
            if unwrap is None:
                text = whole.rstrip(b"\r\n")
                joined = False
            else:
                text, more = unwrap(whole.rstrip(b"\r\n"))
                joined, partial = partial, more
            if not joined and not too_long:
                begins = match(text)
            if begins is not None or too_long or held + size > MAX_RECORD_BYTES:
                if length:
                    yield Framed(start, length, start_line, b"".join(data), content, header, reason)
                start, start_line, length, held = start + length, line, 0, 0
                data, content, header, reason = [], [], begins, None
                if begins is None:
                    reason = TOO_LONG
            elif header is None and reason is None:
                reason = NO_HEADER
            length += size
            line += 1
            if reason is None or held < RAW_BYTES:
                data.append(whole)
                held += len(whole)
                if joined and content:
                    content[-1] += text
                    if len(content) == 1 and header is not None:
                        header = match(content[0])
                else:
                    content.append(text)
    if length:
        yield Framed(start, length, start_line, b"".join(data), content, header, reason)
