"""Packs for the tests, made in memory, and what is read from them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
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
