"""What the name of a rolled log file says: the period its lines are of, or how many files are younger.

Kafka ships log4j 1.x's ``DailyRollingFileAppender`` with ``DatePattern='.'yyyy-MM-dd-HH`` in every version from 0.8 to
3.9 (``config/log4j.properties``). It looks at the clock before it writes an event: where the hour has changed since the
last roll, ``server.log`` is renamed after the hour that its lines are of, and the event goes into a new ``server.log``.
So ``server.log.2026-11-21-10`` holds lines of ten o'clock only, local time; an hour without events leaves no file; and
there is a later event, in a later file, whenever there is a rolled one.

Installations that roll by size use ``RollingFileAppender``: ``server.log`` becomes ``server.log.1``, what was ``.1``
becomes ``.2``, and the one beyond ``MaxBackupIndex`` goes. It skips no number, and it may leave ``server.log`` empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

from ingest.readers.logs.times import common_year, zone
from reconstruct.time.instants import to_datetime, to_micros

_PACKED: Final = re.compile(r"\.(gz|gzip|zst|xz|bz2|snappy|zip)$", re.IGNORECASE)
_PERIOD: Final = re.compile(r"\.(\d{4}-\d\d-\d\d(?:-\d\d)?)$")
_NUMBER: Final = re.compile(r"\.(\d{1,4})$")
_HOUR: Final = timedelta(hours=1)
#: An event's time is taken before the appender looks at its clock: so late, µs, a line may be in the next file.
LATE_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class LogName:
    """``directory`` (the archive included), ``base`` as the process names its log, and what the roll added to it.

    ``period`` is the local begin of the period that the lines are of, ``length`` how long it lasts on the clock.
    ``number`` counts back from the log itself, which is 0; None where the name bears a period.
    """

    directory: str
    base: str
    period: datetime | None = None
    length: timedelta = _HOUR
    number: int | None = None


def log_name(source_file: str) -> LogName:
    """The name taken apart. A date that is none is taken as part of the base."""
    path = source_file.replace("!", "/")
    directory, _, name = path.rpartition("/")
    name = _PACKED.sub("", name)
    if found := _PERIOD.search(name):
        text = common_year(found[1][:4]) + found[1][4:]
        is_hour = len(text) > 10
        try:
            period = datetime.strptime(text, "%Y-%m-%d-%H" if is_hour else "%Y-%m-%d")
        except ValueError:
            return LogName(directory, name, number=0)
        return LogName(directory, name[: found.start()], period, _HOUR if is_hour else timedelta(days=1))
    if found := _NUMBER.search(name):
        return LogName(directory, name[: found.start()], number=int(found[1]))
    return LogName(directory, name, number=0)


def period_span(begin: datetime, length: timedelta, zone_name: str) -> tuple[int, int] | None:
    """First and last instant, µs, of a local period; None where the zone is not known or the clock skips the period.

    Of an hour that the clock repeats, both are meant: the appender names both alike.
    """
    try:
        local = zone(zone_name)
        start, end = (to_micros(edge.replace(tzinfo=local).astimezone(UTC)) for edge in (begin, begin + length))
    except (ValueError, OverflowError):
        return None
    return (start, end) if start < end else None


def span_of_lines(name: LogName, first: int, last: int, zone_name: str) -> tuple[int, int] | None:
    """The :func:`period_span` of a rolled file's name; None, too, where its lines, µs, are not of that period: it is
    named by another rule, as by when it was moved."""
    span = None if name.period is None else period_span(name.period, name.length, zone_name)
    return None if span is None or first < span[0] - LATE_US or last > span[1] + LATE_US else span


def local_hour(instant: int, zone_name: str) -> datetime | None:
    """The hour on the zone's clock that an instant (µs) falls into; None where the zone is not known."""
    try:
        local = to_datetime(instant).astimezone(zone(zone_name))
    except (ValueError, OverflowError):
        return None
    return local.replace(minute=0, second=0, microsecond=0, tzinfo=None, fold=0)


@dataclass(frozen=True, slots=True)
class RolledFile:
    """A file of a log with what it is called, its first and last instant (µs), and the zone of its times."""

    file_id: str
    source_file: str
    first: int
    last: int
    time_zone: str | None


def runs_of_files(files: Iterable[RolledFile]) -> list[list[str]]:
    """Files of one broker's log, by id, between which there is no other: of periods that follow each other by their
    names, and last the log itself, where it begins in the period after. Those of one period are copies.

    A log of which any file is named by another rule has none.
    """
    periods: dict[tuple[str, timedelta], dict[datetime, list[str]]] = {}
    unrolled: list[tuple[str, RolledFile]] = []
    otherwise: set[str] = set()
    for file in files:
        name = log_name(file.source_file)
        if name.number == 0:
            unrolled.append((name.base, file))
        elif name.period is not None and file.time_zone is not None:
            if span_of_lines(name, file.first, file.last, file.time_zone) is None:
                otherwise.add(name.base)
            periods.setdefault((name.base, name.length), {}).setdefault(name.period, []).append(file.file_id)
    for base, file in unrolled:
        hour = local_hour(file.first, file.time_zone or "")
        if hour is not None:
            periods.get((base, _HOUR), {}).setdefault(hour, []).append(file.file_id)
    runs: list[list[str]] = []
    for (base, length), named in sorted(periods.items()):
        if base in otherwise:
            continue
        begins = sorted(named)
        runs.append(list(named[begins[0]]))
        for before, begin in pairwise(begins):
            if begin - before != length:
                runs.append([])
            runs[-1] += named[begin]
    return [run for run in runs if len(run) > 1]
