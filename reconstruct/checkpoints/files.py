"""What copies show of whole checkpoint files: there or not, readable or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from reconstruct.checkpoints.evidence import (
    HIGH_WATERMARKS,
    BrokerLine,
    CheckpointCopy,
    LineKind,
    RejectedEntry,
)
from reconstruct.checkpoints.restart_effects import (
    FILE_NAMES,
    named,
    restart_with,
    restart_with_duplicate,
    restart_with_unreadable,
)
from reconstruct.checkpoints.unreadable import names_file
from reconstruct.checkpoints.verdicts import RULE, CheckpointVerdicts
from reconstruct.checkpoints.view import BrokerView
from reconstruct.findings.divergences import DivergenceType
from reconstruct.time.instants import utc

#: A file that is absent more often than this is one that the capture takes less often than its neighbours.
ABSENCES_AT_MOST: Final = 2
_DUPLICATE: Final = "a second entry for"


@dataclass(frozen=True, slots=True)
class Absence:
    """Rounds in which a file was not there, though others of its directory were; ``before`` had entries."""

    directory: str
    kind: str
    rounds: tuple[int, ...]
    before: CheckpointCopy
    after: CheckpointCopy | None
    #: the copy was there and empty: what a start makes of a file that is missing.
    is_empty: bool = False

    def start_within(self, view: BrokerView) -> int | None:
        """The first start of the process while the file was not there."""
        return view.start_between(self.before.at, view.last_known_instant if self.after is None else self.after.at)


def absences_of(view: BrokerView, out: CheckpointVerdicts) -> list[Absence]:
    """Of every dated file. One that is absent in many spans is taken less often than the others: not judged."""
    result = []
    for (directory, kind), copies in sorted(view.copies.items()):
        found = list(_absences(view, directory, kind, copies))
        if len(found) > ABSENCES_AT_MOST:
            out.verdicts.unjudged(RULE, len(found))
        else:
            result += found
    return result


def _absences(view: BrokerView, directory: str, kind: str, copies: Sequence[CheckpointCopy]) -> Iterator[Absence]:
    there = {copy.taken_at: copy for copy in copies}
    before: CheckpointCopy | None = None
    rounds: list[int] = []
    is_empty = False
    for at in view.rounds[directory]:
        copy = there.get(at)
        is_nothing = copy is not None and not copy.entry_count and not copy.bad and kind == HIGH_WATERMARKS
        if copy is None or is_nothing:
            if before is not None and before.entry_count and not _may_be_taken_for_another(view, directory, kind, at):
                rounds.append(at)
                is_empty = is_empty or is_nothing
            continue
        if rounds and before is not None:
            yield Absence(directory, kind, tuple(rounds), before, copy, is_empty)
        before, rounds, is_empty = copy, [], False
    if rounds and before is not None:
        yield Absence(directory, kind, tuple(rounds), before, None, is_empty)


def _may_be_taken_for_another(view: BrokerView, directory: str, kind: str, at: int) -> bool:
    """Two copies without entries of one round are one content, and known once: that of another directory is there."""
    others = (copies for (place, of), copies in view.copies.items() if place != directory and of == kind)
    return any(copy.taken_at == at and not copy.entry_count for copies in others for copy in copies)


def judge_absences(view: BrokerView, absences: Iterable[Absence], out: CheckpointVerdicts) -> None:
    """Each absence that no start's finding tells of already."""
    for absence in absences:
        start = absence.start_within(view)
        last = view.last_entries(absence.kind, absence.rounds[0])
        of_directory = (entry for entry in last if entry.directory == absence.directory)
        entries = {entry.replica: entry for entry in sorted(of_directory, key=lambda entry: entry.replica)}
        if absence.kind == HIGH_WATERMARKS and start and any((r, start) in out.reported for r in entries):
            continue
        values = {replica: entry.offset for replica, entry in entries.items()}
        what = "held nothing" if absence.is_empty else "was not there"
        name = FILE_NAMES[absence.kind]
        later = f"it was there again at {utc(absence.after.at)}" if absence.after else "it was not seen again"
        ran = (
            f"the broker started meanwhile ({utc(start)}): without it"
            if start
            else "a broker that ran through it has written it anew; had it started meanwhile:"
        )
        whose = named(values, values) or f"{absence.before.entry_count} replicas"
        out.report(
            DivergenceType.CHECKPOINT_MISSING,
            "warning",
            absence.rounds[0],
            f"{name} with entries for {whose}",
            f"in {len(absence.rounds)} rounds it {what}, other files of the directory were",
            f"Broker {view.broker_id}'s {name} had {absence.before.entry_count} entries at"
            f" {utc(absence.before.at)} and {what} at {utc(absence.rounds[0])}; {later}. Kafka never removes"
            f" it. For a replica, {ran} {restart_with(absence.kind, None, view.version)}.",
            [
                *(entry.evidence_id for entry in list(entries.values())[:8]),
                *(view.start_evidence(start) if start else ()),
            ],
            entries,
        )


def judge_damage(view: BrokerView, out: CheckpointVerdicts) -> set[str]:
    """Lines that Kafka cannot read and entries given twice, in copies; gives the lines of the broker's own log that
    tell of them."""
    explained: set[str] = set()
    for (directory, kind), copies in sorted(view.copies.items()):
        for _, same in groupby(copies, key=_content):
            damaged = list(same)
            if damaged[0].bad:
                explained |= _damage(view, directory, kind, damaged[0], damaged[-1], out)
            else:
                out.verdicts.kept(RULE, len(damaged))
    for copy in view.undated:
        if copy.bad:
            explained |= _damage(view, copy.directory, copy.kind, copy, copy, out)
    return explained


def _content(copy: CheckpointCopy) -> tuple[str, tuple[tuple[str, str], ...]]:
    return copy.content, tuple((bad.reason, bad.text) for bad in copy.bad)


def _damage(
    view: BrokerView, directory: str, kind: str, first: CheckpointCopy, last: CheckpointCopy, out: CheckpointVerdicts
) -> set[str]:
    """The findings of one damaged content, copied from ``first`` to ``last``; gives the lines that it explains."""
    twice = [bad for bad in first.bad if bad.reason.startswith(_DUPLICATE)]
    broken = [bad for bad in first.bad if not bad.reason.startswith(_DUPLICATE)]
    at = view.last_known_instant if first.taken_at is None else first.taken_at
    name, when = FILE_NAMES[kind], f" at {utc(at)}" if first.taken_at is not None else ""
    whose = f"Broker {view.broker_id}'s {name}"
    if twice:
        out.report(
            DivergenceType.CHECKPOINT_DUPLICATE_ENTRY,
            "warning",
            at,
            "one entry for each replica",
            f"{len(twice)} entries given twice: {_quoted(twice)}",
            f"{whose} was copied{when} with {len(twice)} entries that a later one repeats: {_quoted(twice)}. Kafka"
            " writes each replica once. A restart with this file"
            f" {restart_with_duplicate(kind, view.version)}.",
            [bad.evidence_id for bad in twice],
        )
    if not broken:
        return set()
    lines = _unreadable_lines(view, directory, kind, first, last)
    healed = None if last.taken_at is None else view.next_copy(directory, kind, last.taken_at)
    if lines:
        aftermath = "What the broker did: " + "; ".join(dict.fromkeys(_describe(line) for line in lines)) + "."
    elif healed is not None and not healed.bad:
        aftermath = f"It was whole again at {utc(healed.at)}."
    else:
        aftermath = "No line of the broker's log tells of it."
    by_rule = restart_with_unreadable(kind, view.version)
    out.report(
        DivergenceType.CHECKPOINT_MALFORMED,
        "error" if lines else "warning",
        at,
        f"a {name} that Kafka can read",
        f"{len(broken)} lines that it cannot: {broken[0].reason}",
        f"{whose} was copied{when} with {len(broken)} lines that Kafka cannot read: {broken[0].reason}."
        f" A restart with this file: {by_rule}. {aftermath}"
        + ("" if lines else " Kafka writes the file whole and renames it: the copy may be what is damaged."),
        [*(bad.evidence_id for bad in broken[:6]), *(line.evidence_id for line in lines[:6])],
    )
    return {line.evidence_id for line in lines}


def _unreadable_lines(
    view: BrokerView, directory: str, kind: str, first: CheckpointCopy, last: CheckpointCopy
) -> list[BrokerLine]:
    """Lines that name the file as unreadable while it was so, and the failures of its directory right after them."""
    if first.taken_at is None or last.taken_at is None:
        begin, end = 0, None
    else:
        begin = first.taken_at
        whole = view.next_copy(directory, kind, last.taken_at)
        end = None if whole is None else whole.taken_at
    unreadable = [line for line in view.lines_in(begin, end, LineKind.UNREADABLE) if names_file(line, kind)]
    if not unreadable:
        return []
    life_ends = view.next_start(unreadable[0].at)
    failed = view.lines_in(unreadable[0].at, life_ends, LineKind.DIRECTORY_FAILED)
    return [*unreadable[:2], *[line for line in failed if line.path][:4]]


def _describe(line: BrokerLine) -> str:
    if line.kind is LineKind.UNREADABLE:
        return f"it could not read the file ({utc(line.at)}{f': {line.cause}' if line.cause else ''})"
    return f"log directory {line.path} failed ({utc(line.at)})"


def _quoted(bad: Sequence[RejectedEntry]) -> str:
    listed = ", ".join(repr(entry.text.strip()) for entry in bad[:3])
    return listed + (f" and {len(bad) - 3} more" if len(bad) > 3 else "")
