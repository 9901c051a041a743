"""Instants of a capture, its rounds for the threads that take part in each, and the pace of what is asked."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable


def now_ms() -> int:
    """This machine's clock, epoch milliseconds."""
    return time.time_ns() // 1_000_000


def instant_ms() -> float:
    """The same to a tenth of a millisecond, as probes have it."""
    return time.time_ns() // 100_000 / 10


class RoundClock:
    """Gives each round its instant, epoch ms: later than every one before it, also where the clock is set back."""

    def __init__(self, last_ms: int, now: Callable[[], int] = now_ms) -> None:
        self._last = last_ms
        self._now = now

    def next(self) -> int:
        self._last = max(self._now(), self._last + 1)
        return self._last

    def within(self) -> int:
        """An instant within the round: now, unless the clock was set back since it began."""
        self._last = max(self._now(), self._last)
        return self._last


class Pace:
    """At most ``per_second`` permits, of which a second's may be saved up."""

    def __init__(self, per_second: float, now: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._now = now
        self._saved = per_second
        self._at = now()

    def delay(self, permits: int = 1) -> float:
        """Take permits, and give how many seconds to wait before they may be used."""
        now = self._now()
        self._saved = min(self._per_second, self._saved + (now - self._at) * self._per_second)
        self._at = now
        self._saved -= permits
        return max(0.0, -self._saved / self._per_second)


class Backoff:
    """How long to wait before the next attempt: doubled with each failure up to ``longest_s``, with jitter."""

    def __init__(self, shortest_s: float = 0.2, longest_s: float = 2.0) -> None:
        self._shortest = shortest_s
        self._longest = longest_s
        self._failures = 0

    def failed(self) -> float:
        # the exponent is bounded: an outage of days must not overflow
        wait = min(self._longest, self._shortest * 2.0 ** min(self._failures, 30))
        self._failures += 1
        return wait * random.uniform(0.8, 1.2)

    def succeeded(self) -> None:
        self._failures = 0


class Rounds:
    """The number of the round under way, from 1; 0 before the first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._number = 0
        self._is_over = False

    @property
    def is_over(self) -> bool:
        return self._is_over

    def begin(self) -> int:
        """Begin the next round; gives its number."""
        with self._changed:
            self._number += 1
            self._changed.notify_all()
            return self._number

    def end(self) -> None:
        """There are no more rounds: waiting threads return."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def after(self, number: int) -> int:
        """Wait for a round after that one, and give its number; 0 when there are no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or self._number > number)
            return self._number if self._number > number else 0

    def wait(self, seconds: float) -> bool:
        """Wait so long; True where rounds ended meanwhile."""
        with self._changed:
            return self._changed.wait_for(lambda: self._is_over, timeout=seconds)
