"""The headers of tar archives: v7, ustar, PAX and GNU, as POSIX (pax, "ustar Interchange Format") and the manual of
GNU tar ("Basic Tar Format", "Storing Sparse Files") describe them.

Python's tarfile ends an archive silently at the first header that it cannot read; here such a header is damage.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final

from ingest.containers.entries import text_of

BLOCK: Final = 512
#: An extended header (PAX, long name) is read whole; a longer one is damage.
MAX_EXTENDED_BYTES: Final = 1 << 20
#: Pieces of a sparse file.
MAX_PIECES: Final = 100_000

REGULAR: Final = frozenset("07\0")
LINKS: Final = frozenset("12")
DEVICES: Final = frozenset("346")
#: Directories, GNU's lists of a directory, and volume labels.
NO_FILES: Final = frozenset("5DV")
#: Entries whose size says nothing about data that follow them.
WITHOUT_DATA: Final = frozenset("123456")
PAX, PAX_GLOBAL, SOLARIS_PAX, LONG_NAME, LONG_LINK, SPARSE, CONTINUED = "x", "g", "X", "L", "K", "S", "M"

Pieces = list[tuple[int, int]]


@dataclass
class Header:
    """One header block. ``pieces`` are (offset, length) of a sparse file's data, ``real_size`` its size with holes;
    ``more_pieces`` says that a block with more of them follows."""

    name: str
    kind: str
    size: int
    pieces: Pieces | None = None
    real_size: int | None = None
    more_pieces: bool = False


@dataclass
class Extended:
    """What extended headers say of the entry that follows them."""

    values: dict[bytes, bytes] = field(default_factory=dict)
    name: str | None = None
    #: PAX 0.0 repeats its two keys for every piece.
    offsets: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)

    def number(self, *keys: bytes) -> int | None:
        """The number under the first of ``keys`` that is there."""
        for key in keys:
            if key in self.values:
                return decimal(self.values[key])
        return None


def parse_header(block: bytes) -> Header | None:
    """A header block; None where it is none, or a damaged one: its checksum does not fit."""
    stated = _number(block[148:156])
    fields = block[:148] + b" " * 8 + block[156:]
    if stated is None or stated not in (sum(fields), sum(struct.unpack("512b", fields))):
        return None
    kind = chr(block[156])
    size = _number(block[124:136])
    if size is None:
        return None
    name = block[:100].split(b"\0", 1)[0]
    if block[257:263] == b"ustar\0" and kind != SPARSE:
        prefix = block[345:500].split(b"\0", 1)[0]
        name = prefix + b"/" + name if prefix else name
    header = Header(text_of(name), kind, size)
    if kind in "0\0" and size == 0 and name.endswith(b"/"):
        header.kind = "5"
    if kind == SPARSE:
        header.pieces = sparse_pieces(block[386:482])
        header.more_pieces = block[482] != 0
        header.real_size = _number(block[483:495])
    return header


def is_tar(head: bytes) -> bool:
    """Whether a file that begins with these 512 bytes is a tar archive: by its magic, or, before ustar, by the
    checksum of its first header."""
    if len(head) >= 263 and head[257:262] == b"ustar":
        return True
    return len(head) == BLOCK and head[0] != 0 and parse_header(head) is not None


def sparse_pieces(data: bytes) -> Pieces:
    """(offset, length) pairs of a GNU sparse header, up to the first that is empty."""
    pieces = []
    for at in range(0, len(data) - 23, 24):
        offset, length = _number(data[at : at + 12]), _number(data[at + 12 : at + 24])
        if offset is None or length is None or not data[at]:
            break
        pieces.append((offset, length))
    return pieces


def pax_records(data: bytes, into: Extended) -> bool:
    """Take over the records of a PAX header that matter here; False where they are damaged."""
    at = 0
    while at < len(data) and data[at : at + 1] != b"\0":
        space = data.find(b" ", at, at + 12)
        digits = data[at:space] if space > 0 else b""
        end = at + int(digits) if digits.isdigit() else 0
        if end <= space + 1 or end > len(data) or data[end - 1 : end] != b"\n":
            return False
        key, equals, value = data[space + 1 : end - 1].partition(b"=")
        number = decimal(value)
        if not equals or (key in _NUMBERS and number is None):
            return False
        if key == b"GNU.sparse.offset":
            into.offsets.append(number or 0)
        elif key == b"GNU.sparse.numbytes":
            into.lengths.append(number or 0)
        elif key == b"path" or key == b"size" or key.startswith(b"GNU.sparse."):
            into.values[key] = value
        at = end
    return True


_NUMBERS: Final = frozenset(
    {b"size", b"GNU.sparse.size", b"GNU.sparse.realsize", b"GNU.sparse.offset", b"GNU.sparse.numbytes"}
)


def apply(extended: Extended, header: Header) -> None:
    """Let extended headers override what the entry's own header says."""
    values = extended.values
    stated = values.get(b"GNU.sparse.name", values.get(b"path"))
    if stated is not None:
        header.name = text_of(stated)
    elif extended.name is not None:
        header.name = extended.name
    size = extended.number(b"size")
    if size is not None:
        header.size = size
    if header.kind in REGULAR and any(key.startswith(b"GNU.sparse.") for key in values):
        header.real_size = extended.number(b"GNU.sparse.realsize", b"GNU.sparse.size")
        if values.get(b"GNU.sparse.major") != b"1":
            header.pieces = _pax_pieces(extended)


def _pax_pieces(extended: Extended) -> Pieces:
    stated = extended.values.get(b"GNU.sparse.map")
    if stated is None:
        return list(zip(extended.offsets, extended.lengths, strict=False))
    return paired(stated.split(b",") if stated else [])


def paired(numbers: list[bytes]) -> Pieces:
    """Offsets and lengths in turns as pieces; what is no number becomes a length or offset of -1."""
    values = [number if number is not None else -1 for number in map(decimal, numbers)]
    return list(zip(values[::2], values[1::2], strict=False))


def decimal(digits: bytes) -> int | None:
    """A decimal number of at most 18 digits."""
    return int(digits) if digits.isdigit() and len(digits) <= 18 else None


def _number(data: bytes) -> int | None:
    """A number field, octal or in base 256; None where it is neither, or negative."""
    if data[0] & 0x80:
        number = int.from_bytes(bytes([data[0] & 0x7F]) + data[1:], "big")
        return number if not data[0] & 0x40 and number < 1 << 63 else None
    digits = data.split(b"\0", 1)[0].strip()
    if not digits:
        return 0
    return int(digits, 8) if all(0x30 <= digit <= 0x37 for digit in digits) else None
