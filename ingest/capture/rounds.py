"""The rounds of a capture, for the threads that take part in each."""

from __future__ import annotations

import threading


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
