"""A replica's log as a value: its records, and the lineage of leader epochs that its ``leader-epoch-checkpoint`` holds.

The lineage is a list of (epoch, start offset): the records from a start offset up to the next one were written in that
epoch. It is what a follower and its leader compare since KIP-101 to find where their logs part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

#: OffsetsForLeaderEpoch's answer where the leader knows nothing of the epoch asked for.
UNDEFINED_EPOCH: Final = -1
UNDEFINED_EPOCH_OFFSET: Final = -1


class Record(NamedTuple):
    """One record: the leader epoch it was written in, and an identity of its own."""

    leader_epoch: int
    record_id: int


class EpochEntry(NamedTuple):
    """One line of a ``leader-epoch-checkpoint``."""

    leader_epoch: int
    start_offset: int


class EpochEndOffset(NamedTuple):
    """Answer to OffsetsForLeaderEpoch: the epoch the answer is about, and the offset after its last record."""

    leader_epoch: int
    end_offset: int


UNDEFINED: Final = EpochEndOffset(UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET)


@dataclass(frozen=True, slots=True)
class ReplicaLog:
    """Records from ``log_start_offset`` on, and their lineage; the log end offset is the next record's offset."""

    records: tuple[Record, ...] = ()
    lineage: tuple[EpochEntry, ...] = ()
    log_start_offset: int = 0

    @property
    def log_end_offset(self) -> int:
        return self.log_start_offset + len(self.records)

    @property
    def latest_epoch(self) -> int:
        """The lineage's last epoch; :data:`UNDEFINED_EPOCH` where it is empty."""
        return self.lineage[-1].leader_epoch if self.lineage else UNDEFINED_EPOCH

    def read(self, offset: int, max_records: int) -> tuple[Record, ...]:
        """Up to ``max_records`` records from ``offset`` on; nothing outside the log."""
        at = offset - self.log_start_offset
        return self.records[at : at + max_records] if 0 <= at <= len(self.records) else ()


def append(log: ReplicaLog, records: Iterable[Record], *, keeps_lineage: bool) -> ReplicaLog:
    """``log`` with ``records`` at its end; a record of a new epoch begins a new entry of the lineage."""
    appended = tuple(records)
    lineage = log.lineage
    if keeps_lineage:
        for at, record in enumerate(appended, log.log_end_offset):
            lineage = _assigned(lineage, EpochEntry(record.leader_epoch, at))
    return replace(log, records=log.records + appended, lineage=lineage)


def assign_epoch(log: ReplicaLog, leader_epoch: int) -> ReplicaLog:
    """``log`` with ``leader_epoch`` beginning at its end, as a leader enters it at its election."""
    return replace(log, lineage=_assigned(log.lineage, EpochEntry(leader_epoch, log.log_end_offset)))


def _assigned(lineage: tuple[EpochEntry, ...], entry: EpochEntry) -> tuple[EpochEntry, ...]:
    """Epochs only rise: an entry that does not is left out. One that takes its predecessor's offset replaces it."""
    if lineage and entry.leader_epoch <= lineage[-1].leader_epoch:
        return lineage
    while lineage and lineage[-1].start_offset >= entry.start_offset:
        lineage = lineage[:-1]
    return (*lineage, entry)


def truncate_to(log: ReplicaLog, offset: int) -> ReplicaLog:
    """``log`` without the records and the entries of the lineage at or above ``offset``.

    A log that ends there already may still lose an entry: the one its replica made at an election, with no record.
    """
    kept = max(offset, log.log_start_offset) - log.log_start_offset
    lineage = tuple(entry for entry in log.lineage if entry.start_offset < offset)
    return replace(log, records=log.records[:kept], lineage=lineage)


def end_offset_of_epoch(log: ReplicaLog, leader_epoch: int) -> int:
    """KIP-101's answer: where the first later epoch begins, the log end offset for the last epoch."""
    if leader_epoch == UNDEFINED_EPOCH:
        return UNDEFINED_EPOCH_OFFSET
    if leader_epoch == log.latest_epoch:
        return log.log_end_offset
    later = [entry.start_offset for entry in log.lineage if entry.leader_epoch > leader_epoch]
    if not later or leader_epoch < log.lineage[0].leader_epoch:
        return UNDEFINED_EPOCH_OFFSET
    return later[0]


def end_offset_for(log: ReplicaLog, leader_epoch: int) -> EpochEndOffset:
    """KIP-279's answer: the largest epoch known that is not above ``leader_epoch``, and where it ends."""
    if leader_epoch == UNDEFINED_EPOCH:
        return UNDEFINED
    if leader_epoch == log.latest_epoch:
        return EpochEndOffset(leader_epoch, log.log_end_offset)
    higher = next((entry for entry in log.lineage if entry.leader_epoch > leader_epoch), None)
    if higher is None:
        return UNDEFINED
    floor = next((entry for entry in reversed(log.lineage) if entry.leader_epoch <= leader_epoch), None)
    return EpochEndOffset(leader_epoch if floor is None else floor.leader_epoch, higher.start_offset)
