"""The evidence of one broker's checkpoint files, looked up by directory, by replica and by instant."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from reconstruct.checkpoints.evidence import (
    BrokerCheckpoints,
    BrokerLine,
    CheckpointCopy,
    CheckpointEntry,
    LineKind,
    Replica,
)
from reconstruct.model.versions import VersionRange


class BrokerView:
    """The evidence of one broker, looked up."""

    def __init__(self, evidence: BrokerCheckpoints) -> None:
        self.evidence = evidence
        self.starts = sorted(evidence.starts)
        self._start_instants = [at for at, _ in self.starts]
        self.lines = sorted(evidence.lines, key=_in_order)
        self.copies: dict[tuple[str, str], list[CheckpointCopy]] = {}
        self.undated: list[CheckpointCopy] = []
        for copy in evidence.copies:
            if copy.taken_at is None:
                self.undated.append(copy)
            else:
                self.copies.setdefault((copy.directory, copy.kind), []).append(copy)
        self._taken: dict[tuple[str, str], list[int]] = {}
        self._whole: dict[tuple[str, str], list[int]] = {}
        for file, copies in self.copies.items():
            copies.sort(key=lambda copy: copy.at)
            self._taken[file] = [copy.at for copy in copies]
            self._whole[file] = [copy.at for copy in copies if copy.entry_count and not copy.bad]
        self.series: dict[tuple[str, str, Replica], list[CheckpointEntry]] = {}
        for entry in sorted(evidence.entries, key=lambda e: (e.taken_at, e.evidence_id)):
            self.series.setdefault((entry.directory, entry.kind, entry.replica), []).append(entry)
        self.rounds: dict[str, list[int]] = {}
        for (directory, _), copies in sorted(self.copies.items()):
            self.rounds[directory] = sorted({*(copy.at for copy in copies), *self.rounds.get(directory, ())})
        self._by_replica: dict[Replica, list[BrokerLine]] = {}
        self._by_kind: dict[LineKind, list[BrokerLine]] = {}
        for line in self.lines:
            self._by_kind.setdefault(line.kind, []).append(line)
            if line.replica is not None:
                self._by_replica.setdefault(line.replica, []).append(line)

    @property
    def broker_id(self) -> int:
        return self.evidence.broker_id

    @property
    def version(self) -> VersionRange:
        return self.evidence.version

    @property
    def last_known_instant(self) -> int:
        """The last instant of which anything of the broker is known, else of the cluster."""
        instants = [at for rounds in self.rounds.values() for at in rounds[-1:]]
        known = [*instants, *(line.at for line in self.lines[-1:]), *self._start_instants[-1:]]
        return max(known, default=self.evidence.known_until)

    @property
    def directories(self) -> list[str]:
        return sorted({directory for directory, _ in self.copies} | {copy.directory for copy in self.undated})

    def start_between(self, after: int, until: int) -> int | None:
        """The first start of the process in (``after``, ``until``]."""
        index = bisect_right(self._start_instants, after)
        return next((at for at in self._start_instants[index : index + 1] if at <= until), None)

    def next_start(self, after: int) -> int | None:
        index = bisect_right(self._start_instants, after)
        return self._start_instants[index] if index < len(self._start_instants) else None

    def start_evidence(self, start: int) -> tuple[str, ...]:
        return tuple(evidence for at, evidence in self.starts if at == start and evidence)

    def next_copy(self, directory: str, kind: str, after: int) -> CheckpointCopy | None:
        """The first copy of a file that was taken later."""
        taken = self._taken.get((directory, kind), [])
        index = bisect_right(taken, after)
        return self.copies[directory, kind][index] if index < len(taken) else None

    def is_copied_whole(self, directory: str, kind: str, after: int, before: int) -> bool:
        """Whether a copy of the file with entries, none of them bad, was taken strictly between two instants."""
        whole = self._whole.get((directory, kind), [])
        index = bisect_right(whole, after)
        return index < len(whole) and whole[index] < before

    def last_entries(self, kind: str, before: int) -> Iterator[CheckpointEntry]:
        """The last entry of each replica in each file of ``kind`` that was copied before an instant."""
        for (_, of, _), series in self.series.items():
            index = bisect_left(series, before, key=lambda entry: entry.taken_at)
            if of == kind and index:
                yield series[index - 1]

    def round_after(self, directory: str, at: int) -> int:
        """By when a copy of round ``at`` was made: the next round; after the last, as long as the longest took."""
        rounds = self.rounds.get(directory, [at])
        index = bisect_right(rounds, at)
        if index < len(rounds):
            return rounds[index]
        return at + max((b - a for a, b in pairwise(rounds)), default=0)

    def lines_in(
        self, start: int, end: int | None, *kinds: LineKind, replica: Replica | None = None
    ) -> list[BrokerLine]:
        """The broker's lines of ``kinds`` in [``start``, ``end``), of one replica or of all."""
        if replica is not None:
            lines = self._by_replica.get(replica, [])
            return [line for line in lines[_within(lines, start, end)] if line.kind in kinds]
        of_kinds = (self._by_kind.get(kind, []) for kind in kinds)
        found = [line for lines in of_kinds for line in lines[_within(lines, start, end)]]
        return sorted(found, key=_in_order) if len(kinds) > 1 else found

    def last_line_before(self, at: int) -> BrokerLine | None:
        index = bisect_left(self.lines, at, key=_instant)
        return self.lines[index - 1] if index else None

    def is_covered(self, start: int, end: int) -> bool:
        """Whether the broker's server.log is complete from ``start`` to ``end``."""
        return any(begin <= start and end <= until for begin, until in self.evidence.covered)

    def is_assigned(self, replica: Replica, start: int, end: int) -> bool | None:
        """Whether it was a replica of the broker all the time, or never (False); None where neither is known."""
        start, end = start - self.evidence.decided_slack_us, end + self.evidence.decided_slack_us
        spans = [
            span
            for span in self.evidence.assigned.get(replica, ())
            if span.start <= end and (span.end is None or span.end > start)
        ]
        if not spans or spans[0].start > start:
            return None
        if all(span.is_assigned for span in spans):
            return True
        return None if any(span.is_assigned for span in spans) else False

    def left_at(self, replica: Replica, at: int) -> int:
        """Since when, at the latest, a replica that is not the broker's at ``at`` has not been."""
        left = at
        for span in sorted(self.evidence.assigned.get(replica, ()), key=lambda span: span.start, reverse=True):
            if span.is_assigned:
                break
            left = min(left, span.start)
        return min(at, left + self.evidence.decided_slack_us)


def _in_order(line: BrokerLine) -> tuple[int, str]:
    return line.at, line.evidence_id


def _instant(line: BrokerLine) -> int:
    return line.at


def _within(lines: Sequence[BrokerLine], start: int, end: int | None) -> slice:
    """Where in ``lines``, which are in order, those of [``start``, ``end``) are."""
    last = len(lines) if end is None else bisect_left(lines, end, key=_instant)
    return slice(bisect_left(lines, start, key=_instant), last)
