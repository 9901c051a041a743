"""The headers of zip archives: the central directory at the end, and the local header before each entry.

Facts from PKWARE's APPNOTE, sections 4.3 to 4.5.
"""

from __future__ import annotations

import stat
import struct
import zipfile
from dataclasses import dataclass
from typing import Final

from ingest.containers.entries import DEVICE, LINK, name_problem, text_of
from ingest.containers.storage import SeekableStream
from ingest.containers.streams import read_up_to

LOCAL: Final = b"PK\x03\x04"
CENTRAL: Final = b"PK\x01\x02"
DESCRIPTOR: Final = b"PK\x07\x08"
END: Final = b"PK\x05\x06"
ARCHIVE_EXTRA: Final = b"PK\x06\x08"
#: A directory is held in memory, ten times its bytes at most; with a larger one the entries are found in sequence.
MAX_DIRECTORY_BYTES: Final = 8 << 20
_UNKNOWN_32: Final = 0xFFFFFFFF

STORED, DEFLATED, BZIP2, ZSTD_OLD, ZSTD, AES = 0, 8, 12, 20, 93, 99
_METHOD_NAMES: Final = {1: "Shrink", 6: "Implode", 9: "Deflate64", 14: "LZMA", 95: "XZ", 97: "WavPack", 98: "PPMd"}
_ENCRYPTED, _DESCRIBED, _STRONG, _UTF8, _MASKED = 1, 1 << 3, 1 << 6, 1 << 11, 1 << 13

_LOCAL_FIELDS: Final = struct.Struct("<4s5H3L2H")


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


class View:
    """A file up to ``end``, read at a place of its own, and so much at a time that memory holds it."""

    def __init__(self, file: SeekableStream, end: int, at: int = 0) -> None:
        self._file = file
        self._end = end
        self._at = at

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self._at = offset + (0, self._at, self._end)[whence]
        if self._at < 0:
            raise OSError("before the file's beginning")
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(self._end - self._at, 0)
        size = left if size is None or size < 0 else min(size, left)
        if size > MAX_DIRECTORY_BYTES:
            raise zipfile.BadZipFile(f"it has more than {MAX_DIRECTORY_BYTES >> 20} MiB")
        self._file.seek(self._at)
        block = read_up_to(self._file, size)
        self._at += len(block)
        return block


def read_directory(file: SeekableStream) -> tuple[list[ZipEntry], int] | str:
    """The entries of the central directory and where it begins, or why it cannot be read.

    zipfile takes the last mark of the end for it, be it one in the comment, and one part of several for the whole.
    """
    size = file.seek(0, 2)
    tail_start = max(size - 22 - 0xFFFF, 0)
    tail = View(file, size, tail_start).read()
    why = "the directory at its end is missing or damaged"
    at = len(tail)
    while (at := tail.rfind(END, 0, at)) >= 0:
        if at + 22 > len(tail):
            continue
        disk, first_disk, _, count, _, start, comment = struct.unpack_from("<4H2LH", tail, at + 4)
        if at + 22 + comment > len(tail):
            continue
        if (disk, first_disk) not in ((0, 0), (0xFFFF, 0xFFFF)):
            why = "it is one part of several: join them first"
            continue
        try:
            archive = zipfile.ZipFile(View(file, tail_start + at + 22))
        except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError, struct.error) as error:
            why = f"its directory cannot be read: {error}"
            continue
        # zipfile asks for neither: an entry of a wrong length hides those behind it.
        is_whole = count <= len(archive.infolist()) or count == 0xFFFF
        if is_whole and (start <= archive.start_dir or start == _UNKNOWN_32):
            return [_central_entry(info) for info in archive.infolist()], archive.start_dir
        why = "its directory is not what its end says"
    return why


def _central_entry(info: zipfile.ZipInfo) -> ZipEntry:
    flags, system = info.flag_bits, info.create_system
    name = info.orig_filename.encode("utf-8" if flags & _UTF8 else "cp437")
    mode = info.external_attr >> 16 if system in (3, 19) else 0
    return ZipEntry(
        _name(name, flags, system),
        info.compress_type,
        flags,
        info.CRC,
        info.compress_size,
        info.file_size,
        info.header_offset,
        mode,
    )


def parse_local(block: bytes) -> tuple[int, int] | None:
    """Lengths of the name and of the extra fields that follow a local header of 30 bytes; None where it is none."""
    if len(block) < 30 or not block.startswith(LOCAL):
        return None
    fields = _LOCAL_FIELDS.unpack_from(block)
    return fields[9], fields[10]


def local_entry(block: bytes, name: bytes, extra: bytes) -> ZipEntry:
    """The entry as its local header states it."""
    (_, _, flags, method, _, _, crc, packed, size, _, _) = _LOCAL_FIELDS.unpack_from(block)
    size, packed = _wide(extra, size, packed)
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
