"""Znode snapshots as JSON lines: one line per znode, to the rows of ``bronze.znode_snapshots``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ingest.readers.capture_lines import json_lines
from ingest.readers.capture_lines.json_lines import bounded, is_text, micros
from ingest.readers.secrets import masked_znode
from ingest.readers.work import Kept, Place, Rejected, WorkItem

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
    for place, entry in json_lines.objects(item, source):
        if isinstance(entry, dict):
            yield _znode(place, entry, item.chroot)
        elif entry is not json_lines.EMPTY_LINE:
            yield Rejected(place, entry)


def _znode(place: Place, entry: Mapping[str, Any], chroot: str) -> Kept | Rejected:
    missing = sorted({"captured_at", "path", "mzxid"} - set(entry))
    if missing:
        return Rejected(place, f"a znode without {', '.join(missing)}")
    path = entry["path"]
    if not isinstance(path, str):
        return Rejected(place, "a znode whose path is no text")
    if not is_text(path) or not is_text(entry.get("data")):
        return Rejected(place, "a znode whose path or data hold half a character")
    if chroot and path != chroot and not path.startswith(chroot + "/"):
        return Rejected(place, f"a znode outside of Kafka's chroot {chroot}")
    data = entry.get("data")
    try:
        values: dict[str, Any] = {
            "captured_at": micros(entry["captured_at"]),
            "snapshot_zxid": None,
            "path": path[len(chroot) :] or "/",
            "data": masked_znode(path, data if data is None or isinstance(data, str) else json.dumps(data)),
            "ctime": micros(entry.get("ctime")),
            "mtime": micros(entry.get("mtime")),
        }
        for key, column in _STAT.items():
            value = entry.get(key)
            values[column] = (
                None if value is None else bounded(int(value), 31 if "version" in column or "num" in column else 63)
            )
    except (ValueError, TypeError, OverflowError):
        return Rejected(place, "a znode whose stat holds what is no number")
    if values["captured_at"] is None:
        return Rejected(place, "a znode without the instant of its reading")
    return Kept(place, values)
