"""Follows the log4j logs of a folder: what they grow by is taken over, byte for byte, across rolling and restarts.

A log is known by its bytes, not by its name: its copy is the one that it begins with, and goes on where that ends. So
nothing is taken twice or left out when a log is renamed, copied and cut, or when the capturer is killed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ingest.capture.output import append_whole, end_of_last_line, open_at_line_end

_BLOCK: Final = 1 << 20
#: As much of a log is taken in a round, so that a huge one holds up nothing else.
_MOST_PER_ROUND: Final = 16 << 20
#: So many bytes at the beginning and at the end of a copy must be the log's, too.
_PRINT: Final = 4096
#: A log that is written to, and one that was rolled: server.log, server.log.1, server.log.2026-11-21-03.
_LIVE: Final = re.compile(r"^(?P<base>.+)\.log$")
_ROLLED: Final = re.compile(r"^(?P<base>.+)\.log[.\-][\w.\-]*\d$")
#: Not Kafka's own words, or clients' data.
_NOT_FOLLOWED: Final = re.compile(r"gc|^kafka-request|^kafka-authorizer", re.IGNORECASE)
_SETTLED_NS: Final = 60_000_000_000
_CLOCK_STEP_NS: Final = 2_000_000_000

_Key = tuple[int, int]


@dataclass
class _Found:
    """A log in the folder."""

    name: str
    base: str
    is_live: bool
    stat: os.stat_result

    @property
    def key(self) -> _Key:
        return self.stat.st_dev, self.stat.st_ino


@dataclass
class _Open:
    """A log that is followed: open, so that it is read to its end also when it is renamed or deleted."""

    name: str
    source: int
    target: int
    path: Path
    offset: int


@dataclass
class Followed:
    """What a round took: bytes, and for logs by name why something of them could not be had."""

    byte_count: int = 0
    lost: list[tuple[str, str]] = field(default_factory=list)


class LogFollower:
    """Follows the logs of ``folder`` into the folder ``target``. Logs that were rolled before the first capture began
    are left where they are. Not thread-safe."""

    def __init__(self, folder: str, target: Path) -> None:
        self._folder = folder
        self._target = target
        self._open: dict[_Key, _Open] = {}
        self._passed: set[_Key] = set()
        #: Rolled logs that were written to since then are new ones; None where nothing was taken before.
        self._since_ns: int | None = None
        self._is_first = True

    def follow(self, now_ns: int) -> Followed:
        """Take what was written since the last round.

        Raises ``OSError`` where the folder cannot be read or the copies not be written.
        """
        result = Followed()
        found = list(self._logs())
        for log in found:
            self._check(log, result)
        before: dict[str, Path] = {}
        if self._is_first:
            self._is_first = False
            before = {base: copies[-1] for base in {log.base for log in found} if (copies := self._copies(base))}
            self._since_ns = self._last_copied_ns()
        # Rolled ones first: one may be what the copy of a live one was made from.
        for log in sorted(found, key=lambda log: (log.is_live, log.stat.st_mtime_ns)):
            if log.key not in self._open and log.stat.st_size:
                self._consider(log, result)
        self._name_unfinished(before, result)
        present = {log.key: log for log in found}
        for key, log_open in list(self._open.items()):
            there = present.get(key)
            is_settled = there is None or (not there.is_live and now_ns - there.stat.st_mtime_ns > _SETTLED_NS)
            result.byte_count += self._take(log_open, is_settled=is_settled)
            if is_settled and os.fstat(log_open.source).st_size <= log_open.offset:
                self._close(key)
                self._passed.add(key)
        self._passed &= present.keys()
        self._since_ns = now_ns - _CLOCK_STEP_NS
        return result

    def close(self) -> None:
        for key in list(self._open):
            self._close(key)

    def _logs(self) -> Iterator[_Found]:
        for name in sorted(os.listdir(self._folder)):
            live = _LIVE.match(name)
            matched = live or _ROLLED.match(name)
            if matched is None or _NOT_FOLLOWED.search(matched.group("base")):
                continue
            try:
                stat = os.stat(os.path.join(self._folder, name))
            except FileNotFoundError:  # rolled just now: the next round sees it
                continue
            yield _Found(name, matched.group("base"), live is not None, stat)

    def _check(self, log: _Found, result: Followed) -> None:
        """Whether an open log is still the same; its inode may have become another's, or it was cut in place."""
        opened = self._open.get(log.key)
        if opened is None:
            return
        opened.name = log.name
        size, first = os.fstat(opened.source).st_size, min(opened.offset, 256)
        if size < opened.offset or os.pread(opened.source, first, 0) != os.pread(opened.target, first, 0):
            self._close(log.key)
            result.lost.append((log.name, "it was cut in place: what it got last may be in no log any more"))

    def _consider(self, log: _Found, result: Followed) -> None:
        """Begin to follow the log, if it is live, new, or one that an earlier capturer did not read to its end."""
        if not log.is_live and log.key in self._passed:
            return
        try:
            source = os.open(os.path.join(self._folder, log.name), os.O_RDONLY)
        except FileNotFoundError:
            return
        except PermissionError:
            result.lost.append((log.name, "no permission to read it"))
            return
        begin = os.pread(source, _PRINT, 0)
        if b"\n" not in begin and len(begin) < _PRINT:
            os.close(source)  # not one whole line yet: no telling whether it is a new one
            return
        is_new = log.is_live or (self._since_ns is not None and log.stat.st_mtime_ns >= self._since_ns)
        path = self._copy_of(source, log.base) or (self._free(log.base) if is_new else None)
        if path is None:
            os.close(source)
            self._passed.add(log.key)
            return
        target = open_at_line_end(path)
        stat = os.fstat(source)
        self._open[stat.st_dev, stat.st_ino] = _Open(log.name, source, target, path, os.fstat(target).st_size)

    def _copy_of(self, source: int, base: str) -> Path | None:
        """The copy that this log goes on from."""
        for path in self._copies(base):
            file = os.open(path, os.O_RDONLY)
            try:
                size = end_of_last_line(file, os.fstat(file).st_size)
                at_end = max(0, size - _PRINT)
                if size and all(
                    os.pread(file, min(_PRINT, size), at) == os.pread(source, min(_PRINT, size), at)
                    for at in (0, at_end)
                ):
                    return path
            finally:
                os.close(file)
        return None

    def _copies(self, base: str) -> list[Path]:
        """Copies that no open log goes on with, the oldest first."""
        taken = {log.path for log in self._open.values()}
        named = re.compile(rf"{re.escape(base)}(?:\.(\d+))?\.log")
        matched = ((named.fullmatch(path.name), path) for path in self._target.glob("*.log") if path not in taken)
        return [path for _, path in sorted((int(match.group(1) or 1), path) for match, path in matched if match)]

    def _free(self, base: str) -> Path:
        """A name for a new copy; not as that of a rolled log, which nothing would be added to."""
        path, number = self._target / f"{base}.log", 1
        while path.exists():
            number += 1
            path = self._target / f"{base}.{number}.log"
        return path

    def _name_unfinished(self, before: dict[str, Path], result: Followed) -> None:
        """Say which copies of an earlier capturer, the newest of each log, no log goes on with."""
        continued = {log.path for log in self._open.values()}
        for base, path in before.items():
            if path not in continued:
                reason = f"no log here goes on where {path.name} ends: what followed it was rolled away"
                result.lost.append((f"{base}.log", reason))

    def _take(self, log: _Open, *, is_settled: bool) -> int:
        """Append the whole lines that are new; of a log that nobody writes to any more, all that there is."""
        begin = log.offset
        stop = min(os.fstat(log.source).st_size, begin + _MOST_PER_ROUND)
        while log.offset < stop:
            block = os.pread(log.source, min(_BLOCK, stop - log.offset), log.offset)
            is_long = len(block) == _BLOCK and b"\n" not in block
            end = len(block) if is_settled or is_long else block.rfind(b"\n") + 1
            if not end:
                break
            append_whole(log.target, block[:end])
            log.offset += end
        if log.offset > begin:
            # As the log has it: from the newest a later capturer knows which logs came after.
            modified_ns = os.fstat(log.source).st_mtime_ns
            os.utime(log.target, ns=(modified_ns, modified_ns))
        return log.offset - begin

    def _last_copied_ns(self) -> int | None:
        """When the newest of the logs that an earlier capturer took was written to; None where there is none."""
        return max((path.stat().st_mtime_ns for path in self._target.glob("*.log")), default=None)

    def _close(self, key: _Key) -> None:
        log = self._open.pop(key)
        os.close(log.source)
        os.close(log.target)
