"""The matched lines of a capture's logs without Spark: for tests that read many captures, or bent ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from ingest.shapes import Match, match
from ingest.shapes.partition_lists import ALIGNED, ALIGNED_LISTS
from tests.support.captures.text import CaptureText, Lines, printed_at

Partition = tuple[str, int]
_HEADER: Final = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] (\w+) (.*) \(([\w.$]+)\)$")
_NUMBERS: Final = (
    "controller_id",
    "controller_epoch",
    "state_controller_epoch",
    "replica_id",
    "leader",
    "leader_epoch",
    "partition_epoch",
    "leader_recovery_state",
    "correlation_id",
    "known_controller_epoch",
    "log_end_offset",
    "fetch_offset",
    "fetcher_id",
)
_LISTS: Final = ("old_isr", "replicas", "adding_replicas", "removing_replicas", "to_broker_ids")
_TEXTS: Final = ("topic_id", "from_state", "to_state", "role", "out_of_sync")
#: Other names of a field of the evidence, which count where the message has them.
_OTHER_NAMES: Final = {
    "controller_epoch": "request_controller_epoch",
    "leader_epoch": "request_leader_epoch",
    "known_leader_epoch": "current_leader_epoch",
    "to_broker_ids": "to_broker_id",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One matched record: whose log it is, its place, and what it says."""

    broker_id: int
    source_kind: str
    file: str
    number: int
    at: int
    level: str
    shape_id: str
    event_type: str
    fields: Mapping[str, str]
    cause: str | None

    @property
    def id(self) -> str:
        return f"{self.file}:{self.number}"


@lru_cache(maxsize=200_000)
def _parsed(kind: str, line: str) -> tuple[int, str, Match] | None:
    """The instant, the level and the meaning of a line; a bent capture shares all but a line with the original."""
    header = _HEADER.match(line)
    matched = match(kind, header[4], header[3]) if header else None
    return None if header is None or matched is None else (printed_at(header[1]), header[2], matched)


def matched_lines(capture: CaptureText) -> Iterator[Line]:
    """Every line of a known shape, log after log, in the order of their lines."""
    for name in capture.named("/logs/"):
        yield from lines_of(name, capture.files[name])


@lru_cache(maxsize=256)
def lines_of(name: str, lines: Lines) -> Sequence[Line]:
    """The lines of one log that stands at ``broker-N/logs/KIND.log``, or ``KIND.log.N``; bent captures share most of
    their logs."""
    folder, _, log = name.split("/")
    broker = int(folder.removeprefix("broker-"))
    kind = re.sub(r"\W", "_", re.sub(r"[.]\d+$", "", log))
    found = []
    for number, line in enumerate(lines, 1):
        parsed = _parsed(kind, line)
        if parsed is None:
            continue
        at, level, matched = parsed
        cause = lines[number] if number < len(lines) and not lines[number].startswith("[") else None
        found.append(
            Line(broker, kind, name, number, at, level, matched.shape_id, matched.event_type, matched.fields, cause)
        )
    return tuple(found)


def by_partition(fields: Mapping[str, str]) -> Iterator[tuple[Partition | None, Mapping[str, str]]]:
    """Each partition that a record names, with the fields that are about it; None where it names none."""
    listed = fields.get("topic_partitions", "")
    if "partition_id" in fields or not listed:
        is_named = "topic" in fields and "partition_id" in fields
        yield ((fields["topic"], int(fields["partition_id"])) if is_named else None), fields
        return
    shared = {name: value for name, value in fields.items() if name != "topic_partitions" and name not in ALIGNED}
    for ordinal, name in enumerate(listed.split(",")):
        topic, number = name.rsplit("-", 1)
        own = dict(shared)
        for aligned, single in ALIGNED.items():
            parts = fields[aligned].split("|" if aligned in ALIGNED_LISTS else ",") if aligned in fields else []
            if ordinal < len(parts) and (aligned in ALIGNED_LISTS or parts[ordinal]):
                own[single] = parts[ordinal].replace(";", ",")
        yield (topic, int(number)), own


def typed(fields: Mapping[str, str]) -> dict[str, Any]:
    """The fields that evidence has, as its types."""
    named = dict(fields)
    for name, other in _OTHER_NAMES.items():
        if other in fields and name not in fields:
            named[name] = fields[other]
    values: dict[str, Any] = {name: integer(named[name]) for name in (*_NUMBERS, "known_leader_epoch") if name in named}
    values |= {name: ids(named[name]) for name in _LISTS if name in named}
    values |= {name: named[name] for name in _TEXTS if name in named}
    values |= {to: named[of] == "true" for to, of in (("is_new", "is_new"), ("is_delete", "delete")) if of in named}
    isr = named.get("new_isr", named.get("isr"))
    return values if isr is None else values | {"isr": ids(isr)}


def integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def ids(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())
