"""How a partition directory is read: segments named by their first offset, each with a sparse index (``kafka.log``).

A log is cut into segments; a file's name is the offset of its first record, zero-padded to 20 digits. The ``.index``
of a segment holds one entry for about every ``log.index.interval.bytes`` written (default 4096), an offset relative to
the segment's first and the byte position of a batch: a lookup takes the last entry that is not above the target, by
binary search, and reads on from there.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

_SEGMENT_FILE: Final = re.compile(r"^(\d{20})\.(log|index|timeindex|txnindex|snapshot)$")


class IndexEntry(NamedTuple):
    """One entry of a ``.index`` file: 4 bytes each, big-endian."""

    relative_offset: int
    position: int


def base_offset_of(file_name: str) -> int | None:
    """The first offset of the segment that a file belongs to; None where the name is not a segment file's."""
    found = _SEGMENT_FILE.match(file_name)
    return int(found[1]) if found else None


def segment_of(base_offsets: Sequence[int], offset: int) -> int | None:
    """The base offset of the segment that would hold ``offset``, of ascending ``base_offsets``; None if below."""
    at = bisect_right(base_offsets, offset)
    return base_offsets[at - 1] if at else None


def position_of(base_offset: int, index: Sequence[IndexEntry], offset: int) -> int:
    """The byte position to read from to find ``offset``; 0, the segment's begin, where the index has none below it."""
    at = bisect_right(index, offset - base_offset, key=lambda entry: entry.relative_offset)
    return index[at - 1].position if at else 0
