"""The bounds that hold whichever of two rule sets a cluster followed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final

from reconstruct.history.offset_curves import EVER_AFTER
from reconstruct.history.offset_evidence import OffsetBounds

_LOWER: Final = ("high_watermark_lower", "log_end_offset_lower", "log_start_offset_lower", "recovery_point_lower")
_UPPER: Final = ("high_watermark_upper", "log_end_offset_upper")


def hull(one: Sequence[OffsetBounds], other: Sequence[OffsetBounds]) -> list[OffsetBounds]:
    """At every instant the wider of each bound: unbounded where either is. Both by replica and time, as the result."""
    result: list[OffsetBounds] = []
    for replica in sorted({row.replica_id for row in one} & {row.replica_id for row in other}):
        result += _of_replica(
            [row for row in one if row.replica_id == replica], [row for row in other if row.replica_id == replica]
        )
    return result


def _of_replica(one: Sequence[OffsetBounds], other: Sequence[OffsetBounds]) -> Iterable[OffsetBounds]:
    instants = sorted({at for row in (*one, *other) for at in (row.valid_from, _end(row))})
    first = second = 0
    for start, end in pairwise(instants):
        while first < len(one) and _end(one[first]) <= start:
            first += 1
        while second < len(other) and _end(other[second]) <= start:
            second += 1
        if first == len(one) or second == len(other):
            return
        a, b = one[first], other[second]
        if max(a.valid_from, b.valid_from) > start:
            continue
        values = {name: _wider(getattr(a, name), getattr(b, name), min) for name in _LOWER}
        values |= {name: _wider(getattr(a, name), getattr(b, name), max) for name in _UPPER}
        if any(value is not None for value in values.values()):
            until = None if end == EVER_AFTER else end
            ids = tuple(sorted({*a.evidence, *b.evidence}))
            yield OffsetBounds(a.replica_id, start, until, **values, evidence=ids)


def _wider(one: int | None, other: int | None, widest: Callable[[int, int], int]) -> int | None:
    return None if one is None or other is None else widest(one, other)


def _end(row: OffsetBounds) -> int:
    return EVER_AFTER if row.valid_to is None else row.valid_to
