"""The last records of a segment, however its batches are compressed."""

from __future__ import annotations

import struct
from collections.abc import Callable
from hashlib import sha256
from typing import Final

import google_crc32c
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.lake.tables.bronze import LOG_SEGMENTS
from ingest.lake.tables.types import arrow_type
from ingest.readers.log_dirs.segments import summarise
from ingest.readers.log_dirs.tail import MOST_PLAIN_BYTES, MOST_RECORDS, TAIL_BYTES
from tests.unit.ingest.readers.log_dirs.log_files import BASE_TIMESTAMP_MS, batch, blocks, segment

HEADER_BYTES = 61
ATTRIBUTES_AT = 21
CONTROL = 0x20
LAST_RECORDS: Final = next(column for column in LOG_SEGMENTS.columns if column.name == "last_records")


def snappy_java(plain: bytes) -> bytes:
    packed = pa.compress(plain, codec="snappy", asbytes=True)
    return b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, len(packed)) + packed


def streamed(codec: str) -> Callable[[bytes], bytes]:
    def compressed(plain: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, codec) as stream:
            stream.write(plain)
        return bytes(sink.getvalue())

    return compressed


CODECS = {1: streamed("gzip"), 2: snappy_java, 3: streamed("lz4"), 4: streamed("zstd")}


def sealed(data: bytes, attributes: int, records: bytes) -> bytes:
    """The batch with other attributes and records, its length and checksum made to hold."""
    made = bytearray(data[:HEADER_BYTES]) + records
    struct.pack_into(">h", made, ATTRIBUTES_AT, attributes)
    struct.pack_into(">i", made, 8, len(made) - 12)
    struct.pack_into(">I", made, 17, google_crc32c.value(bytes(made[ATTRIBUTES_AT:])))
    return bytes(made)


def offsets(data: bytes, base: int = 0) -> list[int]:
    return [record["offset"] for record in summarise(blocks(data, 997), base).last_records]


@pytest.mark.parametrize("codec", CODECS)
def test_records_are_read_through_every_codec_that_a_producer_has(codec: int) -> None:
    plain = batch(5, 3, epoch=7)
    packed = sealed(plain, codec, CODECS[codec](plain[HEADER_BYTES:]))
    key_hash = sha256(b"key").hexdigest()[:16]
    assert summarise([packed], 5).last_records == [
        {"offset": offset, "leader_epoch": 7, "timestamp_ms": BASE_TIMESTAMP_MS + offset, "key_hash": key_hash}
        for offset in (5, 6, 7)
    ]


def test_snappy_without_the_frame_of_java_is_read_too() -> None:
    """As librdkafka compresses; org.xerial.snappy.SnappyInputStream takes what does not begin with its header so."""
    plain = batch(5, 3)
    packed = sealed(plain, 2, pa.compress(plain[HEADER_BYTES:], codec="snappy", asbytes=True))
    assert offsets(packed, 5) == [5, 6, 7]
    bomb = pa.compress(bytes(MOST_PLAIN_BYTES + 1), codec="snappy", asbytes=True)
    assert offsets(sealed(batch(0), 2, bomb) + batch(1)) == [1]


@pytest.mark.parametrize("codec", [*CODECS, 5])
def test_a_batch_that_cannot_be_decompressed_is_left_out_alone(codec: int) -> None:
    damaged = sealed(batch(1), codec, b"neither of the codecs")
    found = summarise([batch(0) + damaged + batch(2)], 0)
    assert ([record["offset"] for record in found.last_records], found.next_offset, found.problem) == ([0, 2], 3, None)


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_of_far_more_bytes_than_it_says_is_not_decompressed_to_its_end(codec: int) -> None:
    if codec == 2:  # a block of snappy-java holds less: several follow one another
        size, records = 1 << 20, snappy_java(bytes(1 << 20))
        records += (records[16:]) * (MOST_PLAIN_BYTES // size)
    else:
        records = CODECS[codec](bytes(64 << 20))
    assert len(records) < TAIL_BYTES
    assert offsets(sealed(batch(0), codec, records) + batch(1)) == [1]


def test_a_record_that_is_none_leaves_those_before_it() -> None:
    plain = batch(0, 3)
    assert offsets(sealed(plain, 0, plain[HEADER_BYTES:-2]) + batch(3)) == [0, 1, 3]


def test_no_producer_sent_a_control_record() -> None:
    plain = batch(1)
    assert offsets(batch(0) + sealed(plain, CONTROL, plain[HEADER_BYTES:]) + batch(2)) == [0, 2]


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_without_a_leader_epoch_are_left_out(magic: int) -> None:
    assert offsets(segment(0, 3, magic=magic) + batch(3)) == [3]


def test_the_last_ones_are_kept_by_their_number_and_their_bytes() -> None:
    assert offsets(segment(0, 3, per_batch=MOST_RECORDS // 2 + 1)) == list(
        range(MOST_RECORDS // 2 + 3, 3 * (MOST_RECORDS // 2 + 1))
    )
    large = bytes(TAIL_BYTES // 2 - 100)
    assert offsets(segment(0, 3, value=large)) == [1, 2]
    assert offsets(batch(0) + batch(1, value=bytes(TAIL_BYTES)) + batch(2)) == [0, 2]


FAR: Final = 1 << 62
VARINT_OF_FAR: Final = bytes([0x80] * 9 + [0x01])  # zigzag of 2 ** 62 is 2 ** 63


@pytest.mark.parametrize("place", [2, 3])
def test_a_time_or_an_offset_that_no_column_holds(place: int) -> None:
    """A record says its time and offset as a distance from its batch's, as far as it likes."""
    fields = [b"\0", b"\0", b"\0", b"\1", b"\0", b"\0"]  # attributes, time, offset, key, value, headers
    fields[place - 1] = VARINT_OF_FAR
    body = b"".join(fields)
    far = sealed(batch(FAR), 0, bytes([2 * len(body)]) + body)
    found = summarise([batch(FAR - 1) + far + batch(FAR + 1)], FAR - 1)
    kept = {record["offset"]: record["timestamp_ms"] for record in found.last_records}
    assert FAR + 1 in kept
    assert kept.get(FAR, "left out") == (None if place == 2 else "left out")
    assert found.problem is None
    pa.array([found.last_records], arrow_type(LAST_RECORDS.type))


@given(st.binary(max_size=200), st.integers(0, 4), st.integers(-(1 << 63), (1 << 63) - 1))
@settings(max_examples=200)
def test_whatever_a_batch_holds_its_records_fit_their_column(records: bytes, codec: int, first: int) -> None:
    packed = CODECS[codec](records) if codec else records
    made = bytearray(sealed(batch(0, 5), codec, packed))
    struct.pack_into(">q", made, 27, first)  # the time that the others are relative to
    struct.pack_into(">I", made, 17, google_crc32c.value(bytes(made[ATTRIBUTES_AT:])))
    found = summarise([bytes(made)], 0)
    assert found.problem is None
    pa.array([found.last_records], arrow_type(LAST_RECORDS.type))


def test_a_record_without_a_key_has_no_hash() -> None:
    """Length 6, attributes, time and offset 0, key -1, value empty, no headers: varints, zigzag."""
    keyless = sealed(batch(0), 0, bytes([12, 0, 0, 0, 1, 0, 0]))
    assert [record["key_hash"] for record in summarise([keyless], 0).last_records] == [None]
