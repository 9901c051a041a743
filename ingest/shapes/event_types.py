"""The event types that message shapes give (``docs/event-types.md`` lists them).

:class:`EventType` is made from the shapes' data: a name that no shape gives is an error where it is written.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from ingest.shapes import MEANINGS

if TYPE_CHECKING:

    class _Vocabulary(type):
        def __getattr__(cls, name: str) -> EventType: ...

    class EventType(str, metaclass=_Vocabulary):
        """An event type by its name in capitals: ``EventType.LEADER_AND_ISR_SENT``."""
else:
    EventType = StrEnum("EventType", {name.upper(): name for name in MEANINGS})
