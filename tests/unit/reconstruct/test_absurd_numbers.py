"""Numbers that no broker can mean, as damaged text and hostile lines print them: nothing raises on them, and none that
is read is wider than its column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from ingest.readers import paths
from ingest.shapes import SHAPES, Shape, match
from ingest.shapes.quirks import swapped_epoch_and_correlation_id
from reconstruct.checkpoints.evidence import lines_of
from reconstruct.clocks.evidence import LogFact, log_marks
from reconstruct.events.fields import number, partitions_of
from reconstruct.offsets.messages import logged_replica_events, printed_offsets
from reconstruct.offsets.spark.messages import statements_of
from reconstruct.segments.lines import SEGMENT_ACTS, SegmentLine, segment_act
from tests.support.loops import for_each

_WIDEST: Final = (1 << 63) - 1
#: Beyond 64 bits.
ABSURD: Final = str(1 << 63)
#: That, beyond 32 bits, the widest of 64, and more digits than Python itself makes a number of.
ALL_ABSURD: Final = (ABSURD, str(1 << 31), str(_WIDEST), "9" * 5000, "0" * 5000 + "1")
_DIGITS: Final = re.compile(r"\d+")


def _with_absurd_numbers(sample: str) -> Iterator[str]:
    """The sample with each of its numbers made absurd, one at a time, and with all of them."""
    for found in _DIGITS.finditer(sample):
        yield sample[: found.start()] + ABSURD + sample[found.end() :]
    for absurd in ALL_ABSURD:
        yield _DIGITS.sub(absurd, sample)


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _numbers(each)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from _numbers(getattr(value, name))


def _all_that_is_read(shape: Shape, event_type: str, fields: dict[str, str]) -> Iterator[Any]:
    yield from partitions_of(fields)
    yield from (number(value) for value in fields.values())
    yield from logged_replica_events(1, 0, "e", event_type, fields)
    yield from lines_of(0, "e", event_type, fields)
    yield from log_marks(LogFact("e", shape.source_kind, event_type, 0, None, fields))
    if event_type in SEGMENT_ACTS:
        yield segment_act(SegmentLine(1, event_type, 0, fields, "e", "log", 1))


@for_each(shape=SHAPES)
def test_no_shape_s_numbers_are_wider_than_64_bits(shape: Shape) -> None:
    for message in _with_absurd_numbers(shape.samples[0]):
        found = match(shape.source_kind, shape.loggers[0], message)
        if found is None:
            continue
        fields = dict(found.fields)
        assert max(_numbers(list(_all_that_is_read(shape, found.event_type, fields))), default=0) <= _WIDEST
        assert all(partition_id < 1 << 31 for _, partition_id in partitions_of(fields))
        list(printed_offsets(1, 0, "e", found.event_type, fields))
        record = {
            "cluster_id": "c",
            "file_id": "f",
            "record_id": "r",
            "source_kind": shape.source_kind,
            "event_type": found.event_type,
            "fields": list(fields.items()),
            "speaker": 1,
            "at_us": 0,
        }
        for row in statements_of(record):
            assert (row.get("offset") or 0) <= _WIDEST
            assert (row.get("leader_epoch") or 0) < 1 << 31


@pytest.mark.parametrize(
    ("text", "bits", "read"),
    [
        ("2147483647", 31, 2147483647),
        ("2147483648", 31, None),
        ("9223372036854775807", 63, 9223372036854775807),
        ("9223372036854775808", 63, None),
        ("00000000000000000042", 63, 42),
        ("9" * 5000, 63, None),
        ("-1", 63, None),
        ("", 63, None),
    ],
)
def test_a_number_fits_or_is_none(text: str, bits: int, read: int | None) -> None:
    assert number(text, bits) == read


def test_a_list_with_one_absurd_partition_names_none() -> None:
    assert partitions_of({"topic_partitions": "a-0,b-1"}) == [("a", 0), ("b", 1)]
    assert partitions_of({"topic_partitions": "a-0,b-99999999999,c-2"}) == []
    assert partitions_of({"topic": "a", "partition_id": "99999999999"}) == []


def test_epochs_that_are_none_are_not_swapped() -> None:
    fields = {"known_controller_epoch": "3", "request_controller_epoch": "7", "correlation_id": "2"}
    assert swapped_epoch_and_correlation_id(fields, "")["correlation_id"] == "7"
    for name in fields:
        absurd = fields | {name: "9" * 5000}
        assert set(swapped_epoch_and_correlation_id(absurd, "")) == {"known_controller_epoch"}


def test_a_folder_s_broker_is_one_that_kafka_can_have() -> None:
    assert paths.broker_id("broker-7") == 7
    assert paths.broker_id("broker-2147483648") is None
    assert paths.broker_id("broker-99999999999999999999") is None
