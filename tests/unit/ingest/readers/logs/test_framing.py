"""Framing: every byte belongs to exactly one record, whatever the bytes are."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.readers.lines import MAX_RECORD_BYTES, TOO_LONG, lines
from ingest.readers.logs import framing
from ingest.readers.logs.framing import HOLE, NO_HEADER, Framed, frame
from ingest.readers.logs.layouts import Reading, reading
from ingest.readers.work import RAW_BYTES

BRACKETED = reading("bracketed")
ONE = b"[2026-11-21 03:30:16,055] INFO one (kafka.server.KafkaServer)\n"
TWO = b"[2026-11-21 03:30:16,056] ERROR two (kafka.server.KafkaServer)\n"
TRACE = b"java.lang.IllegalStateException: no\n\tat kafka.Foo.bar(Foo.scala:1)\n"
READINGS = ["bracketed", "compose+bracketed", "kubernetes+bracketed", "docker_json+bracketed", "json", "ansi+level"]


def framed(data: bytes, how: Reading = BRACKETED, size: int = 7) -> list[Framed]:
    return list(frame([data[i : i + size] for i in range(0, len(data), size)], how))


def place(record: Framed) -> tuple[int, int, int, bytes, list[bytes], str | None, str | None]:
    return (*record[:5], record.reason, record.stream)


def test_continuation_lines_belong_to_the_record_before() -> None:
    first, second, third = framed(ONE + TWO + TRACE + ONE)
    assert (first.offset, first.length, first.line) == (0, len(ONE), 1)
    assert (second.offset, second.length, second.line) == (len(ONE), len(TWO + TRACE), 2)
    assert second.content[1:] == [b"java.lang.IllegalStateException: no", b"\tat kafka.Foo.bar(Foo.scala:1)"]
    assert (third.offset, third.line) == (len(ONE + TWO + TRACE), 5)


def test_lines_before_the_first_header_are_one_record_with_a_reason() -> None:
    orphan, record = framed(TRACE + ONE)
    assert (orphan.reason, orphan.length, orphan.header) == (NO_HEADER, len(TRACE), None)
    assert record.reason is None


@pytest.mark.parametrize("name", ["bracketed", "timestamped+bracketed"])
def test_a_line_that_is_too_long_is_counted_and_not_held(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(framing, "MAX_RECORD_BYTES", 1000)
    monkeypatch.setattr(framing, "RAW_BYTES", 100)
    long = b"[2026-11-21 03:30:16,056] INFO " + b"x" * 5000 + b"\n"
    _, second, third = framed(ONE + long + ONE, reading(name))
    assert (second.reason, second.length, second.offset, second.line) == (TOO_LONG, len(long), len(ONE), 2)
    assert len(second.data) <= 100
    assert (third.reason, third.line, third.offset) == (None, 3, len(ONE + long))


@pytest.mark.parametrize("name", ["bracketed", "timestamped+bracketed"])
def test_endless_continuation_lines_are_cut_off(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(framing, "MAX_RECORD_BYTES", 1000)
    monkeypatch.setattr(framing, "RAW_BYTES", 100)
    records = framed(ONE + b"\tat x\n" * 1000 + TWO, reading(name))
    assert [record.reason for record in records] == [None, TOO_LONG, None]
    assert sum(record.length for record in records) == len(ONE) + 6000 + len(TWO)


def test_carriage_returns_nul_and_damaged_text_survive() -> None:
    data = b"[2026-11-21 03:30:16,055] INFO a\x00b\xff\xfe\rc (kafka.server.KafkaServer)\r\n" + ONE
    first, _ = framed(data)
    assert first.content[0] == b"[2026-11-21 03:30:16,055] INFO a\x00b\xff\xfe\rc (kafka.server.KafkaServer)"
    assert first.length == len(data) - len(ONE)


def test_a_last_line_without_line_feed_is_a_line() -> None:
    assert [line.data for group in lines([b"a\nb"]) for line in group] == [b"a\n", b"b"]
    (record,) = framed(ONE.rstrip())
    assert (record.reason, record.length) == (None, len(ONE) - 1)


def test_a_byte_order_mark_does_not_hide_the_first_record() -> None:
    (record,) = framed(b"\xef\xbb\xbf" + ONE)
    assert (record.reason, record.content[0]) == (None, ONE.rstrip())
    assert record.data == b"\xef\xbb\xbf" + ONE


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("name", ["bracketed", "timestamped+bracketed"])
def test_a_hole_is_a_record_of_its_own_and_hides_none(name: str, size: int) -> None:
    hole = bytes(5000)
    how = reading(name)
    first, second = framed(hole + ONE, how, size)
    assert (first.reason, first.offset, first.length, first.line) == (HOLE, 0, 5000, 1)
    assert (second.reason, second.offset, second.line) == (None, 5000, 1)
    torn, zeros, whole = sorted(framed(ONE[:40] + hole + TWO, how, size), key=lambda record: record.offset)
    assert (torn.length, zeros.reason, zeros.length, whole.content) == (40, HOLE, 5000, [TWO.rstrip()])
    assert {record.reason for record in framed(ONE + hole, how, size)} == {None, HOLE}


@given(
    st.lists(
        st.sampled_from(
            [
                ONE,
                TWO,
                TRACE,
                b"\n",
                b"\r\n",
                b"\xff\n",
                b"[2026-99-99 00:00:00,000] INFO x\n",
                bytes(20),
                b"\0",
                b"kafka-1  | " + ONE,
                b"kafka-2  | " + TWO + b"kafka-1  | \tat a\n",
                b"2024-05-01T10:00:00.1Z stdout P [2024-05-01 10:00:00,123] INFO [Kafka\n",
                b"2024-05-01T10:00:00.1Z stderr F x\n",
                b'{"log":"[2024-05-01 10:00:00,123] INFO a","stream":"stderr"}\n',
                b'{"log":"b (kafka.A)\\n","stream":"stderr"}\n',
                b'{"time":1614676364001,"level":"INFO","message":"a\\nb"}\n',
            ]
        )
    ),
    st.integers(1, 200),
    st.binary(max_size=80),
    st.sampled_from(READINGS),
)
def test_every_byte_belongs_to_one_record(parts: list[bytes], size: int, rest: bytes, name: str) -> None:
    data = b"".join(parts) + rest
    how = reading(name)
    records = framed(data, how, size)
    assert sum(record.length for record in records) == len(data)
    assert sorted(b"".join(record.data for record in records)) == sorted(data)
    assert [record.line for record in records] == [data[: r.offset].count(b"\n") + 1 for r in records]
    assert [place(r) for r in records] == [place(r) for r in framed(data, how, 10_000)]
    if how.is_plain:
        assert b"".join(record.data for record in records) == data
    for record in records:
        assert (record.header is None) == (record.reason is not None)


def test_pieces_of_a_line_that_a_runtime_cut_are_joined() -> None:
    start = b"2024-05-01T10:00:00.1Z stdout "
    data = start + b"P [2024-05-01 10:00:00,123] INFO [Kafka\n" + start + b"F Server] up (kafka.server.KafkaServer)\n"
    (record,) = framed(data, reading("kubernetes+bracketed"))
    assert record.content == [b"[2024-05-01 10:00:00,123] INFO [KafkaServer] up (kafka.server.KafkaServer)"]
    assert record.length == len(data)
    piece = json.dumps({"log": "[2024-05-01 10:00:00,123] INFO [Kafka"}).encode() + b"\n"
    whole = json.dumps({"log": "Server] up (kafka.server.KafkaServer)\n"}).encode() + b"\n"
    (record,) = framed(piece + whole, reading("docker_json+bracketed"))
    assert record.content == [b"[2024-05-01 10:00:00,123] INFO [KafkaServer] up (kafka.server.KafkaServer)"]


def test_pieces_of_one_channel_are_not_joined_to_those_of_another() -> None:
    out, err = b"2024-05-01T10:00:00.1Z stdout ", b"2024-05-01T10:00:00.1Z stderr "
    data = out + b"P [2024-05-01 10:00:00,123] INFO a\n" + err + b"F warning\n" + out + b"F b (kafka.A)\n"
    warning, record = sorted(framed(data, reading("kubernetes+bracketed")), key=lambda r: r.reason is None)
    assert (warning.reason, warning.content) == (NO_HEADER, [b"warning"])
    assert record.content == [b"[2024-05-01 10:00:00,123] INFO ab (kafka.A)"]


def test_a_json_line_cut_in_pieces_is_read_whole() -> None:
    inner = '{"time":1614676364001,"level":"INFO","message":"' + "x" * 50 + '"}\n'
    pieces = [inner[:40], inner[40:]]
    data = "".join(json.dumps({"log": piece, "stream": "stdout", "time": "t"}) + "\n" for piece in pieces)
    (record,) = framed(data.encode(), reading("docker_json+json"))
    assert record.content[0].endswith(b"x" * 50)
    assert record.length == len(data)


def _measured(source: Iterator[bytes], how: Reading) -> tuple[list[tuple[int, int, str | None]], int]:
    tracemalloc.start()
    try:
        found = [(record.line, record.length, record.reason) for record in frame(source, how)]
        return found, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["bracketed", "compose+bracketed"])
@pytest.mark.parametrize("ending", [b"\n" + ONE, b""])
def test_a_line_of_100_mb_is_rejected_with_its_place_in_bounded_memory(name: str, ending: bytes) -> None:
    block = b"x" * (1 << 20)

    def source() -> Iterator[bytes]:
        yield ONE
        for _ in range(100):
            yield block
        yield ending

    found, peak = _measured(source(), reading(name))
    line = next(one for one in found if one[2] == TOO_LONG)
    assert line == (2, (100 << 20) + (1 if ending else 0), TOO_LONG)
    assert peak < 64 << 20


def test_300_000_lines_of_a_stack_are_two_records() -> None:
    block = b"\tat kafka.Foo.recurse(Foo.scala:1)\n" * 1000
    found = list(frame([ONE, *[block] * 300, TWO], BRACKETED))
    assert [record.reason for record in found] == [None, TOO_LONG, None]
    assert sum(record.length for record in found) == len(ONE) + len(block) * 300 + len(TWO)
    assert len(found[0].content) == framing.MAX_RECORD_LINES
    assert len(found[1].data) <= RAW_BYTES + len(block)


@pytest.mark.parametrize("name", ["bracketed", "compose+bracketed"])
@pytest.mark.parametrize("text", [b"\n", b"\tat kafka.Foo.recurse(Foo.scala:1)\n"])
def test_an_endless_stack_is_framed_in_bounded_memory(monkeypatch: pytest.MonkeyPatch, name: str, text: bytes) -> None:
    monkeypatch.setattr(framing, "MAX_RECORD_BYTES", MAX_RECORD_BYTES // 20)
    monkeypatch.setattr(framing, "MAX_RECORD_LINES", framing.MAX_RECORD_LINES // 20)
    prefix = b"kafka-1  | " if "+" in name else b""
    block = (prefix + text) * 1000

    def source() -> Iterator[bytes]:
        yield prefix + ONE
        for _ in range(15):
            yield block

    found, peak = _measured(source(), reading(name))
    assert sum(length for _, length, _ in found) == len(prefix + ONE) + 15 * len(block)
    assert peak < (64 << 20) // 20


def test_a_hole_is_framed_in_memory_that_its_length_does_not_bound() -> None:
    block = bytes(1 << 20)

    def source() -> Iterator[bytes]:
        for _ in range(256):
            yield block
        yield ONE

    found, peak = _measured(source(), BRACKETED)
    assert found == [(1, 256 << 20, HOLE), (1, len(ONE), None)]
    assert peak < 8 << 20


def test_a_thousand_processes_are_framed_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "MAX_OPEN_STREAMS", 10)
    data = b"".join(b"kafka-%d  | " % number + ONE for number in range(1000))
    records = framed(data, reading("compose+bracketed"), 100_000)
    assert [record.stream for record in records] == [f"kafka-{number}" for number in range(1000)]
    monkeypatch.setattr(framing, "MAX_OPEN_BYTES", 10_000)
    monkeypatch.setattr(framing, "RAW_BYTES", 100)
    lines_ = b"kafka-1  | " + ONE + (b"kafka-1  | " + b"y" * 100 + b"\n") * 200
    records = framed(lines_, reading("compose+bracketed"), 100_000)
    assert [record.reason for record in records] == [None, TOO_LONG]
    assert sum(record.length for record in records) == len(lines_)


def test_constants_fit_together() -> None:
    assert RAW_BYTES < MAX_RECORD_BYTES
    assert str(MAX_RECORD_BYTES >> 20) in TOO_LONG
