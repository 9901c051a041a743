"""Entries of indexes held against the batches of their segment."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.readers.log_dirs.samples import MOST_PLACES, Sample, is_sampled
from reconstruct.segments.entries import Sampled, SegmentSamples, judged_entries

#: Batches of 100 bytes and ten records; the fourth is of an earlier time than the third.
BATCHES = Sampled(1, (0, 100, 200, 300), (10, 20, 30, 40), (-1, 1_000, 2_000, 3_000))
CLOSED = SegmentSamples(400, False, 3_000, BATCHES)


@pytest.mark.parametrize(
    ("position", "offset", "words"),
    [
        (100, 29, None),
        (100, 20, None),
        (100, 49, None),
        (113, 29, "points at byte 113, where no batch begins"),
        (300, 39, "points at byte 300, where offset 40 begins"),
    ],
)
@pytest.mark.parametrize("is_open", [True, False])
def test_an_entry_points_at_the_batch_of_its_offset_or_before_it(
    position: int, offset: int, words: str | None, is_open: bool
) -> None:
    index = Sampled(1, positions=(position,), offsets=(offset,))
    seen = judged_entries(replace(CLOSED, offset_index=index, is_open=is_open))
    assert seen.count == 1
    assert (seen.problem is None) if words is None else (words in (seen.problem or ""))


@pytest.mark.parametrize(
    ("offset", "timestamp", "words"),
    [
        (29, 2_000, None),
        (39, 3_000, None),
        (49, 3_000, None),
        (29, 2_001, "later than 2000"),
        (49, 3_001, "later than 3000"),
        (39, 1_999, "a record before it is of 2000"),
    ],
)
def test_a_time_is_the_largest_up_to_its_offset(offset: int, timestamp: int, words: str | None) -> None:
    index = Sampled(1, offsets=(offset,), timestamps=(timestamp,))
    seen = judged_entries(replace(CLOSED, time_index=index))
    assert seen.count == 1
    assert (seen.problem is None) if words is None else (words in (seen.problem or ""))


def test_of_an_open_segment_what_lies_behind_its_copy_is_not_judged() -> None:
    offsets = Sampled(1, positions=(100, 450), offsets=(29, 59))
    times = Sampled(1, offsets=(29, 59, 0), timestamps=(2_000, 9_000, 9_500))
    copied = replace(CLOSED, is_open=True, offset_index=offsets, time_index=times)
    assert judged_entries(copied) == judged_entries(replace(copied, time_index=replace(times, offsets=(29, 59, 99))))
    assert (judged_entries(copied).count, judged_entries(copied).problem) == (2, None)


def test_where_the_record_is_gone_or_has_no_time_the_time_is_not_judged() -> None:
    compacted = Sampled(1, offsets=(5,), timestamps=(9_000,))
    assert judged_entries(replace(CLOSED, time_index=compacted)).count == 0
    index = Sampled(1, offsets=(29,), timestamps=(9_000,))
    assert judged_entries(replace(CLOSED, time_index=index, max_timestamp=None)).count == 0
    assert judged_entries(CLOSED).count == 0


@given(st.integers(0, 30_000), st.integers(1, 16), st.integers(0, 2**20))
def test_of_any_segment_the_same_places_are_sampled_of_both_files(batches: int, every: int, seed: int) -> None:
    chance = Random(seed)
    positions = np.cumsum([0, *(chance.randrange(61, 90_000) for _ in range(min(batches, 3_000)))])
    segment, index = Sample(), Sample()
    for number, position in enumerate(positions.tolist()):
        segment.add(position, 10 * number)
    numbers = np.arange(0, len(positions), every)
    for part in np.array_split(numbers, 3):
        index.add_all(positions[part], 10 * part + 9)
    assert len(segment.places) <= MOST_PLACES
    assert segment.places == [p for p in segment.places if is_sampled(p[0], segment.bits)]
    held = SegmentSamples(
        int(positions[-1]) + 1,
        False,
        None,
        Sampled(segment.one_in, segment.column(0), segment.column(1)),
        Sampled(index.one_in, index.column(0), index.column(1)),
    )
    seen = judged_entries(held)
    assert seen.problem is None
    assert seen.one_in == segment.one_in >= index.one_in
    assert seen.count == sum(is_sampled(int(positions[number]), segment.bits) for number in numbers)
    # an entry that points at a place of the sample at which no batch begins
    begins = set(positions.tolist())
    wrong = next((p for p in range(int(positions[-1])) if p not in begins and is_sampled(p, segment.bits)), None)
    if wrong is not None:
        moved = replace(held, offset_index=Sampled(1, (wrong,), (10 * len(positions),)))
        assert "where no batch begins" in (judged_entries(moved).problem or "")
