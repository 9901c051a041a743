"""Instants as the fold counts them (microseconds since the epoch, UTC) and as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
HOUR_US: Final = 3_600_000_000
#: The instant of anything that has one, as a key to bisect by.
at_of: Final = attrgetter("at")


def utc(micros: int) -> str:
    """``2026-11-21 03:25:47.224 UTC``."""
    return to_datetime(micros).strftime("%Y-%m-%d %H:%M:%S.") + f"{micros // 1000 % 1000:03d} UTC"


def to_datetime(micros: int) -> datetime:
    """The instant as an aware datetime."""
    return _EPOCH + timedelta(microseconds=micros)


def to_micros(instant: datetime) -> int:
    """Microseconds since the epoch of an aware datetime (a naive one is taken as UTC)."""
    aware = instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def duration(value: float | None) -> str:
    """Milliseconds in words: ``310 ms``, ``6.610 s``, ``3 min 54.7 s``, ``2 h 05 min``, ``3 d 04 h``."""
    if value is None:
        return "–"
    value = round(value)
    if value < 1000:
        return f"{value} ms"
    if value < 60_000:
        return f"{value / 1000:.3f} s"
    value = round(value, -2)  # what is printed: no 60.0 s
    if value < 3_600_000:
        return f"{value // 60_000} min {value % 60_000 / 1000:.1f} s"
    if value < 86_400_000:
        return f"{value // 3_600_000} h {value // 60_000 % 60:02d} min"
    return f"{value // 86_400_000} d {value // 3_600_000 % 24:02d} h"


#: The most that :func:`may_be_later_us` says.
MAY_BE_LATER_US: Final = 999_000


def may_be_later_us(printed_at: int) -> int:
    """By how much what a line tells of may have been later than it says, by its own clock, µs: one that is of a whole
    second may have lost its milliseconds on its way."""
    return 0 if printed_at % 1_000_000 else MAY_BE_LATER_US
