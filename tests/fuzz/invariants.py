"""What must hold of what a reader gives, whatever the bytes are."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from ingest.lake.tables import TableSpec
from ingest.readers.batches import kept_batches, rejected_batches
from ingest.readers.work import Kept, Place, Rejected, WorkItem

Read = Callable[[WorkItem, Iterable[bytes]], Iterator[Kept | Rejected]]
#: So many of a fuzzer's inputs share one batch of Arrow's, which costs more than to read a small one; one of so many
#: is read twice.
SHARED: Final = 256
READ_AGAIN: Final = 4


class Sparing:
    """A fuzzer's inputs, of which some checks are made for many at once."""

    def __init__(self) -> None:
        self.data = b""
        self._waiting: list[tuple[bytes, TableSpec, WorkItem, list[Kept], list[Rejected]]] = []

    def run(self, target: Callable[[bytes], None], data: bytes) -> None:
        """The target on one input."""
        self.data = data
        target(data)
        if len(self._waiting) >= SHARED:
            self.settle()

    def add(self, spec: TableSpec, work: WorkItem, kept: list[Kept], rejected: list[Rejected]) -> None:
        self._waiting.append((self.data, spec, work, kept, rejected))

    def settle(self) -> None:
        """Put what waits into tables; of inputs that do not fit, :attr:`data` is then the first."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        _, spec, work, _, _ = waiting[0]
        try:
            _fill(spec, work, *([row for one in waiting for row in one[place]] for place in (3, 4)))
        except Exception:
            for self.data, spec, work, kept, rejected in waiting:
                _fill(spec, work, kept, rejected)
            raise


_sparing: Sparing | None = None


@contextmanager
def sparing() -> Iterator[Sparing]:
    """Check each input less while this lasts: for a fuzzer, whose inputs are many."""
    global _sparing
    _sparing = Sparing()
    try:
        yield _sparing
        _sparing.settle()
    finally:
        _sparing = None


def item(kind: str, data: bytes, **known: Any) -> WorkItem:
    """What a task would be told to read: a whole file of these bytes."""
    values: dict[str, Any] = {
        "location": "f",
        "member": None,
        "source_file": "f",
        "cluster_id": "c",
        "broker_id": 1,
        "file_id": "f",
        "record_base": "f",
        "end": len(data),
    }
    return WorkItem(kind=kind, **(values | known))


def blocks(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def check_reader(read: Read, spec: TableSpec, work: WorkItem, data: bytes) -> list[Kept | Rejected]:
    """The records of ``data``: the same however it is cut into blocks, not more than there are bytes, each with a
    place of its own, and fit for their tables."""
    found = list(read(work, iter([data] if data else [])))
    if _sparing is None or zlib.crc32(data) % READ_AGAIN == 0:
        again = list(read(work, blocks(data, 1 + len(data) // 7)))
        assert found == again, "the records depend on how the bytes are cut into blocks"
    assert len(found) <= len(data) + 1, "more records than bytes"
    check_apart([row.place for row in found], len(data))
    check_tables(spec, work, found)
    return found


def check_apart(places: Sequence[Place], size: int) -> None:
    """No byte belongs to two records, and none lies outside of the file."""
    end = 0
    for place in sorted(places, key=lambda place: (place.offset, place.length)):
        assert place.offset >= end, f"byte {place.offset} belongs to two records"
        assert place.length >= 0
        assert place.line >= 1
        end = place.offset + place.length
    assert end <= size, "a record outside of its file"


def check_tiled(places: Sequence[Place], size: int) -> None:
    """Every byte up to ``size`` belongs to exactly one record."""
    end = 0
    for place in places:
        assert place.offset == end, f"a gap or overlap at byte {end}"
        end += place.length
    assert end == size, f"the bytes from {end} on belong to no record"


def check_tables(spec: TableSpec, work: WorkItem, found: Sequence[Kept | Rejected]) -> None:
    """Kept and rejected records together are those read, and Arrow takes all of their values."""
    kept = [row for row in found if isinstance(row, Kept)]
    rejected = [row for row in found if isinstance(row, Rejected)]
    assert all(row.reason and "\n" not in row.reason for row in rejected), "a reason that is no sentence"
    if _sparing is None:
        _fill(spec, work, kept, rejected)
    else:
        _sparing.add(spec, work, kept, rejected)
    vocabularies = {column.name: column.vocabulary for column in spec.columns if column.vocabulary}
    for row in kept:
        for name, vocabulary in vocabularies.items():
            value = row.values.get(name)
            assert value is None or value in vocabulary, f"{name} is {value!r}"


def _fill(spec: TableSpec, work: WorkItem, kept: list[Kept], rejected: list[Rejected]) -> None:
    assert sum(batch.num_rows for batch in kept_batches(spec, work, kept)) == len(kept)
    assert sum(batch.num_rows for batch in rejected_batches(work, rejected)) == len(rejected)
