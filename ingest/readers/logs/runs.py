"""Runs of records of one line each, taken apart a block at a time: how nearly all of a log is read.

One expression splits a whole block into the columns of its records. It takes a record only where it is sure that the
careful way (:mod:`ingest.readers.logs.framing`) would give the same one: the line is header, message and logger, and
the next line begins a record too. Whatever else a block holds is left as lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from ingest.readers.logs.layouts import Reading
from ingest.readers.logs.patterns import LOGGER_AT_END

#: ``Pattern.split`` gives by turns the text between two records and the five groups of one: the columns of a run.
_EVERY: Final = 6
# Only the last " (" of a line can stand before its logger: no other is tried.
_MESSAGE_AND_LOGGER: Final = r"(?>(.*) \()([A-Za-z_$][\w$.\-]*)(?::\d+)?\)[ \t\r]*\n"
#: A run of fewer records costs more than reading them line by line.
_FEWEST: Final = 4


class Run(NamedTuple):
    """Records that follow one another, by columns.

    ``offset`` and ``line`` are the first one's place. ``texts`` are whole lines with their line ends; they and
    ``messages`` have one character for each byte (Latin-1), the other columns are ASCII.
    """

    offset: int
    line: int
    texts: list[str]
    times: list[str]
    levels: list[str]
    messages: list[str]
    loggers: list[str]

    @property
    def length(self) -> int:
        """How many bytes its records have."""
        return sum(map(len, self.texts))


def run_pattern(how: Reading) -> re.Pattern[str] | None:
    """The expression for a file's runs; NULL where its lines must be read one by one.

    That is so where a line of the file is no line of the log as it is, where the header says more than time and
    level, and where a part of it could reach into the next line.
    """
    header = how.layout.header
    if not how.is_plain or how.layout.tail is not LOGGER_AT_END or b"[^" in header.pattern:
        return None
    if dict(header.groupindex) != {"time": 1, "level": 2}:
        return None
    return re.compile(f"^({header.pattern.decode()}{_MESSAGE_AND_LOGGER})", re.MULTILINE | re.ASCII)


def runs(pattern: re.Pattern[str], chunk: bytes) -> Iterator[list[list[str]] | bytes]:
    """The runs of a chunk of whole lines, by columns, and the lines between them, in order.

    A chunk's last record, which may go on in the next chunk, is in no run; nor is one that other lines follow.
    """
    if b"\0" in chunk:
        yield chunk
        return
    parts = pattern.split(chunk.decode("latin-1"))
    texts, between = parts[1::_EVERY], parts[::_EVERY]
    lines = [between[0]]
    first = 0
    for place, behind in enumerate(between[1:]):
        if not behind and place < len(texts) - 1:
            continue
        if place - first >= _FEWEST:
            if any(lines):
                yield "".join(lines).encode("latin-1")
                lines = []
            yield [parts[_EVERY * first + group : _EVERY * place : _EVERY] for group in range(1, _EVERY)]
        else:
            lines += texts[first:place]
        lines += texts[place], behind
        first = place + 1
    if any(lines):
        yield "".join(lines).encode("latin-1")
