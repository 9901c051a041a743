"""Tar archives as streams: one pass, no seeking, no more in memory than an entry's headers.

Python's tarfile reads the headers, v7, ustar, PAX and GNU, and the maps of sparse files. It takes a header that it
cannot read for the archive's end, and holds whatever an extended header asks for: here both are damage, and an archive
that is cut off or damaged ends with an entry that says so. Archives one after another are read on.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from typing import IO, Final, cast

from ingest.containers.entries import DEVICE, LINK, Entry, name_problem, refused, text_of, tidy
from ingest.containers.storage import ByteStream
from ingest.containers.streams import Part, Peekable, because, damage_of, read_up_to, skip

BLOCK: Final = tarfile.BLOCKSIZE
#: All headers of one entry, with the map of a sparse file; more are damage.
MAX_HEADER_BYTES: Final = 2 << 20
#: Holes of a sparse file are given as zeros: more of them than this would be work without end.
MAX_HOLES_BYTES: Final = 4 << 30
CUT_OFF: Final = "the archive is cut off here"
_PAX: Final = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_EXTENDED: Final = (*_PAX, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
#: Directories, GNU's lists of a directory, and volume labels.
_NO_FILES: Final = (tarfile.DIRTYPE, b"D", b"V")
_CONTINUED: Final = b"M"
#: Links, devices, directories and pipes: their size says nothing about data that follow them.
_WITHOUT_DATA: Final = b"123456"
_RECORD: Final = re.compile(rb"(\d{1,7}) [^=]+=")
_LONG_NUMBER: Final = re.compile(rb"(?<!\d)\d{100}")
_ENCODING: Final = ("utf-8", "backslashreplace")


def is_tar(head: bytes) -> bool:
    """Whether a file that begins with these 512 bytes is a tar archive: by its magic, or, before ustar, by the
    checksum of its first header."""
    if head[257:262] == b"ustar":
        return True
    try:
        tarfile.TarInfo.frombuf(head, *_ENCODING)
    except (tarfile.HeaderError, ValueError):
        return False
    return head[0] != 0


def entries(source: Peekable) -> Iterator[Entry]:
    """The files of a tar archive in its order. Each stream must be used before the next entry is asked for."""
    headers = _Headers(source)
    try:
        while (member := headers.next_member()) is not None:
            yield from _files(member, headers)
    except _Damaged as error:
        yield refused(None, f"the archive is damaged or cut off ({error}): its later files are missing")
        return
    damage = damage_of(source)
    if damage is not None:
        yield refused(None, f"the archive is damaged behind its last file ({damage})")


class _Damaged(Exception):
    """What is wrong with the archive, so that nothing after it can be found."""


class _Headers:
    """The archive as tarfile reads it: forward only, and so many bytes for the headers of one entry at most."""

    def __init__(self, source: Peekable) -> None:
        self.source = source
        self.at = 0
        self._left = 0
        # Opened for reading, a TarFile would read the first header by itself, and keep all of them.
        self._archive = tarfile.TarFile(None, "w", cast(IO[bytes], self), None, _Member, None, None, *_ENCODING)

    def next_member(self) -> _Member | None:
        """The next entry; None at the archive's end."""
        is_over = False
        self._left = MAX_HEADER_BYTES
        while not (block := self.source.peek(BLOCK)).strip(b"\0"):
            if len(block) < BLOCK and is_over:
                return None
            self.read(BLOCK)
            self._left = MAX_HEADER_BYTES
            is_over = True
        if len(block) < BLOCK and is_over:
            raise _Damaged(f"bytes that are no entry follow the archive's end at byte {self.at + len(block)}")
        member = _Member.fromtarfile(self._archive)
        # Global headers are kept for all that follows: only those that matter.
        shared = self._archive.pax_headers
        self._archive.pax_headers = {key: shared[key] for key in ("path", "size", "hdrcharset") if key in shared}
        return member

    def tell(self) -> int:
        return self.at

    def peek(self, size: int) -> bytes:
        if not 0 <= size <= self._left:
            raise _Damaged(f"an extended header of {size} bytes before byte {self.at}")
        data = self.source.peek(size)
        if len(data) < size:
            raise _Damaged(because(f"its end is missing at byte {self.at + len(data)}", damage_of(self.source)))
        return data

    def read(self, size: int) -> bytes:
        self.peek(size)
        self.at += size
        self._left -= size
        return read_up_to(self.source, size)


class _Member(tarfile.TarInfo):
    """An entry. ``size`` is that of its content, ``packed_bytes`` that of its data in the archive, which begin at
    ``start``."""

    packed_bytes = 0
    start = 0

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> _Member:
        """The next entry with what extended headers before it say, for each of which this is called again."""
        file = cast(_Headers, archive.fileobj)
        at = file.tell()
        block = file.peek(BLOCK)
        kind = block[156:157]
        try:
            size = cls.frombuf(block, *_ENCODING).size if kind in (*_PAX, tarfile.GNUTYPE_SPARSE) else 0
            if kind in _PAX and not _is_readable(file.peek(BLOCK + size)[BLOCK:]):
                raise ValueError
            member = super().fromtarfile(archive)
        except (tarfile.TarError, ValueError, IndexError, RecursionError):
            what = (
                "an extended header that cannot be read"
                if kind in _EXTENDED
                else "no entry's header where one should be"
            )
            raise _Damaged(f"{what}, at byte {at}") from None
        if kind not in _EXTENDED:
            is_sparse = kind == tarfile.GNUTYPE_SPARSE
            member.packed_bytes, member.start = (size if is_sparse else member.size), member.offset_data
            if block[257:263] != b"ustar\0":  # GNU's incremental archives hold times where ustar has the name's prefix
                member.name = text_of(block[:100].split(b"\0")[0])
        return member


def _is_readable(records: bytes) -> bool:
    """Whether the records of a PAX header are whole, which tarfile asked only later than Python 3.11, and hold no
    number on which its patterns would work without end."""
    at = 0
    while at < len(records) and records[at]:
        found = _RECORD.match(records, at)
        end = at + int(found[1]) if found else 0
        if found is None or end < found.end() or records[end - 1 : end] != b"\n":
            return False
        at = end
    return not _LONG_NUMBER.search(records)


def _files(member: _Member, headers: _Headers) -> Iterator[Entry]:
    """The entry as a file, none for a folder; then the archive stands behind it."""
    stated = str(member.pax_headers.get("size", member.packed_bytes))
    size = 0 if member.type in _WITHOUT_DATA else int(stated) if stated.isdecimal() and len(stated) < 19 else -1
    map_bytes = member.offset_data - member.start
    if size < map_bytes:
        raise _Damaged(f"an extended header that cannot be read, or a size of {stated} bytes, before byte {headers.at}")
    name = member.name.replace("\0", "\\x00")
    data = Part(headers.source, size - map_bytes, CUT_OFF)
    if not (member.isdir() or member.type in _NO_FILES or (name.endswith("/") and not size)):
        problem = name_problem(name) or _kind_problem(member)
        content = problem or (data if member.sparse is None else _with_holes(member, data))
        name = tidy(name)
        yield refused(name, content) if isinstance(content, str) else Entry(name, content)
    rest = data.left + -size % BLOCK
    if data.damage is not None or skip(headers.source, rest) < rest:
        raise _Damaged(because(f"{tidy(name)} is not whole", damage_of(headers.source)))
    headers.at += size - map_bytes + -size % BLOCK


def _kind_problem(member: _Member) -> str | None:
    if member.issym() or member.islnk():
        return LINK
    if member.isdev():
        return DEVICE
    if member.type == _CONTINUED:
        return "the rest of a file that began in another volume of the archive: give all volumes as one file"
    return None if member.isreg() else f"an archive's entry of an unknown type ({chr(member.type[0])!r}): refused"


def _with_holes(member: _Member, data: Part) -> ByteStream | str:
    """A sparse file's content, or why it cannot be read."""
    size = int(member.pax_headers.get("GNU.sparse.realsize", member.size))
    pieces = [(offset, length) for offset, length in cast(list[tuple[int, int]], member.sparse) if length]
    ends = [0, *(offset + length for offset, length in pieces)]
    is_in_order = all(offset >= end and length > 0 for (offset, length), end in zip(pieces, ends, strict=False))
    if not is_in_order or ends[-1] > size or sum(length for _, length in pieces) != data.left:
        return "a sparse file whose map cannot be read: pack it again without holes (tar without -S)"
    holes = size - data.left
    if holes > MAX_HOLES_BYTES:
        return f"a sparse file with {holes} bytes of holes, more than {MAX_HOLES_BYTES >> 30} GiB: refused"
    return _Sparse(data, pieces, size)


class _Sparse:
    """The data of a sparse file with zeros for its holes."""

    def __init__(self, data: Part, pieces: list[tuple[int, int]], size: int) -> None:
        self._data = data
        # A piece of no bytes at the end stands for the hole before it.
        self._pieces = iter([*pieces, (size, 0)])
        self._hole = 0
        self._piece = 0
        self._at = 0

    @property
    def damage(self) -> str | None:
        return self._data.damage

    def read(self, size: int, /) -> bytes:
        while not (self._hole or self._piece):
            following = next(self._pieces, None)
            if following is None:
                return b""
            self._hole, self._piece = following[0] - self._at, following[1]
        if self._hole:
            block = bytes(min(size, self._hole))
            self._hole -= len(block)
        else:
            block = self._data.read(min(size, self._piece))
            if not block:
                self._pieces, self._piece = iter(()), 0
            self._piece -= len(block)
        self._at += len(block)
        return block
