"""Writes records as loggers, container runtimes and shippers do: what framing has to undo."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Record:
    """A record before it is written."""

    message: str
    level: str = "INFO"
    logger: str = "kafka.server.KafkaServer"
    thread: str = "main"
    stack: Sequence[str] = field(default_factory=tuple)


ISO = "2024-05-01 10:00:00,123"
DAY = "2024-05-01T10:00:00"


def _text(pattern: str) -> Callable[[Record], list[str]]:
    def render(record: Record) -> list[str]:
        short = record.logger.rpartition(".")[2]
        values = {"m": record.message, "p": record.level, "c": record.logger, "t": record.thread, "s": short, "d": ISO}
        return [pattern.format(**values), *record.stack]

    return render


def _json(build: Callable[[Record], dict[str, object]]) -> Callable[[Record], list[str]]:
    return lambda record: [json.dumps(build(record))]


def _ecs(record: Record) -> dict[str, object]:
    return {
        "@timestamp": f"{DAY}.123Z",
        "log.level": record.level,
        "message": record.message,
        "process": {"thread": {"name": record.thread}},
        "log": {"logger": record.logger},
        "error": {"type": "E", "stack_trace": "\n".join(record.stack)} if record.stack else None,
    }


def _log4j2(record: Record) -> dict[str, object]:
    return {
        "instant": {"epochSecond": 1714557600, "nanoOfSecond": 123000000},
        "thread": record.thread,
        "level": record.level,
        "loggerName": record.logger,
        "message": record.message,
        **({"thrown": {"name": "E", "extendedStackTrace": "\n".join(record.stack)}} if record.stack else {}),
    }


def _logstash(record: Record) -> dict[str, object]:
    return {
        "@timestamp": f"{DAY}.123Z",
        "message": record.message,
        "logger_name": record.logger,
        "thread_name": record.thread,
        "level": record.level,
        "stack_trace": "\n".join(record.stack) or None,
    }


def _gelf(record: Record) -> dict[str, object]:
    return {
        "version": "1.1",
        "timestamp": 1714557600.123,
        "level": {"ERROR": 3, "WARN": 4, "INFO": 6, "DEBUG": 7}[record.level],
        "_thread": record.thread,
        "_logger": record.logger,
        "short_message": record.message,
        "_stack_trace": "\n".join(record.stack) or None,
    }


def _plain_json(record: Record) -> dict[str, object]:
    return {
        "timestamp": f"{DAY},123",
        "level": record.level,
        "logger": record.logger,
        "thread": record.thread,
        "message": record.message,
        "exception": "\n".join(record.stack) or None,
    }


LAYOUT_RENDERERS: Mapping[str, Callable[[Record], list[str]]] = {
    "bracketed_level_context": _text("[{d}] {p} {{a=b}} {m} ({c})"),
    "bracketed_level_thread": _text("[{d}] {p} [{t}] {m} ({c})"),
    "bracketed_thread_level": _text("[{d}] [{t}] {p} {m} ({c})"),
    "bracketed_all": _text("[{d}] [{p:5}] [{t}] [{c}] - {m}"),
    "bracketed_bracketed_level": _text("[{d}] [{p}] {m} ({c})"),
    "bracketed_level_logger": _text("[{d}] {p} {c}: {m}"),
    "bracketed_level_short_logger": _text("[{d}] {p} {s}: {m}"),
    "bracketed_thread_at_end": _text("[{d}] {p} {m} ({c}) [{t}]"),
    "bracketed": _text("[{d}] {p} {m} ({c})"),
    "thread_level_logger": _text("{d} [{t}] {p:5} {c} - {m}"),
    "thread_level_short_logger": _text("{d} [{t}] {p:5} {s} - {m}"),
    "thread_level": _text("{d} [{t}] {p} {m} ({c})"),
    "level_thread_place": _text("{d} - {p:5} [{t}:{c}@68] - {m}"),
    "myid_level_thread_place": _text("{d} [myid:1] - {p:5} [{t}:{c}@68] - {m}"),
    "level_thread_logger": _text("{d} {p:5} [{t}] {c} (Logging.scala:info(70)) - {m}"),
    "level_logger_thread": _text("{d} {p:5} [{c}] ({t}) {m}"),
    "level_bracketed_logger": _text("{d} {p} [{c}] {m}"),
    "level_logger": _text("{d} {p} {c}: {m}"),
    "level_short_logger": _text("{d} {p} {s}: {m}"),
    "level_thread": _text("{d} {p} [{t}] {m} ({c})"),
    "level_thread_at_end": _text("{d} {p} {m} ({c}) [{t}]"),
    "level": _text("{d} {p} {m} ({c})"),
    "level_first_logger": _text("{p:5} [{d}] {c}: {m}"),
    "level_first": _text("{p} [{d}] {m} ({c})"),
    "json_log4j2": _json(_log4j2),
    "json_ecs": _json(_ecs),
    "json_logstash": _json(_logstash),
    "json_gelf": _json(_gelf),
    "json": _json(_plain_json),
}


def _journal(line: str, stream: str) -> str:
    return json.dumps({"_HOSTNAME": stream, "_PID": "1", "MESSAGE": line})


#: A line and the name of its process to the line as it stands in the file.
WRAPPER_RENDERERS: Mapping[str, Callable[[str, str], str]] = {
    "compose": lambda line, stream: f"{stream}  | {line}",
    "kubernetes": lambda line, stream: f"{DAY}.123456789Z stdout F {line}",
    "docker_json": lambda line, stream: json.dumps({"log": line + "\n", "stream": "stdout", "time": f"{DAY}.1Z"}),
    "journald_json": _journal,
    "loki_json": lambda line, stream: json.dumps({"labels": {"pod": stream}, "line": line}),
    "message_json": lambda line, stream: json.dumps({"host": {"name": stream}, "message": line}),
    "google_json": lambda line, stream: json.dumps({"resource": {"labels": {"pod_name": stream}}, "textPayload": line}),
    "timestamped": lambda line, stream: f"{DAY}.123456789Z {line}",
    "pod": lambda line, stream: f"[pod/{stream}/kafka] {line}",
    "syslog": lambda line, stream: f"May  1 10:00:00 {stream} kafka[4711]: {line}".replace("\t", "#011"),
    "syslog_5424": lambda line, stream: f"<165>1 {DAY}.003Z {stream} kafka 4711 - - {line}",
    "ansi": lambda line, stream: f"\x1b[32m{line}\x1b[m",
    "stern": lambda line, stream: f"{stream} kafka {line}",
}
