"""Segments of the metadata log to rows of ``bronze.metadata_records``, snapshots to ``bronze.metadata_snapshots``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeGuard

from ingest.readers.log_dirs.names import file_name, partition_file
from ingest.readers.metadata_log.framing import HEADER, Batch, BatchFramer
from ingest.readers.metadata_log.record_types import Decoded, control_record, metadata_record
from ingest.readers.work import Kept, Place, Rejected, WorkItem
from ingest.readers.zookeeper.columns import micros

_NO_OP: Final = "NoOpRecord"
#: So many NoOps are one row at most: what is read of a growing file in several steps has runs of about the same length.
MOST_FOLDED: Final = 1_000
_CONTROL: Final = 0x20
_COMPRESSED: Final = 0x07
_SNAPSHOT: Final = re.compile(r"^(\d{20})-(\d{10})\.checkpoint")


class Record(NamedTuple):
    """A record of a batch: where it begins and ends in the batch's bytes, its offset, and what it holds."""

    start: int
    end: int
    offset: int
    timestamp_ms: int
    decoded: Decoded


def read(item: WorkItem, source: Iterable[bytes]) -> Iterator[Kept | Rejected]:
    """The records of one segment, or of a part of it that begins at a batch; NoOps in a row are one."""
    run: list[Kept] = []
    for found in _records(item, source):
        if not _is_no_op(found) or len(run) == MOST_FOLDED:
            yield from _folded(run)
            run = []
        if _is_no_op(found):
            run.append(found)
        else:
            yield found
    yield from _folded(run)


def _is_no_op(found: Kept | Rejected) -> TypeGuard[Kept]:
    return isinstance(found, Kept) and found.values["record_type"] == _NO_OP


def snapshot_id(name: str) -> tuple[int, int] | None:
    """The first offset that a snapshot of that name does not hold, and the epoch of the last that it does."""
    named = _SNAPSHOT.match(name)
    return None if named is None else (int(named[1]), int(named[2]))


def read_snapshot(item: WorkItem, source: Iterable[bytes]) -> Iterator[Kept | Rejected]:
    """The records of one snapshot, which say what held before its offset: their own offsets count them from 0."""
    offset, epoch = snapshot_id(file_name(item.source_file)) or (None, None)
    for found in _records(item, source):
        if isinstance(found, Kept):
            own = {name: value for name, value in found.values.items() if name in _OF_SNAPSHOTS}
            given = {"snapshot_end_offset": offset, "snapshot_epoch": epoch, "position": found.values["offset"]}
            yield found._replace(values=own | given)
        else:
            yield found


_OF_SNAPSHOTS: Final = frozenset({"record_type", "record_version", "fields", "problem", "appended_at"})


def _records(item: WorkItem, source: Iterable[bytes]) -> Iterator[Kept | Rejected]:
    name = file_name(item.source_file)
    named = None if item.offset else partition_file(name)
    following = 0 if _SNAPSHOT.match(name) else None if named is None else named.base_offset
    for batch in _batches(item, source):
        found = _found(batch, following)
        following = None if isinstance(found, str) else found[-1].offset + 1
        if isinstance(found, str):
            yield Rejected(Place(batch.offset, batch.length, batch.number, batch.data), found)
        else:
            yield from _rows(batch, found)


def _batches(item: WorkItem, source: Iterable[bytes]) -> Iterator[Batch]:
    framer = BatchFramer(item.offset, item.line)
    for block in source:
        yield from framer.take(block)
    yield from framer.finish()


def _found(batch: Batch, following: int | None) -> list[Record] | str:
    """The records of a batch, or why they cannot be read. Offsets have no gaps (and no checksum covers a batch's)."""
    if batch.reason is not None:
        return batch.reason
    try:
        found = list(records_of(batch.data))
    except (IndexError, ValueError) as error:
        return f"the records of the batch at byte {batch.offset} cannot be read: {error}"
    if following not in (None, found[0].offset):
        return f"the batch at byte {batch.offset} begins at offset {found[0].offset}, where {following} follows"
    return found


def _rows(batch: Batch, found: list[Record]) -> Iterator[Kept]:
    base, _, epoch, *_ = HEADER.unpack_from(batch.data)
    for number, record in enumerate(found):
        # the batch's header belongs to its first record
        start = record.start if number else 0
        place = Place(batch.offset + start, record.end - start, batch.number, batch.data[start : record.end])
        yield Kept(place, _values(record, base, epoch))


def _values(record: Record, base_offset: int, epoch: int) -> dict[str, Any]:
    decoded = record.decoded
    return {
        "offset": record.offset,
        "last_offset": record.offset,
        "leader_epoch": epoch,
        "batch_offset": base_offset,
        "appended_at": micros(record.timestamp_ms),
        "record_type": decoded.record_type,
        "record_version": decoded.version,
        "fields": None if decoded.fields is None else _json(decoded.fields),
        "problem": decoded.problem,
    }


def _json(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def _folded(run: list[Kept]) -> Iterator[Kept]:
    if run:
        first, last = run[0], run[-1]
        length = last.place.offset + last.place.length - first.place.offset
        yield Kept(first.place._replace(length=length), {**first.values, "last_offset": last.values["last_offset"]})


def records_of(batch: bytes) -> Iterator[Record]:
    """The records of a whole batch, in order. ``ValueError`` where they are not those that its header counts."""
    base, _, _, _, _, attributes, last_delta, base_timestamp, _, _, _, _, count = HEADER.unpack_from(batch)
    if attributes & _COMPRESSED:
        raise ValueError("they are compressed, which Kafka never does here")
    at, read_count = HEADER.size, 0
    while at < len(batch):
        size, body = _varint(batch, at)
        end = body + size
        if not body < end <= len(batch):
            raise ValueError(f"record {read_count + 1} is longer than its batch")
        timestamp_delta, at = _varint(batch, body + 1)
        offset_delta, at = _varint(batch, at)
        key, at = _bytes(batch, at, end)
        value, _ = _bytes(batch, at, end)
        if not 0 <= offset_delta <= last_delta:
            raise ValueError(f"record {read_count + 1} has an offset outside of its batch")
        decoded = control_record(key, value) if attributes & _CONTROL else metadata_record(value)
        yield Record(body - _width(size), end, base + offset_delta, base_timestamp + timestamp_delta, decoded)
        at, read_count = end, read_count + 1
    if read_count != count or not count:
        raise ValueError(f"{read_count} records, of {count} that its header states")


def _width(size: int) -> int:
    """Bytes that a length takes as a number of variable length."""
    return max(1, -(-((size << 1).bit_length()) // 7))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A signed number of variable length (zigzag), and where it ends."""
    found = shift = 0
    while shift < 64:
        byte = data[at]
        found |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at
    raise ValueError("a number that does not end")


def _bytes(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    size, at = _varint(data, at)
    if size < 0:
        return None, at
    if at + size > end:
        raise ValueError("a key or value that is longer than its record")
    return data[at : at + size], at + size
