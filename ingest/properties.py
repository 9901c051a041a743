"""``server.properties`` and ``meta.properties``, to one row per key. Secrets are not taken over."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from ingest.logs.framing import MAX_RECORD_BYTES, TOO_LONG, lines
from ingest.work import Kept, Place, Rejected, WorkItem

HIDDEN: Final = "[hidden]"
_SECRET: Final = re.compile(
    r"password|passwd|secret|sasl\.jaas|keystore|truststore|private\.?key|credential|token|api\.?key|certificate\.chain",
    re.IGNORECASE,
)
#: Names that only sound like a secret: what they hold is needed to judge a cluster, and is none.
_NO_SECRET: Final = re.compile(
    r"\.(?:type|algorithm|location|ms|bytes|class|protocol|enabled?|interval)$", re.IGNORECASE
)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SPLIT: Final = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:\s]\s*(.*)", re.DOTALL)
_URI_SECRET: Final = re.compile(r"(//[^/@\s:]+:)[^/@\s]+@")


def read(item: WorkItem, source: Iterable[bytes]) -> Iterator[Kept | Rejected]:
    """The properties of one file, as Java reads them; comments and blank lines are no records."""
    pending: list[Place] = []
    offset, number = item.offset, item.line
    for group in lines(source):
        for data, length in group:
            place = Place(offset, length, number, data)
            offset += length
            number += 1
            if length > MAX_RECORD_BYTES:
                yield Rejected(place, TOO_LONG)
                continue
            text = data.strip()
            if not pending and (not text or text.startswith((b"#", b"!"))):
                continue
            pending.append(place)
            if _is_continued(text):
                continue
            yield _property(pending)
            pending = []
    if pending:
        yield _property(pending)


def _is_continued(text: bytes) -> bool:
    return (len(text) - len(text.rstrip(b"\\"))) % 2 == 1


def _property(places: list[Place]) -> Kept | Rejected:
    parts = [place.data.decode("utf-8", "replace").strip("\r\n").lstrip() for place in places]
    text = "".join([*(part.rstrip()[:-1] for part in parts[:-1]), parts[-1]])
    first = places[0]
    place = Place(first.offset, sum(p.length for p in places), first.line, b"".join(p.data for p in places))
    found = _SPLIT.fullmatch(text) or re.fullmatch(r"(\S+)()", text)
    if found is None or not found.group(1):
        return Rejected(place._replace(data=b""), "a property without a name")
    key = _unescaped(found.group(1))
    value = _unescaped(found.group(2).rstrip("\r\n"))
    if _SECRET.search(key) and not _NO_SECRET.search(key):
        value = HIDDEN
    return Kept(place, {"config_key": key, "config_value": _URI_SECRET.sub(rf"\1{HIDDEN}@", value)})


def _unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        code = found.group(1)
        if len(code) == 5:
            return chr(int(code[1:], 16))
        return {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(code, code)

    return _ESCAPE.sub(character, text)
