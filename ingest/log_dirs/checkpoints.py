"""Kafka's checkpoint files, to one row per entry; the good entries of a damaged file are kept.

The format: a version line (0), a line with the number of entries, then that many entries. What Kafka itself
would refuse is a rejected record that says what is wrong and where.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ingest import paths
from ingest.logs.framing import MAX_RECORD_BYTES, TOO_LONG, lines
from ingest.work import Kept, Place, Rejected, WorkItem

_INT: Final = re.compile(r"^-?\d{1,18}$")
_INT32_END: Final = 1 << 31


def read(item: WorkItem, source: Iterable[bytes]) -> Iterator[Kept | Rejected]:
    """The entries of an offset checkpoint or a leader epoch checkpoint."""
    places = _places(item, source)
    version = next(places, None)
    if version is None:
        return
    if version.data.strip() != b"0":
        yield Rejected(version, f"version {_shown(version)} of the checkpoint format is not known: only 0 is")
        for place in places:
            yield Rejected(place, "an entry of a checkpoint whose version is not known")
        return
    count = next(places, None)
    if count is None:
        return
    expected = int(count.data) if count.data.strip().isdigit() else None
    if expected is None:
        yield Rejected(count, f"the number of entries is not a number: {_shown(count)}")
    entry = _epoch_entry if item.kind == "leader_epoch_checkpoint" else _offset_entry
    found, last = 0, count
    seen: dict[tuple[Any, ...], int] = {}
    directory = paths.topic_partition(item.directory or "")
    for place in places:
        found += 1
        last = place
        values = None if place.length > MAX_RECORD_BYTES else entry(place.data.decode("utf-8", "replace").split(" "))
        if place.length > MAX_RECORD_BYTES:
            yield Rejected(place, TOO_LONG)
        elif values is None:
            yield Rejected(place, f"a malformed entry: {_shown(place)}")
        else:
            key = (values.get("topic"), values.get("partition_id"), values.get("leader_epoch"))
            if key in seen:
                yield Rejected(place, f"a second entry for the same key as line {seen[key]}")
                continue
            seen[key] = place.line
            if directory is not None and item.kind == "leader_epoch_checkpoint":
                values = {"topic": directory[0], "partition_id": directory[1]} | dict(values)
            yield Kept(place, values)
    if expected is not None and expected != found:
        end = last.offset + last.length
        yield Rejected(Place(end, 0, last.line + 1, b""), f"{expected} entries were announced, {found} are there")


def _places(item: WorkItem, source: Iterable[bytes]) -> Iterator[Place]:
    offset, number = item.offset, item.line
    for group in lines(source):
        for data, length in group:
            yield Place(offset, length, number, data)
            offset += length
            number += 1


def _offset_entry(parts: list[str]) -> Mapping[str, Any] | None:
    parts = _stripped(parts)
    if len(parts) != 3 or not parts[0] or not all(_INT.match(part) for part in parts[1:]):
        return None
    partition, offset = int(parts[1]), int(parts[2])
    if not 0 <= partition < _INT32_END:
        return None
    return {"topic": parts[0], "partition_id": partition, "offset": offset}


def _epoch_entry(parts: list[str]) -> Mapping[str, Any] | None:
    parts = _stripped(parts)
    if len(parts) != 2 or not all(_INT.match(part) for part in parts):
        return None
    epoch, start = int(parts[0]), int(parts[1])
    return {"leader_epoch": epoch, "start_offset": start} if -_INT32_END <= epoch < _INT32_END else None


def _stripped(parts: list[str]) -> list[str]:
    """Kafka splits at white space and knows no blank before the first part."""
    text = " ".join(parts).rstrip("\r\n \t")
    return re.split(r"\s+", text)


def _shown(place: Place) -> str:
    return repr(place.data[:120].decode("utf-8", "replace").rstrip("\r\n"))
