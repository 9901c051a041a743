"""Files of JSON lines: each line to its object, or to the reason why it has none; and the values of such objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ingest.readers.lines import MAX_RECORD_BYTES, TOO_LONG, line_places
from ingest.readers.work import Place, WorkItem
from ingest.readers.zookeeper import columns

EMPTY_LINE = "an empty line, where a JSON object should be"


def objects(item: WorkItem, source: Iterable[bytes]) -> Iterator[tuple[Place, dict[str, Any] | str]]:
    """Every line, in order, with the object it holds or a sentence that says why it holds none."""
    for place in line_places(item, source):
        yield place, _object(place)


def _object(place: Place) -> dict[str, Any] | str:
    if place.length > MAX_RECORD_BYTES:
        return TOO_LONG
    if not place.data.strip():
        return EMPTY_LINE
    try:
        entry = json.loads(place.data)
    except (ValueError, RecursionError) as error:
        return f"no JSON: {error}"
    return entry if isinstance(entry, dict) else "no JSON object"


def is_text(value: Any) -> bool:
    """Whether a value is no text, or one that has an encoding: JSON may name half of a character."""
    try:
        return not isinstance(value, str) or value.encode() is not None
    except UnicodeEncodeError:
        return False


def bounded(value: int, bits: int) -> int:
    """The value; raises ``OverflowError`` where it needs more bits, beside its sign."""
    if not -(1 << bits) <= value < (1 << bits):
        raise OverflowError(value)
    return value


def micros(milliseconds: Any) -> int | None:
    """Epoch milliseconds, fractions included, as microseconds; raises ``ValueError``, ``TypeError`` or
    ``OverflowError`` for what is no such number."""
    return None if milliseconds is None else bounded(round(float(milliseconds) * 1000), 62)


def integer(value: Any, low: int, end: int) -> int | None:
    """The value where it is a whole number in [low, end), else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and low <= value < end else None


def instants_of_answer(entry: Mapping[str, Any], what: str) -> tuple[int, int] | str:
    """When ``what`` was asked for and answered (``sent_at``, ``received_at``), or why that cannot be known."""
    sent_at, received_at = instant(entry.get("sent_at")), instant(entry.get("received_at"))
    if sent_at is None or received_at is None:
        return f"{what} whose sent_at or received_at is no instant in milliseconds"
    if received_at < sent_at:
        return "an answer that came before it was asked for: the clock of the client was set back"
    return sent_at, received_at


def instant(milliseconds: Any) -> int | None:
    """Epoch milliseconds, fractions included, as microseconds; None for what is no number or on no calendar."""
    if not isinstance(milliseconds, int | float) or isinstance(milliseconds, bool):
        return None
    try:
        value = round(milliseconds * 1000)
    except (ValueError, OverflowError):
        return None
    return value if columns.micros(value // 1000) is not None else None
