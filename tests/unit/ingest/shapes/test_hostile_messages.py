"""No text makes an expression explode: what grows with the square of a line would take minutes here."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from ingest.files.content_facts import MetaPropertiesFacts
from ingest.readers.batches import rejected_batches
from ingest.readers.logs import records
from ingest.readers.work import Rejected
from ingest.shapes import SHAPES, match, match_cause
from ingest.shapes.pattern import HOLE, SPEAKER_HOLE, compile_pattern
from ingest.shapes.server_values import broker_epochs, log_object
from ingest.shapes.structs import named_values
from ingest.shapes.templates import normalised_template
from ingest.shapes.values import brokers
from tests.figures import Figure
from tests.fuzz.invariants import item

_MESSAGE = 20_000
_LINE = 300_000
#: What comes again and again in a line; more of these with each found case.
_PARTS = (
    *(" ", "a", "1", "_", "[", "(", "{", ",", "-", ".", ":", "=", "]", "\t", '"', "\\", "a.a", "1-", "a=1, ", "[a,1]"),
    *(" (", " [", " -> ", "id=1", "Error", "password=", "\x1f", "[2026-11-21 04:47:10,100] INFO ", "(a: 1)", "t-0,"),
)


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    began = time.process_time()
    yield
    assert time.process_time() - began < seconds


def _hostile(pattern: str) -> Iterator[str]:
    """Messages that begin as the shape does, repeat a text of its own, and do not end as it does."""
    literals = re.split(f"[{HOLE}{SPEAKER_HOLE}]", compile_pattern(pattern).skeleton)
    begin = "a-1".join(literals[: min(3, len(literals))])
    for part in {" ", "_", *sorted(filter(str.strip, literals), key=len)[-2:]}:
        yield begin + part * (_MESSAGE // len(part)) + "\x01"


def test_every_shape_is_tried_on_its_own_text_again_and_again(record_property: Any) -> None:
    tried = 0
    with _within(60):
        for shape in SHAPES:
            for message in _hostile(shape.pattern):
                compile_pattern(shape.pattern).fields(message)
                tried += 1
    assert tried > 3 * len(SHAPES)
    record_property(Figure.HOSTILE, tried)


def test_a_long_message_has_the_shape_that_a_short_one_has() -> None:
    """What is cut short in a long message is only how many ends of a placeholder are tried."""
    samples = [(shape, sample) for shape in SHAPES for sample in shape.samples]
    differ = []
    for shape, sample in samples:
        compiled = compile_pattern(shape.pattern)
        if compiled.fields(sample) is not None and re.compile(compiled.linear, re.A | re.S).fullmatch(sample) is None:
            differ.append(shape.id)
    assert len(samples) > 1500
    assert len(set(differ)) <= 3


@pytest.mark.parametrize("part", _PARTS)
def test_a_long_line_of_one_part_is_read_in_seconds(part: str, record_property: Any) -> None:
    line = part * (_LINE // len(part))
    data = f"[2026-11-21 04:47:10,100] INFO {line} (kafka.server.KafkaServer)\n{line}\n".encode()
    work = item("server_log", data, layout="bracketed")
    with _within(15):
        found = list(records.read(work, [data], match, match_cause))
        rejected = [one for one in found if isinstance(one, Rejected)]
        kept = [one for one in found if isinstance(one, pa.RecordBatch)]
        list(rejected_batches(work, rejected))
    assert len(rejected) + sum(batch.num_rows for batch in kept) >= 1
    record_property(Figure.HOSTILE, 1)


@pytest.mark.parametrize("part", _PARTS)
def test_a_value_of_one_part_is_read_in_seconds(part: str, record_property: Any) -> None:
    text = part * (_LINE // 3 // len(part))
    with _within(10):
        for read in (named_values, log_object, broker_epochs, brokers, normalised_template):
            read(f"({text}")
    record_property(Figure.HOSTILE, 1)


def test_a_head_of_empty_lines_is_looked_through_in_seconds() -> None:
    facts = MetaPropertiesFacts()
    with _within(5):
        facts.take(b"\n" * _LINE)
    assert facts.result() == MetaPropertiesFacts().result()
