"""Spans in which a broker wrote a log and no file of it was given: proven by names, or strongly suggested.

A silent log is no gap. An hour in which nothing was logged leaves no file (:mod:`reconstruct.time.log_names`), and a
``state-change.log`` or ``controller.log`` may well be silent for days while its broker lives. What is a gap:

* ``unread_file``: the file is there and could not be read. Proven.
* ``missing_number``: files rolled by size, and a number between two others is not there. Proven.
* ``no_later_file``: a file rolled by the hour is there, but not the one with the event that made it roll. Proven that
  there are later lines; not, how far they go.
* ``missing_period``: an hour of a ``server.log`` that wrote much in each of the two hours before and after it, while
  another log of the same broker was begun or ended in that hour. Strongly suggested.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from ingest.lake.tables.bronze import SourceKind
from reconstruct.time.log_names import LATE_US, LogName, local_hour, log_name, period_span, span_of_lines

UNREAD_FILE, MISSING_NUMBER = "unread_file", "missing_number"
NO_LATER_FILE, MISSING_PERIOD = "no_later_file", "missing_period"
#: A ``server.log`` that wrote so many records in each hour around is not silent for an hour.
HABIT_RECORDS: Final = 60
_HOUR: Final = timedelta(hours=1)
_HABITUAL: Final = SourceKind.SERVER_LOG


@dataclass(frozen=True, slots=True)
class LogFile:
    """A row of ``bronze.ingested_files``; instants in µs, None where none is known (what could not be read).

    ``jumps_back`` and ``far_jumps_back`` are as :func:`reconstruct.time.line_order.is_in_order` takes them;
    ``set_back`` are the first and the last of the far ones, each as the time jumped to and the time jumped from, µs.
    """

    source_kind: str
    source_file: str
    status: str = "ingested"
    first: int | None = None
    last: int | None = None
    records: int = 0
    level_floor: str | None = None
    time_zone: str | None = None
    jumps_back: int = 0
    far_jumps_back: int = 0
    set_back: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """[start, end], µs, of a log; ``source_file`` is a file next to it: the one before, where there is one."""

    source_kind: str
    source_file: str
    start: int
    end: int
    reason: str


@dataclass(frozen=True, slots=True)
class _Read:
    """A file that was read, with its name and span."""

    file: LogFile
    name: LogName
    first: int
    last: int


def gaps(files: Sequence[LogFile], kinds: Sequence[str]) -> list[Gap]:
    """The gaps of one broker's logs, in order. ``files`` are all that is known of the broker's, in any order;
    ``kinds`` are those of logs."""
    named = [(file, log_name(file.source_file)) for file in sorted(files, key=lambda f: f.source_file)]
    read = [
        _Read(file, name, file.first, file.last)
        for file, name in named
        if file.source_kind in kinds and file.first is not None and file.last is not None
    ]
    read.sort(key=lambda one: (one.first, one.last, one.file.source_file))
    found: list[Gap] = []
    for base in sorted({one.name.base for one in read}):
        own = [(file, name) for file, name in named if name.base == base]
        mine = [one for one in read if one.name.base == base]
        others = [one for one in read if one.name.base != base]
        found += _by_number(own, mine)
        found += _by_period(own, mine, others)
    open_gaps = {gap for gap in found if not _is_covered(gap, read)}
    return sorted(open_gaps, key=lambda gap: (gap.source_kind, gap.start, gap.end, gap.source_file))


def _is_covered(gap: Gap, read: Sequence[_Read]) -> bool:
    """Whether another file of the same kind, whatever its name, has lines in the gap."""
    return any(
        one.file.source_kind == gap.source_kind and one.first < gap.end - LATE_US and one.last > gap.start + LATE_US
        for one in read
    )


def _is_unread(file: LogFile) -> bool:
    return file.status in ("rejected", "not_read_yet")


def _by_number(own: Sequence[tuple[LogFile, LogName]], mine: Sequence[_Read]) -> Iterator[Gap]:
    for directory in sorted({name.directory for _, name in own}):
        there = [(name.number, file) for file, name in own if name.directory == directory and name.number is not None]
        counted = Counter(number for number, _ in there)
        if max(counted, default=0) == 0 or max(counted.values()) > 1:
            continue  # not rolled by number; or files of several copies, whose numbers say nothing of one another
        chain = sorted(
            (one for one in mine if one.name.directory == directory and one.name.number is not None),
            key=lambda one: one.name.number or 0,
        )
        pairs = list(pairwise(chain))
        if any(older.last > younger.first for younger, older in pairs):
            continue  # numbered by another rule
        unread = {number for number, file in there if _is_unread(file)}
        for younger, older in pairs:
            between = range((younger.name.number or 0) + 1, older.name.number or 0)
            is_missing = any(number not in counted for number in between)
            if older.last < younger.first and (is_missing or not unread.isdisjoint(between)):
                reason = MISSING_NUMBER if is_missing else UNREAD_FILE
                yield Gap(older.file.source_kind, older.file.source_file, older.last, younger.first, reason)


def _by_period(own: Sequence[tuple[LogFile, LogName]], mine: Sequence[_Read], others: Sequence[_Read]) -> Iterator[Gap]:
    rolled: dict[tuple[datetime, timedelta], _Read] = {}
    spans: dict[tuple[datetime, timedelta], tuple[int, int]] = {}
    for one in mine:
        if one.name.period is None or one.file.time_zone is None:
            continue
        span = span_of_lines(one.name, one.first, one.last, one.file.time_zone)
        if span is None:
            return
        rolled[one.name.period, one.name.length] = one
        spans[one.name.period, one.name.length] = span
    if not rolled:
        return
    newest = max(spans, key=lambda key: spans[key][1])
    zone = rolled[newest].file.time_zone or ""
    yield from _unread_periods(own, rolled, zone)
    if newest[1] == _HOUR:
        yield from _no_later(own, rolled[newest], spans[newest][1], [*mine, *others])
    yield from _missing_hours(own, rolled, others, zone)


def _unread_periods(
    own: Sequence[tuple[LogFile, LogName]], rolled: dict[tuple[datetime, timedelta], _Read], zone: str
) -> Iterator[Gap]:
    first = min(rolled.values(), key=lambda one: one.first)
    for file, name in own:
        if name.period is None or not _is_unread(file) or (name.period, name.length) in rolled:
            continue
        span = period_span(name.period, name.length, zone)
        if span is not None:
            yield Gap(first.file.source_kind, file.source_file, *span, UNREAD_FILE)


def _no_later(own: Sequence[tuple[LogFile, LogName]], newest: _Read, end: int, read: Sequence[_Read]) -> Iterator[Gap]:
    period = newest.name.period
    is_there = any(name.period is None or (period is not None and name.period > period) for _, name in own)
    lived = max(one.last for one in read)
    kind = newest.file.source_kind
    if is_there or lived <= end + LATE_US:
        return
    if not any(one.file.source_kind == kind and one.last > end + LATE_US for one in read):
        yield Gap(kind, newest.file.source_file, end, lived, NO_LATER_FILE)


def _missing_hours(
    own: Sequence[tuple[LogFile, LogName]],
    rolled: dict[tuple[datetime, timedelta], _Read],
    others: Sequence[_Read],
    zone: str,
) -> Iterator[Gap]:
    hours = {begin: one for (begin, length), one in rolled.items() if length == _HOUR}
    if not hours or any(one.file.source_kind != _HABITUAL for one in hours.values()):
        return
    named = {name.period for _, name in own if name.period is not None}
    spoken = {
        local_hour(instant, zone)
        for one in others
        if one.file.source_kind != _HABITUAL
        for instant in (one.first, one.last)
    }
    missing = sorted(hour for hour in spoken if hour is not None and hour not in named)
    for run in _runs(missing):
        around = (run[0] - 2 * _HOUR, run[0] - _HOUR, run[-1] + _HOUR, run[-1] + 2 * _HOUR)
        if not all(hour in hours and hours[hour].file.records >= HABIT_RECORDS for hour in around):
            continue
        begin, end = period_span(run[0], _HOUR, zone), period_span(run[-1], _HOUR, zone)
        if begin is not None and end is not None:
            yield Gap(_HABITUAL, hours[around[1]].file.source_file, begin[0], end[1], MISSING_PERIOD)


def _runs(hours: Sequence[datetime]) -> list[list[datetime]]:
    runs: list[list[datetime]] = []
    for hour in hours:
        if runs and hour - runs[-1][-1] == _HOUR:
            runs[-1].append(hour)
        else:
            runs.append([hour])
    return runs
