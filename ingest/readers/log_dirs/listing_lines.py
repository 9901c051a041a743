"""The dialects of a directory listing: what one line says, by the command that printed it.

``ls -l`` in its time styles, with or without owner and group, ``find -ls``, ``find -printf`` of sizes, times and
paths in any order, ``du -a``, and plain names. All work on one line of text without its line end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ingest.readers.log_dirs import names
from ingest.readers.logs.times import LogClock

#: Most of a listing's first lines must read as one dialect; the rest may be what a shell put around it.
_LEAST_SHARE: Final = 0.8
_LAST_INSTANT: Final = 253_402_300_799_000_000
_INT64_END: Final = 1 << 63

_MODE: Final = r"(?P<mode>[-bcdlpsCDP])[-rwxsStTlL]{9}[.+@]?"
_TIME: Final = (
    r"(?P<full>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:[+-]\d\d:?\d\d|Z|UTC))?)"
    r"|(?P<minute>\d{4}-\d\d-\d\d \d\d:\d\d)"
    r"|(?P<epoch>\d{9,11}(?:\.\d+)?)"
    r"|\d\d-\d\d \d\d:\d\d|\d{4}-\d\d-\d\d"
    r"|(?:\S+\s+){1,2}(?:\d{1,2}:\d\d|\d{4})"
)
_LS: Final = re.compile(
    rf"^\s*(?:\d+\s+){{0,2}}{_MODE}\s+\d+\s+(?:\S+\s+){{0,2}}"
    rf"(?P<size>\d+(?:[.,]\d+)?[KMGTP]?)\s+(?:{_TIME})\s+(?P<path>\S.*)$"
)
_HEADER: Final = re.compile(r"^(?P<path>\S.*):$")
_TOTAL: Final = re.compile(r"^total \S+$")
_NUMBER: Final = re.compile(r"^\d{1,30}(?:\.\d+)?$")
_DU: Final = re.compile(r"^(?P<size>\d+)(?:\t| +)(?P<path>\S.*)$")
_PATH: Final = re.compile(r"^(?:\.{0,2}/|[A-Za-z0-9_.])[^\s:\[\]{}()=,;]*$")
_FILE_IN_PATH: Final = re.compile(
    r"[0-9]{20}\.(?:log|index|timeindex|txnindex|snapshot)|partition\.metadata|leader-epoch-checkpoint"
)


class Listed(NamedTuple):
    """What a line says. ``path`` is as printed; ``modified_at`` in microseconds, UTC.

    ``is_header`` marks a line that names the directory of the lines below it, ``is_file`` one of a file (where the
    dialect does not say, of anything).
    """

    path: str
    size_bytes: int | None = None
    modified_at: int | None = None
    is_header: bool = False
    is_file: bool = True


#: A line of the dialect that names nothing, such as ``total 48``.
NOTHING: Final = Listed("", is_file=False)


def recognise_listing(lines: Sequence[bytes]) -> str | None:
    """The dialect of a listing from its first lines: ``ls``, ``find_printf``, ``du_bytes``, ``du_blocks``, ``names``;
    NULL where it is no listing of files of partition directories."""
    texts = [line.decode("utf-8", "replace").rstrip("\r\n") for line in lines]
    texts = [text for text in texts if text.strip()]
    if not any(names_partition_file(text) for text in texts):
        return None
    clock = LogClock("UTC")
    for dialect in ("ls", "find_printf", "du_bytes", "names"):
        read = [listed for text in texts if (listed := parse(text, dialect, clock)) is not None]
        if len(read) < _LEAST_SHARE * len(texts):
            continue
        files = [listed for listed in read if listed.is_file and names.partition_file(_last(listed.path))]
        if not files:
            continue
        if dialect == "du_bytes" and all((listed.size_bytes or 0) % 4 == 0 for listed in read):
            return "du_blocks"
        return dialect
    return None


def parse(text: str, dialect: str, clock: LogClock) -> Listed | None:
    """What a line says in a dialect; NULL where it is no line of it."""
    if dialect == "ls":
        return _header(text) or _ls(text, clock)
    if dialect == "find_printf":
        return _find_printf(text)
    if dialect in ("du_bytes", "du_blocks"):
        found = _DU.match(text)
        if found is None or not _PATH.match(found.group("path")):
            return None
        size = _size(found.group("size")) if dialect == "du_bytes" else None
        return Listed(found.group("path"), size)
    return _header(text) or (Listed(text) if _PATH.match(text) else None)


def names_partition_file(text: str) -> bool:
    """Whether a file of a partition's directory seems to be named anywhere in a line."""
    return _FILE_IN_PATH.search(text) is not None


def _last(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _header(text: str) -> Listed | None:
    if _TOTAL.match(text):
        return NOTHING
    found = _HEADER.match(text)
    return Listed(found.group("path").strip("'\""), is_header=True, is_file=False) if found else None


def _ls(text: str, clock: LogClock) -> Listed | None:
    found = _LS.match(text)
    if found is None:
        return None
    modified_at = None
    if found.group("full"):
        modified_at = clock.micros(found.group("full").replace("T", " "))
    elif found.group("minute"):
        modified_at = clock.micros(found.group("minute") + ":00")
    elif found.group("epoch"):
        modified_at = _epoch(found.group("epoch"))
    path = found.group("path").strip("'\"")
    return Listed(path, _size(found.group("size")), modified_at, is_file=found.group("mode") == "-")


def _find_printf(text: str) -> Listed | None:
    """Numbers and one path: the number with a fraction is the time (``%T@``), the one without the size (``%s``)."""
    parts = text.split()
    size = modified_at = None
    path = None
    for part in parts:
        if not _NUMBER.match(part):
            if path is not None:
                return None
            path = part
        elif "." in part:
            if modified_at is not None:
                return None
            modified_at = _epoch(part)
        elif size is None:
            size = part
        else:
            return None
    if path is None or modified_at is None:
        return None
    return Listed(path, None if size is None else _size(size), modified_at)


def _size(text: str) -> int | None:
    """Bytes; NULL where they were rounded (``ls -h``)."""
    number = int(text) if text.isdigit() and len(text) <= 19 else None
    return number if number is not None and number < _INT64_END else None


def _epoch(text: str) -> int | None:
    """Seconds since 1970, with or without a fraction, to microseconds; NULL beyond the year 9999."""
    seconds, _, fraction = text.partition(".")
    if len(seconds) > 12:
        return None
    micros = int(seconds) * 1_000_000 + int(fraction[:6].ljust(6, "0"))
    return micros if micros <= _LAST_INSTANT else None
