"""What a capture could not record, in its own words (``missed.jsonl``), to the rows of ``bronze.capture_gaps``.

The lines are those of :mod:`ingest.capture.missed`: one when an outage begins, one when it ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ingest.readers.capture_lines import json_lines
from ingest.readers.capture_lines.json_lines import instant, is_text
from ingest.readers.logs.writers import MAX_BROKER_ID
from ingest.readers.work import Kept, Place, Rejected, WorkItem

#: What every line has.
KEYS: Final = frozenset({"missed_from", "missed_to", "source", "of", "reason"})
#: Of whom something was missed: ``broker 1``, ``broker 1: /data/orders``.
_BROKER: Final = re.compile(r"broker (\d{1,10})(?::|\Z)")


def read(item: WorkItem, source: Iterable[bytes]) -> Iterator[Kept | Rejected]:
    """The gaps in a file, one per line."""
    for place, entry in json_lines.objects(item, source):
        yield _gap(place, entry) if isinstance(entry, dict) else Rejected(place, entry)


def _gap(place: Place, entry: Mapping[str, Any]) -> Kept | Rejected:
    missing = sorted(KEYS - entry.keys())
    if missing:
        return Rejected(place, f"what a capture missed without {', '.join(missing)}")
    texts = {name: entry[name] for name in ("source", "of", "reason")}
    wrong = [name for name, value in texts.items() if not isinstance(value, str) or not is_text(value)]
    if wrong:
        return Rejected(place, f"what a capture missed, whose {', '.join(wrong)} is no text")
    began, ended = instant(entry["missed_from"]), instant(entry["missed_to"])
    if began is None or (ended is None and entry["missed_to"] is not None):
        return Rejected(place, "what a capture missed, whose missed_from or missed_to is no instant in milliseconds")
    if ended is not None and ended < began:
        return Rejected(place, "what a capture missed, which ended before it began")
    return Kept(
        place,
        {
            "missed_from": began,
            "missed_to": ended,
            "missed_source": texts["source"],
            "missed_of": texts["of"],
            "broker_id": _broker(texts["of"]),
            "reason": texts["reason"],
        },
    )


def _broker(whose: str) -> int | None:
    found = _BROKER.match(whose)
    return int(found[1]) if found is not None and int(found[1]) <= MAX_BROKER_ID else None
