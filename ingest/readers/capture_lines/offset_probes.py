"""Probes of offsets: answers of brokers to ListOffsets, as JSON lines, to the rows of ``bronze.offset_probes``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ingest.readers.capture_lines import json_lines
from ingest.readers.capture_lines.json_lines import instants_of_answer, integer, is_text
from ingest.readers.logs.writers import MAX_BROKER_ID
from ingest.readers.work import Kept, Place, Rejected, WorkItem

#: What every line has, one of a broker that answered with an error included.
KEYS: Final = frozenset({"sent_at", "received_at", "replica_id", "topic", "partition"})
#: Timestamps of the request that stand for an end of the log.
LATEST: Final = -1
#: The replica id of a client that debugs, which any replica answers; that of a consumer is -1.
_DEBUGGING_CLIENT: Final = -2
_BROKER: Final = re.compile(rb'"broker"\s*:\s*(\d{1,10})\s*[,}]')
_NAME: Final = re.compile(r"^probes?[-_](\d{1,10})(?:\.|$)")
#: More bytes than the name and the number of a broker take: what may be cut by the end of a block.
_OVERLAP: Final = 64
_INT32_END: Final = 1 << 31
_INT64_END: Final = 1 << 63


def read(item: WorkItem, source: Iterable[bytes]) -> Iterator[Kept | Rejected]:
    """The answers in a file, one per line. The broker is the one that the line names, else that of the file."""
    for place, entry in json_lines.objects(item, source):
        yield _answer(place, entry, item.broker_id) if isinstance(entry, dict) else Rejected(place, entry)


def _answer(place: Place, entry: Mapping[str, Any], file_broker: int | None) -> Kept | Rejected:
    missing = sorted(KEYS - entry.keys())
    if missing:
        return Rejected(place, f"an answer to ListOffsets without {', '.join(missing)}")
    topic = entry["topic"]
    if not isinstance(topic, str) or not topic or not is_text(topic):
        return Rejected(place, "an answer to ListOffsets whose topic is no text")
    instants = instants_of_answer(entry, "an answer to ListOffsets")
    if isinstance(instants, str):
        return Rejected(place, instants)
    sent_at, received_at = instants
    broker_id = file_broker if entry.get("broker") is None else entry["broker"]
    if broker_id is None:
        return Rejected(
            place, "nothing says which broker answered: keep the file as probes-ID.jsonl, or give --broker ID=PATH"
        )
    values = {
        "broker_id": integer(broker_id, 0, MAX_BROKER_ID + 1),
        "replica_id": integer(entry["replica_id"], _DEBUGGING_CLIENT, _INT32_END),
        "partition_id": integer(entry["partition"], 0, _INT32_END),
        "target_timestamp": integer(entry.get("timestamp", LATEST), -_INT64_END, _INT64_END),
        "isolation_level": integer(entry.get("isolation_level", 0), 0, 2),
        "error_code": integer(entry.get("error_code", 0), -(1 << 15), 1 << 15),
    }
    wrong = sorted(name for name, value in values.items() if value is None)
    if wrong:
        return Rejected(place, f"an answer to ListOffsets whose {', '.join(wrong)} is not a number in range")
    offset = None if values["error_code"] else integer(entry.get("offset"), 0, _INT64_END)
    if offset is None and not values["error_code"]:
        return Rejected(place, "an answer to ListOffsets without an offset in range, and without an error")
    return Kept(place, values | {"sent_at": sent_at, "received_at": received_at, "topic": topic, "offset": offset})


class ProbeFacts:
    """Whose answers a file holds, if it is one broker's: its lines say, else its name, as in ``probes-ID.jsonl``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._overlap = b""
        self._brokers: set[int] = set()

    def take(self, block: bytes) -> None:
        text = self._overlap + block
        self._brokers.update(map(int, _BROKER.findall(text)))
        self._overlap = text[-_OVERLAP:]

    def result(self) -> dict[str, Any]:
        named = _NAME.search(self._name)
        brokers = self._brokers or ({int(named[1])} if named else set())
        only = next(iter(brokers)) if len(brokers) == 1 else None
        return {"broker_id": only if only is not None and only <= MAX_BROKER_ID else None}
