"""Records read in runs are the ones that are read line by line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.readers.logs import records
from ingest.readers.logs.framing import Framed, frame
from ingest.readers.logs.layouts import LAYOUTS, Reading, reading
from ingest.readers.logs.patterns import LOGGER_AT_END
from ingest.readers.logs.runs import Run, run_pattern
from ingest.readers.work import WorkItem
from ingest.shapes import match

HOW = reading("bracketed")
LINES = (
    b"[2024-03-11 10:21:07,123] TRACE [Broker id=1] Stopped fetchers (state.change.logger)",
    b"[2024-03-11 10:21:07,124] INFO  (kafka.server.KafkaServer)",
    b"[2024-03-11 10:21:07,124] INFO (kafka.server.KafkaServer)",
    b"[2024-03-11 10:21:07,125] WARN a (b) (c.d:12)",
    b"[2024-03-11 10:21:07,125] ERROR failed (kafka.server.KafkaApis)\r",
    b"[2024-03-11 10:21:07,125] ERROR failed (kafka.server.KafkaApis) \r\r",
    b"[2024-03-11 10:21:07,126] INFO KafkaConfig values:",
    b"\tbroker.id = 1 (kafka.server.KafkaConfig)",
    b"java.io.IOException: closed (by peer)",
    "[2024-03-11 10:21:07,127] INFO Größe (kafka.log.Log)".encode(),
    b"[2024-03-11 10:21:07,127] INFO \xff\xfe (kafka.log.Log)",
    b"[2024-03-11 10:21:07,127] INFO a\0b (kafka.log.Log)",
    b"\0" * 40 + b"[2024-03-11 10:21:07,128] INFO behind a hole (kafka.log.Log)",
    b"\xef\xbb\xbf[2024-03-11 10:21:07,128] INFO behind a mark (kafka.log.Log)",
    b"",
)
PLAIN = LINES[0] + b"\n"


def blocks(data: bytes, size: int) -> Iterator[bytes]:
    for begin in range(0, len(data), size):
        yield data[begin : begin + size]


def plain(item: Framed | Run) -> Iterator[tuple[object, ...]]:
    """(offset, length, line, bytes, reason, time, level, message, logger) of each record."""
    if isinstance(item, Framed):
        told: tuple[bytes | None, ...] = (None,) * 4
        if item.header is not None:
            message = HOW.layout.message_of(item.header, item.content)
            told = (item.header["time"], item.header["level"], message.text, message.logger)
        yield (item.offset, item.length, item.line, item.data, item.reason, *told)
        return
    offset = item.offset
    for line, (text, *told_texts) in enumerate(zip(*item[2:], strict=True), item.line):
        yield (offset, len(text), line, text.encode("latin-1"), None, *(one.encode("latin-1") for one in told_texts))
        offset += len(text)


@given(
    st.lists(st.one_of(st.just(PLAIN[:-1]), st.sampled_from(LINES)), max_size=30), st.integers(1, 2000), st.booleans()
)
def test_runs_hold_what_line_by_line_reading_finds(chosen: list[bytes], size: int, is_ended: bool) -> None:
    data = b"\n".join(chosen) + (b"\n" if is_ended else b"")

    in_runs = [record for item in frame(blocks(data, size), HOW, 7, 3, in_runs=True) for record in plain(item)]

    assert in_runs == [record for item in frame(blocks(data, size), HOW, 7, 3) for record in plain(item)]


def test_all_but_the_last_record_of_a_block_come_in_one_run() -> None:
    run, last = frame([PLAIN * 100], HOW, in_runs=True)

    assert isinstance(run, Run)
    assert len(run.texts) == 99
    assert run.length == 99 * len(PLAIN)
    assert isinstance(last, Framed)
    assert (last.offset, last.line) == (run.length, 100)


def test_a_run_of_few_records_is_read_line_by_line() -> None:
    assert all(isinstance(item, Framed) for item in frame([PLAIN * 4], HOW, in_runs=True))


def test_a_record_that_lines_follow_is_in_no_run() -> None:
    trace = b"java.io.IOException\n\tat a.B.c(B.java:1)\n"

    first, second, third, _ = frame([PLAIN * 5, trace, PLAIN * 5], HOW, in_runs=True)

    assert isinstance(first, Run)
    assert len(first.texts) == 4
    assert isinstance(second, Framed)
    assert second.content[1:] == [b"java.io.IOException", b"\tat a.B.c(B.java:1)"]
    assert isinstance(third, Run)


def test_a_time_on_no_calendar_within_a_run_is_rejected_alone() -> None:
    data = PLAIN * 3 + PLAIN.replace(b"03-11", b"02-31") + PLAIN * 3

    rejected, batch = records.read(item_of(len(data)), [data], match)

    assert batch["source_line"].to_pylist() == [1, 2, 3, 5, 6, 7]
    assert (rejected.place.line, rejected.place.data) == (4, PLAIN.replace(b"03-11", b"02-31"))


def item_of(size: int) -> WorkItem:
    return WorkItem(
        location="/l",
        member=None,
        source_file="l",
        kind="state_change_log",
        cluster_id="c",
        broker_id=1,
        file_id="f",
        record_base="f",
        end=size,
        layout="bracketed",
    )


@pytest.mark.parametrize("name", ["bracketed_level_thread", "level_first", "docker_json+bracketed"])
def test_what_a_run_could_misread_is_read_line_by_line(name: str) -> None:
    assert run_pattern(reading(name)) is None


def test_kafkas_own_pattern_is_read_in_runs() -> None:
    readable = [layout.name for layout in LAYOUTS if run_pattern(Reading(layout)) is not None]

    assert "bracketed" in readable
    assert all(layout.tail is LOGGER_AT_END for layout in LAYOUTS if layout.name in readable)
