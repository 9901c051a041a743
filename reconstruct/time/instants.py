"""Instants as the fold counts them (microseconds since the epoch, UTC) and as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


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
