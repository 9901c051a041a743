"""Log layouts as data: how a record begins, where its parts stand, and real lines of each.

A layout is two things, found separately: the *wrapper* that a container runtime or a shipper put before each
line, and the log4j *pattern* below it. ``bronze.ingested_files.layout`` holds both names, joined by ``+``.
Patterns match bytes and only the header of a record, so a line costs one anchored match.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_TIME: Final = rb"(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?)"
_LEVEL: Final = rb"(?P<level>TRACE|DEBUG|INFO|WARNING|WARN|ERROR|FATAL)"
_LOGGER: Final = rb"(?P<logger>[A-Za-z_][\w$\-]*(?:\.[\w$\-]+)+)(?::\d+)?"
_THREAD: Final = rb"\[(?P<thread>[^\]]*)\]"

#: ``(logger)`` or ``(logger:line)`` at the end of a line.
LOGGER_AT_END: Final = re.compile(rb" \(([A-Za-z_$][\w$.\-]*)(?::\d+)?\)\s*$")

# Kafka's own identifiers stand in brackets where some layouts print the thread.
_NOT_KAFKA_IDENTIFIER: Final = (
    rb"(?![^\]]*=)(?!(?:Controller|Partition|Replica|Topic|Channel|Kafka Server|KafkaApi|Group|Transaction|Log|Admin"
    rb"|Quota|Broker|Metadata|Unified|Local)[ \-])(?![^\]]* on [Bb]roker )(?!\w*Manager\])"
)


@dataclass(frozen=True)
class Layout:
    """One log4j pattern.

    ``header`` matches a record's first line up to its message and names ``time``, ``level`` and, where the
    layout has them there, ``thread`` and ``logger``. ``logger_at_end`` says that the message may end with
    ``(logger)``. ``vote`` is what counts when layouts are compared, where that is stricter than the header.
    """

    name: str
    header: re.Pattern[bytes]
    samples: tuple[str, ...]
    logger_at_end: bool = False
    vote: re.Pattern[bytes] | None = None

    @property
    def has_thread(self) -> bool:
        return "thread" in self.header.groupindex

    @property
    def has_logger(self) -> bool:
        return "logger" in self.header.groupindex


def _layout(name: str, header: bytes, *samples: str, logger_at_end: bool = False, vote: bytes | None = None) -> Layout:
    return Layout(name, re.compile(header), samples, logger_at_end, re.compile(vote) if vote else None)


#: Where two layouts read a file equally well, the earlier one is taken.
LAYOUTS: Final[Sequence[Layout]] = (
    _layout(
        "bracketed_level_thread",
        rb"\[" + _TIME + rb"\] +" + _LEVEL + rb" +" + _THREAD + rb" +",
        "[2021-03-02 09:12:44,001] INFO [main] starting (kafka.server.KafkaServer)",
        logger_at_end=True,
        vote=rb"\[" + _TIME + rb"\] +" + _LEVEL + rb" +\[" + _NOT_KAFKA_IDENTIFIER + rb"[^\]]+\] ",
    ),
    _layout(
        "bracketed_thread_level",
        rb"\[" + _TIME + rb"\] +" + _THREAD + rb" +" + _LEVEL + rb" +",
        "[2021-03-02 09:12:44,001] [main] INFO starting (kafka.server.KafkaServer)",
        logger_at_end=True,
    ),
    _layout(
        "bracketed_level_logger",
        rb"\[" + _TIME + rb"\] +" + _LEVEL + rb" +" + _LOGGER + rb"(?:: | - )",
        "[2021-03-02 09:12:44,001] INFO kafka.server.KafkaServer: starting",
    ),
    _layout(
        "bracketed",
        rb"\[" + _TIME + rb"\] +" + _LEVEL + rb" +",
        "[2014-03-11 10:21:07,123] INFO [Kafka Server 1], started (kafka.server.KafkaServer)",
        "[2021-03-02T09:12:44.001Z] INFO [KafkaServer id=1] started (kafka.server.KafkaServer:66)",
        logger_at_end=True,
    ),
    _layout(
        "thread_level_logger",
        _TIME + rb" +" + _THREAD + rb" +" + _LEVEL + rb" +" + _LOGGER + rb" *(?:- |: )",
        "2023-06-01 12:00:00,123 [main] INFO  kafka.server.KafkaServer - [KafkaServer id=1] started",
    ),
    _layout(
        "level_thread_place",
        _TIME + rb" +(?:- +)?" + _LEVEL + rb" +\[(?P<thread>[^\]]*?):(?P<logger>[\w$.]+)@\d+\] +- +",
        "2013-12-05 10:11:12,345 - INFO  [main:Logging$class@68] - starting",
    ),
    _layout(
        "level_thread_logger",
        _TIME
        + rb" +(?:- +)?"
        + _LEVEL
        + rb" +"
        + _THREAD
        + rb" +(?P<logger>[\w$.\-]+)(?: \([^)]*\(\d+\)\))?(?: - |: )",
        "2018-05-23 10:21:07,123 INFO  [main] server.KafkaServer (Logging.scala:info(70)) - started",
    ),
    _layout(
        "level_logger",
        _TIME + rb" +(?:- +)?" + _LEVEL + rb" +" + _LOGGER + rb"(?:: | - )",
        "2019-05-23 10:21:07,123 INFO kafka.server.KafkaServer: [KafkaServer id=3] started",
        "2014-03-11 10:21:07,123 TRACE state.change.logger: Controller 1 epoch 1 changed partition [t,0] state",
    ),
    _layout(
        "level",
        _TIME + rb" +(?:- +)?" + _LEVEL + rb" +",
        "2014-03-11 10:21:07,123 INFO [Kafka Server 1], started (kafka.server.KafkaServer)",
        logger_at_end=True,
    ),
)

LAYOUT_BY_NAME: Final[Mapping[str, Layout]] = {layout.name: layout for layout in LAYOUTS}

#: Takes a line without its line feed; gives what the process wrote, and whether the next line continues it.
Unwrap = Callable[[bytes], tuple[bytes, bool]]


@dataclass(frozen=True)
class Wrapper:
    """What a container runtime or a shipper puts around each line."""

    name: str
    unwrap: Unwrap
    samples: tuple[str, ...]


def _prefix(pattern: bytes) -> Unwrap:
    compiled = re.compile(pattern)

    def unwrap(line: bytes) -> tuple[bytes, bool]:
        found = compiled.match(line)
        return (line[found.end() :], False) if found else (line, False)

    return unwrap


_KUBERNETES = re.compile(
    rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d) std(?:out|err) ([FP])(?:[: ][^ ]*)?? "
)


def _unwrap_kubernetes(line: bytes) -> tuple[bytes, bool]:
    found = _KUBERNETES.match(line)
    return (line[found.end() :], found.group(1) == b"P") if found else (line, False)


def _unwrap_docker_json(line: bytes) -> tuple[bytes, bool]:
    if not line.startswith(b'{"'):
        return line, False
    try:
        entry = json.loads(line)
    except ValueError:
        return line, False
    text = entry.get("log") if isinstance(entry, dict) else None
    if not isinstance(text, str):
        return line, False
    return text.rstrip("\r\n").encode("utf-8", "surrogatepass"), not text.endswith("\n")


WRAPPERS: Final[Sequence[Wrapper]] = (
    Wrapper(
        "compose",
        _prefix(rb"(?:\x1b\[[\d;]*m)*[A-Za-z0-9][\w.\-]* *\|(?:\x1b\[[\d;]*m)* ?"),
        ("kafka-1  | [2023-06-01 12:00:00,123] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)",),
    ),
    Wrapper(
        "kubernetes",
        _unwrap_kubernetes,
        (
            "2024-05-01T10:00:00.123456789Z stdout F [2024-05-01 10:00:00,123] INFO [KafkaServer id=1] started"
            " (kafka.server.KafkaServer)",
        ),
    ),
    Wrapper(
        "docker_json",
        _unwrap_docker_json,
        (
            '{"log":"[2024-05-01 10:00:00,123] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\\n",'
            '"stream":"stdout","time":"2024-05-01T10:00:00.123456789Z"}',
        ),
    ),
    Wrapper(
        "timestamped",
        _prefix(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d) "),
        ("2024-05-01T10:00:00.123456789Z [2024-05-01 10:00:00,123] INFO started (kafka.server.KafkaServer)",),
    ),
    Wrapper(
        "pod",
        _prefix(rb"\[pod/[^\]]+\] "),
        ("[pod/kafka-0/kafka] [2024-05-01 10:00:00,123] INFO started (kafka.server.KafkaServer)",),
    ),
    Wrapper(
        "syslog",
        _prefix(rb"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ \S+: "),
        ("Mar 11 10:21:07 host1 kafka[4711]: [2014-03-11 10:21:07,123] INFO started (kafka.server.KafkaServer)",),
    ),
)

WRAPPER_BY_NAME: Final[Mapping[str, Wrapper]] = {wrapper.name: wrapper for wrapper in WRAPPERS}


@dataclass(frozen=True)
class Reading:
    """How one file's lines are read: its layout and, where there is one, its wrapper."""

    layout: Layout
    wrapper: Wrapper | None = None

    @property
    def name(self) -> str:
        return f"{self.wrapper.name}+{self.layout.name}" if self.wrapper else self.layout.name

    def content(self, line: bytes) -> bytes:
        """The line as the process wrote it."""
        return self.wrapper.unwrap(line)[0] if self.wrapper else line

    def begins(self, line: bytes) -> bool:
        """Whether a record begins with this line."""
        return self.layout.header.match(self.content(line)) is not None


def reading(name: str) -> Reading:
    """The :class:`Reading` that ``bronze.ingested_files.layout`` names."""
    wrapper, _, layout = name.rpartition("+")
    return Reading(LAYOUT_BY_NAME[layout], WRAPPER_BY_NAME[wrapper] if wrapper else None)


def detect(lines: Sequence[bytes]) -> Reading | None:
    """The layout and wrapper that read most of these lines; NULL where none reads any.

    A line whose logger is found counts twice; no wrapper is preferred to one.
    """
    best: tuple[int, Reading] | None = None
    for wrapper in (None, *WRAPPERS):
        unwrapped = [wrapper.unwrap(line)[0] if wrapper else line for line in lines]
        if wrapper is not None and unwrapped == list(lines):
            continue
        for layout in LAYOUTS:
            score = sum(_score(layout, line.rstrip(b"\r")) for line in unwrapped)
            if score and (best is None or score > best[0]):
                best = (score, Reading(layout, wrapper))
    return best[1] if best else None


def _score(layout: Layout, line: bytes) -> int:
    found = (layout.vote or layout.header).match(line)
    if found is None:
        return 0
    if layout.has_logger or (layout.logger_at_end and LOGGER_AT_END.search(line)):
        return 2
    return 1
