"""What tells the history of one metadata log from all others: its batches, each by offset, epoch and time, and the
ids that only one cluster gives.

A cluster's id does not: it is copied with a Compose file, and stays when a node's storage is formatted anew. A batch is
appended once, by one controller, and copied as it is to all nodes (KIP-595). Topics and processes of nodes get random
ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ingest.readers.metadata_log.framing import HEADER, Batch
from ingest.readers.metadata_log.record_types import NO_ID
from ingest.readers.metadata_log.records import records_of

#: So many batches are marks at a file's beginning, and so many of those that begin an epoch.
_FIRST: Final = 32
_MOST_EPOCHS: Final = 256
#: Of all batches those are marks that hold a multiple of a power of two, the smallest that leaves no more than this: of
#: two copies the finer has what the coarser has, too.
_MOST_OF_GRID: Final = 1_024
#: So many bytes of records are decoded for their ids. What is no longer than a batch of one NoOp holds none.
_DECODED_BYTES: Final = 128 << 10
_NO_OP_BYTES: Final = HEADER.size + 16
_CONTROL: Final = 0x20
#: By type of record the field with an id that no other cluster has.
IDS: Final[Mapping[str, str]] = {
    "TopicRecord": "topicId",
    "PartitionRecord": "topicId",
    "PartitionChangeRecord": "topicId",
    "RegisterBrokerRecord": "incarnationId",
    "RegisterControllerRecord": "incarnationId",
}
_HEADER: Final = "SnapshotHeaderRecord"
#: The mark of a batch: of its last offset, its epoch and when it was appended (ms).
PLACE_MARK: Final = "%d@%d:%d"


def place_mark(last_offset: int, epoch: int, appended_ms: int) -> str:
    """The mark of the batch that ends with that offset."""
    return PLACE_MARK % (last_offset, epoch, appended_ms)


def offset_of(mark: str) -> int | None:
    """The offset of a batch's mark; None of an id."""
    offset, at, _ = mark.partition("@")
    return int(offset) if at else None


class LogMarks:
    """Gathers the marks of a segment's batches, given in their order."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._of_epochs: list[str] = []
        self._grid: dict[int, str] = {}
        self._step = 1
        self._ids = _Ids()

    def take(self, batch: Batch) -> None:
        if batch.reason is not None:
            return
        base, _, epoch, _, _, attributes, last_delta, appended_ms, *_ = HEADER.unpack_from(batch.data)
        mark = place_mark(base + last_delta, epoch, appended_ms)
        if len(self._first) < _FIRST:
            self._first.append(mark)
        if attributes & _CONTROL and len(self._of_epochs) < _MOST_EPOCHS:
            self._of_epochs.append(mark)
        multiple = -(-base // self._step) * self._step
        if multiple <= base + last_delta:
            self._grid[multiple] = mark
            while len(self._grid) > _MOST_OF_GRID:
                self._step *= 2
                self._grid = {at: kept for at, kept in self._grid.items() if at % self._step == 0}
        self._ids.take(batch)

    def result(self) -> frozenset[str]:
        return frozenset({*self._first, *self._of_epochs, *self._grid.values(), *self._ids.found})


class SnapshotMarks:
    """Gathers the marks of a snapshot: the last batch before its end, and the ids in it. ``end`` and ``epoch`` are
    those of its name."""

    def __init__(self, end: int, epoch: int) -> None:
        self._end, self._epoch = end, epoch
        self._ids = _Ids()

    def take(self, batch: Batch) -> None:
        self._ids.take(batch)

    def result(self) -> frozenset[str]:
        appended_ms = self._ids.contained_ms
        last = [] if appended_ms is None else [place_mark(self._end - 1, self._epoch, appended_ms)]
        return frozenset({*last, *self._ids.found})


class _Ids:
    """The ids of the first records. ``contained_ms`` is the time of the last record that a snapshot holds."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        self.contained_ms: int | None = None
        self._left = _DECODED_BYTES

    def take(self, batch: Batch) -> None:
        if batch.reason is not None or batch.length <= _NO_OP_BYTES or self._left <= 0:
            return
        self._left -= batch.length
        try:
            for record in records_of(batch.data):
                self._note(record.decoded.record_type, record.decoded.fields or {})
        except (IndexError, ValueError):  # the reader says so
            return

    def _note(self, record_type: str, fields: Mapping[str, Any]) -> None:
        found = fields.get(IDS.get(record_type, ""))
        if isinstance(found, str) and found != NO_ID:
            self.found.add(found)
        contained = fields.get("lastContainedLogTimestamp") if record_type == _HEADER else None
        if isinstance(contained, int):
            self.contained_ms = contained
