"""Text layouts as data: how a record begins, where its parts stand, and real lines of each.

A layout is a log4j, Log4j 2 or Logback pattern. It matches bytes and only the header of a record, so that a line
costs one anchored match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

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
)
_VOTING_THREAD: Final = rb"\[" + _NOT_KAFKA_IDENTIFIER + rb"[^\]]+\] "

#: A line as the process wrote it to the lines of a record whose first one the header matches; NULL: none begins here.
Rewrite = Callable[[bytes], "list[bytes] | None"]


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
    samples: tuple[str, ...]
    tail: re.Pattern[bytes] | None = None
    vote: re.Pattern[bytes] | None = None
    rewrite: Rewrite | None = None

    @property
    def has_thread(self) -> bool:
        return "thread" in self.header.groupindex

    @property
    def has_logger(self) -> bool:
        return "logger" in self.header.groupindex

    @property
    def logger_at_end(self) -> bool:
        return self.tail is not None

    def logger_of(self, header: re.Match[bytes], text: bytes) -> bytes | None:
        """The logger that a record's first line names; NULL where it names none."""
        if self.has_logger:
            return header.group("logger") or None
        found = self.tail.search(text, header.end() - 1) if self.tail else None
        return found.group("logger") if found else None


def _layout(
    name: str, header: bytes, *samples: str, tail: re.Pattern[bytes] | None = None, vote: bytes | None = None
) -> Layout:
    return Layout(name, re.compile(header), samples, tail, re.compile(vote) if vote else None)


_IN_BRACKETS: Final = rb"\[" + _TIME + rb"\] +"
_BARE: Final = _TIME + rb" +(?:- +)?"
_BEHIND: Final = rb"(?:: | +- +)"

#: Where two layouts read a file equally well, the earlier one is taken.
TEXT_LAYOUTS: Final[Sequence[Layout]] = (
    _layout(
        "bracketed_level_context",
        _IN_BRACKETS + _LEVEL + rb" +" + _CONTEXT + rb" +",
        "[2021-03-02 09:12:44,001] INFO {} [KafkaServer id=1] started (kafka.server.KafkaServer)",
        "[2021-03-02 09:12:44,001] INFO {client=a, node=b} starting (kafka.server.KafkaServer)",
        tail=LOGGER_AT_END,
    ),
    _layout(
        "bracketed_level_thread",
        _IN_BRACKETS + _LEVEL + rb" +" + _THREAD + rb" +",
        "[2021-03-02 09:12:44,001] INFO [main] starting (kafka.server.KafkaServer)",
        tail=LOGGER_AT_END,
        vote=_IN_BRACKETS + _LEVEL + rb" +" + _VOTING_THREAD,
    ),
    _layout(
        "bracketed_thread_level",
        _IN_BRACKETS + _THREAD + rb" +" + _LEVEL + rb" +",
        "[2021-03-02 09:12:44,001] [main] INFO starting (kafka.server.KafkaServer)",
        tail=LOGGER_AT_END,
    ),
    _layout(
        "bracketed_all",
        _IN_BRACKETS + rb"\[ *" + _LEVEL + rb" *\] +(?:" + _THREAD + rb" +)?\[" + _LOGGER + rb"\](?::? +-? ?)",
        "[2021-03-02 09:12:44,001] [INFO ] [main] [kafka.server.KafkaServer] - [KafkaServer id=1] started",
        "[2021-03-02 09:12:44,001] [INFO] [kafka.server.KafkaServer] starting",
    ),
    _layout(
        "bracketed_bracketed_level",
        _IN_BRACKETS + rb"\[ *" + _LEVEL + rb" *\] +",
        "[2021-03-02 09:12:44,001] [INFO ] [KafkaServer id=1] started (kafka.server.KafkaServer)",
        tail=LOGGER_AT_END,
    ),
    _layout(
        "bracketed_level_logger",
        _IN_BRACKETS + _LEVEL + rb" +" + _LOGGER + _BEHIND,
        "[2021-03-02 09:12:44,001] INFO kafka.server.KafkaServer: starting",
    ),
    _layout(
        "bracketed_level_short_logger",
        _IN_BRACKETS + _LEVEL + rb" +" + _SHORT_LOGGER + _BEHIND,
        "[2021-03-02 09:12:44,001] INFO KafkaServer: [KafkaServer id=1] started",
    ),
    _layout(
        "bracketed",
        _IN_BRACKETS + _LEVEL + rb" +",
        "[2014-03-11 10:21:07,123] INFO [Kafka Server 1], started (kafka.server.KafkaServer)",
        "[2021-03-02T09:12:44.001Z] INFO [KafkaServer id=1] started (kafka.server.KafkaServer:66)",
        "[02 Mar 2021 09:12:44,001] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)",
        "[1614676364001] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)",
        "[09:12:44,001] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)",
        tail=LOGGER_AT_END,
    ),
    _layout(
        "bracketed_thread_at_end",
        _IN_BRACKETS + _LEVEL + rb" +",
        "[2021-03-02 09:12:44,001] INFO [KafkaServer id=1] started (kafka.server.KafkaServer) [main]",
        tail=LOGGER_AND_THREAD_AT_END,
    ),
    _layout(
        "thread_level_logger",
        _BARE + _THREAD + rb" +" + _LEVEL + rb" +" + _LOGGER + rb" *(?:- |: )",
        "2023-06-01 12:00:00,123 [main] INFO  kafka.server.KafkaServer - [KafkaServer id=1] started",
        "12:00:00.123 [main] INFO  k.server.KafkaServer - [KafkaServer id=1] started",
    ),
    _layout(
        "thread_level_short_logger",
        _BARE + _THREAD + rb" +" + _LEVEL + rb" +" + _SHORT_LOGGER + rb" *(?:- |: )",
        "2023-06-01 12:00:00,123 [main] INFO  KafkaServer - [KafkaServer id=1] started",
    ),
    _layout(
        "thread_level",
        _BARE + _THREAD + rb" +" + _LEVEL + rb" +",
        "2023-06-01 12:00:00,123 [main] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)",
        tail=LOGGER_AT_END,
    ),
    _layout(
        "level_thread_place",
        _BARE + _LEVEL + rb" +\[(?P<thread>[^\]]*?):(?P<logger>[\w$.]+)@\d+\] +- +",
        "2013-12-05 10:11:12,345 - INFO  [main:Logging$class@68] - starting",
    ),
    _layout(
        "myid_level_thread_place",
        _TIME + rb" +\[myid:[^\]]*\] +- +" + _LEVEL + rb" +\[(?P<thread>.*?):(?P<logger>[\w$.]+)@\d+\] +- +",
        "2021-03-02 09:12:44,001 [myid:1] - INFO  [main:o.a.z.s.ZooKeeperServer@123] - starting",
    ),
    _layout(
        "level_thread_logger",
        _BARE + _LEVEL + rb" +" + _THREAD + rb" +(?P<logger>[\w$.\-]+)(?: \([^)]*\(\d+\)\))?(?: - |: )",
        "2018-05-23 10:21:07,123 INFO  [main] server.KafkaServer (Logging.scala:info(70)) - started",
    ),
    _layout(
        "level_logger_thread",
        _BARE + _LEVEL + rb" +\[" + _LOGGER + rb"\] +\((?P<thread>[^)]*)\) +(?:- )?",
        "2024-03-11 10:21:07,123 INFO  [kafka.server.KafkaServer] (main) [KafkaServer id=3] started",
    ),
    _layout(
        "level_bracketed_logger",
        _BARE + _LEVEL + rb" +\[" + _LOGGER + rb"\]:? +(?:- )?",
        "2024-03-11 10:21:07,123 INFO [kafka.server.KafkaServer] [KafkaServer id=3] started",
    ),
    _layout(
        "level_logger",
        _BARE + _LEVEL + rb" +" + _LOGGER + _BEHIND,
        "2019-05-23 10:21:07,123 INFO kafka.server.KafkaServer: [KafkaServer id=3] started",
        "2014-03-11 10:21:07,123 TRACE state.change.logger: Controller 1 epoch 1 changed partition [t,0] state",
    ),
    _layout(
        "level_short_logger",
        _BARE + _LEVEL + rb" +" + _SHORT_LOGGER + _BEHIND,
        "2019-05-23 10:21:07,123 INFO KafkaServer: [KafkaServer id=3] started",
    ),
    _layout(
        "level_thread",
        _BARE + _LEVEL + rb" +" + _THREAD + rb" +",
        "2019-05-23 10:21:07,123 INFO [main] starting (kafka.server.KafkaServer)",
        tail=LOGGER_AT_END,
        vote=_BARE + _LEVEL + rb" +" + _VOTING_THREAD,
    ),
    _layout(
        "level",
        _BARE + _LEVEL + rb" +",
        "2014-03-11 10:21:07,123 INFO [Kafka Server 1], started (kafka.server.KafkaServer)",
        "2021-03-02T09:12:44.001+0200 INFO [KafkaServer id=1] started (kafka.server.KafkaServer:66)",
        "20210302T091244,001 INFO [KafkaServer id=1] started (kafka.server.KafkaServer)",
        "1614676364001 INFO [KafkaServer id=1] started (kafka.server.KafkaServer)",
        "2021/03/02 09:12:44.001 INFO [KafkaServer id=1] started (kafka.server.KafkaServer)",
        tail=LOGGER_AT_END,
        vote=_BARE + _LEVEL + rb" +(?!\[?\d{4}-\d\d-\d\d[ T])",
    ),
    _layout(
        "level_thread_at_end",
        _BARE + _LEVEL + rb" +",
        "2019-11-21 10:21:07,123 INFO [KafkaServer id=3] started (kafka.server.KafkaServer) [main]",
        tail=LOGGER_AND_THREAD_AT_END,
    ),
    _layout(
        "level_first_logger",
        rb"\[? *" + _LEVEL + rb" *\]? +\[?" + _TIME + rb"\]? +(?:" + _THREAD + rb" +)?" + _LOGGER + _BEHIND,
        "INFO  [2021-03-02 09:12:44,001] kafka.server.KafkaServer: [KafkaServer id=1] started",
        "[INFO ] 2021-03-02 09:12:44.001 [main] kafka.server.KafkaServer - [KafkaServer id=1] started",
    ),
    _layout(
        "level_first",
        rb"\[? *" + _LEVEL + rb" *\]? +\[?" + _TIME + rb"\]? +",
        "INFO [2021-03-02 09:12:44,001] [KafkaServer id=1] started (kafka.server.KafkaServer)",
        "INFO 2021-03-02 09:12:44,001 [KafkaServer id=1] started (kafka.server.KafkaServer)",
        tail=LOGGER_AT_END,
    ),
)
