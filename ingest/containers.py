"""Compressed files and archives as streams: nothing is unpacked to disk, memory stays bounded.

What a file is packed in is seen from its first bytes, never from its name. A member of an archive is a
file like any other, named ``ARCHIVE!MEMBER``.
"""

from __future__ import annotations

import posixpath
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

from ingest import storage
from ingest.storage import ByteStream

_BLOCK: Final = 1 << 18
_GZIP_MAGIC: Final = b"\x1f\x8b"
_TAR_MAGIC: Final = b"ustar"
_TAR_MAGIC_AT: Final = 257


@dataclass(frozen=True)
class Content:
    """The uncompressed bytes of one file or member.

    ``member`` is NULL for a file that is no archive. ``problem`` says why the content must not be read.
    """

    member: str | None
    compression: str
    stream: ByteStream
    problem: str | None = None


class Peekable:
    """A stream whose first bytes can be looked at."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._held = b""

    def peek(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer at the end, without taking them."""
        while len(self._held) < size:
            block = self._stream.read(size - len(self._held))
            if not block:
                break
            self._held += block
        return self._held[:size]

    def read(self, size: int, /) -> bytes:
        if self._held:
            taken, self._held = self._held[:size], self._held[size:]
            return taken
        return self._stream.read(size)

    @property
    def damage(self) -> str | None:
        return damage_of(self._stream)


class GzipStream:
    """Gunzips a stream, members one after another. Where the data is cut off or damaged it ends, and
    ``damage`` says so; all that was whole before that point has been given."""

    def __init__(self, source: ByteStream) -> None:
        self._source = source
        self._inflater = zlib.decompressobj(31)
        self._pending = b""
        self._given = 0
        self._ended = False
        self.damage: str | None = None

    def read(self, size: int, /) -> bytes:
        while not self._ended:
            if not self._pending:
                self._pending = self._source.read(_BLOCK)
                if not self._pending:
                    return self._end(None if self._inflater.eof else "the gzip data is cut off here")
            if self._inflater.eof:
                rest = self._pending.lstrip(b"\0")
                if not rest:
                    self._pending = b""
                    continue
                if not rest.startswith(_GZIP_MAGIC[:1]):
                    return self._end("bytes that are not gzip follow here")
                self._pending = rest
                self._inflater = zlib.decompressobj(31)
            try:
                block = self._inflater.decompress(self._pending, size)
            except zlib.error as error:
                return self._end(f"the gzip data is damaged here ({error})")
            self._pending = self._inflater.unused_data if self._inflater.eof else self._inflater.unconsumed_tail
            if block:
                return block
        return b""

    def _end(self, damage: str | None) -> bytes:
        self._ended = True
        self.damage = damage
        return b""


def damage_of(stream: ByteStream) -> str | None:
    """What broke a stream that has been read to its end; NULL where it was whole."""
    return cast("str | None", getattr(stream, "damage", None))


def contents(location: str, offset: int = 0) -> Iterator[Content]:
    """The file's content, or that of each member where it is an archive, in the archive's order.

    Each stream must be used before the next is asked for. ``offset`` skips that many bytes of a file that
    is not packed; for packed ones use :func:`skip`. ``OSError`` where the file cannot be read.
    """
    raw = storage.open_stream(location, offset)
    try:
        outer = Peekable(raw)
        if offset:
            yield Content(None, "none", outer)
            return
        packed = outer.peek(2) == _GZIP_MAGIC
        inner = Peekable(GzipStream(outer)) if packed else outer
        if inner.peek(_TAR_MAGIC_AT + len(_TAR_MAGIC))[_TAR_MAGIC_AT:] == _TAR_MAGIC:
            yield from _members(inner, "tar.gz" if packed else "tar")
        else:
            yield Content(None, "gzip" if packed else "none", inner)
    finally:
        storage.close(raw)


def skip(stream: ByteStream, count: int) -> None:
    """Read past ``count`` bytes."""
    while count > 0:
        block = stream.read(min(count, _BLOCK))
        if not block:
            return
        count -= len(block)


def _members(stream: Peekable, compression: str) -> Iterator[Content]:
    nothing = Peekable(_Empty())
    try:
        with tarfile.open(fileobj=cast("tarfile._Fileobj", stream), mode="r|") as archive:
            for entry in archive:
                problem = _entry_problem(entry)
                if problem is not None:
                    yield Content(entry.name, compression, nothing, problem)
                elif entry.isfile():
                    taken = archive.extractfile(entry)
                    if taken is None:
                        continue
                    content = Peekable(_Guarded(cast(ByteStream, taken)))
                    if content.peek(2) == _GZIP_MAGIC:
                        content = Peekable(GzipStream(content))
                    yield Content(posixpath.normpath(entry.name), compression, content)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        yield Content(
            "", compression, nothing, f"the archive is damaged or cut off ({error}): its later files are missing"
        )
    else:
        damage = stream.damage
        if damage:
            yield Content("", compression, nothing, f"the archive is damaged ({damage}): its later files are missing")


def _entry_problem(entry: tarfile.TarInfo) -> str | None:
    if entry.name.startswith(("/", "\\")) or ".." in entry.name.replace("\\", "/").split("/"):
        return "an archive's entry that points outside of the archive: refused"
    if entry.issym() or entry.islnk():
        return "a link inside an archive: links are not followed"
    return None


class _Guarded:
    """A member's stream that ends, with ``damage``, where its archive is cut off."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self.damage: str | None = None

    def read(self, size: int, /) -> bytes:
        if self.damage is not None:
            return b""
        try:
            return self._stream.read(size)
        except (tarfile.TarError, EOFError) as error:
            self.damage = f"the archive is cut off here ({error})"
            return b""


class _Empty:
    def read(self, size: int, /) -> bytes:
        return b""
