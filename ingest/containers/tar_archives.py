"""Tar archives as streams: one pass, no seeking, no more in memory than one block.

An archive that is cut off or damaged ends with an entry that says so. Archives one after another are read on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ingest.containers import tar_headers as headers
from ingest.containers.entries import DEVICE, LINK, Entry, name_problem, refused, text_of, tidy
from ingest.containers.storage import ByteStream
from ingest.containers.streams import Part, because, damage_of, read_up_to, skip
from ingest.containers.tar_headers import BLOCK, Extended, Header, parse_header

#: Holes of a sparse file are given as zeros: more of them than this would be work without end.
MAX_HOLES_BYTES: Final = 4 << 30
CUT_OFF: Final = "the archive is cut off here"
_ZEROS: Final = bytes(BLOCK)


def entries(source: ByteStream) -> Iterator[Entry]:
    """The files of a tar archive in its order. Each stream must be used before the next entry is asked for."""
    return _Reader(source).entries()


class _Damaged(Exception):
    """What is wrong with the archive, so that nothing after it can be found."""


class _Reader:
    def __init__(self, source: ByteStream) -> None:
        self._source = source
        self._at = 0
        self._shared = Extended()

    def entries(self) -> Iterator[Entry]:
        own = Extended()
        is_over = False
        try:
            while True:
                block = self._read(BLOCK)
                if block == _ZEROS:
                    is_over = True
                    continue
                if is_over and not block.strip(b"\0"):
                    break
                header = self._header(block, is_over)
                is_over = False
                if self._is_extended(header, own):
                    continue
                headers.apply(self._shared, header)
                headers.apply(own, header)
                own = Extended()
                yield from self._entry(header)
        except _Damaged as error:
            yield refused(None, f"the archive is damaged or cut off ({error}): its later files are missing")
            return
        damage = damage_of(self._source)
        if damage is not None:
            yield refused(None, f"the archive is damaged behind its last file ({damage})")

    def _read(self, size: int) -> bytes:
        data = read_up_to(self._source, size)
        self._at += len(data)
        return data

    def _header(self, block: bytes, is_over: bool) -> Header:
        if len(block) < BLOCK:
            what = "bytes that are no entry follow the archive's end" if is_over else "its end is missing"
            raise _Damaged(because(f"{what} at byte {self._at}", damage_of(self._source)))
        header = parse_header(block)
        if header is None:
            raise _Damaged(f"no entry's header where one should be, at byte {self._at - BLOCK}")
        return header

    def _is_extended(self, header: Header, own: Extended) -> bool:
        """Whether the header is one about the entry that follows; then it is taken over."""
        if header.kind in (headers.PAX, headers.SOLARIS_PAX, headers.PAX_GLOBAL):
            into = self._shared if header.kind == headers.PAX_GLOBAL else own
            if not headers.pax_records(self._extended_data(header), into):
                raise _Damaged(f"an extended header that cannot be read before byte {self._at}")
            return True
        if header.kind == headers.LONG_NAME:
            own.name = text_of(self._extended_data(header).split(b"\0", 1)[0])
            return True
        if header.kind == headers.LONG_LINK:
            self._extended_data(header)
            return True
        return False

    def _extended_data(self, header: Header) -> bytes:
        if header.size > headers.MAX_EXTENDED_BYTES:
            raise _Damaged(f"an extended header of {header.size} bytes before byte {self._at}")
        data = self._read(_padded(header.size))
        if len(data) < _padded(header.size):
            raise _Damaged(because(f"an extended header ends at byte {self._at}", damage_of(self._source)))
        return data[: header.size]

    def _entry(self, header: Header) -> Iterator[Entry]:
        while header.more_pieces:
            block = self._read(BLOCK)
            pieces = header.pieces if header.pieces is not None else []
            if len(block) < BLOCK or len(pieces) > headers.MAX_PIECES:
                raise _Damaged(f"the map of a sparse file that cannot be read before byte {self._at}")
            pieces.extend(headers.sparse_pieces(block[:504]))
            header.more_pieces = block[504] != 0
        size = 0 if header.kind in headers.WITHOUT_DATA else header.size
        data = Part(self._source, size, CUT_OFF)
        if header.kind not in headers.NO_FILES:
            yield self._file(header, data)
        rest = data.left + _padded(size) - size
        if data.damage is not None or skip(self._source, rest) < rest:
            raise _Damaged(because(f"{tidy(header.name)} is not whole", damage_of(self._source)))
        self._at += _padded(size)

    def _file(self, header: Header, data: Part) -> Entry:
        problem = name_problem(header.name) or _kind_problem(header.kind)
        name = tidy(header.name)
        if problem is None and header.real_size is not None:
            sparse = _sparse(header, data)
            return refused(name, sparse) if isinstance(sparse, str) else Entry(name, sparse)
        return refused(name, problem) if problem is not None else Entry(name, data)


def _kind_problem(kind: str) -> str | None:
    if kind in headers.LINKS:
        return LINK
    if kind in headers.DEVICES:
        return DEVICE
    if kind == headers.CONTINUED:
        return "the rest of a file that began in another volume of the archive: give all volumes as one file"
    if kind in headers.REGULAR or kind == headers.SPARSE:
        return None
    return f"an archive's entry of an unknown type ({kind!r}): refused"


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def _sparse(header: Header, data: Part) -> _Sparse | str:
    """A sparse file's content, or why it cannot be read."""
    pieces = header.pieces
    if pieces is None:
        pieces = _map_in_data(data)
    real_size = header.real_size or 0
    end = 0
    for offset, length in pieces or ():
        if offset < end or length < 0:
            pieces = None
            break
        end = offset + length
    if pieces is None or end > real_size or sum(length for _, length in pieces) != data.left:
        return "a sparse file whose map cannot be read: pack it again without holes (tar without -S)"
    if real_size - data.left > MAX_HOLES_BYTES:
        return (
            f"a sparse file with {real_size - data.left} bytes of holes, more than {MAX_HOLES_BYTES >> 30} GiB: refused"
        )
    return _Sparse(data, pieces, real_size)


def _map_in_data(data: Part) -> headers.Pieces | None:
    """The map that PAX 1.0 puts before the data: decimal numbers, a line each, their count first."""
    first = read_up_to(data, BLOCK)
    count = headers.decimal(first.partition(b"\n")[0])
    if count is None or count > headers.MAX_PIECES:
        return None
    blocks = [first]
    lines = first.count(b"\n")
    while lines < 2 * count + 1:
        block = read_up_to(data, BLOCK)
        if len(block) < BLOCK or len(blocks) > headers.MAX_PIECES:
            return None
        blocks.append(block)
        lines += block.count(b"\n")
    return headers.paired(b"".join(blocks).split(b"\n")[1 : 2 * count + 1])


class _Sparse:
    """The data of a sparse file with zeros for its holes."""

    def __init__(self, data: Part, pieces: headers.Pieces, size: int) -> None:
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
