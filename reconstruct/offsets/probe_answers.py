"""Probes in the timeline: where the bounds of an offset meet.

A broker's answer proves that the offset had its value at one instant between asking and answering, and not at which.
What it proves at every instant is carried by the bounds: up to its asking the offset was not above, from its answering
on not below. Between the two the answer itself is shown, as a row without length. It claims nothing of any instant, so
that what reads the bounds as of an instant, or judges them, sees what is proven and no more. The row stands in the
middle, or as near to it as the other evidence allows. Where the bounds are the answer anyway there is no such row.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from reconstruct.offsets import evidence as oe
from reconstruct.offsets.evidence import OffsetBounds, OffsetObservation

#: The bounds of each offset that is bounded from both sides.
_BOUNDS: Final = {quantity: (lower, upper) for quantity, (lower, upper) in oe.BOUNDS.items() if upper is not None}


def with_probe_answers(
    replica: int, rows: Sequence[OffsetBounds], observations: Iterable[OffsetObservation]
) -> list[OffsetBounds]:
    """``rows`` of one replica, in order and each of some length, with its probes among ``observations`` shown.

    An answer that the bounds contradict at every instant between asking and answering is left out.
    """
    starts, ends = [row.valid_from for row in rows], [row.end for row in rows]
    answers = (o for o in observations if o.replica_id == replica and o.source == oe.PROBE and o.offset_kind in _BOUNDS)
    at_instant: dict[int, list[OffsetBounds]] = {}
    for answer in sorted(answers, key=_order):
        # an answer that came at the instant at which a row begins may be of that row
        near = rows[bisect_right(ends, answer.observed_at) : bisect_right(starts, answer.until)]
        lower, upper = _BOUNDS[answer.offset_kind]
        if any(getattr(row, lower) == answer.offset == getattr(row, upper) for row in near):
            continue
        instant = _instant(answer, near)
        if instant is not None:
            row = next((row for row in near if row.valid_from <= instant < row.end), OffsetBounds(replica, 0, 0))
            values = {lower: answer.offset, upper: answer.offset}
            ids = tuple(sorted({*row.evidence, *answer.evidence}))
            here = replace(row, valid_from=instant, valid_to=instant, evidence=ids, **values)
            at_instant.setdefault(instant, []).append(here)
    return list(_merged(rows, at_instant))


def _order(answer: OffsetObservation) -> tuple[int, int, str, int, str]:
    return answer.observed_at, answer.until, answer.offset_kind, answer.offset, answer.evidence_id


def _instant(answer: OffsetObservation, near: Sequence[OffsetBounds]) -> int | None:
    """The instant nearest to the middle of asking and answering at which the offset may have been the answer."""
    asked, answered = answer.observed_at, answer.until
    middle = (asked + answered + 1) // 2
    lower, upper = _BOUNDS[answer.offset_kind]
    candidates = []
    for start, end, row in _spans(asked, answered, near):
        least, most = (None, None) if row is None else (getattr(row, lower), getattr(row, upper))
        if (least is None or least <= answer.offset) and (most is None or answer.offset <= most):
            candidates.append(min(max(middle, start), end))
    return min(candidates, key=lambda instant: (abs(instant - middle), instant), default=None)


def _spans(asked: int, answered: int, near: Sequence[OffsetBounds]) -> Iterator[tuple[int, int, OffsetBounds | None]]:
    """First and last instants of each row within ``[asked, answered]``, and of what lies between rows."""
    reached = asked
    for row in near:
        if row.valid_from > reached:
            yield reached, row.valid_from - 1, None
        yield max(reached, row.valid_from), min(answered, row.end - 1), row
        reached = row.end
    if reached <= answered:
        yield reached, answered, None


def _merged(rows: Sequence[OffsetBounds], at_instant: dict[int, list[OffsetBounds]]) -> Iterator[OffsetBounds]:
    """Both in order; a row with answers inside is divided at them."""
    instants = sorted(at_instant)
    done = 0
    for row in rows:
        start = row.valid_from
        while done < len(instants) and instants[done] < row.end:
            at = instants[done]
            if at > start:
                yield replace(row, valid_from=start, valid_to=at)
                start = at
            yield from at_instant[at]
            done += 1
        yield replace(row, valid_from=start)
    for at in instants[done:]:
        yield from at_instant[at]
