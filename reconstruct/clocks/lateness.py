"""Clocks that may have been set forward with nothing after it but events that follow others: they look right, and late.

A clock that is ahead shows what follows another clock's event as late by as much, always. So the last event that came
at once shows up to when the clock was right; and where those after it are all late, and two of them at different times
by the same, the clock may have been set. What is late for another reason, as states that are shown again at a start, is
late by different times, or is shown at one instant.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple

#: An effect follows its cause at once, at the latest: µs.
AT_ONCE_US: Final = 1_000_000
#: Two events are late by the same where the difference is no more, and are of different times where theirs is more: µs.
_SAME_US: Final = 100_000
_APART_US: Final = 200_000


class Effect(NamedTuple):
    """An event of a clock, as it printed it, and how long after its cause it came by the clocks as they are known."""

    at_us: int
    delay_us: int


def may_be_set_forward(effects: Iterable[Effect]) -> bool:
    """Whether the last events of a clock are late as if it had been set forward; ``effects`` of one or more causes.

    >>> minute = 60_000_000
    >>> may_be_set_forward([Effect(0, 900), Effect(2 * minute, minute + 400), Effect(3 * minute, minute + 700)])
    True
    >>> may_be_set_forward([Effect(0, minute), Effect(2 * minute, minute + 400), Effect(3 * minute, 900)])
    False
    """
    ordered = sorted(effects)
    at_once = max((effect.at_us for effect in ordered if effect.delay_us <= AT_ONCE_US), default=None)
    if at_once is None:
        return False
    late = [effect for effect in ordered if effect.at_us > at_once]
    least = min((effect.delay_us for effect in late), default=0)
    same = [effect.at_us for effect in late if effect.delay_us <= least + _SAME_US]
    return any(after - before > _APART_US for before, after in pairwise(same))
