"""One pass over a file's bytes: size, hashes, what it is, whose it is, where it can be split.

No line is framed here: bytes are hashed, line feeds counted, a few names searched for. The pass stays beside that of
reading, because whose a file is and whether it is new is judged from all files together before any is read; it takes
about 2 % of an ingest.

Knows nothing of Spark: :func:`inspect` takes a location and gives one :class:`Inspected` per file or member.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from ingest.containers import Content, contents, damage_of
from ingest.containers.storage import ListedFile
from ingest.files.content_facts import content_facts
from ingest.files.inspected import SHARED, Inspected
from ingest.files.log_facts import LogFacts
from ingest.files.recognise import HEAD_BYTES, Recognised, recognise
from ingest.lake.tables.bronze import READ_PARTITION_FILE_KINDS, SourceKind
from ingest.readers import paths
from ingest.readers.identity import digest
from ingest.readers.lines import BLOCK_BYTES
from ingest.readers.logs.streams import StreamFacts
from ingest.readers.logs.times import prints_zone
from ingest.readers.work import RAW_BYTES

#: A plain log longer than this is read in parts of about this size.
SPLIT_BYTES: Final = 32 << 20
#: Kinds of which a number in the path says no instant: ZooKeeper's own files and what a client asked say it themselves.
_WITHOUT_COPY_TIME: Final = (
    SourceKind.UNRECOGNISED,
    SourceKind.ZNODE_TRANSACTION_LOG,
    SourceKind.ZNODE_SNAPSHOT_BINARY,
    SourceKind.OFFSET_PROBE,
    SourceKind.CLUSTER_DESCRIPTION,
    SourceKind.CAPTURE_GAP,
)
#: What to do where not the file is at fault.
_OURS: Final = "let more files be open (`ulimit -n`), then ingest it again"
#: What marks a line of the other channel where a wrapper names no process.
_STDERR: Final = b" stderr "


def inspect(found: ListedFile, split_bytes: int = SPLIT_BYTES, *, is_final: bool = False) -> Iterator[Inspected]:
    """Everything about a file, or about each member of an archive; nothing for a file that is gone. Never raises on
    what a file holds.

    ``is_final`` says that the file does not grow any more.
    """
    if found.problem is not None:
        yield _unread(found, None, "none", found.problem)
        return
    try:
        for content in contents(found.location):
            if content.problem is not None:
                yield _unread(found, content.member, content.compression, content.problem)
            else:
                yield _inspect(found, content, split_bytes, is_final)
    except FileNotFoundError:
        return  # rotated away or deleted since it was listed: there is no such file
    except OSError as error:
        remedy = _OURS if error.errno in (errno.EMFILE, errno.ENFILE) else "check its permissions and its disk"
        yield _unread(found, None, "none", f"the file cannot be read ({error.strerror or error}): {remedy}")


def _unread(found: ListedFile, member: str | None, compression: str, reason: str) -> Inspected:
    """A file whose bytes are not known: its name is all there is to hash."""
    name = _name(found, member)
    return Inspected(
        found.location,
        name,
        member,
        compression,
        SourceKind.UNRECOGNISED,
        "rejected",
        reason,
        content_hash=digest(name, reason),
    )


def _name(found: ListedFile, member: str | None) -> str:
    return found.source_file if member is None else f"{found.source_file}!{member}"


def _inspect(found: ListedFile, content: Content, split_bytes: int, is_final: bool) -> Inspected:
    names = paths.segments(found.location, content.member)
    stream = content.stream
    hole_bytes, head = _read_head(stream)
    is_whole = len(head) < HEAD_BYTES
    what = recognise(head, names, is_whole=is_whole)
    is_plain = content.compression == "none"
    scan = _Scan(what, names[-1], split_bytes if is_plain else 0, is_final or not is_plain)
    for position in range(0, hole_bytes, BLOCK_BYTES):
        scan.take(bytes(min(BLOCK_BYTES, hole_bytes - position)))
    scan.take(head)
    while not is_whole:
        block = stream.read(BLOCK_BYTES)
        if not block:
            break
        scan.take(block)
    return scan.result(
        Inspected(
            found.location,
            _name(found, content.member),
            content.member,
            content.compression,
            what.kind,
            what.status,
            what.reason,
            captured_at_ms=paths.captured_at_ms(names) if what.kind not in _WITHOUT_COPY_TIME else None,
            directory=_directory(what.kind, names),
            damage=damage_of(stream),
            raw=head[: min(1024, RAW_BYTES)].decode("utf-8", "replace") if what.status == "rejected" else "",
            is_declared_final=is_final,
        )
    )


def _directory(kind: str, names: Sequence[str]) -> str | None:
    if kind in READ_PARTITION_FILE_KINDS:
        return paths.parent_partition_directory(names)
    return paths.partition_directory(names) if kind == SourceKind.LEADER_EPOCH_CHECKPOINT else None


def _read_head(stream: Any) -> tuple[int, bytes]:
    """How many zeros the file begins with, as one truncated in place does, and the first bytes behind them; the zeros
    belong to the head where they are fewer than that."""
    parts: list[bytes] = []
    size = hole = 0
    while size < HEAD_BYTES:
        block = stream.read(HEAD_BYTES - size)
        if not block:
            break
        parts.append(block)
        size += len(block)
        if size >= HEAD_BYTES and not any(part.strip(b"\0") for part in parts):
            hole += size
            parts, size = [], 0
    if hole and not parts:
        return hole - HEAD_BYTES, bytes(HEAD_BYTES)
    return hole, b"".join(parts)


class _Scan:
    """What one pass over the blocks of a file gathers."""

    def __init__(self, what: Recognised, name: str, split_bytes: int, is_final: bool) -> None:
        self._what = what
        self._hash = hashlib.sha256()
        self._complete_hash = self._hash
        self._size = 0
        self._complete = 0
        self._lines = 0
        self._tail = b""
        # Lines that a runtime may have cut in pieces are not split: a part would have to begin at a whole one.
        self._split_bytes = split_bytes if what.reading is not None and what.reading.can_split else 0
        self._streams = StreamFacts(what.reading) if what.reading is not None and what.reading.names_streams else None
        self._is_wrapped = what.reading is not None and bool(what.reading.wrappers)
        self._has_stderr = False
        self._edge = b""
        self._splits: list[tuple[int, int]] = []
        self._log = LogFacts() if what.reading is not None else None
        self._content = self._log or content_facts(what.kind, name, is_final=is_final)

    def take(self, block: bytes) -> None:
        if self._split_bytes and self._size - (self._splits[-1][0] if self._splits else 0) >= self._split_bytes:
            self._split(block)
        last = block.rfind(b"\n") + 1
        if last:
            self._hash.update(block[:last])
            self._complete_hash = self._hash.copy()
            self._complete = self._size + last
            self._lines += block.count(b"\n")
            self._hash.update(block[last:])
        else:
            self._hash.update(block)
        if self._streams is not None:
            self._streams.take(block)
        elif self._is_wrapped and not self._has_stderr:
            self._has_stderr = _STDERR in self._edge + block
            self._edge = block[-len(_STDERR) :]
        if self._content is not None:
            self._content.take(block)
        self._size += len(block)

    def result(self, start: Inspected) -> Inspected:
        what = self._what
        found = {} if self._content is None else self._content.result()
        first = what.first_line
        unfinished = first is not None and self._complete == 0 and not start.is_final
        observed: dict[str, Any] = {
            "status": "empty" if unfinished else start.status,
            "reason": "its only line is not finished yet" if unfinished else start.reason,
            "size_bytes": self._size,
            "content_hash": self._hash.hexdigest(),
            "complete_bytes": self._complete,
            "complete_hash": self._complete_hash.hexdigest() if self._complete else hashlib.sha256().hexdigest(),
            "line_count": self._lines,
            "layout": what.reading.name if what.reading else None,
            "first_line": digest(first.rstrip(b"\r\n")) if first is not None else None,
            "prints_zone": what.reading is not None and first is not None and _prints_zone(what, first),
            "broker_id": what.broker_id,
            "splits": tuple(self._splits),
        }
        if self._streams is not None and self._streams.process_count > 1:
            observed["streams"] = self._streams.result() or None
        is_shared = self._streams is None and self._log is not None and len(self._log.servers) > 1
        if is_shared:  # brokers of one machine that were started from one folder: nothing tells their lines apart
            observed["streams"] = dict(SHARED)
            observed["broker_id"] = None
        several = self._streams is not None and len(self._streams.streams) > 1
        observed["is_interleaved"] = self._has_stderr or several or is_shared
        return replace(start, **(observed | {name: value for name, value in found.items() if value is not None}))

    def _split(self, block: bytes) -> None:
        reading = self._what.reading
        assert reading is not None
        if self._streams is not None:
            start = self._streams.split(block)
            if start is not None:
                self._splits.append((self._size + start, self._lines + block.count(b"\n", 0, start) + 1))
            return
        position = block.find(b"\n") + 1
        while 0 < position < len(block):
            end = block.find(b"\n", position)
            if end < 0:
                return
            if reading.begins(block[position:end]):
                self._splits.append((self._size + position, self._lines + block.count(b"\n", 0, position) + 1))
                return
            position = end + 1


def _prints_zone(what: Recognised, first_line: bytes) -> bool:
    assert what.reading is not None
    header = what.reading.layout.header.match(what.reading.content(first_line.rstrip(b"\r")))
    return header is not None and prints_zone(header.group("time").decode())
