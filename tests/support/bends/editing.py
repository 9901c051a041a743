"""What every bend needs: a place in a capture's text, the change made there, and what must then be found."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from tests.support.captures.text import CaptureText, Lines
from tests.support.evidence.lines import Line, Partition, by_partition, matched_lines
from tests.support.evidence.partitions import PlainCapture, plain_capture
from tests.support.evidence.znodes import rows_of

Edits = Mapping[tuple[str, int], str | None]

#: How each era prints a field, the value behind it.
_PRINTED: Final = {
    "leader": r"(\(Leader:|\bleader=|\"leader\":|Current leader is )(-?\d+)",
    "leader_epoch": r"(\bLeaderEpoch:|\bleaderEpoch=|\"leader_epoch\":|starts at leader epoch )(-?\d+)",
    "state_controller_epoch": r"(\bControllerEpoch:|\bcontrollerEpoch=|\"controller_epoch\":)(-?\d+)",
    "to_broker": r"(to broker )(\d+)",
}
_ISR: Final = re.compile(
    r"(\bISR:)([\d,]*)(?=,Leader|,InSync)|(\bisr=List\()([\d, ]*)(?=\))|(\bisr=\[)([\d, ]*)(?=\])"
    r"|(\bisr=)([\d,]*)(?=, zk)"
)


@dataclass(frozen=True)
class Bend:
    """One change of a capture's text, and the findings of which at least one must then be new.

    ``expected`` holds ``(rule, divergence type)``; ``inferred`` says that a timeline's row inferred from a log's gap
    does as well.
    """

    kind: str
    partition: Partition | None
    edits: Edits
    expected: frozenset[tuple[str, str]]
    note: str
    inferred: bool = False


@dataclass(frozen=True)
class Subject:
    """A capture to be bent: its text, its lines, and what is known of it unbent."""

    name: str
    version: str
    text: CaptureText
    plain: PlainCapture
    lines: tuple[Line, ...]
    by_event: Mapping[str, tuple[Line, ...]] = field(default_factory=dict)

    @staticmethod
    def of(name: str, text: CaptureText) -> Subject:
        lines = tuple(matched_lines(text))
        events: dict[str, list[Line]] = {}
        for line in lines:
            events.setdefault(line.event_type, []).append(line)
        version = name.split("-")[1]
        return Subject(
            name, version, text, plain_capture(text), lines, {key: tuple(found) for key, found in events.items()}
        )

    @property
    def minor(self) -> tuple[int, ...]:
        return tuple(int(part) for part in self.version.split(".")[:3])

    @property
    def is_trace(self) -> bool:
        """Whether requests and replica transitions are logged."""
        return "leader_and_isr_sent" in self.by_event

    def events(self, *event_types: str, source_kind: str = "state_change_log") -> Iterator[Line]:
        for event_type in event_types:
            yield from (line for line in self.by_event.get(event_type, ()) if line.source_kind == source_kind)

    def raw(self, line: Line) -> str:
        return self.text.files[line.file][line.number - 1]

    @property
    def brokers(self) -> tuple[int, ...]:
        return tuple(
            sorted(int(name.split("/")[0].removeprefix("broker-")) for name in self.text.named("state-change"))
        )


def partition_of(line: Line) -> Partition | None:
    """The one partition that a line names."""
    named = [partition for partition, _ in by_partition(line.fields)]
    return named[0] if len(named) == 1 else None


def put(text: str, field_name: str, value: int) -> str:
    """The line with another value of a field, however its era prints it; unchanged where it prints none."""
    return re.sub(_PRINTED[field_name], lambda found: f"{found[1]}{value}", text, count=1)


def put_isr(text: str, isr: Iterable[int]) -> str:
    """The line with another ISR."""
    members = [str(member) for member in isr]

    def bent(found: re.Match[str]) -> str:
        groups = found.groups()
        prefix, old = next((groups[i], groups[i + 1]) for i in range(0, len(groups), 2) if groups[i] is not None)
        return prefix + (", " if ", " in old or prefix.endswith(("List(", "[")) else ",").join(members)

    return _ISR.sub(bent, text, count=1)


@dataclass(frozen=True)
class StateRow:
    """One write of a partition's state as snapshots show it, and every row that shows it."""

    partition: Partition
    mzxid: int
    version: int
    state: Mapping[str, Any]
    rows: tuple[tuple[str, int], ...]


_STATE: Final = re.compile(r"^/brokers/topics/([^/]+)/partitions/(\d+)/state$")


def state_rows(text: CaptureText) -> list[StateRow]:
    """The states that the snapshots show, by partition, in order of their versions."""
    return _state_rows(text.snapshots())


@lru_cache(maxsize=32)
def _state_rows(snapshots: tuple[tuple[str, Lines], ...]) -> list[StateRow]:
    found: dict[tuple[Partition, int], tuple[dict[str, Any], list[tuple[str, int]]]] = {}
    for name, lines in snapshots:
        for number, row in enumerate(rows_of(lines), 1):
            path = _STATE.match(row["path"])
            if path and row["data"]:
                key = ((path[1], int(path[2])), row["mzxid"])
                found.setdefault(key, (row, []))[1].append((name, number))
    return [
        StateRow(partition, mzxid, row["version"], json.loads(row["data"]), tuple(rows))
        for (partition, mzxid), (row, rows) in sorted(found.items())
    ]


def rewrite_state(text: CaptureText, written: StateRow, *, version: int | None = None, **values: Any) -> Edits:
    """Every row that shows a write, with other values in its data or another version."""
    edits: dict[tuple[str, int], str | None] = {}
    for name, number in written.rows:
        row = json.loads(text.files[name][number - 1])
        row["data"] = json.dumps({**json.loads(row["data"]), **values}, separators=(",", ":"))
        if version is not None:
            row["version"] = version
        edits[name, number] = json.dumps(row)
    return edits


Places = Callable[[Subject], Iterator[Bend]]
