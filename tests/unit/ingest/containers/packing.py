"""Packs for the tests, made in memory, and what is read from them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import zstandard

from ingest.containers import contents, damage_of

LINE: Final = b"[2026-03-11 10:21:07,123] INFO [Controller id=4] Ready (kafka.controller.KafkaController)\n"

COMPRESS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "zstd": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
    "xz": lzma.compress,
    "bzip2": bz2.compress,
}
TAR_OF: Final = {"gzip": "tar.gz", "zstd": "tar.zst", "xz": "tar.xz", "bzip2": "tar.bz2"}
ZIP_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)


class Taken(NamedTuple):
    member: str | None
    compression: str
    data: bytes
    damage: str | None
    problem: str | None


def take(data: bytes, folder: Path, size: int = 1000) -> list[Taken]:
    """All that a file of these bytes holds, read ``size`` bytes at a time."""
    path = folder / "file"
    path.write_bytes(data)
    found = []
    for content in contents(str(path)):
        parts = []
        while block := content.stream.read(size):
            assert len(block) <= size
            parts.append(block)
        damage = damage_of(content.stream)
        found.append(Taken(content.member, content.compression, b"".join(parts), damage, content.problem))
    return found


def whole(data: bytes, folder: Path) -> dict[str | None, bytes]:
    """The content of each member of a file in which nothing is wrong."""
    found = take(data, folder)
    assert [(item.damage, item.problem) for item in found] == [(None, None)] * len(found)
    return {item.member: item.data for item in found}


def tar(members: Mapping[str, bytes], **options: int) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", **options) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return held.getvalue()


class _Unseekable(io.RawIOBase):
    """What a zip is written to when its writer cannot go back: sizes then stand behind the data."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.data += data
        return len(data)


def zipped(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED, *, streamed: bool = False) -> bytes:
    held = _Unseekable() if streamed else io.BytesIO()
    with zipfile.ZipFile(held, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return bytes(held.data) if isinstance(held, _Unseekable) else held.getvalue()


def gzip_quine(name: bytes = b"self") -> bytes:
    """A gzip file that unpacks to itself: of units of five bytes, each a stored block's header or a block that repeats
    the last 20 bytes. Its checksum, which it holds twice, solves a linear equation."""
    assert len(name) == 4
    head = b"\x1f\x8b\x08\x08" + bytes(6) + name + b"\0"
    stored, repeat, last = b"\0\x14\0\xeb\xff", _repeat_20(), b"\1\0\0\xff\xff"

    def made(checksum: int) -> bytes:
        end = repeat + last + checksum.to_bytes(4, "little") + (120).to_bytes(4, "little") + bytes(2)
        return (head + stored) * 2 + repeat + stored + (repeat + stored) * 2 + repeat + stored + end * 2

    nothing = zlib.crc32(made(0))
    rows = [(zlib.crc32(made(1 << bit)) ^ nothing ^ (1 << bit), 1 << bit) for bit in range(32)]
    wanted, checksum = nothing, 0
    for bit in range(32):
        pivot = next((row for row in rows if row[0] >> bit & 1), None)
        assert pivot is not None, "no checksum fits: give another name"
        rows = [(a ^ pivot[0], c ^ pivot[1]) if a >> bit & 1 else (a, c) for a, c in rows if (a, c) != pivot]
        if wanted >> bit & 1:
            wanted, checksum = wanted ^ pivot[0], checksum ^ pivot[1]
    return made(checksum)


def _repeat_20() -> bytes:
    """A block of fixed codes: twice ten bytes of 20 before, and its end."""
    ten_of_twenty = "0001000" + "01000" + "110"  # the last are the distance's own bits, the lowest first
    bits = "010" + ten_of_twenty * 2 + "0000000"
    return bytes(int(bits[at : at + 8][::-1], 2) for at in range(0, 40, 8))
