"""Which modules read which event type: found in their code, so that the page cannot say otherwise."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from ingest.shapes import MEANINGS
from reconstruct.events import unused

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("reconstruct", "dashboards")


@cache
def event_uses() -> Mapping[str, tuple[str, ...]]:
    """By event type that is read: the rooms (``reconstruct/offsets``) whose modules name it as ``EventType.…``."""
    names = {name.upper(): name for name in MEANINGS}
    found: dict[str, set[str]] = {}
    for package in _PACKAGES:
        for file in sorted((_ROOT / package).rglob("*.py")):
            if file == Path(unused.__file__):
                continue
            room = "/".join(file.relative_to(_ROOT).parts[:2])
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.value, ast.Name)
                    and node.value.id == "EventType"
                ):
                    found.setdefault(names[node.attr], set()).add(room)
    return {name: tuple(sorted(rooms)) for name, rooms in sorted(found.items())}


def reasons() -> Mapping[str, str]:
    """By event type that is not read: why."""
    return {name: why for why, types in unused.NOT_READ.items() for name in types}
