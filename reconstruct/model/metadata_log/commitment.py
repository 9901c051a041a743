"""Which records of several nodes' copies of one metadata log were decided.

A record is committed when a majority of the voters has it and a leader of its own epoch, or a later one, knows so.
Copies show that only in part: what a snapshot holds was committed (``KafkaRaftClient.createSnapshot``: no snapshot ends
above the high watermark), and so was what a majority of the voters still has, unless an epoch of which nothing is known
came since; what all of them have is in any case. What is behind was appended by an active controller, and may have been
truncated since. Copies need not be prefixes of one another: of two that differ at an offset the one whose last epoch is
higher was, or will be, followed (``RaftClient``, the rule of elections).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple


class Commitment(StrEnum):
    """What is known of a record. ``TAIL``: appended, and nothing proves that a majority had it. ``TRUNCATED``: another
    epoch's record stands at its offset."""

    COMMITTED = "committed"
    TAIL = "tail"
    TRUNCATED = "truncated"


class Span(NamedTuple):
    """Offsets from ``start`` to before ``end`` that the active controller of one epoch appended."""

    start: int
    end: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Copy:
    """What one node has of the log: its spans by offset, and the ends of its snapshots (the first offset not held)."""

    node_id: int
    spans: tuple[Span, ...]
    snapshot_ends: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Lineage:
    """The log that the quorum follows, as far as the copies show it: its spans by offset, and up to where it is known
    to be committed (the first offset of which that is not proven)."""

    spans: tuple[Span, ...] = ()
    committed_end: int = 0

    def of(self, offset: int, epoch: int) -> Commitment:
        """What is known of a record that a copy has at ``offset`` of ``epoch``."""
        if not any(span.start <= offset < span.end and span.epoch == epoch for span in self.spans):
            return Commitment.TRUNCATED
        return Commitment.COMMITTED if offset < self.committed_end else Commitment.TAIL

    @property
    def runs(self) -> list[tuple[int, int]]:
        """The offsets that are there without a gap: from, to before."""
        found: list[tuple[int, int]] = []
        for span in self.spans:
            if found and found[-1][1] == span.start:
                found[-1] = (found[-1][0], span.end)
            else:
                found.append((span.start, span.end))
        return found


def one_log(spans: Iterable[Span]) -> tuple[Span, ...]:
    """What one node has, of the spans of several copies of its log: where a later epoch begins, it had cut back what
    stood there of earlier ones."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda span: (-span.epoch, span.start)):
        end = min((span.end, *(later.start for later in found if later.epoch > span.epoch)))
        if found and found[-1].epoch == span.epoch and span.start <= found[-1].end:
            found[-1] = found[-1]._replace(end=max(found[-1].end, end))
        elif span.start < end:
            found.append(span._replace(end=end))
    return tuple(sorted(found))


def lineage_of(copies: Iterable[Copy], voters: frozenset[int] = frozenset()) -> Lineage:
    """The log of all copies together. ``voters`` are the ids of the quorum's last known set; none: nothing is known of
    a majority."""
    known = list(copies)
    spans = _followed([copy for copy in known if copy.spans])
    ends = {copy.node_id: max((_agreed_end(copy, spans), *copy.snapshot_ends)) for copy in known}
    held = sorted((ends.get(voter, 0) for voter in voters), reverse=True)
    by_majority = held[len(held) // 2] if held else 0
    if held and not _is_settled(spans, by_majority):
        by_majority = held[-1]
    by_snapshot = max((end for copy in known for end in copy.snapshot_ends), default=0)
    return Lineage(spans, max(by_majority, by_snapshot))


def _is_settled(spans: Sequence[Span], end: int) -> bool:
    """Whether what a majority has up to ``end`` cannot be truncated any more: behind the epoch of its last record comes
    none that is not in the log. The leader of one that passed unseen may not have had the record, which only a later
    leader then gave to the majority, and may win again (``LeaderState.maybeUpdateHighWatermark``)."""
    epochs = [span.epoch for span in spans if span.end >= end]
    return all(later - epoch <= 1 for epoch, later in pairwise(epochs))


def _followed(copies: Sequence[Copy]) -> tuple[Span, ...]:
    """The spans of the copy with the highest last epoch, and of equals the longest; what it lacks from the next."""
    found: list[Span] = []
    for copy in sorted(copies, key=lambda c: (-c.spans[-1].epoch, -c.spans[-1].end, c.node_id)):
        found = sorted([*found, *_missing(copy.spans, found)]) if found else list(copy.spans)
    return tuple(found)


def _missing(spans: Iterable[Span], found: Sequence[Span]) -> list[Span]:
    """The parts of spans before the end of those found that none of them covers, unless a later epoch came first."""
    pieces = []
    for span in spans:
        start = span.start
        for other in found:
            if other.end <= start:
                continue
            if start < min(other.start, span.end) and span.epoch <= other.epoch:
                pieces.append(Span(start, min(other.start, span.end), span.epoch))
            start = max(start, other.end)
    return pieces


def _agreed_end(copy: Copy, lineage: Sequence[Span]) -> int:
    """Up to where the copy is the lineage's: the first offset at which it has another epoch, or nothing."""
    end = 0
    for span in copy.spans:
        for other in lineage:
            start, stop = max(span.start, other.start), min(span.end, other.end)
            if start >= stop:
                continue
            if span.epoch != other.epoch:
                return end
            end = max(end, stop)
    return end


def without_effect(transactions: Iterable[tuple[int, str]]) -> list[tuple[int, int | None]]:
    """The offsets of transactions that were aborted, from the record that begins one to before the one after its end;
    of one that does not end there is no end. Given are offset and type of the records that begin and end them."""
    found: list[tuple[int, int | None]] = []
    begun: int | None = None
    for offset, record_type in sorted(transactions):
        if record_type == "BeginTransactionRecord":
            begun = offset
        elif begun is not None:
            if record_type == "AbortTransactionRecord":
                found.append((begun, offset + 1))
            begun = None
    return [*found, *([] if begun is None else [(begun, None)])]


def bases_of(runs: Sequence[tuple[int, int]], snapshot_ends: Iterable[int]) -> list[tuple[int, int]]:
    """From where each run of offsets can be applied: (offset, end of the run). A run from the beginning needs no
    snapshot; another begins at the first snapshot that ends in it. A snapshot behind all runs stands for itself."""
    ends = sorted(set(snapshot_ends))
    found = []
    for start, end in runs:
        base = 0 if start == 0 else next((offset for offset in ends if start <= offset <= end), None)
        if base is not None:
            found.append((base, end))
    last = max((end for _, end in found), default=-1)
    if ends and ends[-1] > last:
        found.append((ends[-1], ends[-1]))
    return found
