"""Times as logs print them, to instants."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_OFFSET: Final = re.compile(r"^([+-])(\d\d):?(\d\d)$")
_TIME: Final = re.compile(r"^(.{19})(?:[.,](\d{1,9}))? ?(Z|UTC|GMT|[+-]\d\d:?\d\d)?$")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_PLAIN_LENGTH: Final = len("2014-03-11 10:21:07,123")


def zone(name: str) -> tzinfo:
    """The zone of a name (``Europe/Berlin``) or an offset (``+02:00``); ``ValueError`` where it is neither."""
    if name in ("UTC", "GMT", "Z"):
        return UTC
    offset = _OFFSET.match(name)
    if offset:
        delta = timedelta(hours=int(offset.group(2)), minutes=int(offset.group(3)))
        return timezone(-delta if offset.group(1) == "-" else delta)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError) as error:
        raise ValueError(
            f"{name} is no time zone: give a name such as Europe/Berlin or an offset such as +02:00"
        ) from error


class LogClock:
    """Reads the times of one log: those that print a zone in theirs, the others in the zone given."""

    def __init__(self, time_zone: str) -> None:
        self._zone = zone(time_zone)
        self._local: dict[str, int] = {}

    def micros(self, text: str) -> int | None:
        """Microseconds since 1970 in UTC; NULL where no calendar has that time."""
        if len(text) == _PLAIN_LENGTH and text[19] in ",.":
            second = self._local.get(text[:19])
            if second is not None:
                return second + int(text[20:]) * 1000
        parts = _TIME.match(text)
        if parts is None:
            return None
        second_text, fraction, suffix = parts.groups()
        try:
            if suffix is None:
                second = self._local.get(second_text)
                if second is None:
                    second = _micros(datetime.fromisoformat(second_text).replace(tzinfo=self._zone))
                    if len(self._local) > 100_000:
                        self._local.clear()
                    self._local[second_text] = second
            else:
                second = _micros(datetime.fromisoformat(second_text).replace(tzinfo=zone(suffix)))
        except (ValueError, OverflowError):
            return None
        return second + int((fraction or "").ljust(6, "0")[:6])


def prints_zone(text: str) -> bool:
    """Whether a printed time carries its own zone."""
    parts = _TIME.match(text)
    return parts is not None and parts.group(3) is not None


def _micros(instant: datetime) -> int:
    return (instant - _EPOCH) // _MICROSECOND
