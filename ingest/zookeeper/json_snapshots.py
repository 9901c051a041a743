"""Znode snapshots as JSON lines: one line per znode, to the rows of ``bronze.znode_snapshots``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ingest.logs.framing import MAX_RECORD_BYTES, TOO_LONG, lines
from ingest.secrets import shown_znode
from ingest.work import Kept, Place, Rejected, WorkItem

#: JSON key of the znode's stat -> column.
_STAT: Final[Mapping[str, str]] = {
    "czxid": "czxid",
    "mzxid": "mzxid",
    "pzxid": "pzxid",
    "version": "version",
    "cversion": "cversion",
    "ephemeralOwner": "ephemeral_owner",
    "numChildren": "num_children",
}


def read(item: WorkItem, source: Iterable[bytes]) -> Iterator[Kept | Rejected]:
    """The znodes of one snapshot; their paths are those below Kafka's chroot."""
    offset, number = item.offset, item.line
    for group in lines(source):
        for data, length in group:
            place = Place(offset, length, number, data)
            offset += length
            number += 1
            if length > MAX_RECORD_BYTES:
                yield Rejected(place, TOO_LONG)
            elif data.strip():
                yield _znode(place, item.chroot)


def _znode(place: Place, chroot: str) -> Kept | Rejected:
    try:
        entry = json.loads(place.data)
    except (ValueError, RecursionError) as error:
        return Rejected(place, f"no JSON: {error}")
    if not isinstance(entry, dict):
        return Rejected(place, "no JSON object")
    missing = sorted({"captured_at", "path", "mzxid"} - set(entry))
    if missing:
        return Rejected(place, f"a znode without {', '.join(missing)}")
    path = entry["path"]
    if not isinstance(path, str):
        return Rejected(place, "a znode whose path is no text")
    if not _is_text(path) or not _is_text(entry.get("data")):
        return Rejected(place, "a znode whose path or data hold half a character")
    if chroot and path != chroot and not path.startswith(chroot + "/"):
        return Rejected(place, f"a znode outside of Kafka's chroot {chroot}")
    data = entry.get("data")
    try:
        values: dict[str, Any] = {
            "captured_at": _micros(entry["captured_at"]),
            "snapshot_zxid": None,
            "path": path[len(chroot) :] or "/",
            "data": shown_znode(path, data if data is None or isinstance(data, str) else json.dumps(data)),
            "ctime": _micros(entry.get("ctime")),
            "mtime": _micros(entry.get("mtime")),
        }
        for key, column in _STAT.items():
            value = entry.get(key)
            values[column] = (
                None if value is None else _bounded(int(value), 31 if "version" in column or "num" in column else 63)
            )
    except (ValueError, TypeError, OverflowError):
        return Rejected(place, "a znode whose stat holds what is no number")
    if values["captured_at"] is None:
        return Rejected(place, "a znode without the instant of its reading")
    return Kept(place, values)


def _is_text(value: Any) -> bool:
    """Whether a value is no text, or one that has an encoding: JSON may name half of a character."""
    try:
        return not isinstance(value, str) or value.encode() is not None
    except UnicodeEncodeError:
        return False


def _bounded(value: int, bits: int) -> int:
    if not -(1 << bits) <= value < (1 << bits):
        raise OverflowError(value)
    return value


def _micros(milliseconds: Any) -> int | None:
    return None if milliseconds is None else _bounded(round(float(milliseconds) * 1000), 62)
