"""``server.properties`` and ``meta.properties`` as they may leave their machine: without passwords and comments."""

from __future__ import annotations

import re
from typing import Final

_ESCAPED: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
_TO_ESCAPE: Final = re.compile(r"[\\\n\r\t\f]")


def masked(content: bytes) -> bytes:
    """The properties, one a line, ``[hidden]`` for what is or may be a secret. What is unreadable is left out."""
    from ingest.readers.properties import read  # with what it imports, the most of a capture's start
    from ingest.readers.work import Kept, WorkItem

    item = WorkItem("", None, "", "server_properties", "", None, "", "", len(content))
    lines = [
        f"{_key(row.values['config_key'])}={_value(row.values['config_value'])}\n"
        for row in read(item, [content])
        if isinstance(row, Kept)
    ]
    return "".join(lines).encode()


def _key(text: str) -> str:
    return re.sub(r"([=: #!])", r"\\\1", _escaped(text))


def _value(text: str) -> str:
    escaped = _escaped(text)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _escaped(text: str) -> str:
    return _TO_ESCAPE.sub(lambda found: _ESCAPED[found.group()], text)
