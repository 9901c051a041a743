"""Times as logs print them, to instants.

Local times repeat for an hour when daylight saving ends, and nothing printed tells the two passes apart. Within one
part of a file the log's own order does: the second pass begins where the times jump back. A part that begins in the
repeated hour is in its first pass if such a jump follows before the hour is over, and else in the second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_OFFSET: Final = re.compile(r"^([+-])(\d\d)(?::?(\d\d))?$")
#: Zones' short names that Java prints for one zone only, in hours east of UTC.
_SHORT_ZONES: Final = {
    "Z": 0,
    "UTC": 0,
    "GMT": 0,
    "WET": 0,
    "WEST": 1,
    "CET": 1,
    "CEST": 2,
    "EET": 2,
    "EEST": 3,
    "MSK": 3,
    "JST": 9,
    "KST": 9,
    "EST": -5,
    "EDT": -4,
    "MST": -7,
    "MDT": -6,
    "PST": -8,
    "PDT": -7,
}
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_REST: Final = r"(?:[.,](\d{1,9}))? ?(Z|[A-Z]{3,4}|[+-]\d\d(?::?\d\d)?)?$"
_DATED: Final = re.compile(r"^(\d{4})[-/](\d\d)[-/](\d\d)[ T](\d\d:\d\d:\d\d)" + _REST)
_MONTH_NAMED: Final = re.compile(r"^(\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d:\d\d:\d\d)" + _REST)
_DAY_FIRST: Final = re.compile(r"^(\d\d)\.(\d\d)\.(\d{4}) (\d\d:\d\d:\d\d)" + _REST)
_BASIC: Final = re.compile(r"^(\d{8})T(\d\d)(\d\d)(\d\d)" + _REST)
_UNDATED: Final = re.compile(r"^(\d\d:\d\d:\d\d)" + _REST)
_COMPACT: Final = re.compile(r"^(\d{8})(\d\d)(\d\d)(\d\d)(\d{3})$")
_COUNTED: Final = re.compile(r"^(\d{10})(?:\.(\d{1,9})|(\d{3})|(\d{6})|(\d{9}))?$")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_PLAIN_LENGTH: Final = len("2014-03-11 10:21:07,123")
_FILE_DATE: Final = re.compile(r"[^/!]*?[.\-](\d{4}-\d\d-\d\d)(?:[.\-]\d\d?)*(?:\.(?:log|out|txt|gz|zst|xz|bz2|\d+))*$")
#: Lines of one log are out of order by no more than this; a jump back that is longer is one of the clock.
_DISORDER_SECONDS: Final = 60

#: By how much years of the Buddhist calendar are more, and the first that a log can be of: 1957.
BUDDHIST_YEARS: Final = 543
FIRST_BUDDHIST_YEAR: Final = "2500"
NO_CALENDAR: Final = "its time is on no calendar"
NO_DATE: Final = (
    "its time has no date, and neither has the file's name: give the log the name that its rotation gives it, as in"
    " server.log.2024-03-11"
)


def zone(name: str) -> tzinfo:
    """The zone of a name (``Europe/Berlin``) or an offset (``+02:00``); ``ValueError`` where it is neither."""
    if name in ("UTC", "GMT", "Z"):
        return UTC
    offset = _OFFSET.match(name)
    if offset:
        delta = timedelta(hours=int(offset.group(2)), minutes=int(offset.group(3) or 0))
        return timezone(-delta if offset.group(1) == "-" else delta)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError) as error:
        raise ValueError(
            f"{name} is no time zone: give a name such as Europe/Berlin or an offset such as +02:00"
        ) from error


def date_in_name(source_file: str) -> str | None:
    """The day (``2024-03-11``) that a rotated log holds, as log4j's own rotation names it; NULL where it says none.

    logrotate's ``-20240311`` is the day of the rotation, not that of the records.
    """
    found = _FILE_DATE.search(source_file)
    return found.group(1) if found else None


class LogClock:
    """Reads the times of one log in their order: those that print a zone in theirs, the others in the zone given.

    ``date`` is the day of times that have none; ``like`` is another clock of the same zone and day.
    ``first_pass_is_over`` says that the log begins in the second pass through a repeated hour.
    """

    def __init__(self, time_zone: str, date: str | None = None, like: LogClock | None = None) -> None:
        self._zone = zone(time_zone)
        self._repeats = isinstance(self._zone, ZoneInfo)
        self._date = date
        self._seconds: dict[str, int] = {} if like is None else like._seconds
        self._last: datetime | None = None
        self._fold = 0
        self.first_pass_is_over = False

    def micros(self, text: str) -> int | None:
        """Microseconds since 1970 in UTC; NULL where no calendar has that time, or where its day is not known."""
        if len(text) == _PLAIN_LENGTH:
            second = self._seconds.get(text[:19])
            if second is not None and text[19] in ",." and text[20:].isdecimal():
                return second + int(text[20:]) * 1000
        try:
            return self._slow(text)
        except (ValueError, OverflowError, KeyError):
            return None

    def problem(self, text: str) -> str | None:
        """Why a time cannot be read, in one sentence; NULL where it can."""
        if self.micros(text) is not None:
            return None
        return NO_DATE if self._date is None and _UNDATED.match(text) else NO_CALENDAR

    def is_repeated(self, text: str) -> bool:
        """Whether the time stands twice in the local calendar."""
        local = self._local(text) if self._repeats else None
        return local is not None and self._local_repeats(local)

    def settle(self, texts: Iterable[str]) -> None:
        """Tell from the times of a log that begins in a repeated hour in which pass it begins."""
        last: datetime | None = None
        for text in texts:
            local = self._local(text)
            if local is None:
                continue
            if last is not None and _jumps_back(last, local):
                return
            if not self._local_repeats(local):
                self.first_pass_is_over = last is not None
                return
            last = local

    def _local(self, text: str) -> datetime | None:
        """The time as it stands, if its zone is the one given."""
        parts = _parts(text, self._date)
        try:
            return None if parts is None or parts[2] is not None else datetime.fromisoformat(parts[0])
        except ValueError:
            return None

    def _slow(self, text: str) -> int | None:
        counted = _COUNTED.match(text)
        if counted is not None:
            fraction = next((digits for digits in counted.groups()[1:] if digits), "")
            return int(counted.group(1)) * 1_000_000 + _fraction(fraction)
        parts = _parts(text, self._date)
        if parts is None:
            return None
        second_text, fraction, suffix = parts
        key = second_text if suffix is None else second_text + suffix
        second = self._seconds.get(key)
        if second is None:
            local = datetime.fromisoformat(second_text)
            if suffix is not None:
                second = _micros(local.replace(tzinfo=_suffix_zone(suffix)))
            elif self._repeats:
                return self._in_zone(text, second_text, local) + _fraction(fraction)
            else:
                second = _micros(local.replace(tzinfo=self._zone))
            self._keep(text, key, second)
        return second + _fraction(fraction)

    def _in_zone(self, text: str, key: str, local: datetime) -> int:
        """The instant of a local time in a zone whose clocks may be set back."""
        is_repeated = self._local_repeats(local)
        if not is_repeated:
            self._fold = 0
        elif self._last is None:
            self._fold = 1 if self.first_pass_is_over else 0
        elif not self._local_repeats(self._last):
            self._fold = 1 if local < self._last else 0
        elif _jumps_back(self._last, local):
            self._fold = 1
        self._last = local
        second = _micros(local.replace(tzinfo=self._zone, fold=self._fold))
        if not is_repeated:
            self._keep(text, key, second)
        return second

    def _keep(self, text: str, key: str, second: int) -> None:
        if len(self._seconds) > 100_000:
            self._seconds.clear()
        self._seconds[key] = second
        if len(text) == _PLAIN_LENGTH and len(key) == 19:
            self._seconds[text[:19]] = second

    def _local_repeats(self, local: datetime) -> bool:
        aware = local.replace(tzinfo=self._zone)
        first, second = aware.utcoffset(), aware.replace(fold=1).utcoffset()
        return first is not None and second is not None and first > second


def common_year(year: str) -> str:
    """The year of the common calendar: Java with the locale ``th_TH`` prints those of the Buddhist one, 543 more, in
    times and in the names of rolled files. No log is of the years that both could mean."""
    return f"{int(year) - BUDDHIST_YEARS:04d}" if FIRST_BUDDHIST_YEAR <= year <= "2699" else year


def prints_zone(text: str) -> bool:
    """Whether a printed time tells the instant without a zone given."""
    parts = _parts(text, "1970-01-01")
    return _COUNTED.match(text) is not None or (parts is not None and parts[2] is not None)


def _parts(text: str, date: str | None) -> tuple[str, str, str | None] | None:
    """(``2024-03-11 10:21:07``, digits of the fraction, zone); NULL for what is no time with a day."""
    found = _DATED.match(text)
    if found is not None:
        year, month, day, clock, fraction, suffix = found.groups()
    elif (found := _MONTH_NAMED.match(text)) is not None:
        day, name, year, clock, fraction, suffix = found.groups()
        month = f"{_MONTHS.index(name) + 1:02d}" if name in _MONTHS else "00"
    elif (found := _DAY_FIRST.match(text)) is not None:
        day, month, year, clock, fraction, suffix = found.groups()
    elif (found := _BASIC.match(text)) is not None:
        digits, hour, minute, second, fraction, suffix = found.groups()
        year, month, day, clock = digits[:4], digits[4:6], digits[6:], f"{hour}:{minute}:{second}"
    elif (found := _COMPACT.match(text)) is not None:
        digits, hour, minute, second, fraction = found.groups()
        year, month, day, clock, suffix = digits[:4], digits[4:6], digits[6:], f"{hour}:{minute}:{second}", None
    elif date is not None and (found := _UNDATED.match(text)) is not None:
        clock, fraction, suffix = found.groups()
        year, month, day = date.split("-")
    else:
        return None
    return f"{common_year(year)}-{month}-{day} {clock}", fraction or "", suffix


def _jumps_back(last: datetime, local: datetime) -> bool:
    return (last - local).total_seconds() > _DISORDER_SECONDS


@lru_cache(maxsize=64)
def _suffix_zone(suffix: str) -> tzinfo:
    hours = _SHORT_ZONES.get(suffix)
    return zone(suffix) if hours is None else timezone(timedelta(hours=hours))


def _fraction(digits: str) -> int:
    return int(digits.ljust(6, "0")[:6])


def _micros(instant: datetime) -> int:
    return (instant - _EPOCH) // _MICROSECOND
