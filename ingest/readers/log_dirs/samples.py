"""Places of a segment and of its indexes, sampled so that the samples are of the same places.

A place is in the sample where the hash of its number begins with so many zero bits: none while the places are few, one
more whenever they are too many. So of two samples the sparser one holds a part of what the other one does, and each
entry of an index is either held against its batch or left out of both. Small files are sampled whole.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

#: The most places of a sample.
MOST_PLACES: Final = 1024
_HASH: Final = 2_654_435_761
_BITS: Final = 32
_Numbers = np.ndarray[Any, np.dtype[Any]]


def is_sampled(number: int, bits: int) -> bool:
    """Whether the sample of one in 2 ** ``bits`` has a place.

    >>> [sum(is_sampled(number, bits) for number in range(4096)) for bits in (0, 1, 4)]
    [4096, 2048, 256]
    """
    return (number * _HASH & 0xFFFFFFFF) >> (_BITS - bits) == 0


class Sample:
    """Places in their order, each a number and what is known of it; at most :data:`MOST_PLACES`."""

    def __init__(self) -> None:
        self.bits = 0
        self.places: list[tuple[int, ...]] = []

    @property
    def one_in(self) -> int:
        return 1 << self.bits

    def add(self, *place: int) -> None:
        """One more, by the first of its numbers."""
        if is_sampled(place[0], self.bits):
            self.places.append(place)
            self._thin()

    def add_all(self, numbers: _Numbers, *known: _Numbers) -> None:
        """Many at once, by ``numbers``."""
        hashed = (numbers.astype(np.uint64) * np.uint64(_HASH)) & np.uint64(0xFFFFFFFF)
        chosen = np.flatnonzero(hashed >> np.uint64(_BITS - self.bits) == 0)
        self.places += zip(*(column[chosen].tolist() for column in (numbers, *known)), strict=True)
        self._thin()

    def _thin(self) -> None:
        while len(self.places) > MOST_PLACES:
            self.bits += 1
            self.places = [place for place in self.places if is_sampled(place[0], self.bits)]

    def column(self, number: int) -> list[int]:
        """One of the numbers of each place."""
        return [place[number] for place in self.places]
