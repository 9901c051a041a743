"""What the tests of ZooKeeper's readers share: an item to read, and the rule that every byte is accounted for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ingest.readers.work import Kept, Place, Rejected, WorkItem
from tests.support.files.jute import in_blocks

Read = Callable[[WorkItem, Iterable[bytes]], Iterator[Kept | Rejected]]


def item_of(
    data: bytes, *, offset: int = 0, line: int = 1, chroot: str = "", name: str = "version-2/file", kind: str = "any"
) -> WorkItem:
    return WorkItem(
        location=name,
        member=None,
        source_file=name,
        kind=kind,
        cluster_id="cluster",
        broker_id=None,
        file_id="file",
        record_base="file",
        end=offset + len(data),
        offset=offset,
        line=line,
        chroot=chroot,
    )


def read_all(
    read: Read,
    data: bytes,
    *,
    offset: int = 0,
    line: int = 1,
    chroot: str = "",
    name: str = "version-2/file",
    block_bytes: int = 1 << 20,
) -> list[Kept | Rejected]:
    """The records of these bytes, which begin at ``offset`` of their file; asserts that the places follow one another
    and hold the bytes that stand there."""
    item = item_of(data, offset=offset, line=line, chroot=chroot, name=name)
    rows = list(read(item, in_blocks(data, block_bytes)))
    at = offset
    for row in rows:
        place: Place = row.place
        assert place.offset == at
        at += place.length
        assert data[place.offset - offset : at - offset].startswith(place.data)
        assert place.data or not place.length
    assert at <= offset + len(data)
    assert not any(data[at - offset :]), "bytes that are no zeros belong to no record"
    return rows


def reasons(rows: Iterable[Kept | Rejected]) -> list[str]:
    return [row.reason for row in rows if isinstance(row, Rejected)]


def column(rows: Iterable[Kept | Rejected], name: str) -> list[object]:
    return [row.values[name] for row in rows if isinstance(row, Kept)]
