"""Waiting for a condition, with a deadline and a sentence: nothing here sleeps in the hope that all is ready."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

Value = TypeVar("Value")
#: Long enough for a machine several times slower than the one this was written on, loaded besides.
PATIENCE_S: Final = 120.0
_PAUSE_S: Final = 0.05


class NeverHappened(Exception):
    """A deadline has passed; the message says what was waited for, and what was seen last."""


def wait_for(what: str, look: Callable[[], Value], within_s: float = PATIENCE_S, pause_s: float = _PAUSE_S) -> Value:
    """The first true value of ``look``, called again and again.

    :raises NeverHappened: when ``within_s`` seconds have passed.
    """
    deadline = time.monotonic() + within_s
    while True:
        value = look()
        if value:
            return value
        if time.monotonic() > deadline:
            raise NeverHappened(f"{what}: not within {within_s:.0f} s")
        time.sleep(pause_s)
