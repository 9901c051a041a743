"""Indexes and producer snapshots: what they hold, and what Kafka would throw away."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.readers.log_dirs import indexes
from tests.unit.ingest.readers.log_dirs.log_files import (
    blocks,
    offset_index,
    producer_snapshot,
    time_index,
)


def test_an_offset_index() -> None:
    data = offset_index((10, 4100), (25, 8300), (31, 12400))
    assert indexes.offset_index(blocks(data, 5), 100) == indexes.IndexSummary(
        size_bytes=24,
        entries_count=3,
        last_indexed_offset=131,
        last_indexed_position=12400,
        max_index_interval_bytes=4200,
        sampled_one_in=1,
        sampled_positions=[4100, 8300, 12400],
        sampled_offsets=[110, 125, 131],
    )


@pytest.mark.parametrize("block", [7, 8, 1000])
def test_zeros_allocated_ahead_are_no_entries(block: int) -> None:
    found = indexes.offset_index(blocks(offset_index((10, 4096), ahead=1000), block), 0)
    assert (found.entries_count, found.last_indexed_offset, found.problem) == (1, 10, None)
    found = indexes.offset_index(blocks(offset_index(ahead=10), block), 500)
    assert (found.entries_count, found.last_indexed_offset, found.problem) == (0, None, None)
    found = indexes.time_index(blocks(time_index((1_700_000_000_000, 4), ahead=100), block), 500)
    assert (found.size_bytes, found.entries_count, found.last_indexed_offset, found.problem) == (1212, 1, 504, None)


def test_an_empty_index() -> None:
    nothing = {"sampled_one_in": 1, "sampled_positions": [], "sampled_offsets": []}
    assert indexes.offset_index([], 0) == indexes.IndexSummary(0, 0, **nothing)
    assert indexes.transaction_index([], 0) == indexes.IndexSummary(0, 0)


@pytest.mark.parametrize("block", [8, 13, 1000])
def test_entries_that_do_not_rise_are_named(block: int) -> None:
    def problem(*entries: tuple[int, int]) -> str | None:
        return indexes.offset_index(blocks(offset_index(*entries), block), 0).problem

    assert problem((1, 10), (2, 20), (2, 30)) == "entry 2 does not rise above the one before it in offset and position"
    assert problem((1, 10), (2, 5), (3, 30)) == "entry 1 does not rise above the one before it in offset and position"
    assert problem((-1, 10), (2, 20)) == "entry 0 has a negative offset or position"
    zeros = problem((1, 10), (0, 0), (0, 0), (3, 30))
    assert zeros is not None
    assert zeros.startswith(("2 entries of zeros stand before entry 3", "entry 1 does not rise"))


def test_a_size_that_is_no_multiple_of_an_entry() -> None:
    found = indexes.offset_index([offset_index((1, 10)) + b"\0\0\0"], 0)
    assert (found.entries_count, found.problem) == (1, "11 bytes are no multiple of an entry of the offset index")
    assert "time index" in (indexes.time_index([bytes(13)], 0).problem or "")


def test_a_time_index_rises_in_time() -> None:
    assert indexes.time_index([time_index((10, 1), (20, 1), (30, 7))], 0).problem is None
    assert "entry 2 does not rise" in (indexes.time_index([time_index((10, 1), (20, 2), (20, 7))], 0).problem or "")
    assert "entry 1 does not rise" in (indexes.time_index([time_index((10, 3), (20, 2))], 0).problem or "")
    assert "entry 0 has a negative offset" in (indexes.time_index([time_index((10, -3))], 0).problem or "")


def test_a_transaction_index() -> None:
    entries = [struct.pack(">hqqqq", 0, 7, 100 + i, 110 + i, 100) for i in range(3)]
    found = indexes.transaction_index(blocks(b"".join(entries), 11), 100)
    assert (found.entries_count, found.last_indexed_offset, found.problem) == (3, 112, None)
    assert "entry 0 ends before" in (indexes.transaction_index(entries, 112).problem or "")
    newer = struct.pack(">hqqqq", 1, 7, 1, 1, 1)
    of_both = indexes.transaction_index([entries[0] + newer], 0)
    assert "entry 1 is of a version that is not known" in (of_both.problem or "")
    assert "no multiple" in (indexes.transaction_index([entries[0][:-1]], 0).problem or "")


def test_a_producer_snapshot() -> None:
    data = producer_snapshot(3)
    assert indexes.producer_snapshot(blocks(data, 3)) == indexes.IndexSummary(len(data), 3)
    assert indexes.producer_snapshot([producer_snapshot(0)]) == indexes.IndexSummary(10, 0)
    damaged = data[:-1] + b"\x07"
    assert indexes.producer_snapshot([damaged]).problem == "the checksum of the producer snapshot does not hold"
    assert "version 2" in (indexes.producer_snapshot([producer_snapshot(1, version=2)]).problem or "")
    assert "less than the header" in (indexes.producer_snapshot([b"\0\1"]).problem or "")
    assert indexes.producer_snapshot([data[:-46]]).entries_count == 2


@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=300), block=st.integers(1, 64), base=st.integers(0, 1 << 40))
def test_any_bytes_give_a_summary_whatever_the_blocks(data: bytes, block: int, base: int) -> None:
    for read in (indexes.offset_index, indexes.time_index, indexes.transaction_index):
        found, whole = read(blocks(data, block), base), read([data], base)
        assert (found.size_bytes, found.entries_count) == (whole.size_bytes, whole.entries_count)
        assert (found.problem is None) == (whole.problem is None)
    assert indexes.producer_snapshot(blocks(data, block)) == indexes.producer_snapshot([data])
