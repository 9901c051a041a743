"""Entries of a segment's indexes held against its batches: the first that points at none, or is of another time.

An offset index entry names a position at which a batch begins, and an offset in that batch or behind it
(LogSegment.append): a reader of that offset begins there. A time index entry names the largest timestamp up to its
offset. Files are sampled by the same hash (:mod:`ingest.readers.log_dirs.samples`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ingest.readers.log_dirs.samples import is_sampled


@dataclass(frozen=True, slots=True)
class Sampled:
    """What one file has in its sample, in its order: one in ``one_in`` of its places."""

    one_in: int = 1
    positions: Sequence[int] = ()
    offsets: Sequence[int] = ()
    timestamps: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class SegmentSamples:
    """Of one segment: its batches up to ``valid_bytes``, and the entries of each index (None: not given).

    ``is_open``: other batches may follow, since it is written to, or damaged.

    ``max_timestamp`` is the largest of all batches, ms; None where the format has none."""

    valid_bytes: int
    is_open: bool
    max_timestamp: int | None
    batches: Sampled
    offset_index: Sampled | None = None
    time_index: Sampled | None = None


@dataclass(frozen=True, slots=True)
class EntriesSeen:
    """How many entries were held against batches, one of how many, and what is wrong with the first that differs."""

    count: int
    one_in: int
    problem: str | None


def judged_entries(samples: SegmentSamples) -> EntriesSeen:
    """The entries of both indexes. Of an open segment, what points behind its batches is not looked at, nor is the
    last entry of its time index, which may be half written."""
    count, one_in, problem = 0, samples.batches.one_in, None
    for held in (_positions(samples), _times(samples)):
        for wrong in held:
            count += 1
            problem = problem or wrong
    if samples.offset_index is not None:
        one_in = max(one_in, samples.offset_index.one_in)
    return EntriesSeen(count, one_in, problem)


def _positions(samples: SegmentSamples) -> Iterator[str | None]:
    """Of each entry of the offset index that both samples may have: what is wrong with it."""
    index, batches = samples.offset_index, samples.batches
    if index is None:
        return
    first_offset = dict(zip(batches.positions, batches.offsets, strict=True))
    for position, offset in zip(index.positions, index.offsets, strict=True):
        if not is_sampled(position, batches.one_in.bit_length() - 1) or position >= samples.valid_bytes:
            continue
        first = first_offset.get(position)
        if first is None:
            yield f"the index's entry of offset {offset} points at byte {position}, where no batch begins"
        elif first > offset:
            yield f"the index's entry of offset {offset} points at byte {position}, where offset {first} begins"
        else:
            yield None


def _times(samples: SegmentSamples) -> Iterator[str | None]:
    """Of each entry of the time index, between two sampled batches: what is wrong with it."""
    index, batches = samples.time_index, samples.batches
    if index is None or samples.max_timestamp is None or not batches.offsets:
        return
    entries = list(zip(index.offsets, index.timestamps, strict=True))
    for offset, timestamp in entries[:-1] if samples.is_open else entries:
        behind = bisect_right(batches.offsets, offset)
        if not behind or (samples.is_open and behind == len(batches.offsets)):
            continue  # its record is gone, as compaction leaves it, or not in the copy
        most = batches.timestamps[behind] if behind < len(batches.offsets) else samples.max_timestamp
        least = batches.timestamps[behind - 1]
        if timestamp > most:
            yield f"the time index has {timestamp} ms at offset {offset}, and none up to there is later than {most}"
        elif timestamp < least:
            yield f"the time index has {timestamp} ms at offset {offset}, and a record before it is of {least}"
        else:
            yield None
