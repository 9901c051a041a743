"""Text layouts as data: how a record begins and where its parts stand.

A layout is a log4j, Log4j 2 or Logback pattern. It matches bytes and only the header of a record, so that a line
costs one anchored match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

# Every way to print a time that can be read in one way only; without a date only where nothing else can be meant.
# A zone's short name counts where Java gives it to one zone alone.
_ZONE: Final = rb"(?: ?(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?|CES?T|EES?T|WES?T|MSK|E[SD]T|M[SD]T|P[SD]T|JST|KST)(?![\w:]))?"
_FRACTION: Final = rb"(?:[.,]\d{1,9})?"
_TIME: Final = (
    rb"(?P<time>(?:\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d"
    + _FRACTION
    + _ZONE
    + rb"|\d{4}/\d\d/\d\d[ T]\d\d:\d\d:\d\d"
    + _FRACTION
    + _ZONE
    + rb"|\d\d(?: [A-Z][a-z]{2} |\.\d\d\.)\d{4} \d\d:\d\d:\d\d"
    + _FRACTION
    + _ZONE
    + rb"|\d{8}T\d{6}"
    + _FRACTION
    + _ZONE
    + rb"|\d\d:\d\d:\d\d[.,]\d{1,9}|\d{17}|\d{13}|\d{10}(?:\.\d{1,9})?))"
)
_LEVEL: Final = rb"(?P<level>TRACE|DEBUG|INFO|WARNING|WARN|ERROR|FATAL|trace|debug|info|warning|warn|error|fatal)"
_LOGGER: Final = rb"(?P<logger>[A-Za-z_][\w$\-]*(?:\.[\w$\-]+)+)(?::\d+)?"
# What %c{1} leaves of a logger: its last name.
_SHORT_LOGGER: Final = rb"(?P<logger>[A-Za-z_][\w$\-]*)(?::\d+)?"
# A time in brackets is no thread: some wrapper stands before the line.
_THREAD: Final = rb"\[(?P<thread>(?!\d{4}-\d\d|\d\d:\d\d)[^\]]*)\]"
_CONTEXT: Final = rb"\{(?:[^{}=]+=[^{}]*)?\}"

#: ``(logger)`` or ``(logger:line)`` at the end of a line.
LOGGER_AT_END: Final = re.compile(rb" \((?P<logger>[A-Za-z_$][\w$.\-]*)(?::\d+)?\)\s*$")
#: The same with ``[thread]`` behind it.
LOGGER_AND_THREAD_AT_END: Final = re.compile(
    rb" \((?P<logger>[A-Za-z_$][\w$.\-]*)(?::\d+)?\) \[(?P<thread>[^\]]*)\]\s*$"
)

# Kafka's own identifiers stand in brackets where some layouts print the thread.
_NOT_KAFKA_IDENTIFIER: Final = (
    rb"(?![^\]]*=)(?!(?:Controller|Partition|Replica|Topic|Channel|Kafka Server|KafkaApi|Group|Transaction|Log|Admin"
    rb"|Quota|Broker|Metadata|Unified|Local)[ \-])(?![^\]]* on [Bb]roker )(?!\w*Manager\])"
    rb"(?!broker-\d+-to-controller\])"
)
_VOTING_THREAD: Final = rb"\[" + _NOT_KAFKA_IDENTIFIER + rb"[^\]]+\] "

_STACK: Final = re.compile(rb"\s+at \S|Caused by: |\s+\.\.\. \d+ more|\S+(?:Exception|Error)(?::|$)")
#: A message of more lines than this (a dump of a configuration has some 250) is not searched for its logger.
_MESSAGE_LINES: Final = 2000

#: A line as the process wrote it to the lines of a record whose first one the header matches; NULL: none begins here.
Rewrite = Callable[[bytes], "list[bytes] | None"]


class Message(NamedTuple):
    """A record's message, its logger and thread as printed, and the lines that follow the message."""

    text: bytes
    logger: bytes | None
    thread: bytes | None
    continuation: list[bytes]


@dataclass(frozen=True)
class Layout:
    """One pattern.

    ``header`` matches a record's first line up to its message and names ``time``, ``level`` and, where the
    layout has them there, ``thread`` and ``logger``. ``tail`` finds the ``logger``, and the ``thread`` where it is
    printed there, behind the message; it is NULL where the layout prints neither there. ``vote`` is what counts
    when layouts are compared, where that is stricter than the header. ``rewrite`` brings lines of another form
    (JSON) into the one that the header matches.
    """

    name: str
    header: re.Pattern[bytes]
    tail: re.Pattern[bytes] | None = None
    vote: re.Pattern[bytes] | None = None
    rewrite: Rewrite | None = None

    @property
    def has_thread(self) -> bool:
        return "thread" in self.header.groupindex

    @property
    def has_logger(self) -> bool:
        return "logger" in self.header.groupindex

    def logger_of(self, header: re.Match[bytes], text: bytes) -> bytes | None:
        """The logger that a record's first line names; NULL where it names none."""
        if self.has_logger:
            return header.group("logger") or None
        found = self.tail.search(text, header.end() - 1) if self.tail else None
        return found.group("logger") if found else None

    def message_of(self, header: re.Match[bytes], content: Sequence[bytes]) -> Message:
        """Take a record, its lines as the process wrote them, apart behind its header."""
        first, *others = content
        begin = header.end()
        thread = header.group("thread") if self.has_thread else None
        if self.tail is None:
            return Message(first[begin:], header.group("logger") if self.has_logger else None, thread, others)
        found = self.tail.search(first, begin - 1)
        if found is not None:
            return Message(first[begin : found.start()], found["logger"], thread or _thread(found), others)
        for position, line in enumerate(others[:_MESSAGE_LINES]):
            if _STACK.match(line):
                break
            found = self.tail.search(line)
            if found is not None:
                text = b"\n".join([first[begin:], *others[:position], line[: found.start()]])
                return Message(text, found["logger"], thread or _thread(found), others[position + 1 :])
        return Message(first[begin:], None, thread, others)


def _thread(tail: re.Match[bytes]) -> bytes | None:
    return tail.groupdict().get("thread")


def _layout(name: str, header: bytes, tail: re.Pattern[bytes] | None = None, vote: bytes | None = None) -> Layout:
    return Layout(name, re.compile(header), tail, re.compile(vote) if vote else None)


_IN_BRACKETS: Final = rb"\[" + _TIME + rb"\] +"
_BARE: Final = _TIME + rb" +(?:- +)?"
_BEHIND: Final = rb"(?:: | +- +)"

#: Where two layouts read a file equally well, the earlier one is taken.
TEXT_LAYOUTS: Final[Sequence[Layout]] = (
    _layout("bracketed_level_context", _IN_BRACKETS + _LEVEL + rb" +" + _CONTEXT + rb" +", tail=LOGGER_AT_END),
    _layout(
        "bracketed_level_thread",
        _IN_BRACKETS + _LEVEL + rb" +" + _THREAD + rb" +",
        tail=LOGGER_AT_END,
        vote=_IN_BRACKETS + _LEVEL + rb" +" + _VOTING_THREAD,
    ),
    _layout("bracketed_thread_level", _IN_BRACKETS + _THREAD + rb" +" + _LEVEL + rb" +", tail=LOGGER_AT_END),
    _layout(
        "bracketed_all",
        _IN_BRACKETS + rb"\[ *" + _LEVEL + rb" *\] +(?:" + _THREAD + rb" +)?\[" + _LOGGER + rb"\](?::? +-? ?)",
    ),
    _layout("bracketed_bracketed_level", _IN_BRACKETS + rb"\[ *" + _LEVEL + rb" *\] +", tail=LOGGER_AT_END),
    _layout("bracketed_level_logger", _IN_BRACKETS + _LEVEL + rb" +" + _LOGGER + _BEHIND),
    _layout("bracketed_level_short_logger", _IN_BRACKETS + _LEVEL + rb" +" + _SHORT_LOGGER + _BEHIND),
    _layout("bracketed", _IN_BRACKETS + _LEVEL + rb" +", tail=LOGGER_AT_END),
    _layout("bracketed_thread_at_end", _IN_BRACKETS + _LEVEL + rb" +", tail=LOGGER_AND_THREAD_AT_END),
    _layout("thread_level_logger", _BARE + _THREAD + rb" +" + _LEVEL + rb" +" + _LOGGER + rb" *(?:- |: )"),
    _layout("thread_level_short_logger", _BARE + _THREAD + rb" +" + _LEVEL + rb" +" + _SHORT_LOGGER + rb" *(?:- |: )"),
    _layout("thread_level", _BARE + _THREAD + rb" +" + _LEVEL + rb" +", tail=LOGGER_AT_END),
    _layout("level_thread_place", _BARE + _LEVEL + rb" +\[(?P<thread>[^\]]*?):(?P<logger>[\w$.]+)@\d+\] +- +"),
    _layout(
        "myid_level_thread_place",
        _TIME + rb" +\[myid:[^\]]*\] +- +" + _LEVEL + rb" +\[(?P<thread>.*?):(?P<logger>[\w$.]+)@\d+\] +- +",
    ),
    _layout(
        "level_thread_logger",
        _BARE + _LEVEL + rb" +" + _THREAD + rb" +(?P<logger>[\w$.\-]+)(?: \([^)]*\(\d+\)\))?(?: - |: )",
    ),
    _layout("level_logger_thread", _BARE + _LEVEL + rb" +\[" + _LOGGER + rb"\] +\((?P<thread>[^)]*)\) +(?:- )?"),
    _layout("level_bracketed_logger", _BARE + _LEVEL + rb" +\[" + _LOGGER + rb"\]:? +(?:- )?"),
    _layout("level_logger", _BARE + _LEVEL + rb" +" + _LOGGER + _BEHIND),
    _layout("level_short_logger", _BARE + _LEVEL + rb" +" + _SHORT_LOGGER + _BEHIND),
    _layout(
        "level_thread",
        _BARE + _LEVEL + rb" +" + _THREAD + rb" +",
        tail=LOGGER_AT_END,
        vote=_BARE + _LEVEL + rb" +" + _VOTING_THREAD,
    ),
    _layout(
        "level", _BARE + _LEVEL + rb" +", tail=LOGGER_AT_END, vote=_BARE + _LEVEL + rb" +(?!\[?\d{4}-\d\d-\d\d[ T])"
    ),
    _layout("level_thread_at_end", _BARE + _LEVEL + rb" +", tail=LOGGER_AND_THREAD_AT_END),
    _layout(
        "level_first_logger",
        rb"\[? *" + _LEVEL + rb"(?: *\])? +\[?" + _TIME + rb"\]? +(?:" + _THREAD + rb" +)?" + _LOGGER + _BEHIND,
    ),
    _layout("level_first", rb"\[? *" + _LEVEL + rb"(?: *\])? +\[?" + _TIME + rb"\]? +", tail=LOGGER_AT_END),
)
