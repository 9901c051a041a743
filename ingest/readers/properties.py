"""``server.properties`` and ``meta.properties``, to one row per key, as ``java.util.Properties`` reads them.

Secrets are not taken over: neither as a value nor as the text of a rejected record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from ingest.lake.tables.bronze import SourceKind
from ingest.readers.lines import MAX_RECORD_BYTES, TOO_LONG, line_places
from ingest.readers.secrets import masked_value
from ingest.readers.work import Kept, Place, Rejected, WorkItem

#: So many properties, or bytes of them, are held to find keys that are set twice: more than any real file has.
_MOST_ROWS: Final = 10_000
_MOST_BYTES: Final = 32 << 20

_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_BAD_ESCAPE: Final = re.compile(r"(?:^|[^\\])(?:\\\\)*\\u(?![0-9a-fA-F]{4})")
_PROPERTY: Final = re.compile(r"(?P<key>(?:[^\\=: \t\f]++|\\.)*+)[ \t\f]*(?:[=:][ \t\f]*)?(?P<value>.*)", re.DOTALL)
_BLANKS: Final = " \t\f"
_META_IDS: Final = ("broker.id", "node.id")


def read(
    item: WorkItem, source: Iterable[bytes], show: Callable[[str, str], str] = masked_value
) -> Iterator[Kept | Rejected]:
    """The properties of one file; comments and blank lines are no records. ``show`` gives what may be shown of a value.

    Of a key that is set twice the later value counts, as in Java; the earlier one is rejected. In
    ``meta.properties`` a version or an id that Kafka cannot read is rejected.
    """
    rows: list[Kept | Rejected] = []
    position: dict[str, int] = {}
    row_bytes = 0
    for row in _properties(item, source, show):
        if len(rows) >= _MOST_ROWS or row_bytes > _MOST_BYTES:
            yield from rows
            rows, position, row_bytes = [], {}, 0
        row_bytes += len(row.place.data)
        if isinstance(row, Kept):
            key = row.values["config_key"]
            before = position.get(key)
            if before is not None:
                name = key if key.isprintable() else repr(key)
                reason = f"{name} is set again on line {row.place.line}: of two the later counts"
                rows[before] = Rejected(_without_text(rows[before].place), reason)
            problem = (
                _meta_problem(key, row.values["config_value"]) if item.kind == SourceKind.META_PROPERTIES else None
            )
            if problem is not None:
                rows.append(Rejected(_without_text(row.place), problem))
                position.pop(key, None)
                continue
            position[key] = len(rows)
        rows.append(row)
    yield from rows


def _properties(item: WorkItem, source: Iterable[bytes], show: Callable[[str, str], str]) -> Iterator[Kept | Rejected]:
    pending: list[Place] = []
    pending_bytes = 0
    for place in line_places(item, source):
        text = place.data.strip(b" \t\f\r\n")
        if not pending and place.length <= MAX_RECORD_BYTES and (not text or text.startswith((b"#", b"!"))):
            continue
        pending_bytes += place.length
        # Of what is too long to be a property, only its place is kept.
        pending.append(place if pending_bytes <= MAX_RECORD_BYTES else _without_text(place))
        if pending_bytes > MAX_RECORD_BYTES:
            pending = [_joined(pending, b"")]
        if _is_continued(place.data):
            continue
        yield _property(pending, pending_bytes, show)
        pending, pending_bytes = [], 0
    if pending:
        yield _property(pending, pending_bytes, show)


def _is_continued(data: bytes) -> bool:
    """Whether the line ends with an odd number of backslashes; blanks after one end the continuation."""
    text = data.rstrip(b"\r\n")
    return (len(text) - len(text.rstrip(b"\\"))) % 2 == 1


def _property(places: list[Place], size: int, show: Callable[[str, str], str]) -> Kept | Rejected:
    if size > MAX_RECORD_BYTES:
        return Rejected(_joined(places, b""), TOO_LONG)
    parts = [_decoded(place.data).rstrip("\r\n").lstrip(_BLANKS) for place in places]
    last = parts[-1][:-1] if _is_continued(places[-1].data) else parts[-1]
    text = "".join([*(part[:-1] for part in parts[:-1]), last])
    place = _joined(places, b"".join(p.data for p in places))
    if _BAD_ESCAPE.search(text):
        return Rejected(_without_text(place), "a \\u that four hexadecimal digits do not follow: Java refuses the file")
    found = _PROPERTY.fullmatch(text)
    if found is None or not found.group("key"):
        return Rejected(_without_text(place), "a property without a name")
    key, value = _unescaped(found.group("key")), _unescaped(found.group("value"))
    if "\0" in key or len(key) > 1000:
        return Rejected(_without_text(place), "a name that no property has: it is damaged, or no property at all")
    return Kept(place, {"config_key": key, "config_value": show(key, value)})


def _meta_problem(key: str, value: str) -> str | None:
    """What Kafka refuses in a property of ``meta.properties``; versions 0 (``broker.id``) and 1 (``node.id``)."""
    if key == "version" and value.strip() not in ("0", "1"):
        return f"version {value[:40]!r} of meta.properties is not known: only 0 and 1 are"
    if key in _META_IDS and not re.fullmatch(r"[0-9]{1,10}", value.strip()):
        return f"{key} is not a number: {value[:40]!r}"
    return None


def _joined(places: list[Place], data: bytes) -> Place:
    return Place(places[0].offset, sum(place.length for place in places), places[0].line, data)


def _without_text(place: Place) -> Place:
    return place._replace(data=b"")


def _decoded(data: bytes) -> str:
    """As UTF-8; as ISO 8859-1, which Java reads, where it is not."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        code = found.group(1)
        if len(code) == 5:
            return chr(int(code[1:], 16))
        return {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(code, code)

    # Two escaped surrogates are one character; one alone is none, and no table could hold it.
    return _ESCAPE.sub(character, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
