"""Framed log records to the rows of ``bronze.log_records``: the hot path of the ingest.

Columns are built as lists and given to Arrow a batch at a time. Most records come in runs, whose columns are made
whole; what repeats (loggers, levels, seconds) is looked up rather than parsed again.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, compress, repeat
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from ingest.lake.tables.bronze import LOG_RECORDS
from ingest.lake.tables.types import arrow_type
from ingest.readers.batches import BATCH_BYTES, BATCH_ROWS, batch
from ingest.readers.identity import record_ids
from ingest.readers.logs.framing import NO_HEADER, Framed, frame
from ingest.readers.logs.layouts import Reading, reading
from ingest.readers.logs.runs import Run
from ingest.readers.logs.times import NO_CALENDAR, LogClock, date_in_name
from ingest.readers.logs.writers import record_kind
from ingest.readers.secrets import masked_lines, masked_texts
from ingest.readers.work import Place, Rejected, WorkItem

if TYPE_CHECKING:
    from ingest.shapes.matching import Match

UNRECOGNISED: Final = "unrecognised"
#: As much of a log that begins in a repeated hour is looked at to tell in which pass through it.
_SETTLE_BYTES: Final = 16 << 20
_MAX_CLOCKS: Final = 10_000

#: What a message shape says of a message.
Matcher = Callable[[str, "str | None", str], "Match | None"]
#: What an exception says, by its line.
CauseMatcher = Callable[[str], "Match | None"]


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

    def settled(self, records: Iterable[Framed | Run]) -> Iterator[Framed | Run]:
        """The same records; where they begin in a repeated hour, the clock has learnt from them which pass it is."""
        ahead: list[Framed | Run] = []
        size = 0
        clock = self.of(None)
        items = iter(records)
        for item in items:
            ahead.append(item)
            size += item.length
            stream = item.stream if isinstance(item, Framed) else None
            if size > _SETTLE_BYTES or any(stream or not clock.is_repeated(text) for text in _time_texts(item)):
                break
        clock.settle(text for item in ahead for text in _time_texts(item))
        yield from ahead
        yield from items


def _time_texts(item: Framed | Run) -> Sequence[str]:
    if isinstance(item, Run):
        return item.times
    return () if item.header is None else (item.header.group("time").decode("utf-8", "replace"),)


def read(
    item: WorkItem, source: Iterable[bytes], match: Matcher, match_cause: CauseMatcher | None = None
) -> Iterator[pa.RecordBatch | Rejected]:
    """The records of a log: those that can be read as batches of rows, the others one by one.

    ``match_cause`` says what the exception behind a message is; without it none is named. The broker of a record is
    that of its stream, where ``item.streams`` says which brokers the streams are, and else that of the item.
    """
    assert item.layout is not None
    how = reading(item.layout)
    clocks = _Clocks(item)
    rows = _Rows(item, how, clocks, match, match_cause)
    for records in clocks.settled(frame(source, how, item.offset, item.line, in_runs=True)):
        if isinstance(records, Run):
            yield from rows.add_run(records)
        else:
            reason = rows.add(records)
            if reason is not None:
                yield Rejected(Place(records.offset, records.length, records.line, records.data), reason)
        if rows.is_full:
            yield rows.take()
    if rows.count:
        yield rows.take()


class _Rows:
    """Columns of one batch."""

    def __init__(
        self, item: WorkItem, how: Reading, clocks: _Clocks, match: Matcher, match_cause: CauseMatcher | None
    ) -> None:
        self._item = item
        self._how = how
        self._clocks = clocks
        self._clock = clocks.of(None)
        self._micros = self._clock.micros
        self._streams: Mapping[str, int | None] | None = item.streams
        self._match = match
        self._match_cause = match_cause
        self._record_id = record_ids(item.record_base)
        self._levels: dict[bytes, str] = {}
        self._kinds: dict[str | None, str] = {}
        self._clear()

    def _clear(self) -> None:
        self.count = 0
        self._bytes = 0
        self._columns: defaultdict[str, list[Any]] = defaultdict(list)
        self._field_offsets = array("i", [0])
        self._field_keys: list[str] = []
        self._field_values: list[str] = []

    @property
    def is_full(self) -> bool:
        return self.count >= BATCH_ROWS or self._bytes >= BATCH_BYTES

    def add_run(self, run: Run) -> list[Rejected]:
        """Add records that were taken apart already; gives those whose time cannot be read."""
        rejected: list[Rejected] = []
        lengths = list(map(len, run.texts))
        offsets = list(accumulate(lengths[:-1], initial=run.offset))
        messages = masked_texts(run.messages)
        if not all(map(str.isascii, messages)):
            messages = [text.encode("latin-1").decode("utf-8", "replace") for text in messages]
        columns: dict[str, Sequence[Any]] = {
            "record_id": list(map(self._record_id, offsets, [text.encode("latin-1") for text in run.texts])),
            "source_kind": [self._kind(logger, "") for logger in run.loggers],
            "source_line": range(run.line, run.line + len(lengths)),
            "byte_offset": offsets,
            "byte_length": lengths,
            "event_time": list(map(self._micros, run.times)),
            "event_time_text": run.times,
            "log_level": list(map(str.upper, run.levels)),
            "logger": run.loggers,
            "message": messages,
        }
        if None in columns["event_time"]:
            readable = [micros is not None for micros in columns["event_time"]]
            for place, (text, time_text) in enumerate(zip(run.texts, run.times, strict=True)):
                if not readable[place]:
                    where = Place(offsets[place], lengths[place], run.line + place, text.encode("latin-1"))
                    rejected.append(Rejected(where, self._clock.problem(time_text) or NO_CALENDAR))
            columns = {name: list(compress(values, readable)) for name, values in columns.items()}
        for name, values in columns.items():
            self._columns[name].extend(values)
        self._add_matches(map(self._match, columns["source_kind"], columns["logger"], columns["message"]))
        rows = len(columns["message"])
        for name in ("thread", "continuation", "cause_type"):
            self._columns[name].extend(repeat(None, rows))
        self._columns["broker_id"].extend(repeat(self._broker_id(None), rows))
        self.count += rows
        self._bytes += sum(columns["byte_length"])
        return rejected

    def add(self, record: Framed) -> str | None:
        """Add a record; gives the reason where it cannot be read."""
        header = record.header
        if record.reason is not None or header is None:
            return record.reason or NO_HEADER
        time_text = header.group("time").decode("utf-8", "replace")
        stream = record.stream
        clock = self._clock if stream is None else self._clocks.of(stream)
        micros = clock.micros(time_text)
        if micros is None:
            return clock.problem(time_text)
        parts = self._how.layout.message_of(header, record.content)
        logger = _text(parts.logger)
        more = _text(b"\n".join(parts.continuation)) if parts.continuation else None
        message, continuation = masked_lines(_text(parts.text) or "", more)
        kind = self._kind(logger, message)
        level = header.group("level")
        printed = self._levels.get(level)
        if printed is None:
            printed = self._levels[level] = level.decode("utf-8", "replace").upper()
        cause_type = None
        if continuation is not None and self._match_cause is not None:
            cause = self._match_cause(continuation.split("\n", 1)[0])
            if cause is not None:
                cause_type = cause.event_type
        row = {
            "record_id": self._record_id(record.offset, record.data),
            "source_kind": kind,
            "source_line": record.line,
            "byte_offset": record.offset,
            "byte_length": record.length,
            "event_time": micros,
            "event_time_text": time_text,
            "log_level": printed,
            "thread": _text(parts.thread),
            "logger": logger,
            "message": message,
            "continuation": continuation,
            "cause_type": cause_type,
            "broker_id": self._broker_id(stream),
        }
        for column, value in row.items():
            self._columns[column].append(value)
        self._add_matches([self._match(kind, logger, message)])
        self.count += 1
        self._bytes += record.length
        return None

    def _kind(self, logger: str | None, message: str) -> str:
        kind = self._kinds.get(logger) if logger is not None else None
        if kind is None:
            kind = self._kinds[logger] = record_kind(logger, message, self._item.kind)
        return kind

    def _broker_id(self, stream: str | None) -> int | None:
        return self._item.broker_id if self._streams is None else self._streams.get(stream or "")

    def _add_matches(self, matches: Iterable[Match | None]) -> None:
        """Add what the messages of the next rows say."""
        shape_ids, event_types = self._columns["shape_id"], self._columns["event_type"]
        keys, values, offsets = self._field_keys, self._field_values, self._field_offsets
        for found in matches:
            if found is None:
                shape_ids.append(None)
                event_types.append(UNRECOGNISED)
            else:
                shape_ids.append(found.shape_id)
                event_types.append(found.event_type)
                keys.extend(found.fields)
                values.extend(found.fields.values())
            offsets.append(len(keys))

    def take(self) -> pa.RecordBatch:
        columns: dict[str, Any] = dict(self._columns)
        columns["fields"] = pa.MapArray.from_arrays(
            pa.array(self._field_offsets, type=arrow_type("int")),
            pa.array(self._field_keys, type=arrow_type("string")),
            pa.array(self._field_values, type=arrow_type("string")),
        )
        taken = batch(LOG_RECORDS, self._item, columns, self.count)
        self._clear()
        return taken


def _text(data: bytes | None) -> str | None:
    return data.decode("utf-8", "replace") if data else None
