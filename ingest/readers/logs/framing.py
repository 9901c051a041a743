"""Bytes of a log to framed records: which lines belong together, and where each byte went.

Every byte belongs to exactly one record. A record begins with a line that its layout's header matches; the lines
after it, up to the next such line, are its own: of the same process, where wrappers tell several apart. Lines before
the first header, lines that are too long to hold and what follows them, and holes of zeros are framed too, with the
reason why they cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from ingest.readers.lines import MAX_RECORD_BYTES, MAX_RECORD_LINES, TOO_LONG
from ingest.readers.logs.layouts import Reading
from ingest.readers.logs.log_lines import LogLines, Odd
from ingest.readers.logs.runs import Run, run_pattern, runs
from ingest.readers.logs.wrappers import CHANNEL
from ingest.readers.work import RAW_BYTES

#: Records of more streams than this, or of more bytes, are not held at once: the one that waits longest, or the
#: longest one, ends.
MAX_OPEN_STREAMS: Final = 512
MAX_OPEN_BYTES: Final = 32 << 20

NO_HEADER: Final = "no record of the file's layout begins at or before these lines"
HOLE: Final = "zeros and no text: a hole that a log truncated in place (copytruncate) or a crash leaves"


class Framed(NamedTuple):
    """One record's bytes.

    ``offset`` and ``line`` are those of its first line; ``length`` counts the bytes of all its lines, line ends
    included, also those that ``data`` does not hold. ``header`` is the match of the layout's header at the start of
    ``content[0]``; ``reason`` says why there is none. ``content`` is the lines as the process wrote them, without
    line ends. ``stream`` names the process that wrote it, NULL where nothing tells.
    """

    offset: int
    length: int
    line: int
    data: bytes
    content: list[bytes]
    header: re.Match[bytes] | None
    reason: str | None
    stream: str | None = None


def frame(
    source: Iterable[bytes], reading: Reading, offset: int = 0, line: int = 1, *, in_runs: bool = False
) -> Iterator[Framed | Run]:
    """Frame the records of a log, or of a part of it that begins at a record.

    ``offset`` and ``line`` say where in the whole file the first block begins. Records come in the order of their
    lines, those of several streams in the order in which they end. ``in_runs`` gives those of one line each that follow
    one another in :class:`Run` objects, where that is safe.
    """
    streams = _Streams(reading)
    for item in _pieces(source, run_pattern(reading) if in_runs else None):
        if isinstance(item, list):
            yield from streams.end()
            run = Run(offset, line, *item)
            yield run
            offset += run.length
            line += len(run.texts)
        elif isinstance(item, bytes):
            for text in item[:-1].split(b"\n"):
                whole = text + b"\n"
                ended = streams.take(text, whole, len(whole), offset, line)
                if ended:
                    yield from ended
                offset += len(whole)
                line += 1
        else:
            if item.kind != "hole":
                yield from streams.take(item.data, item.data, item.length, offset, line)
            else:
                if reading.is_plain:
                    yield from streams.end()
                yield Framed(offset, item.length, line, item.data, [item.data], None, HOLE)
            offset += item.length
            line += item.kind == "long"
    yield from streams.end()


def _pieces(source: Iterable[bytes], pattern: re.Pattern[str] | None) -> Iterator[list[list[str]] | bytes | Odd]:
    """What is read in runs, what is read line by line, and what is odd, in the order of the bytes."""
    for item in LogLines(MAX_RECORD_BYTES, RAW_BYTES).read(source):
        if pattern is None or isinstance(item, Odd) or len(item) > MAX_RECORD_BYTES:
            yield item
        else:
            yield from runs(pattern, item)


class _Piece(NamedTuple):
    """A piece of a line: its text, as much of its bytes as is kept, their number, and where it begins."""

    text: bytes
    data: bytes
    length: int
    offset: int
    line: int


class _Open:
    """A record of one stream that may still grow; ``pieces`` is what has come of a line that a runtime cut."""

    __slots__ = (
        "content",
        "data",
        "header",
        "kept_bytes",
        "last_line",
        "length",
        "line",
        "offset",
        "pieces",
        "reason",
        "stream",
    )

    def __init__(self, stream: bytes | None) -> None:
        self.stream = stream
        self.last_line = 0
        self.pieces: list[_Piece] = []
        self.begin(0, 0, None, None)

    def begin(self, offset: int, line: int, header: re.Match[bytes] | None, reason: str | None) -> None:
        self.offset = offset
        self.line = line
        self.header = header
        self.reason = reason
        self.length = 0
        self.kept_bytes = 0
        self.data: list[bytes] = []
        self.content: list[bytes] = []

    def framed(self) -> Framed:
        data = self.data[0] if len(self.data) == 1 else b"".join(self.data)
        content = [text.rstrip(b"\r") for text in self.content] if b"\r" in data else self.content
        name = None if self.stream is None else self.stream.split(CHANNEL)[0].decode("utf-8", "replace")
        return Framed(self.offset, self.length, self.line, data, content, self.header, self.reason, name)


class _Streams:
    """The open records, one of each stream."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._unwrap = reading.unwrap if reading.wrappers else None
        self._open: dict[bytes, _Open] = {}
        self._last = b""
        self._open_bytes = 0

    def take(self, line_text: bytes, data: bytes, length: int, offset: int, line: int) -> Sequence[Framed]:
        """Take the next line of the file: its text, as much of its bytes as is kept, their number, its place.

        Gives the records that end by it.
        """
        ended: list[Framed] = []
        text, more, stream = line_text.rstrip(b"\r"), False, None
        if self._unwrap is not None:
            text, more, stream = self._unwrap(text)
        if stream is not None:
            self._last = stream
        record = self._open.get(self._last)
        if record is None:
            if len(self._open) >= MAX_OPEN_STREAMS:
                ended.extend(self._close(min(self._open, key=lambda name: self._open[name].last_line)))
            record = self._open[self._last] = _Open(self._last if self._reading.names_streams else None)
        record.last_line = line
        if more or record.pieces:
            record.pieces.append(_Piece(text, data, length, offset, line))
            self._open_bytes += len(data)
            if not more or sum(piece.length for piece in record.pieces) > MAX_RECORD_BYTES:
                ended.extend(self._join(record))
        else:
            before = self._add(record, text, data, length, offset, line)
            if before is not None:
                ended.append(before)
        if self._open_bytes > MAX_OPEN_BYTES:
            largest = max(self._open.values(), key=lambda one: one.kept_bytes + sum(len(p.data) for p in one.pieces))
            ended.extend(self._join(largest))
            before = self._end(largest, offset, line, None, TOO_LONG)
            if before is not None:
                ended.append(before)
        return ended

    def end(self) -> Iterator[Framed]:
        """End the records that are still open, in the order of their first lines."""
        for record in sorted(self._open.values(), key=lambda one: one.pieces[0].offset if one.pieces else one.offset):
            yield from self._join(record)
        for record in sorted(self._open.values(), key=lambda one: one.offset):
            if record.length:
                yield record.framed()
        self._open.clear()
        self._open_bytes = 0

    def _close(self, stream: bytes) -> Iterator[Framed]:
        record = self._open.pop(stream)
        yield from self._join(record)
        ended = self._end(record, 0, 0, None, None)
        if ended is not None:
            yield ended

    def _join(self, record: _Open) -> Iterator[Framed]:
        """Take the line that a runtime cut, with the pieces that have come."""
        if record.pieces:
            pieces, record.pieces = record.pieces, []
            data = b"".join(piece.data for piece in pieces)
            self._open_bytes -= len(data)
            length = sum(piece.length for piece in pieces)
            text = b"".join(piece.text for piece in pieces)
            ended = self._add(record, text, data, length, pieces[0].offset, pieces[0].line)
            if ended is not None:
                yield ended

    def _add(self, record: _Open, text: bytes, data: bytes, length: int, offset: int, line: int) -> Framed | None:
        """Add a whole line to its stream; gives the record that ends by it."""
        ended: Framed | None = None
        header: re.Match[bytes] | None = None
        problem: str | None = None
        if length > MAX_RECORD_BYTES:
            content, data, problem = [text[:RAW_BYTES]], data[:RAW_BYTES], TOO_LONG
        else:
            content, header = self._reading.record(text)
            is_full = record.kept_bytes + length > MAX_RECORD_BYTES or len(record.content) >= MAX_RECORD_LINES
            if header is None and is_full and record.reason is not TOO_LONG:
                problem = TOO_LONG
        if header is not None or problem is not None or not record.length:
            if header is None and problem is None:
                problem = record.reason or NO_HEADER
            ended = self._end(record, offset, line, header, problem)
        record.length += length
        if record.reason is None or record.kept_bytes < RAW_BYTES:
            record.data.append(data)
            record.content.extend(content)
            record.kept_bytes += len(data)
            self._open_bytes += len(data)
        return ended

    def _end(
        self, record: _Open, offset: int, line: int, header: re.Match[bytes] | None, reason: str | None
    ) -> Framed | None:
        """End a stream's record, if it has one; its next one begins at that place."""
        ended = record.framed() if record.length else None
        self._open_bytes -= record.kept_bytes
        record.begin(offset, line, header, reason)
        return ended
