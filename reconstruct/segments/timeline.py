"""When each segment of a replica's log began, was closed by the next one, and was deleted.

A new segment begins where the log ends ("Rolled new log segment at offset": Log.roll, exact since 1.0.2); the one
before it is then closed, and the last one is the active one, to which alone is written. A cut deletes the segments that
begin above it and makes the last of the others the active one again (Log.truncateTo). Retention deletes from the front.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from reconstruct.segments.evidence import (
    LINE_US,
    DeletionReason,
    LogChange,
    LogChangeKind,
    SegmentAct,
    SegmentActKind,
    SegmentEvidence,
    SegmentFiles,
)

LOGGED_LATER: Final = "effect_logged"
_EVER: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class SegmentSpan:
    """One segment from ``valid_from`` to its deletion; it was the active one until ``closed_at``.

    ``next_offset`` is the offset after its last record: as a copy has it, else where the next one begins, which of a
    compacted log may be higher. ``inferred_from`` where its begin is only known to be no later.
    """

    replica_id: int
    base_offset: int
    valid_from: int
    valid_to: int | None = None
    closed_at: int | None = None
    next_offset: int | None = None
    size_bytes: int | None = None
    index_entries_count: int | None = None
    recovered_count: int = 0
    ended_by: DeletionReason | None = None
    problem: str | None = None
    evidence: tuple[str, ...] = ()
    inferred_from: str | None = None


def segment_timeline(evidence: SegmentEvidence) -> list[SegmentSpan]:
    """By replica, base offset and time. A copy whose time nothing says proves of no instant that a segment was there:
    it only describes those that are there in the end."""
    return [span for replica in evidence.replicas for span in _of_replica(evidence, replica)]


def _of_replica(evidence: SegmentEvidence, replica: int) -> list[SegmentSpan]:
    log = _Log(replica)
    for _, _, what in sorted(_happenings(evidence, replica), key=lambda one: one[:2]):
        if isinstance(what, SegmentAct):
            log.act(what)
        elif isinstance(what, LogChange):
            log.change(what)
        else:
            log.take_copy(what)
    for copy in evidence.copies_of(replica):
        if copy[0].seen_at is None:
            log.described(copy)
    return log.spans()


def _happenings(
    evidence: SegmentEvidence, replica: int
) -> Iterator[tuple[int, int, SegmentAct | LogChange | list[SegmentFiles]]]:
    """What changed or showed the log, each with its instant and a number that orders those of one instant."""
    changes = evidence.changes_of(replica, (LogChangeKind.CUT,))
    number = 0
    for change in changes:
        yield change.at, (number := number + 1), change
    for act in evidence.acts_of(replica):
        yield act.at, (number := number + 1), act
    for copy in evidence.copies_of(replica):
        if copy[0].seen_at is not None:
            yield copy[0].seen_at_upper or copy[0].seen_at, (number := number + 1), copy


class _Log:
    """The segments of one replica as they are by now, and those that are gone."""

    def __init__(self, replica: int) -> None:
        self._replica = replica
        self._open: dict[int, SegmentSpan] = {}
        self._gone: list[SegmentSpan] = []
        self._was: set[int] = set()
        self._cut_at: int | None = None

    def spans(self) -> list[SegmentSpan]:
        found = [*self._gone, *self._open.values()]
        return sorted(
            found,  # one that began and was gone at an instant is before the one that began there and then
            key=lambda span: (span.base_offset, span.valid_from, span.valid_to or _EVER, span.evidence),
        )

    def act(self, act: SegmentAct) -> None:
        if act.act in (SegmentActKind.REPLICA_CREATED, SegmentActKind.REPLICA_DELETED):
            for base in list(self._open):
                self._end(base, act.at, DeletionReason.REPLICA_DELETED)
        if act.act is SegmentActKind.REPLICA_CREATED:
            self._roll(0, act)
        for base in act.base_offsets:
            if act.act is SegmentActKind.ROLLED:
                self._roll(base, act)
                continue
            if act.act is SegmentActKind.DELETED and base not in self._open and base in self._was:
                continue  # its files go a while after it
            known = self._known(base, act.at, act.evidence_id)
            if act.act is SegmentActKind.DELETED:
                is_cut = self._cut_at is not None and act.at - self._cut_at <= LINE_US
                reason = act.reason or DeletionReason.NOT_TOLD
                self._end(base, act.at, DeletionReason.TRUNCATION if is_cut and act.reason is None else reason)
            elif act.act is SegmentActKind.RECOVERED:
                self._open[base] = replace(known, recovered_count=known.recovered_count + 1)
            else:
                what = "an index was made again" if act.act is SegmentActKind.INDEX_REBUILT else "found damaged"
                self._open[base] = replace(known, problem=known.problem or what)

    def change(self, change: LogChange) -> None:
        """A cut."""
        if change.offset is None:
            return
        self._cut_at = change.at
        for base in [base for base in self._open if base > change.offset]:
            self._end(base, change.at, DeletionReason.TRUNCATION)
        if self._open:
            last = max(self._open)
            self._open[last] = replace(self._open[last], closed_at=None, next_offset=None)

    def take_copy(self, copy: list[SegmentFiles]) -> None:
        at = copy[0].seen_at or 0
        for base in [base for base in self._open if base < copy[0].base_offset]:
            self._end(base, at, DeletionReason.NOT_TOLD)
        for file in copy:
            self._known(file.base_offset, file.seen_at_upper or at, *file.files)
            self._describe(file)

    def described(self, copy: list[SegmentFiles]) -> None:
        """A copy of some time: what it has of the segments that are there at the end."""
        for file in copy:
            if file.base_offset in self._open:
                self._describe(file)

    def _describe(self, file: SegmentFiles) -> None:
        known = self._open[file.base_offset]
        self._open[file.base_offset] = replace(
            known,
            next_offset=known.next_offset if file.next_offset is None else file.next_offset,
            size_bytes=known.size_bytes if file.size_bytes is None else file.size_bytes,
            index_entries_count=file.index_entries_count or known.index_entries_count,
            problem=file.segment_problem or file.index_problem or known.problem,
            evidence=tuple(dict.fromkeys((*known.evidence, *file.files))),
        )

    def _roll(self, base: int, act: SegmentAct) -> None:
        before = max((known for known in self._open if known < base), default=None)
        if before is not None and self._open[before].closed_at is None:
            closed = replace(self._open[before], closed_at=act.at)
            self._open[before] = closed if closed.next_offset is not None else replace(closed, next_offset=base)
        if base in self._open and self._open[base].inferred_from is None:
            return  # the active one was empty, and is begun again
        self._open[base] = SegmentSpan(self._replica, base, act.at, evidence=(act.evidence_id,))

    def _known(self, base: int, at: int, *evidence: str) -> SegmentSpan:
        known = self._open.get(base)
        if known is None:
            known = SegmentSpan(self._replica, base, at, inferred_from=LOGGED_LATER)
        self._open[base] = replace(known, evidence=tuple(dict.fromkeys((*known.evidence, *evidence))))
        return self._open[base]

    def _end(self, base: int, at: int, reason: DeletionReason) -> None:
        span = self._open.pop(base)
        self._was.add(base)
        self._gone.append(replace(span, valid_to=max(at, span.valid_from), ended_by=reason))
