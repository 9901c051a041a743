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
from reconstruct.offsets.bound_steps import EVER_AFTER
from reconstruct.offsets.evidence import OffsetBounds, OffsetObservation

#: The bounds of each offset that a probe asks for and that is bounded from both sides.
_BOUNDS: Final = {
    oe.HIGH_WATERMARK: ("high_watermark_lower", "high_watermark_upper"),
    oe.LOG_END_OFFSET: ("log_end_offset_lower", "log_end_offset_upper"),
}


def with_probe_answers(
    replica: int, rows: Sequence[OffsetBounds], sightings: Iterable[OffsetObservation]
) -> list[OffsetBounds]:
    """``rows`` of one replica, in order and each of some length, with its probes among ``sightings`` shown.

    An answer that the bounds contradict at every instant between asking and answering is left out.
    """
    starts, ends = [row.valid_from for row in rows], [_end(row) for row in rows]
    shown: dict[int, list[OffsetBounds]] = {}
    for answer in sorted(_answers(replica, sightings), key=_order):
        # an answer that came at the instant at which a row begins may be of that row
        near = rows[bisect_right(ends, answer.observed_at) : bisect_right(starts, _until(answer))]
        lower, upper = _BOUNDS[answer.offset_kind]
        if any(getattr(row, lower) == answer.offset == getattr(row, upper) for row in near):
            continue
        instant = _instant(answer, near)
        if instant is not None:
            row = next((row for row in near if row.valid_from <= instant < _end(row)), OffsetBounds(replica, 0, 0))
            values = {lower: answer.offset, upper: answer.offset}
            ids = tuple(sorted({*row.evidence, *([answer.evidence_id] if answer.evidence_id else [])}))
            here = replace(row, valid_from=instant, valid_to=instant, evidence=ids, **values)
            shown.setdefault(instant, []).append(here)
    return list(_merged(rows, shown))


def _answers(replica: int, sightings: Iterable[OffsetObservation]) -> Iterator[OffsetObservation]:
    for sighting in sightings:
        if sighting.replica_id == replica and sighting.source == oe.PROBE and sighting.offset_kind in _BOUNDS:
            yield sighting


def _order(answer: OffsetObservation) -> tuple[int, int, str, int, str]:
    return answer.observed_at, _until(answer), answer.offset_kind, answer.offset, answer.evidence_id


def _until(answer: OffsetObservation) -> int:
    return answer.observed_at if answer.observed_at_upper is None else answer.observed_at_upper


def _end(row: OffsetBounds) -> int:
    return EVER_AFTER if row.valid_to is None else row.valid_to


def _instant(answer: OffsetObservation, near: Sequence[OffsetBounds]) -> int | None:
    """The instant nearest to the middle of asking and answering at which the offset may have been the answer."""
    asked, answered = answer.observed_at, _until(answer)
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
        yield max(reached, row.valid_from), min(answered, _end(row) - 1), row
        reached = _end(row)
    if reached <= answered:
        yield reached, answered, None


def _merged(rows: Sequence[OffsetBounds], shown: dict[int, list[OffsetBounds]]) -> Iterator[OffsetBounds]:
    """Both in order; a row with answers inside is divided at them."""
    instants = sorted(shown)
    done = 0
    for row in rows:
        start = row.valid_from
        while done < len(instants) and instants[done] < _end(row):
            at = instants[done]
            if at > start:
                yield replace(row, valid_from=start, valid_to=at)
                start = at
            yield from shown[at]
            done += 1
        yield replace(row, valid_from=start)
    for at in instants[done:]:
        yield from shown[at]
