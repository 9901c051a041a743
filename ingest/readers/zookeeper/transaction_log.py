"""Transaction logs of ZooKeeper, to the rows of ``bronze.znode_transactions`` and to operations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ingest.readers.secrets import masked_znode
from ingest.readers.work import Kept, Place, Rejected, WorkItem
from ingest.readers.zookeeper.columns import below_chroot, micros, text
from ingest.readers.zookeeper.jute import JuteError
from ingest.readers.zookeeper.transaction_framing import Frame, Framer
from ingest.readers.zookeeper.transactions import Op, Operation, Part, parts

_NO_TIME: Final = "a transaction whose time is in no calendar"


def read(item: WorkItem, source: Iterable[bytes]) -> Iterator[Kept | Rejected]:
    """The operations of one log, or of a part of it that begins at a record.

    The places of a transaction's operations follow one another and add up to its record; the file's header belongs
    to the first. Zeros at the end belong to none. What is damaged is rejected with its place.
    """
    for frame in _frames(Framer(item.offset, item.line), source):
        if frame.reason is not None:
            yield Rejected(Place(frame.offset, frame.length, frame.number, frame.data), frame.reason)
        else:
            yield from _rows(frame, item.chroot)


def operations(source: Iterable[bytes]) -> Iterator[Operation]:
    """The operations of one whole log, in order; what cannot be read is left out, :func:`read` says what it is."""
    for frame in _frames(Framer(), source):
        for part in parts_of(frame) or ():
            yield part.operation


def parts_of(frame: Frame) -> list[Part] | None:
    """The operations of a framed record; NULL where it cannot be read."""
    if frame.reason is not None:
        return None
    try:
        return parts(frame.body)
    except JuteError:
        return None


def _frames(framer: Framer, source: Iterable[bytes]) -> Iterator[Frame]:
    for block in source:
        yield from framer.take(block)
    yield from framer.finish()


def _rows(frame: Frame, chroot: str) -> Iterator[Kept | Rejected]:
    whole = Place(frame.offset, frame.length, frame.number, frame.data)
    try:
        found = parts(frame.body)
    except JuteError as error:
        yield Rejected(whole, f"the transaction at byte {frame.offset} cannot be read: {error}")
        return
    if micros(found[0].operation.time_ms) is None:
        yield Rejected(whole, _NO_TIME)
        return
    first = 0
    for number, part in enumerate(found, start=1):
        end = frame.body_at + part.end if number < len(found) else frame.length
        place = Place(frame.offset + first, end - first, frame.number, frame.data[first:end])
        yield Kept(place, _values(part.operation, chroot))
        first = end


def _values(operation: Operation, chroot: str) -> dict[str, Any]:
    is_create = operation.op is Op.CREATE
    path = below_chroot(operation.path, chroot)
    return {
        "zxid": operation.zxid,
        "ordinal": operation.ordinal,
        "transaction_time": micros(operation.time_ms),
        "session_id": operation.session,
        "cxid": operation.cxid,
        "operation": operation.op.value,
        "path": path,
        "full_path": operation.path,
        "data": masked_znode(path, text(operation.data)),
        "version": operation.version,
        "is_ephemeral": operation.ephemeral if is_create else None,
        "ttl_ms": operation.ttl_ms,
        "session_timeout_ms": operation.session_timeout_ms,
        "error_code": operation.error,
    }
