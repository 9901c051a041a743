"""The event types that message shapes give, what each means, and the tables of the page ``docs/message-shapes.md``.

:class:`EventType` is made from the shapes' data: a name that no shape gives is an error where it is written.

``python -m ingest.shapes.event_types`` prints the tables.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from ingest.lake.tables.bronze.kinds import SourceKind
from ingest.shapes import MEANINGS, SHAPES, SOURCE_KINDS

_TITLES: Final = {
    SourceKind.STATE_CHANGE_LOG: "state-change.log",
    SourceKind.CONTROLLER_LOG: "controller.log",
    SourceKind.SERVER_LOG: "server.log",
    "exception": "Exceptions",
}


if TYPE_CHECKING:

    class _Vocabulary(type):
        def __getattr__(cls, name: str) -> EventType: ...

    class EventType(str, metaclass=_Vocabulary):
        """An event type by its name in capitals: ``EventType.LEADER_AND_ISR_SENT``."""
else:
    EventType = StrEnum("EventType", {name.upper(): name for name in MEANINGS})


def event_type_tables() -> str:
    """A Markdown table for each source: the event types its shapes give, of how many shapes, and the meaning."""
    parts: list[str] = []
    for source_kind in SOURCE_KINDS:
        counts: dict[str, int] = {}
        for shape in SHAPES:
            if shape.source_kind == source_kind:
                counts[shape.event_type] = counts.get(shape.event_type, 0) + 1
        parts += [f"### {_TITLES[source_kind]}", "", "| event type | shapes | meaning |", "|---|---|---|"]
        parts += [f"| `{name}` | {counts[name]} | {MEANINGS[name]} |" for name in sorted(counts)]
        parts.append("")
    return "\n".join(parts)


if __name__ == "__main__":
    print(event_type_tables())
