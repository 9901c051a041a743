"""ZooKeeper's own snapshots, to the rows of ``bronze.znode_snapshots``."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterable, Iterator
from typing import Any, Final

from ingest.readers.secrets import masked_znode
from ingest.readers.work import RAW_BYTES, Kept, Place, Rejected, WorkItem
from ingest.readers.zookeeper.columns import below_chroot, micros, session_owner, text
from ingest.readers.zookeeper.snapshot_format import Ending, SnapshotNode, SnapshotParser, node_of, snapshot_zxid

#: Znodes beyond so many bytes wait on disk for the end of their file.
_MEMORY_BYTES: Final = 16 << 20


def read(item: WorkItem, source: Iterable[bytes]) -> Iterator[Kept | Rejected]:
    """The znodes of one whole snapshot file.

    Nothing is given before the file's end is known: only its seal vouches for its znodes, and only a whole file says
    how many children a znode has. A file that does not match its seal is one rejected record. Of a file that is cut
    off the znodes before the cut are kept, without the number of their children, and the rest is rejected: such a
    file proves of no znode that it was deleted.

    The places add up to the file: what comes before the first znode belongs to it, the seals to the last. Znodes
    outside of Kafka's chroot are rejected, those that follow one another as one record.
    """
    with tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES) as spool:
        parser = SnapshotParser()
        sizes, parents, children = array("L"), array("q"), array("L")
        first_offset = 0
        for block in source:
            for node in parser.take(block):
                if not sizes:
                    first_offset = node.offset
                sizes.append(len(node.raw))
                parents.append(node.parent)
                children.append(0)
                if node.parent >= 0:
                    children[node.parent] += 1
                spool.write(node.raw)
        parser.finish()
        if parser.ending is Ending.DAMAGED:
            yield Rejected(Place(0, parser.size, 1, parser.first_bytes), parser.reason or "")
            return
        spool.seek(0)

        def nodes() -> Iterator[tuple[SnapshotNode, int | None]]:
            offset = first_offset
            for size, parent, count in zip(sizes, parents, children, strict=True):
                yield node_of(spool.read(size), offset, parent), count if parser.ending is Ending.WHOLE else None
                offset += size

        yield from _records(item, parser, nodes())


def _records(
    item: WorkItem, parser: SnapshotParser, nodes: Iterable[tuple[SnapshotNode, int | None]]
) -> Iterator[Kept | Rejected]:
    zxid = item.snapshot_zxid
    if zxid is None:
        zxid = snapshot_zxid(item.source_file)
    places = _Places(parser)
    outside: list[Place] = []
    outside_count = 0
    for number, (node, child_count) in enumerate(nodes, start=1):
        place = places.next(node, number)
        path = below_chroot(node.path, item.chroot)
        if path is None:
            outside_count += 1
            outside = [_joined(outside, place)]
            continue
        if outside:
            yield _outside(outside[0], outside_count, item.chroot)
            outside, outside_count = [], 0
        values = _values(node, path, child_count, zxid)
        yield Rejected(place, "a znode whose times are in no calendar") if values is None else Kept(place, values)
    if outside:
        yield _outside(outside[0], outside_count, item.chroot)
    yield from places.rest()


class _Places:
    """The place of each znode, so that all of them add up to the file."""

    def __init__(self, parser: SnapshotParser) -> None:
        self._parser = parser
        self._number = 0

    def next(self, node: SnapshotNode, number: int) -> Place:
        parser = self._parser
        self._number = number
        begins, ends = node.offset, node.offset + len(node.raw)
        data = node.raw
        if number == 1:
            before = parser.first_bytes[:begins]
            data = before + data if len(before) == begins else before
            begins = 0
        if number == parser.node_count and parser.ending is Ending.WHOLE:
            ends = parser.rest_offset
            data += parser.seals
        return Place(begins, ends - begins, number, data)

    def rest(self) -> Iterator[Rejected]:
        """What follows the last znode and belongs to none."""
        parser = self._parser
        if not parser.node_count:
            reason = parser.reason or "a snapshot without any znode"
            yield Rejected(Place(0, parser.size, 1, parser.first_bytes), reason)
        elif parser.rest_reason is not None:
            begins = parser.rest_offset
            yield Rejected(
                Place(begins, parser.size - begins, self._number + 1, parser.rest),
                parser.rest_reason,
            )


def _joined(before: list[Place], place: Place) -> Place:
    if not before:
        return place._replace(data=place.data[:RAW_BYTES])
    return before[0]._replace(length=before[0].length + place.length)


def _outside(place: Place, count: int, chroot: str) -> Rejected:
    return Rejected(place, f"{count} znode{'s' if count > 1 else ''} outside of Kafka's chroot {chroot}")


def _values(node: SnapshotNode, path: str, child_count: int | None, zxid: int | None) -> dict[str, Any] | None:
    ctime, mtime = micros(node.ctime_ms), micros(node.mtime_ms)
    if ctime is None or mtime is None:
        return None
    return {
        "snapshot_zxid": zxid,
        "path": path,
        "data": masked_znode(node.path, text(node.data)),
        "czxid": node.czxid,
        "mzxid": node.mzxid,
        "pzxid": node.pzxid,
        "ctime": ctime,
        "mtime": mtime,
        "version": node.version,
        # As clients see it: the server stores how many children were ever created.
        "cversion": None if child_count is None else _int32(2 * node.child_creates - child_count),
        "ephemeral_owner": session_owner(node.ephemeral_owner),
        "num_children": child_count,
    }


def _int32(value: int) -> int | None:
    return value if -(1 << 31) <= value < 1 << 31 else None
