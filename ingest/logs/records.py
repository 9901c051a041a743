"""Framed log records to the rows of ``bronze.log_records``: the hot path of the ingest.

Columns are built as lists and given to Arrow a batch at a time; what repeats (loggers, levels, seconds) is
looked up rather than parsed again.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa

from ingest.identity import record_ids
from ingest.logs.framing import Framed, frame
from ingest.logs.layouts import LOGGER_AT_END, Reading, reading
from ingest.logs.times import LogClock, date_in_name
from ingest.recognise import record_kind
from ingest.tables.bronze import LOG_RECORDS
from ingest.work import BATCH_BYTES, BATCH_ROWS, Place, Rejected, WorkItem, batch

UNRECOGNISED: Final = "unrecognised"
_STACK: Final = re.compile(rb"\s+at \S|Caused by: |\s+\.\.\. \d+ more|\S+(?:Exception|Error)(?::|$)")
#: A message of more lines than this (a dump of a configuration has some 250) is not searched for its logger.
_MESSAGE_LINES: Final = 2000
#: As much of a log that begins in a repeated hour is looked at to tell in which pass through it.
_SETTLE_BYTES: Final = 16 << 20
_MAX_CLOCKS: Final = 10_000
#: The columns that vary from row to row, in the order of a row's tuple.
_ROW: Final = (
    "record_id", "source_kind", "source_line", "byte_offset", "byte_length", "event_time", "event_time_text",
    "log_level", "thread", "logger", "message", "continuation", "shape_id", "event_type", "cause_type",
    "broker_id",
)  # fmt: skip


class Match(Protocol):
    """What a message shape says of a message."""

    @property
    def shape_id(self) -> str: ...
    @property
    def event_type(self) -> str: ...
    @property
    def fields(self) -> Mapping[str, str]: ...


Matcher = Callable[[str, "str | None", str], "Match | None"]
#: What an exception says, by its line.
CauseMatcher = Callable[[str], "Match | None"]


class Message(NamedTuple):
    """A record's message, its logger and thread as printed, and the lines that follow the message."""

    text: bytes
    logger: bytes | None
    thread: bytes | None
    continuation: list[bytes]


def message_of(record: Framed, how: Reading) -> Message:
    """Take a record apart behind its header."""
    header = record.header
    assert header is not None
    first, *others = record.content
    begin = header.end()
    layout = how.layout
    thread = header.group("thread") if layout.has_thread else None
    if layout.has_logger:
        return Message(first[begin:], header.group("logger"), thread, others)
    tail = layout.tail
    if tail is None:
        return Message(first[begin:], None, thread, others)
    found = tail.search(first, begin - 1)
    if found is not None:
        return Message(first[begin : found.start()], found.group("logger"), thread or _thread(found), others)
    for position, line in enumerate(others[:_MESSAGE_LINES]):
        if _STACK.match(line):
            break
        found = tail.search(line)
        if found is not None:
            message = b"\n".join([first[begin:], *others[:position], line[: found.start()]])
            return Message(message, found.group("logger"), thread or _thread(found), others[position + 1 :])
    return Message(first[begin:], None, thread, others)


def _thread(tail: re.Match[bytes]) -> bytes | None:
    return tail.groupdict().get("thread")


class _Clocks:
    """A clock for each process of a file: each has an order of its own."""

    def __init__(self, item: WorkItem) -> None:
        self._zone = item.time_zone
        self._date = date_in_name(item.source_file)
        self._first = LogClock(self._zone, self._date)
        self._clocks: dict[str | None, LogClock] = {None: self._first}

    def of(self, stream: str | None) -> LogClock:
        clock = self._clocks.get(stream)
        if clock is None:
            if len(self._clocks) > _MAX_CLOCKS:
                self._clocks = {None: self._first}
            clock = self._clocks[stream] = LogClock(self._zone, self._date, self._first)
        return clock

    def settled(self, records: Iterator[Framed]) -> Iterator[Framed]:
        """The same records; where they begin in a repeated hour, the clock has learnt from them which pass it is."""
        ahead: list[Framed] = []
        size = 0
        clock = self.of(None)
        for record in records:
            ahead.append(record)
            size += record.length
            text = _time_text(record)
            if size > _SETTLE_BYTES or (text is not None and (record.stream or not clock.is_repeated(text))):
                break
        clock.settle(text for record in ahead if (text := _time_text(record)) is not None)
        yield from ahead
        yield from records


def _time_text(record: Framed) -> str | None:
    return None if record.header is None else record.header.group("time").decode("utf-8", "replace")


def rejected(item: WorkItem, source: Iterable[bytes]) -> Iterator[Rejected]:
    """The records of a log that cannot be read."""
    assert item.layout is not None
    clocks = _Clocks(item)
    for record in frame(source, reading(item.layout), item.offset, item.line):
        reason = record.reason
        text = _time_text(record)
        if reason is None and text is not None:
            reason = clocks.of(record.stream).problem(text)
        if reason is not None:
            yield Rejected(Place(record.offset, record.length, record.line, record.data), reason)


def kept(
    item: WorkItem,
    source: Iterable[bytes],
    match: Matcher,
    count: Callable[[int, int], None],
    match_cause: CauseMatcher | None = None,
) -> Iterator[pa.RecordBatch]:
    """The records of a log that can be read, as batches; ``count`` is told (read, rejected) at the end.

    ``match_cause`` says what the exception behind a message is; without it none is named. The broker of a record is
    that of its stream, where ``item.streams`` says which brokers the streams are, and else that of the item.
    """
    assert item.layout is not None
    how = reading(item.layout)
    clocks = _Clocks(item)
    rows = _Rows(item, how, clocks, match, match_cause)
    read = 0
    for record in clocks.settled(frame(source, how, item.offset, item.line)):
        read += 1
        rows.add(record)
        if rows.is_full:
            yield rows.take()
    if rows.count:
        yield rows.take()
    count(read, rows.rejected)


class _Rows:
    """Columns of one batch."""

    def __init__(
        self, item: WorkItem, how: Reading, clocks: _Clocks, match: Matcher, match_cause: CauseMatcher | None
    ) -> None:
        self._item = item
        self._how = how
        self._clocks = clocks
        self._micros = clocks.of(None).micros
        self._streams: Mapping[str, int | None] | None = item.streams
        self._match = match
        self._match_cause = match_cause
        self._record_id = record_ids(item.record_base)
        self._single = not how.layout.has_logger and how.layout.tail is LOGGER_AT_END
        self._has_thread = how.layout.has_thread
        self._loggers: dict[bytes, str | None] = {}
        self._levels: dict[bytes, str] = {}
        self._kinds: dict[str | None, str] = {}
        self.rejected = 0
        self._clear()

    def _clear(self) -> None:
        self.count = 0
        self._bytes = 0
        self._rows: list[tuple[Any, ...]] = []
        self._field_offsets = array("i", [0])
        self._field_keys: list[str] = []
        self._field_values: list[str] = []

    @property
    def is_full(self) -> bool:
        return self.count >= BATCH_ROWS or self._bytes >= BATCH_BYTES

    def add(self, record: Framed) -> None:
        header = record.header
        if record.reason is not None or header is None:
            self.rejected += 1
            return
        time_text = header.group("time").decode("utf-8", "replace")
        stream = record.stream
        micros = self._micros(time_text) if stream is None else self._clocks.of(stream).micros(time_text)
        if micros is None:
            self.rejected += 1
            return
        content = record.content
        text = content[0]
        logger: str | None
        continuation = thread = None
        # The usual record: one line that ends with its logger.
        split = text.rfind(b" (") if self._single and text.endswith(b")") else -1
        if split >= header.end() - 1:
            name = text[split + 2 : -1]
            logger = self._loggers.get(name, "")
            if logger == "":
                found = LOGGER_AT_END.search(text, split)
                logger = self._loggers[name] = found.group(1).decode() if found else None
        else:
            logger = None
        if logger is not None:
            message = text[header.end() : max(split, header.end())].decode("utf-8", "replace")
            if len(content) > 1:
                continuation = b"\n".join(content[1:]).decode("utf-8", "replace")
            if self._has_thread:
                thread = header.group("thread").decode("utf-8", "replace")
        else:
            parts = message_of(record, self._how)
            message = parts.text.decode("utf-8", "replace")
            logger = parts.logger.decode("utf-8", "replace") if parts.logger else None
            thread = parts.thread.decode("utf-8", "replace") if parts.thread else None
            if parts.continuation:
                continuation = b"\n".join(parts.continuation).decode("utf-8", "replace")
        kind = self._kinds.get(logger) if logger is not None else None
        if kind is None:
            kind = self._kinds[logger] = record_kind(logger, message, self._item.kind)
        matched = self._match(kind, logger, message)
        level = header.group("level")
        printed = self._levels.get(level)
        if printed is None:
            printed = self._levels[level] = level.decode("utf-8", "replace").upper()
        if matched is None:
            shape_id, event_type = None, UNRECOGNISED
        else:
            shape_id, event_type = matched.shape_id, matched.event_type
            self._field_keys.extend(matched.fields.keys())
            self._field_values.extend(matched.fields.values())
        cause_type = None
        if continuation is not None and self._match_cause is not None:
            cause = self._match_cause(continuation.split("\n", 1)[0])
            if cause is not None:
                cause_type = cause.event_type
        self._field_offsets.append(len(self._field_keys))
        self._rows.append(
            (
                self._record_id(record.offset, record.data),
                kind,
                record.line,
                record.offset,
                record.length,
                micros,
                time_text,
                printed,
                thread,
                logger,
                message,
                continuation,
                shape_id,
                event_type,
                cause_type,
                self._item.broker_id if self._streams is None else self._streams.get(stream or ""),
            )
        )
        self.count += 1
        self._bytes += record.length

    def take(self) -> pa.RecordBatch:
        columns: dict[str, Any] = dict(zip(_ROW, map(list, zip(*self._rows, strict=True)), strict=True))
        columns["fields"] = pa.MapArray.from_arrays(
            pa.array(self._field_offsets, type=pa.int32()),
            pa.array(self._field_keys, type=pa.string()),
            pa.array(self._field_values, type=pa.string()),
        )
        taken = batch(LOG_RECORDS, self._item, columns, self.count)
        self._clear()
        return taken
