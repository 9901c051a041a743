"""The content of zip entries, and the entries of an archive read from its beginning to its end."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Generator, Iterator
from typing import Final

from ingest.containers import zip_directory as directory
from ingest.containers.compression import BZIP2, DEFLATE, ZSTD, Decompressed
from ingest.containers.entries import Entry, refused, tidy
from ingest.containers.storage import ByteStream
from ingest.containers.streams import BLOCK_BYTES, Part, Peekable, because, damage_of, read_up_to, skip
from ingest.containers.zip_directory import ZipEntry

CUT_OFF: Final = "the zip entry is cut off here"
_CODECS: Final = {directory.DEFLATED: DEFLATE, directory.BZIP2: BZIP2, directory.ZSTD: ZSTD, directory.ZSTD_OLD: ZSTD}


def unpacked(packed: ByteStream, method: int) -> ByteStream:
    """The content of an entry's bytes."""
    codec = _CODECS.get(method)
    return packed if codec is None else Decompressed(packed, codec, only_one=True)


class Checked:
    """An entry's content, its size and checksum compared at its end with those that its header states."""

    def __init__(self, content: ByteStream, entry: ZipEntry) -> None:
        self._content = content
        self._entry = entry
        self._is_over = False
        self.size = 0
        self.crc = 0
        self.damage: str | None = None

    def read(self, size: int, /) -> bytes:
        if self._is_over:
            return b""
        block = self._content.read(size)
        self.size += len(block)
        self.crc = zlib.crc32(block, self.crc)
        if not block:
            self._is_over = True
            self.damage = damage_of(self._content) or self._difference()
        return block

    def _difference(self) -> str | None:
        entry = self._entry
        if (self.size, self.crc) == (entry.size_bytes, entry.crc):
            return None
        if self.size != entry.size_bytes:
            return f"the zip entry ends after {self.size} bytes, but {entry.size_bytes} are stated"
        return "the zip entry is damaged somewhere: its checksum does not fit"


class _Described(Checked):
    """An entry whose size and checksum stand behind it, in a descriptor that it reads at its end."""

    def __init__(self, content: Decompressed, source: Peekable, entry: ZipEntry) -> None:
        super().__init__(content, entry)
        self._decompressed = content
        self._source = source

    def _difference(self) -> str | None:
        self._source.put_back(self._decompressed.rest)
        head = self._source.peek(24)
        numbers = head.removeprefix(directory.DESCRIPTOR)
        for layout in ("<3L", "<L2Q"):
            length = struct.calcsize(layout)
            if len(numbers) >= length:
                crc, _, size = struct.unpack_from(layout, numbers)
                if crc == self.crc and size == self.size:
                    skip(self._source, len(head) - len(numbers) + length)
                    return None
        return "the zip entry is damaged somewhere, or cut off at its end: its checksum does not fit"


def in_sequence(source: Peekable, damage: str | None) -> Iterator[Entry]:
    """The entries by their local headers, where the directory cannot be used: ``damage`` says why, None where the
    archive may be whole. Each stream must be used before the next is asked for."""
    return _Sequence(source, damage).entries()


class _Sequence:
    def __init__(self, source: Peekable, damage: str | None) -> None:
        self._source = source
        self._damage = damage

    def entries(self) -> Iterator[Entry]:
        if self._source.peek(4) == directory.DESCRIPTOR:
            skip(self._source, 4)
        is_whole = True
        while is_whole:
            entry = self._header()
            if entry is None:
                break
            if entry.is_described and entry.problem is None and entry.method in _CODECS:
                is_whole = yield from self._described(entry)
            elif entry.is_folder:
                is_whole = self._pass(Part(self._source, entry.packed_bytes, CUT_OFF), entry)
            elif entry.is_described and not entry.packed_bytes:
                yield refused(tidy(entry.name), entry.problem or "stored without its size in a zip archive: unpack it")
                is_whole = self._stop(f"the length of {tidy(entry.name)} is not stated")
            else:
                is_whole = yield from self._measured(entry)
        if self._damage is None:
            while skip(self._source, BLOCK_BYTES):
                pass
            self._damage = damage_of(self._source)
        if self._damage is not None:
            yield refused(None, f"the zip archive is damaged or cut off ({self._damage}): later files may be missing")

    def _stop(self, damage: str) -> bool:
        self._damage = self._damage or because(damage, damage_of(self._source))
        return False

    def _header(self) -> ZipEntry | None:
        """The next entry; None behind the last one, or where none can be found."""
        head = self._source.peek(30)
        lengths = directory.parse_local(head)
        if lengths is None:
            if not head.startswith((directory.CENTRAL, directory.END, directory.ARCHIVE_EXTRA)):
                self._stop("something that is no entry stands where one should")
            return None
        size = 30 + sum(lengths)
        header = read_up_to(self._source, 30)
        header += read_up_to(self._source, size - 30)
        if len(header) < size:
            self._stop("the header of an entry is cut off")
            return None
        return directory.local_entry(header, header[30 : 30 + lengths[0]], header[30 + lengths[0] :])

    def _described(self, entry: ZipEntry) -> Generator[Entry, None, bool]:
        content = _Described(Decompressed(self._source, _CODECS[entry.method], only_one=True), self._source, entry)
        if not entry.is_folder:
            yield Entry(tidy(entry.name), content)
        while content.read(BLOCK_BYTES):
            pass
        return content.damage is None or self._stop(f"{tidy(entry.name)}: {content.damage}")

    def _measured(self, entry: ZipEntry) -> Generator[Entry, None, bool]:
        packed = Part(self._source, entry.packed_bytes, CUT_OFF)
        problem = entry.problem
        if problem is not None:
            yield refused(tidy(entry.name), problem)
        else:
            yield Entry(tidy(entry.name), Checked(unpacked(packed, entry.method), entry))
        return self._pass(packed, entry)

    def _pass(self, packed: Part, entry: ZipEntry) -> bool:
        """Read past what is left of an entry, and the descriptor that may follow it."""
        skip(packed, packed.left)
        if packed.damage is not None:
            return self._stop(f"{tidy(entry.name)} is not whole")
        if entry.is_described and self._source.peek(4) == directory.DESCRIPTOR:
            is_wide = self._source.peek(24)[16:18] != b"PK"
            skip(self._source, 24 if is_wide else 16)
        return True
