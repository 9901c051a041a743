"""What every kind of fault needs: the place, the change of several sources at once, and what must be found."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

from tests.support.bends.editing import StateRow, Subject, state_rows
from tests.support.captures.text import CaptureText
from tests.support.evidence.lines import Line, Partition, by_partition, integer
from tests.support.evidence.znodes import rows_of

ERROR, WARNING, INFO = "error", "warning", "info"
#: The line numbers of a file from 1, and the lines that take their place: none, one or several.
Edits = dict[tuple[str, int], tuple[str, ...]]


@dataclass(frozen=True)
class Fault:
    """One broken rule. Found is a finding of one of ``rules`` with ``severity`` about ``partition`` (None: the cluster)
    and, where it names a broker or a replica, one of ``brokers`` (empty: any). ``also`` are partitions of which the
    change makes the same true: those of one request. ``unprovable`` says why the lines that there are cannot prove the
    fault, whatever is found of it; empty where they can."""

    kind: str
    partition: Partition | None
    rules: frozenset[str]
    edits: Mapping[tuple[str, int], tuple[str, ...]]
    note: str
    brokers: frozenset[int] = frozenset()
    severity: str = ERROR
    also: frozenset[Partition] = frozenset()
    unprovable: str = ""


class Site(Subject):
    """A capture with what the kinds of fault ask of it again and again."""

    @staticmethod
    def read(name: str, text: CaptureText) -> Site:
        return Site(**vars(Subject.of(name, text)))

    @cached_property
    def writes(self) -> Mapping[Partition, Sequence[StateRow]]:
        """The writes of each partition's state that snapshots show, in order."""
        found: dict[Partition, list[StateRow]] = {}
        for row in state_rows(self.text):
            found.setdefault(row.partition, []).append(row)
        return found

    @cached_property
    def partitions(self) -> Sequence[Partition]:
        return sorted(self.plain.facts)

    @cached_property
    def by_name(self) -> Mapping[Partition, Sequence[Line]]:
        """All lines that name each partition, alone or among others."""
        found: dict[Partition, list[Line]] = {}
        for line in self.lines:
            for named in dict.fromkeys(partition for partition, _ in by_partition(line.fields) if partition):
                found.setdefault(named, []).append(line)
        return found

    def about(self, partition: Partition | None, *event_types: str) -> list[Line]:
        """The lines of some types about a partition."""
        lines = self.by_name.get(partition, ()) if partition else ()
        return [line for line in lines if line.event_type in event_types]

    def successive(self) -> Iterator[tuple[StateRow, StateRow]]:
        """Pairs of writes with successive versions of a partition that was not created again."""
        for rows in self.writes.values():
            if sum(row.version == 0 for row in rows) <= 1:
                pairs = itertools.pairwise(rows)
                yield from ((before, after) for before, after in pairs if after.version == before.version + 1)

    def written_at(self, row: StateRow) -> int:
        """µs."""
        name, row_number = row.rows[0]
        value: int = json.loads(self.text.files[name][row_number - 1])["mtime"]
        return value * 1000

    @cached_property
    def _topics(self) -> Sequence[dict[str, Any]]:
        """The rows of topics' znodes in all snapshots, each write once."""
        found = {
            (row["path"], row["mzxid"]): row
            for _, lines in self.text.snapshots()
            for row in rows_of(lines)
            if row["path"].startswith("/brokers/topics/") and row["path"].count("/") == 3 and row["data"]
        }
        return list(found.values())

    def assignment(self, partition: Partition, at: int) -> tuple[int, ...] | None:
        """The replicas of a partition at an instant (µs), by the newest znode; None where none shows it."""
        found = None
        for row in self._topics:
            if row["path"] == f"/brokers/topics/{partition[0]}" and row["mtime"] * 1000 <= at:
                found = json.loads(row["data"])["partitions"].get(str(partition[1]), found)
        return None if found is None else tuple(found)

    def assignments(self, partition: Partition) -> Sequence[tuple[int, tuple[int, ...]]]:
        """Time (µs) and replicas of a partition, of each write of its topic that snapshots show."""
        own = [row for row in self._topics if row["path"] == f"/brokers/topics/{partition[0]}"]
        named = [(row["mtime"] * 1000, json.loads(row["data"])["partitions"].get(str(partition[1]))) for row in own]
        return sorted((at, tuple(replicas)) for at, replicas in named if replicas is not None)

    def assigned_by_version(self, topic: str) -> Sequence[tuple[int, int]]:
        """Time (µs) and version of each write of a topic's znode that snapshots show, in order."""
        rows = [row for row in self._topics if row["path"] == f"/brokers/topics/{topic}"]
        return sorted((row["mtime"] * 1000, row["version"]) for row in rows)

    def ever_assigned(self, partition: Partition) -> set[int]:
        """Every replica that any source ever names for the partition."""
        facts = self.plain.facts.get(partition, ())
        return {
            r for f in facts for r in (*(f.replicas or ()), *(f.adding_replicas or ()), *(f.removing_replicas or ()))
        }

    def registrations(self, broker: int) -> list[tuple[str, int, dict[str, Any]]]:
        """Every row of a snapshot that shows a broker's registration, in order: file, number, row."""
        return [
            (name, row_number, row)
            for name, lines in self.text.snapshots()
            for row_number, row in enumerate(rows_of(lines), 1)
            if row["path"] == f"/brokers/ids/{broker}"
        ]


Faults = Callable[[Site], Iterator[Fault]]


def bent(text: CaptureText, edits: Mapping[tuple[str, int], tuple[str, ...]]) -> CaptureText:
    """The text with the edits made."""
    files = dict(text.files)
    for name in {name for name, _ in edits}:
        changed = (edits.get((name, number), (line,)) for number, line in enumerate(files[name], 1))
        files[name] = tuple(line for lines in changed for line in lines)
    return CaptureText(files)


@dataclass
class Draft:
    """Edits that are being gathered."""

    site: Site
    edits: Edits = field(default_factory=dict)
    _inserted: dict[tuple[str, int], list[str]] = field(default_factory=dict)

    def put(self, line: Line, *texts: str) -> None:
        """Other text in place of a line; none takes it out."""
        self.edits[line.file, line.number] = texts

    def drop(self, lines: Iterable[Line]) -> None:
        for line in lines:
            self.put(line)

    def text(self, line: Line) -> str:
        """A line as it stands now; empty where it was taken out."""
        return "\n".join(self.edits.get((line.file, line.number), (self.site.raw(line),)))

    def before(self, line: Line, *texts: str) -> None:
        now = self.edits.get((line.file, line.number), (self.site.raw(line),))
        self.edits[line.file, line.number] = (*texts, *now)

    def after(self, line: Line, *texts: str) -> None:
        now = self.edits.get((line.file, line.number), (self.site.raw(line),))
        self.edits[line.file, line.number] = (*now, *texts)

    def insert(self, file: str, at: int, *texts: str) -> None:
        """Lines where their time ``at`` (µs) belongs in a log."""
        stamp = stamp_of(at)
        lines = self.site.text.files[file]
        number = next((n for n, line in enumerate(lines, 1) if line[1:24] > stamp and _DATED.match(line)), len(lines))
        self._inserted.setdefault((file, number), []).extend(texts)

    def made(self) -> Edits:
        """The edits, with the lines that were inserted before each place in the order of their insertion."""
        edits = dict(self.edits)
        for (file, number), texts in self._inserted.items():
            now = edits.get((file, number), (self.site.text.files[file][number - 1],))
            edits[file, number] = (*texts, *now)
        return edits


_DATED: Final = re.compile(r"^\[\d{4}-")


def stamp_of(at: int) -> str:
    instant = datetime.fromtimestamp(at / 1e6, UTC)
    return f"{instant:%Y-%m-%d %H:%M:%S},{instant.microsecond // 1000:03d}"


def dated(text: str, at: int) -> str:
    """A log line with another time, µs."""
    return f"[{stamp_of(at)}]{text[25:]}"


def number(line: Line, name: str) -> int | None:
    """A field as a number; None where the line has none."""
    return integer(line.fields.get(name, ""))


def names(line: Line, partition: Partition) -> bool:
    """Whether a line tells of the partition, among others perhaps."""
    if "partition_id" not in line.fields and partition[0] not in line.fields.get("topic_partitions", ""):
        return False
    return any(named == partition for named, _ in by_partition(line.fields))
