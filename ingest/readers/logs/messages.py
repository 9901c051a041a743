"""A framed record's message, apart from its logger and thread and from the lines that follow it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ingest.readers.logs.framing import Framed
from ingest.readers.logs.layouts import Reading

_STACK: Final = re.compile(rb"\s+at \S|Caused by: |\s+\.\.\. \d+ more|\S+(?:Exception|Error)(?::|$)")
#: A message of more lines than this (a dump of a configuration has some 250) is not searched for its logger.
_MESSAGE_LINES: Final = 2000


class Message(NamedTuple):
    """A record's message, its logger and thread as printed, and the lines that follow the message."""

    text: bytes
    logger: bytes | None
    thread: bytes | None
    continuation: list[bytes]


def message_of(record: Framed, how: Reading) -> Message:
    """Take a record apart behind its header."""
    header = record.header
    assert header is not None
    first, *others = record.content
    begin = header.end()
    layout = how.layout
    thread = header.group("thread") if layout.has_thread else None
    if layout.has_logger:
        return Message(first[begin:], header.group("logger"), thread, others)
    tail = layout.tail
    if tail is None:
        return Message(first[begin:], None, thread, others)
    found = tail.search(first, begin - 1)
    if found is not None:
        return Message(first[begin : found.start()], found.group("logger"), thread or _thread(found), others)
    for position, line in enumerate(others[:_MESSAGE_LINES]):
        if _STACK.match(line):
            break
        found = tail.search(line)
        if found is not None:
            message = b"\n".join([first[begin:], *others[:position], line[: found.start()]])
            return Message(message, found.group("logger"), thread or _thread(found), others[position + 1 :])
    return Message(first[begin:], None, thread, others)


def _thread(tail: re.Match[bytes]) -> bytes | None:
    return tail.groupdict().get("thread")
