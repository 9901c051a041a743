"""Clocks that may have been set forward with nothing after it but events that follow others: they look right, and late.

A clock that is ahead shows what follows another clock's event as late by as much, always. So the last event that came
at once shows up to when the clock was right; and where those after it are all late, and two of them at different times
by the same, the clock may have been set; likewise where the last ones are late by hours or quarters of one, as where
daylight saving time begins. What is late for another reason, as states that are shown again at a start, is late by
different times, or is shown at one instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

#: An effect follows its cause at once, at the latest: µs.
AT_ONCE_US: Final = 1_000_000
#: Time zones, and daylight saving time, are multiples of this: µs.
ZONE_STEP_US: Final = 15 * 60_000_000
#: A clock beside a zone is at most this wrong, and what is shown by it at most as late: µs.
ZONE_SKEW_US: Final = 90_000_000
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
    before = max((effect.at_us for effect in late if effect.delay_us < ZONE_STEP_US), default=at_once)
    by_hours = [effect for effect in late if effect.at_us > before]
    is_zone = min((effect.delay_us for effect in by_hours), default=-1) % ZONE_STEP_US <= ZONE_SKEW_US
    return _are_late_by_the_same(late, _SAME_US) or (is_zone and _are_late_by_the_same(by_hours, ZONE_SKEW_US))


def _are_late_by_the_same(late: Sequence[Effect], tolerance_us: int) -> bool:
    """Whether the least late are so at different times."""
    least = min((effect.delay_us for effect in late), default=0)
    same = [effect.at_us for effect in late if effect.delay_us <= least + tolerance_us]
    return any(after - before > _APART_US for before, after in pairwise(same))
