"""Logs of one JSON object a line, as data: which fields each dialect calls time, level, logger, thread, message.

An object is brought into one text form, its parts parted by U+001F, that one header matches; a stack trace becomes
the lines that follow. A line that is no object of its file's dialect belongs to the record before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ingest.readers.logs.patterns import Layout

Path = tuple[str, ...]
_SEPARATOR: Final = "\x1f"
_PART: Final = rb"[^\x1f]*"
_HEADER: Final = re.compile(
    rb"(?P<time>"
    + _PART
    + rb")\x1f(?P<level>"
    + _PART
    + rb")\x1f(?P<thread>"
    + _PART
    + rb")\x1f(?P<logger>"
    + _PART
    + rb")\x1f"
)
# Fractions of a second keep their digits.
_DECODER: Final = json.JSONDecoder(parse_float=str)
#: Severities of syslog, which GELF writes.
_SEVERITIES: Final = ("FATAL", "FATAL", "FATAL", "ERROR", "WARN", "INFO", "INFO", "DEBUG")
_SEVERITY_NAMES: Final = {"EMERGENCY": "FATAL", "ALERT": "FATAL", "CRITICAL": "FATAL", "NOTICE": "INFO"}


def load(line: bytes) -> dict[str, Any] | None:
    """The object that a line holds, also as an element of an array of one object a line; NULL where it holds none."""
    text = line.strip(b" \t\r\n")
    if text[:1] in (b"[", b","):
        text = text[1:].lstrip()
    if text[:1] != b"{":
        return None
    if text.endswith((b",", b"}]")):
        text = text[:-1]
    try:
        entry = _DECODER.decode(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def value_at(entry: Mapping[str, Any], path: Path) -> Any:
    """The value of a path of names, whether they are nested or written as one name with dots."""
    if len(path) == 1:
        return entry.get(path[0])
    flat = entry.get(".".join(path))
    if flat is not None:
        return flat
    value: Any = entry
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def first_at(entry: Mapping[str, Any], paths: Sequence[Path]) -> Any:
    """The first of these values that is there."""
    for path in paths:
        value = value_at(entry, path)
        if value is not None:
            return value
    return None


@dataclass(frozen=True)
class Dialect:
    """The names, best first, that one writer of JSON gives to the parts of a record."""

    name: str
    time: tuple[Path, ...]
    level: tuple[Path, ...]
    logger: tuple[Path, ...]
    thread: tuple[Path, ...]
    message: tuple[Path, ...]
    stack: tuple[Path, ...]

    def rewrite(self, line: bytes) -> list[bytes] | None:
        """The record that begins with this line, in the text form; NULL where none does."""
        entry = load(line)
        if entry is None:
            return None
        time = _time(first_at(entry, self.time))
        level = _level(first_at(entry, self.level))
        message = first_at(entry, self.message)
        if time is None or level is None or message is None:
            return None
        if not isinstance(message, str):
            message = json.dumps(message)
        thread, logger = first_at(entry, self.thread), first_at(entry, self.logger)
        parts = [_word(part) for part in (time, level, thread, logger)]
        first = _SEPARATOR.join([*parts, message.rstrip("\r\n")])
        stacks = (_stack_lines(value_at(entry, path), 0) for path in self.stack)
        stack = next((lines for lines in stacks if lines and lines != [message]), [])
        lines = [first, *stack]
        return [text.encode("utf-8", "surrogatepass") for text in lines]


def _word(value: Any) -> str:
    return "" if value is None or isinstance(value, dict | list) else str(value).replace(_SEPARATOR, " ")


def _time(value: Any) -> str | None:
    if isinstance(value, dict):
        second, nanos = value.get("epochSecond"), value.get("nanoOfSecond", 0)
        return f"{second}.{nanos:09d}" if isinstance(second, int) and isinstance(nanos, int) else None
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value)


def _level(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return _SEVERITIES[value] if 0 <= value < len(_SEVERITIES) else None
    return _SEVERITY_NAMES.get(value, value) if isinstance(value, str) and value else None


def _stack_lines(value: Any, depth: int) -> list[str]:
    """The lines of a stack trace, which is a text, a list of lines or of frames, or an object around one of these."""
    if value is None or depth > 20:
        return []
    if isinstance(value, str):
        return re.split(r"\r?\n", value.rstrip("\r\n")) if value else []
    if isinstance(value, list):
        return [line for item in value for line in _stack_lines(item, depth + 1)]
    if not isinstance(value, dict):
        return []
    if "class" in value and "method" in value:
        place = (
            f"{value.get('file') or 'Unknown Source'}:{value.get('line')}" if value.get("line") else "Unknown Source"
        )
        return [f"\tat {value['class']}.{value['method']}({place})"]
    trace = _stack_lines(first_at(value, _TRACES), depth + 1)
    name, message = first_at(value, _EXCEPTION_NAMES), first_at(value, _EXCEPTION_MESSAGES)
    head = (
        []
        if name is None or (trace and trace[0].startswith(str(name)))
        else [f"{name}: {message}" if message is not None else str(name)]
    )
    cause = _stack_lines(value.get("cause"), depth + 1)
    return [*head, *trace, *(["Caused by: " + cause[0], *cause[1:]] if cause else [])]


def _paths(*names: str) -> tuple[Path, ...]:
    return tuple(tuple(name.split("/")) for name in names)


_TRACES: Final = _paths("extendedStackTrace", "stack_trace", "stackTrace", "stacktrace", "frames")
_EXCEPTION_NAMES: Final = _paths("name", "type", "exception_class", "class", "refType")
_EXCEPTION_MESSAGES: Final = _paths("message", "localizedMessage", "exception_message")

#: Where two dialects read a file equally well, the earlier one is taken.
DIALECTS: Final[Sequence[Dialect]] = (
    Dialect(
        "json_log4j2",
        _paths("instant", "timeMillis"),
        _paths("level"),
        _paths("loggerName"),
        _paths("thread"),
        _paths("message"),
        _paths("thrown"),
    ),
    Dialect(
        "json_ecs",
        _paths("@timestamp"),
        _paths("log/level"),
        _paths("log/logger"),
        _paths("process/thread/name"),
        _paths("message"),
        _paths("error/stack_trace", "error"),
    ),
    Dialect(
        "json_logstash",
        _paths("@timestamp"),
        _paths("level"),
        _paths("logger_name"),
        _paths("thread_name"),
        _paths("message"),
        _paths("stack_trace", "exception"),
    ),
    Dialect(
        "json_gelf",
        _paths("timestamp"),
        _paths("_level", "level"),
        _paths("_logger", "_loggerName", "_logger_name"),
        _paths("_thread", "_thread_name", "_threadName"),
        _paths("short_message"),
        _paths("_stack_trace", "_stacktrace", "_exceptionStackTrace", "full_message"),
    ),
    Dialect(
        "json",
        _paths("@timestamp", "timestamp", "time", "ts", "date", "datetime", "eventTime", "timeMillis", "instant"),
        _paths("level", "severity", "log_level", "loglevel", "priority", "levelname"),
        _paths("logger", "loggerName", "logger_name", "category", "class", "name", "_logger"),
        _paths("thread", "threadName", "thread_name", "_thread"),
        _paths("message", "msg"),
        _paths(
            "stack_trace",
            "stackTrace",
            "stacktrace",
            "throwable",
            "exception",
            "thrown",
            "trace",
            "error",
            "err",
            "_exception",
        ),
    ),
)

JSON_LAYOUTS: Final[Sequence[Layout]] = tuple(
    Layout(dialect.name, _HEADER, rewrite=dialect.rewrite) for dialect in DIALECTS
)
