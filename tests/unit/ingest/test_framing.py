"""Framing: every byte belongs to exactly one record, whatever the bytes are."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.logs import framing
from ingest.logs.framing import NO_HEADER, TOO_LONG, frame, lines
from ingest.logs.layouts import LAYOUTS, WRAPPERS, Reading, detect, reading

BRACKETED = reading("bracketed")
ONE = b"[2026-11-21 03:30:16,055] INFO one (kafka.server.KafkaServer)\n"
TWO = b"[2026-11-21 03:30:16,056] ERROR two (kafka.server.KafkaServer)\n"
TRACE = b"java.lang.IllegalStateException: no\n\tat kafka.Foo.bar(Foo.scala:1)\n"


def framed(data: bytes, how: Reading = BRACKETED, size: int = 7) -> list[framing.Framed]:
    return list(frame([data[i : i + size] for i in range(0, len(data), size)], how))


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


def test_a_line_that_is_too_long_is_counted_and_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "MAX_RECORD_BYTES", 1000)
    monkeypatch.setattr(framing, "RAW_BYTES", 100)
    long = b"[2026-11-21 03:30:16,056] INFO " + b"x" * 5000 + b"\n"
    _, second, third = framed(ONE + long + ONE)
    assert (second.reason, second.length, second.offset, second.line) == (TOO_LONG, len(long), len(ONE), 2)
    assert len(second.data) <= 100
    assert (third.reason, third.line, third.offset) == (None, 3, len(ONE + long))


def test_endless_continuation_lines_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "MAX_RECORD_BYTES", 1000)
    monkeypatch.setattr(framing, "RAW_BYTES", 100)
    records = framed(ONE + b"\tat x\n" * 1000 + TWO)
    assert [record.reason for record in records] == [None, TOO_LONG, None]
    assert sum(record.length for record in records) == len(ONE) + 6000 + len(TWO)


def test_carriage_returns_nul_and_damaged_text_survive() -> None:
    data = b"[2026-11-21 03:30:16,055] INFO a\x00b\xff\xfe (kafka.server.KafkaServer)\r\n" + ONE
    first, _ = framed(data)
    assert first.content[0] == b"[2026-11-21 03:30:16,055] INFO a\x00b\xff\xfe (kafka.server.KafkaServer)"
    assert first.length == len(data) - len(ONE)


def test_a_last_line_without_line_feed_is_a_line() -> None:
    assert [line.data for group in lines([b"a\nb"]) for line in group] == [b"a\n", b"b"]


@given(
    st.lists(st.sampled_from([ONE, TWO, TRACE, b"\n", b"\r\n", b"\xff\n", b"[2026-99-99 00:00:00,000] INFO x\n"])),
    st.integers(1, 200),
    st.binary(max_size=80),
)
def test_every_byte_belongs_to_one_record(parts: list[bytes], size: int, rest: bytes) -> None:
    data = b"".join(parts) + rest
    records = framed(data, size=size)
    assert b"".join(record.data for record in records) == data
    assert [record.offset for record in records] == [sum(r.length for r in records[:i]) for i in range(len(records))]
    assert [record.line for record in records] == [data[: r.offset].count(b"\n") + 1 for r in records]
    assert [r[:5] for r in records] == [r[:5] for r in framed(data, size=10_000)]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_a_layout_reads_its_samples_and_is_detected_from_them(layout) -> None:  # type: ignore[no-untyped-def]
    for sample in layout.samples:
        header = layout.header.match(sample.encode())
        assert header is not None
        assert header.group("time").startswith(b"20")
        found = detect([sample.encode()])
        assert found is not None
        assert found.name == layout.name


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda wrapper: wrapper.name)
def test_a_wrapper_is_taken_off_its_samples(wrapper) -> None:  # type: ignore[no-untyped-def]
    for sample in wrapper.samples:
        content, is_partial = wrapper.unwrap(sample.encode())
        assert content.startswith(b"[20")
        assert not is_partial
        found = detect([sample.encode()])
        assert found is not None
        assert found.name == f"{wrapper.name}+bracketed"


def test_kafkas_own_identifier_in_brackets_is_no_thread() -> None:
    found = detect(
        [
            b"[2026-11-21 03:30:16,055] INFO [Controller id=1 epoch=1] Sending LeaderAndIsr (state.change.logger)",
            b"[2026-11-21 03:30:16,055] INFO [Broker id=1] Handling LeaderAndIsr (state.change.logger)",
        ]
    )
    assert found is not None
    assert found.name == "bracketed"


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
