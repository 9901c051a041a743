"""Segments: their batches walked as recovery would, whatever follows the last whole one."""

from __future__ import annotations

import struct
import zlib
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.readers.log_dirs.segments import SegmentSummary, summarise
from ingest.readers.log_dirs.tail import MAX_TIMESTAMP_MS
from tests.unit.ingest.readers.log_dirs.log_files import BASE_TIMESTAMP_MS, GZIP, batch, blocks, segment


def test_a_segment_of_format_2() -> None:
    data = segment(100, 3, per_batch=10, epoch=4)
    assert summarise([data], 100) == SegmentSummary(
        size_bytes=len(data),
        valid_bytes=len(data),
        batches_count=3,
        first_offset=100,
        next_offset=130,
        last_leader_epoch=4,
        message_format=2,
        max_timestamp=(BASE_TIMESTAMP_MS + 129) * 1000,
        problem=None,
        sampled_one_in=1,
        sampled_positions=[0, len(data) // 3, 2 * len(data) // 3],
        sampled_offsets=[100, 110, 120],
        sampled_timestamps=[-1, BASE_TIMESTAMP_MS + 109, BASE_TIMESTAMP_MS + 119],
        last_records=[
            {
                "offset": offset,
                "leader_epoch": 4,
                "timestamp_ms": BASE_TIMESTAMP_MS + offset,
                "key_hash": sha256(b"key").hexdigest()[:16],
            }
            for offset in range(100, 130)
        ],
    )


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_the_old_formats_are_counted_one_by_one(magic: int) -> None:
    found = summarise([segment(7, 5, magic=magic)], 7)
    assert (found.batches_count, found.first_offset, found.next_offset, found.message_format) == (5, 7, 12, magic)
    assert found.max_timestamp == ((BASE_TIMESTAMP_MS + 11) * 1000 if magic else None)
    assert (found.last_leader_epoch, found.problem) == (None, None)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrappers_offset_is_that_of_its_last_message(magic: int) -> None:
    found = summarise([segment(50, 2, per_batch=10, magic=magic, compression=GZIP)], 50)
    assert (found.batches_count, found.first_offset, found.next_offset, found.problem) == (2, None, 70, None)


def test_compression_does_not_matter_in_format_2() -> None:
    found = summarise([segment(0, 2, per_batch=10, compression=GZIP)], 0)
    assert (found.first_offset, found.next_offset, found.problem) == (0, 20, None)


def test_a_log_that_was_upgraded_in_the_middle_of_a_segment() -> None:
    found = summarise([batch(0, magic=0) + batch(1, magic=1) + batch(2, 3, epoch=9)], 0)
    assert (found.batches_count, found.next_offset, found.message_format, found.last_leader_epoch) == (3, 5, 2, 9)


def test_an_empty_segment_ends_at_its_base_offset() -> None:
    assert summarise([], 42) == SegmentSummary(0, 0, 0, None, 42, None, None, None, None, 1, [], [], [], [])


def test_a_compacted_segment_has_gaps() -> None:
    found = summarise([batch(3) + batch(90) + batch(4000)], 0)
    assert (found.batches_count, found.first_offset, found.next_offset, found.problem) == (3, 3, 4001, None)


def test_a_torn_tail_is_where_recovery_would_cut() -> None:
    whole, torn = segment(0, 2), batch(2)[:-3]
    found = summarise([whole + torn], 0)
    assert (found.valid_bytes, found.next_offset, found.batches_count) == (len(whole), 2, 2)
    assert found.problem == (
        f"{len(torn)} bytes from byte {len(whole)} on are no part of the log: a batch of {len(torn) + 3} bytes cut off,"
        f" of which {len(torn)} are there"
    )
    found = summarise([whole + torn[:17]], 0)
    assert (found.valid_bytes, found.next_offset) == (len(whole), 2)
    assert found.problem is not None
    assert found.problem.endswith("a batch cut off in its header, of which 17 bytes are there")


def test_zeros_allocated_ahead_are_no_batches() -> None:
    whole = segment(0, 2)
    found = summarise(blocks(whole + bytes(5000), 997), 0)
    assert (found.size_bytes, found.valid_bytes, found.next_offset) == (len(whole) + 5000, len(whole), 2)
    assert found.problem == (
        f"5000 bytes from byte {len(whole)} on are no part of the log: zeros, allocated ahead or left by a crash"
    )
    assert summarise([bytes(100)], 5).next_offset == 5


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_checksum_that_fails_ends_the_log(magic: int) -> None:
    data = bytearray(segment(0, 3, magic=magic))
    size = len(data) // 3
    data[2 * size - 1] ^= 1
    found = summarise([bytes(data)], 0)
    assert (found.valid_bytes, found.next_offset) == (size, 1)
    assert found.problem is not None
    assert found.problem.endswith(f"a batch of {size} bytes whose checksum does not hold")


def test_offsets_that_go_backwards_end_the_log() -> None:
    found = summarise([batch(10, 5) + batch(12)], 10)
    assert (found.next_offset, found.batches_count) == (15, 1)
    assert "begins at offset 12, while the one before it ends at 14" in (found.problem or "")
    assert "below the base offset 10" in (summarise([batch(3)], 10).problem or "")
    assert "further from the base offset" in (summarise([batch(1 << 31)], 0).problem or "")
    assert "further from the base offset" in (summarise([batch((1 << 63) - 1)], (1 << 63) - 1).problem or "")


def test_lengths_and_formats_that_no_batch_has() -> None:
    good = batch(0)
    for start, what in (
        (struct.pack(">qi", 1, 13), "a length of 13"),
        (struct.pack(">qi", 1, -1), "a length of -1"),
        (struct.pack(">qiib", 1, 100, 0, 3), "message format 3"),
        (struct.pack(">qiib", 1, 100, 0, -1), "message format -1"),
        (struct.pack(">qiib", 1, 48, 0, 2), "less than one of format 2"),
        (struct.pack(">qiib", 1, 21, 0, 1), "less than one of format 1"),
    ):
        found = summarise([good + start + b"x" * 100], 0)
        assert (found.valid_bytes, found.next_offset) == (len(good), 1)
        assert what in (found.problem or "")


def test_a_timestamp_in_the_wrong_unit_is_named_and_not_taken() -> None:
    data = bytearray(batch(0, magic=1))
    struct.pack_into(">q", data, 18, BASE_TIMESTAMP_MS * 1000)
    struct.pack_into(">I", data, 12, zlib.crc32(data[16:]))
    found = summarise([bytes(data)], 0)
    assert BASE_TIMESTAMP_MS * 1000 > MAX_TIMESTAMP_MS
    assert (found.max_timestamp, found.next_offset) == (None, 1)
    assert "beyond the year 9999" in (found.problem or "")


@settings(max_examples=60, deadline=None)
@given(
    magic=st.sampled_from([0, 1, 2]),
    counts=st.lists(st.integers(1, 4), max_size=5),
    cut=st.integers(0, 2000),
    block=st.integers(1, 700),
)
def test_any_truncation_keeps_the_batches_before_it(magic: int, counts: list[int], cut: int, block: int) -> None:
    parts, offset = [], 1000
    for count in counts:
        parts.append(batch(offset, count if magic == 2 else 1, magic=magic))
        offset += count if magic == 2 else 1
    data = b"".join(parts)[:cut]
    whole = 0
    while whole < len(parts) and sum(map(len, parts[: whole + 1])) <= len(data):
        whole += 1
    found = summarise(blocks(data, block), 1000)
    assert found.batches_count == whole
    assert found.valid_bytes == sum(map(len, parts[:whole]))
    assert found.size_bytes == len(data)
    assert (found.problem is None) == (found.valid_bytes == len(data))
    assert found.next_offset == 1000 + (sum(counts[:whole]) if magic == 2 else whole)


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=400), block=st.integers(1, 100), prefix=st.booleans(), base=st.integers(0, 1 << 62))
def test_any_bytes_give_a_summary(data: bytes, block: int, prefix: bool, base: int) -> None:
    data = (batch(base) if prefix else b"") + data
    found = summarise(blocks(data, block), base)
    assert found.size_bytes == len(data)
    assert 0 <= found.valid_bytes <= len(data)
    assert found.next_offset >= base
    assert (found.problem is None) == (found.valid_bytes == len(data))
    assert found == summarise([data], base)
