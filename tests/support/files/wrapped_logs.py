"""A log as a container runtime or another layout writes it: the same records, wrapped."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

#: A record's first line: time, level, message, logger.
RECORD: Final = re.compile(rb"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] ([A-Z]+) (.*?)(?: \(([^()\s]+)\))?$")


def compose(logs: Mapping[str, bytes]) -> bytes:
    """The logs of several processes as ``docker compose logs`` prints them: line by line, mixed by their times."""
    mixed: list[tuple[int, str, int, bytes]] = []
    for name, log in logs.items():
        time_ms = last = 0
        for number, text in enumerate(log.splitlines()):
            found = RECORD.match(text)
            # what follows a record's first line comes a little later, so that other processes come in between
            time_ms = max(last, epoch_ms(found.group(1))) if found else last + 2
            last = time_ms
            mixed.append((time_ms, name, number, text))
    return b"".join(f"{name}  | ".encode() + text + b"\n" for _, name, _, text in sorted(mixed))


def kubernetes(log: bytes, piece_bytes: int = 120) -> bytes:
    """A log as the container runtimes of Kubernetes write it: long lines in pieces, the last of them marked ``F``."""
    rows = []
    for text in log.splitlines():
        pieces = [text[at : at + piece_bytes] for at in range(0, len(text), piece_bytes)] or [b""]
        marks = [b"P"] * (len(pieces) - 1) + [b"F"]
        rows += [b"2026-11-21T03:34:00.123456789Z stdout %s %s\n" % pair for pair in zip(marks, pieces, strict=True)]
    return b"".join(rows)


def docker_json(log: bytes, piece_bytes: int = 300) -> bytes:
    """A log as Docker's json-file driver writes it: long lines in pieces, the last of them with the line feed."""
    rows = []
    for text in log.decode().splitlines(keepends=True):
        for at in range(0, len(text), piece_bytes):
            entry = {"log": text[at : at + piece_bytes], "stream": "stdout", "time": "2026-11-21T03:34:00.1Z"}
            rows.append(json.dumps(entry) + "\n")
    return "".join(rows).encode()


def log4j2_json(log: bytes) -> bytes:
    """A log of one-line records as Log4j 2's JsonLayout writes it; lines that follow are the record's stack trace."""
    entries: list[dict[str, object]] = []
    for text in log.splitlines():
        found = RECORD.match(text)
        if found is None:
            entries[-1]["thrown"] = {"name": "E", "extendedStackTrace": text.decode()}
            continue
        seconds, milliseconds = divmod(epoch_ms(found.group(1)), 1000)
        entries.append(
            {
                "instant": {"epochSecond": seconds, "nanoOfSecond": milliseconds * 1_000_000},
                "thread": "main",
                "level": found.group(2).decode(),
                "loggerName": found.group(4).decode(),
                "message": found.group(3).decode(),
            }
        )
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def epoch_ms(text: bytes) -> int:
    """The instant that a record prints, in UTC."""
    time = datetime.strptime(text.decode(), "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
    return round(time.timestamp() * 1000)
