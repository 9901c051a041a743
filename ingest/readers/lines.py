"""A file's bytes in blocks, and its lines with their places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ingest.containers.storage import ByteStream
from ingest.readers.work import RAW_BYTES, Place, WorkItem

#: A record longer than this is not held in memory: it is rejected, with its place and its first bytes.
MAX_RECORD_BYTES: Final = 8 << 20
#: Nor is one of more lines than this.
MAX_RECORD_LINES: Final = 200_000
BLOCK_BYTES: Final = 1 << 20
TOO_LONG: Final = f"longer than {MAX_RECORD_BYTES >> 20} MiB or {MAX_RECORD_LINES:,} lines, more than a record may hold"


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
    buffer = b""
    over = 0
    for block in source:
        if over:
            end = block.find(b"\n")
            if end < 0:
                over += len(block)
                continue
            yield [Line(buffer[:RAW_BYTES], over + end + 1)]
            buffer, over, block = b"", 0, block[end + 1 :]
        parts = (buffer + block if buffer else block).split(b"\n")
        buffer = parts.pop()
        yield [Line(part + b"\n", len(part) + 1) for part in parts]
        if len(buffer) > MAX_RECORD_BYTES:
            over = len(buffer)
            buffer = buffer[:RAW_BYTES]
    if over:
        yield [Line(buffer, over)]
    elif buffer:
        yield [Line(buffer, len(buffer))]


def line_places(item: WorkItem, source: Iterable[bytes], most_bytes: int = MAX_RECORD_BYTES) -> Iterator[Place]:
    """The lines of an item, each with its place; no more than ``most_bytes`` of a line are kept."""
    offset, number = item.offset, item.line
    for group in lines(source):
        for data, length in group:
            yield Place(offset, length, number, data[:most_bytes])
            offset += length
            number += 1
