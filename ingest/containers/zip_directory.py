"""The headers of zip archives: the central directory at the end, and the local header before each entry.

Facts from PKWARE's APPNOTE, sections 4.3 to 4.5.
"""

from __future__ import annotations

import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ingest.containers.entries import DEVICE, LINK, name_problem, text_of
from ingest.containers.storage import SeekableStream
from ingest.containers.streams import BLOCK_BYTES

LOCAL: Final = b"PK\x03\x04"
CENTRAL: Final = b"PK\x01\x02"
DESCRIPTOR: Final = b"PK\x07\x08"
END: Final = b"PK\x05\x06"
END_64: Final = b"PK\x06\x06"
ARCHIVE_EXTRA: Final = b"PK\x06\x08"
_LOCATOR_64: Final = b"PK\x06\x07"
_UNKNOWN_32: Final = 0xFFFFFFFF

STORED, DEFLATED, BZIP2, ZSTD_OLD, ZSTD, AES = 0, 8, 12, 20, 93, 99
_METHOD_NAMES: Final = {1: "Shrink", 6: "Implode", 9: "Deflate64", 14: "LZMA", 95: "XZ", 97: "WavPack", 98: "PPMd"}
_ENCRYPTED, _DESCRIBED, _STRONG, _UTF8, _MASKED = 1, 1 << 3, 1 << 6, 1 << 11, 1 << 13

_LOCAL_FIELDS: Final = struct.Struct("<4s5H3L2H")
_CENTRAL_FIELDS: Final = struct.Struct("<4s6H3L5H2L")


@dataclass(frozen=True)
class ZipEntry:
    """An entry as one of its headers states it. ``offset`` is that of its local header, of a local header its own
    data's. ``is_described`` says that sizes and checksum stand behind the data."""

    name: str
    method: int
    flags: int
    crc: int
    packed_bytes: int
    size_bytes: int
    offset: int
    mode: int = 0

    @property
    def is_described(self) -> bool:
        return bool(self.flags & _DESCRIBED)

    @property
    def is_folder(self) -> bool:
        return self.name.endswith("/")

    @property
    def problem(self) -> str | None:
        """Why the entry must not be read; None where it may."""
        if stat.S_ISLNK(self.mode):
            return LINK
        if stat.S_IFMT(self.mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
            return DEVICE
        if self.flags & (_ENCRYPTED | _STRONG | _MASKED) or self.method == AES:
            return "an encrypted entry of a zip archive: unpack it and give the folder"
        if self.method not in (STORED, DEFLATED, BZIP2, ZSTD_OLD, ZSTD):
            named = _METHOD_NAMES.get(self.method, "unknown")
            return (
                f"packed by a zip method that is not supported ({self.method}, {named}): unpack it and give the folder"
            )
        return name_problem(self.name)


@dataclass(frozen=True)
class Directory:
    """Where the central directory lies. ``shift`` is what precedes the archive in its file."""

    start: int
    size: int
    shift: int


def find_directory(file: SeekableStream) -> Directory | str:
    """The central directory, or why there is none."""
    file_size = file.seek(0, 2)
    tail_size = min(file_size, 22 + 0xFFFF)
    tail_start = file_size - tail_size
    tail = read_at(file, tail_start, tail_size)
    why = "the directory at its end is missing or damaged"
    at = tail.rfind(END, 0, -18)
    while at >= 0:
        found = _directory(file, tail, at, tail_start)
        if isinstance(found, Directory):
            return found
        why = found or why
        at = tail.rfind(END, 0, at + 3)
    return why


def _directory(file: SeekableStream, tail: bytes, at: int, tail_start: int) -> Directory | str | None:
    disk, first_disk, _, _, size, start, comment = struct.unpack_from("<4H2LH", tail, at + 4)
    if at + 22 + comment > len(tail):
        return None
    end = tail_start + at
    locator = tail[at - 20 : at] if at >= 20 else b""
    if locator.startswith(_LOCATOR_64):
        end_64 = struct.unpack_from("<Q", locator, 8)[0]
        record = read_at(file, end_64, 56) if end_64 <= end else b""
        if not record.startswith(END_64):
            # Something precedes the archive: its offsets do not count it.
            end_64 = end - 20 - 56
            record = read_at(file, max(end_64, 0), 56)
        if record.startswith(END_64) and len(record) == 56:
            disk, first_disk, _, _, size, start = struct.unpack_from("<2L4Q", record, 16)
            end = end_64
    if disk != first_disk or disk not in (0, 0xFFFF):
        return "it is one part of several: join them first"
    shift = end - size - start
    if shift < 0 or read_at(file, end - size, 4) not in (CENTRAL, END, END_64):
        return None
    return Directory(end - size, size, shift)


def directory_entries(file: SeekableStream, directory: Directory) -> Iterator[ZipEntry | str]:
    """The entries of the central directory; a sentence, and no more, where it is damaged."""
    buffer = b""
    position, end = directory.start, directory.start + directory.size
    while buffer or position < end:
        while len(buffer) < 46 or len(buffer) < 46 + sum(_CENTRAL_FIELDS.unpack_from(buffer)[10:13]):
            block = read_at(file, position, min(BLOCK_BYTES, end - position))
            if not block:
                yield "its directory ends in the middle of an entry"
                return
            position += len(block)
            buffer += block
        fields = _CENTRAL_FIELDS.unpack_from(buffer)
        if fields[0] != CENTRAL:
            yield "its directory is damaged"
            return
        name_end = 46 + fields[10]
        extra_end = name_end + fields[11]
        yield _central_entry(fields, buffer[46:name_end], buffer[name_end:extra_end], directory.shift)
        buffer = buffer[extra_end + fields[12] :]


def _central_entry(fields: tuple[int, ...], name: bytes, extra: bytes, shift: int) -> ZipEntry:
    (_, made_by, _, flags, method, _, _, crc, packed, size, _, _, _, _, _, external, offset) = fields
    size, packed, offset = _wide(extra, size, packed, offset)
    mode = external >> 16 if made_by >> 8 in (3, 19) else 0
    return ZipEntry(_name(name, flags, made_by >> 8), method, flags, crc, packed, size, offset + shift, mode)


def parse_local(block: bytes) -> tuple[int, int] | None:
    """Lengths of the name and of the extra fields that follow a local header of 30 bytes; None where it is none."""
    if len(block) < 30 or not block.startswith(LOCAL):
        return None
    fields = _LOCAL_FIELDS.unpack_from(block)
    return fields[9], fields[10]


def local_entry(block: bytes, name: bytes, extra: bytes) -> ZipEntry:
    """The entry as its local header states it."""
    (_, _, flags, method, _, _, crc, packed, size, _, _) = _LOCAL_FIELDS.unpack_from(block)
    size, packed, _ = _wide(extra, size, packed, 0)
    return ZipEntry(_name(name, flags, 3), method, flags, crc, packed, size, 0)


def _wide(extra: bytes, *values: int) -> tuple[int, ...]:
    """Replace what does not fit in 32 bits by what the Zip64 field says."""
    wide = b""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            wide = extra[at + 4 : at + 4 + length]
            break
        at += 4 + length
    numbers = []
    for value in values:
        if value == _UNKNOWN_32 and len(wide) >= 8:
            value, wide = struct.unpack_from("<Q", wide)[0], wide[8:]
        numbers.append(value)
    return tuple(numbers)


def _name(name: bytes, flags: int, system: int) -> str:
    if flags & _UTF8:
        return _separated(text_of(name), system)
    try:
        return _separated(text_of(name) if name.isascii() else name.decode("utf-8"), system)
    except UnicodeDecodeError:
        return _separated(text_of(name.decode("cp437").encode()), system)


def _separated(name: str, system: int) -> str:
    """Some programs on DOS and Windows write backslashes between folders."""
    return name.replace("\\", "/") if system in (0, 10, 14) else name


def read_at(file: SeekableStream, offset: int, size: int) -> bytes:
    """``size`` bytes from ``offset``, fewer at the file's end."""
    file.seek(offset)
    parts = []
    while size > 0:
        block = file.read(size)
        if not block:
            break
        parts.append(block)
        size -= len(block)
    return b"".join(parts)
