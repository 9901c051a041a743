"""A segment's indexes and the snapshot of its producers: what they hold, and whether Kafka would take them.

Offset index: entries of 8 bytes, (offset relative to the base, position in the segment), about one per
``index.interval.bytes``. Time index: 12 bytes, (timestamp, relative offset). Both are allocated ahead with zeros
while their segment is written to. Transaction index: 34 bytes, one per aborted transaction. Producer snapshot:
version, checksum, count, entries of 46 bytes. The offset that an index entry names is that of the batch's last
record since 2.0 (its first record before): a reader begins at the largest entry at or below its target.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import google_crc32c
import numpy as np

from ingest.readers.log_dirs.samples import Sample

_OFFSET_ENTRY: Final = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_ENTRY: Final = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
_TRANSACTION_ENTRY: Final = np.dtype(
    [("version", ">i2"), ("producer_id", ">i8"), ("first", ">i8"), ("last", ">i8"), ("last_stable", ">i8")]
)
_SNAPSHOT_HEADER: Final = struct.Struct(">hIi")
_SNAPSHOT_CRC_FROM: Final = 6
_SNAPSHOT_ENTRY_BYTES: Final = 46
#: So many entries are looked at together.
_GROUP_ENTRIES: Final = 1 << 16
_SNAPSHOT_VERSION: Final = 1

_Entries = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class IndexSummary:
    """What an index holds; the fields are the columns of ``bronze.log_segments``."""

    size_bytes: int
    entries_count: int
    last_indexed_offset: int | None = None
    last_indexed_position: int | None = None
    max_index_interval_bytes: int | None = None
    problem: str | None = None
    sampled_one_in: int | None = None
    sampled_positions: list[int] | None = None
    sampled_offsets: list[int] | None = None
    sampled_timestamps: list[int] | None = None


def offset_index(source: Iterable[bytes], base_offset: int) -> IndexSummary:
    """The summary of an ``.index`` file."""
    walk, sample = _Entered(_OFFSET_ENTRY, "offset"), Sample()
    interval = -1
    for entries in walk.read(source):
        sample.add_all(walk.column("position"), walk.column("offset"))
        offsets, positions = entries["offset"], entries["position"].astype(np.int64)
        steps = np.diff(positions)
        interval = max(interval, int(steps.max(initial=-1)))
        walk.judge(
            (
                (offsets[1:] <= offsets[:-1]) | (steps <= 0),
                1,
                "does not rise above the one before it in offset and position",
            ),
            ((offsets < 0) | (positions < 0), 0, "has a negative offset or position"),
        )
    return walk.summary(
        last_indexed_offset=_absolute(base_offset, walk.last("offset")),
        last_indexed_position=walk.last("position"),
        max_index_interval_bytes=interval if interval >= 0 else None,
        sampled_one_in=sample.one_in,
        sampled_positions=sample.column(0),
        sampled_offsets=[_clipped(base_offset + relative) for relative in sample.column(1)],
    )


def time_index(source: Iterable[bytes], base_offset: int) -> IndexSummary:
    """The summary of a ``.timeindex`` file."""
    walk, sample = _Entered(_TIME_ENTRY, "time"), Sample()
    for entries in walk.read(source):
        sample.add_all(walk.column("offset"), walk.column("timestamp"))
        times, offsets = entries["timestamp"], entries["offset"]
        wrong = (times[1:] <= times[:-1]) | (offsets[1:] < offsets[:-1])
        walk.judge(
            (wrong, 1, "does not rise above the one before it in time, or falls behind it in offset"),
            (offsets < 0, 0, "has a negative offset"),
        )
    return walk.summary(
        last_indexed_offset=_absolute(base_offset, walk.last("offset")),
        sampled_one_in=sample.one_in,
        sampled_offsets=[_clipped(base_offset + relative) for relative in sample.column(0)],
        sampled_timestamps=sample.column(1),
    )


def transaction_index(source: Iterable[bytes], base_offset: int) -> IndexSummary:
    """The summary of a ``.txnindex`` file: its last offset is the one at which the last transaction was aborted."""
    walk = _Entered(_TRANSACTION_ENTRY, "transaction")
    for entries in walk.read(source):
        walk.judge(
            (entries["version"] != 0, 0, "is of a version that is not known: only 0 is"),
            (entries["last"] < base_offset, 0, "ends before the segment's base offset"),
        )
    return walk.summary(last_indexed_offset=walk.last("last"))


def producer_snapshot(source: Iterable[bytes]) -> IndexSummary:
    """The summary of a ``.snapshot`` file: its number of producers, its checksum verified."""
    head = b""
    size = crc = 0
    for block in source:
        missing = _SNAPSHOT_HEADER.size - len(head)
        if missing > 0:
            head += block[:missing]
        covered = block[max(0, _SNAPSHOT_CRC_FROM - size) :]
        size += len(block)
        if covered:
            crc = google_crc32c.extend(crc, bytes(covered))
    if len(head) < _SNAPSHOT_HEADER.size:
        return IndexSummary(size, 0, problem=f"{size} bytes are less than the header of a producer snapshot")
    version, expected, count = _SNAPSHOT_HEADER.unpack(head)
    problem = None
    if version != _SNAPSHOT_VERSION:
        problem = f"a producer snapshot of version {version}: only {_SNAPSHOT_VERSION} is known"
    elif crc != expected:
        problem = "the checksum of the producer snapshot does not hold"
    elif count < 0 or size != _SNAPSHOT_HEADER.size + count * _SNAPSHOT_ENTRY_BYTES:
        problem = f"{count} producers were announced, {size} bytes hold another number of them"
    whole = (size - _SNAPSHOT_HEADER.size) // _SNAPSHOT_ENTRY_BYTES
    return IndexSummary(size, min(max(count, 0), whole), problem=problem)


class _Entered:
    """Reads entries of a fixed size block by block, without the zeros allocated ahead at the end."""

    def __init__(self, entry: np.dtype[Any], name: str) -> None:
        self._entry = entry
        self._name = name
        self._size = 0
        self._count = 0
        self._last: _Entries = np.empty(0, entry)
        self._new = self._last
        self._first = 0
        self._problem: str | None = None
        self._wrong: str | None = None

    def read(self, source: Iterable[bytes]) -> Iterator[_Entries]:
        """The entries in groups, none empty, each behind the last entry of the group before."""
        zeros = 0
        for data in self._groups(source):
            whole = data[: len(data) // self._entry.itemsize * self._entry.itemsize]
            entries = np.frombuffer(whole, self._entry)
            rows = np.frombuffer(whole, np.uint8).reshape(len(entries), self._entry.itemsize)
            filled: _Entries = np.asarray(rows.any(axis=1))
            used = int(np.flatnonzero(filled)[-1]) + 1 if filled.any() else 0
            if used and self._problem is None and (zeros or not filled[:used].all()):
                at = self._count if zeros else self._count + int(np.argmin(filled[:used]))
                self._problem = f"entry {at} is zeros, and entries follow it"
            if used:
                self._count += zeros
                zeros = 0
                self._first = self._count - len(self._last)
                group = np.concatenate((self._last, entries[:used]))
                self._last, self._new = group[-1:], entries[:used]
                yield group
                self._count += used
            zeros += len(entries) - used
            if len(whole) < len(data) and self._problem is None:
                self._problem = f"{self._size} bytes are no multiple of an entry of the {self._name} index"

    def judge(self, *found: tuple[_Entries, int, str]) -> None:
        """Note what is wrong with the first wrong entry of the group: (which are, the place of the first, what is)."""
        firsts = [(int(np.argmax(wrong)) + shift, what) for wrong, shift, what in found if wrong.any()]
        if firsts and self._wrong is None:
            at, what = min(firsts, key=lambda first: first[0])
            self._wrong = f"entry {self._first + at} {what}"

    def column(self, name: str) -> _Entries:
        """Of the entries of the group, without that of the group before."""
        return self._new[name].astype(np.int64)

    def last(self, column: str) -> int | None:
        """Of the last entry; None where there is none."""
        return int(self._last[column][0]) if len(self._last) else None

    def summary(self, **columns: Any) -> IndexSummary:
        return IndexSummary(self._size, self._count, problem=self._wrong or self._problem, **columns)

    def _groups(self, source: Iterable[bytes]) -> Iterator[bytes]:
        """The bytes in groups of so many entries, however the source is cut; the last one may be shorter."""
        size = _GROUP_ENTRIES * self._entry.itemsize
        buffer = b""
        for block in source:
            self._size += len(block)
            buffer += block
            while len(buffer) >= size:
                yield buffer[:size]
                buffer = buffer[size:]
        if buffer:
            yield buffer


def _absolute(base_offset: int, relative: int | None) -> int | None:
    """The offset that an entry names; NULL beyond what an offset can be."""
    return base_offset + relative if relative is not None and 0 <= base_offset + relative < 1 << 63 else None


def _clipped(offset: int) -> int:
    """The largest that an offset can be, for one beyond it."""
    return min(offset, (1 << 63) - 1)
