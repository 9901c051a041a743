"""Whether the order of a file's lines is the order of what happened.

A broker writes its lines in the order of their times, but for threads that overtake each other by milliseconds. Where
corrected times jump back within one file, the clock was set back, which happens once or twice; or a tool put the file
together: the pieces of a rolled log from the newest on, lines sorted by something else, or shuffled. Then what stands
before a line need not have come before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

#: By less than this, µs, threads of one broker overtake each other.
JUMP_BACK_US: Final = 1_000_000
#: A stalled disk lets threads overtake each other by seconds, no thread by more than this, µs.
FAR_BACK_US: Final = 60_000_000
#: So often the clock of one file may have been set back with nothing to prove it: daylight saving, a step of NTP.
_CLOCK_JUMPS: Final = 2
#: Of so many lines one may have been overtaken while its disk stalled.
_LINES_PER_JUMP: Final = 200


def is_in_order(lines: int, jumps_back: int, far_jumps_back: int) -> bool:
    """Whether a file's times allow that its lines stand in the order in which they were written.

    ``jumps_back`` counts the lines that are more than :data:`JUMP_BACK_US` earlier than the line before them,
    ``far_jumps_back`` those of them that are more than :data:`FAR_BACK_US` earlier.
    """
    are_overtaken = jumps_back <= _CLOCK_JUMPS or jumps_back * _LINES_PER_JUMP <= lines
    return are_overtaken and far_jumps_back <= _CLOCK_JUMPS


def most_back(instants: Iterable[int]) -> int:
    """By how much, µs, an instant is earlier than the one before it, in the order of their lines; at the most."""
    return max((earlier - later for earlier, later in pairwise(instants)), default=0)


def jumps_back(instants: Iterable[int], by: int = JUMP_BACK_US) -> int:
    """How many instants, µs, in the order of their lines, are more than ``by`` earlier than the one before."""
    return sum(later < earlier - by for earlier, later in pairwise(instants))
