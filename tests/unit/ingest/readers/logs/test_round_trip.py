"""What loggers and runtimes write comes back: any record, in any layout, in any wrapper, from several processes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.readers.logs.framing import Framed, frame
from ingest.readers.logs.layouts import reading
from tests.unit.ingest.readers.logs.rendering import LAYOUT_RENDERERS, WRAPPER_RENDERERS, Record

_TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters="#"), max_size=40)
_LOGGERS = st.sampled_from(["kafka.server.KafkaServer", "state.change.logger", "kafka.log.LogCleaner$CleanerThread"])
_STACK = st.lists(
    st.sampled_from(["java.lang.Exception: x (y)", "\tat a.B$.c(B.scala:1)", "Caused by: z", "\t... 3 more"])
)
RECORDS = st.builds(
    Record,
    message=st.builds(str.__add__, st.sampled_from(["[Broker id=1] ", "Started", "x"]), _TEXT).map(str.rstrip),
    level=st.sampled_from(["INFO", "WARN", "ERROR", "DEBUG"]),
    logger=_LOGGERS,
    thread=st.sampled_from(["main", "kafka-request-handler-7", "Controller-1-to-broker-2-send-thread"]),
    stack=_STACK.map(tuple),
)
WRAPPERS = [None, *WRAPPER_RENDERERS]


def _read(record: Framed, layout: str) -> Record:
    how = reading(layout)
    assert record.header is not None
    message = how.layout.message_of(record.header, record.content)
    level = record.header.group("level").decode()
    return Record(
        message.text.decode(),
        level,
        (message.logger or b"").decode(),
        (message.thread or b"").decode(),
        tuple(line.decode() for line in message.continuation),
    )


def _expected(record: Record, layout: str) -> Record:
    """What is left of a record in this layout: some print no thread, some shorten the logger."""
    how = reading(layout).layout
    has_thread = how.has_thread or (how.tail is not None and "thread" in how.tail.groupindex)
    return Record(
        record.message,
        record.level,
        record.logger.rpartition(".")[2] if "short_logger" in layout else record.logger,
        record.thread if has_thread and layout != "level_first_logger" else "",
        record.stack,
    )


def _stack(record: Record, layout: str) -> Record:
    """ECS and Log4j name the exception apart from its trace."""
    named = layout in ("json_log4j2",) and record.stack and not record.stack[0].startswith("E")
    return Record(record.message, record.level, record.logger, record.thread, ("E", *record.stack)) if named else record


@pytest.mark.parametrize("layout", LAYOUT_RENDERERS)
@settings(max_examples=40)
@given(records=st.lists(RECORDS, min_size=1, max_size=4), wrapper=st.sampled_from(WRAPPERS), size=st.integers(1, 500))
def test_records_come_back(layout: str, records: list[Record], wrapper: str | None, size: int) -> None:
    lines = [line for record in records for line in LAYOUT_RENDERERS[layout](record)]
    if wrapper is not None:
        lines = [WRAPPER_RENDERERS[wrapper](line, "kafka-1") for line in lines]
    data = "".join(line + "\n" for line in lines).encode()
    name = f"{wrapper}+{layout}" if wrapper else layout
    framed = list(frame([data[i : i + size] for i in range(0, len(data), size)], reading(name)))
    assert [_read(record, layout) for record in framed] == [
        _expected(_stack(record, layout), layout) for record in records
    ]


@pytest.mark.parametrize("wrapper", ["compose", "journald_json", "loki_json", "message_json", "pod", "syslog", "stern"])
@settings(max_examples=30)
@given(st.data())
def test_the_records_of_several_processes_do_not_mix(wrapper: str, data: st.DataObject) -> None:
    written = {name: data.draw(st.lists(RECORDS, max_size=4)) for name in ("kafka-1", "kafka-2", "zookeeper")}
    waiting = {
        name: [line for record in records for line in LAYOUT_RENDERERS["bracketed"](record)]
        for name, records in written.items()
    }
    text = ""
    while any(waiting.values()):
        name = data.draw(st.sampled_from(sorted(name for name in waiting if waiting[name])))
        text += WRAPPER_RENDERERS[wrapper](waiting[name].pop(0), name) + "\n"
    source = text.encode()
    framed = list(frame([source], reading(f"{wrapper}+bracketed")))
    assert sum(record.length for record in framed) == len(source)
    for name, records in written.items():
        own = [record for record in framed if record.stream is not None and name in record.stream]
        assert [_read(record, "bracketed") for record in own] == [_expected(one, "bracketed") for one in records]
