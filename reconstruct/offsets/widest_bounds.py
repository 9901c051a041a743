"""The bounds that hold whichever of two rule sets a cluster followed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final

from reconstruct.model.versions import HIGH_WATERMARK_KEPT_IN_LOG_SINCE, VersionRange
from reconstruct.offsets.bound_steps import EVER_AFTER, interval_at
from reconstruct.offsets.evidence import BOUNDS, OffsetBounds, OffsetEvidence
from reconstruct.offsets.timeline import bound_offsets

_LOWER: Final = tuple(lower for lower, _ in BOUNDS.values())
_UPPER: Final = tuple(upper for _, upper in BOUNDS.values() if upper is not None)


def bounds_of_versions(evidence: OffsetEvidence, versions: VersionRange) -> list[OffsetBounds]:
    """What holds by the rules of every version that the cluster may be of."""
    bounds = bound_offsets(evidence, versions.high)
    since = HIGH_WATERMARK_KEPT_IN_LOG_SINCE  # the one gate that the bounds ask for
    if versions.may_be_before(since) and versions.may_be_since(since):
        return widest_bounds(bounds, bound_offsets(evidence, versions.low))
    return bounds


def widest_bounds(one: Sequence[OffsetBounds], other: Sequence[OffsetBounds]) -> list[OffsetBounds]:
    """At every instant the wider of each bound: unbounded where either is. Both by replica and time, as the result.

    Rows without length, which show what brokers answered, stay where both have them.
    """
    result: list[OffsetBounds] = []
    for replica in sorted({row.replica_id for row in one} & {row.replica_id for row in other}):
        both = [[row for row in rows if row.replica_id == replica] for rows in (one, other)]
        lasting, shown = (
            [[r for r in rows if (r.valid_to == r.valid_from) is is_shown] for rows in both]
            for is_shown in (False, True)
        )
        found = [*_of_replica(*lasting), *_of_answers(*shown)]
        result += sorted(found, key=lambda row: (row.valid_from, row.end))
    return result


def _of_answers(one: Sequence[OffsetBounds], other: Sequence[OffsetBounds]) -> Iterable[OffsetBounds]:
    """Several of one instant are those of the same answers, in the same order."""
    waiting: dict[int, list[OffsetBounds]] = {}
    for row in other:
        waiting.setdefault(row.valid_from, []).append(row)
    for row in one:
        of_instant = waiting.get(row.valid_from)
        if of_instant:
            yield _widened(row, of_instant.pop(0), row.valid_from, row.valid_from)


def _of_replica(one: Sequence[OffsetBounds], other: Sequence[OffsetBounds]) -> Iterable[OffsetBounds]:
    instants = sorted({at for row in (*one, *other) for at in (row.start, row.end)})
    for start, end in pairwise(instants):
        first, second = interval_at(one, start), interval_at(other, start)
        if first is None or second is None:
            continue
        row = _widened(first, second, start, None if end == EVER_AFTER else end)
        if any(getattr(row, name) is not None for name in (*_LOWER, *_UPPER)):
            yield row


def _widened(one: OffsetBounds, other: OffsetBounds, start: int, end: int | None) -> OffsetBounds:
    values = {name: _wider(getattr(one, name), getattr(other, name), min) for name in _LOWER}
    values |= {name: _wider(getattr(one, name), getattr(other, name), max) for name in _UPPER}
    ids = tuple(sorted({*one.evidence, *other.evidence}))
    return OffsetBounds(one.replica_id, start, end, **values, evidence=ids)


def _wider(one: int | None, other: int | None, widest: Callable[[int, int], int]) -> int | None:
    return None if one is None or other is None else widest(one, other)
