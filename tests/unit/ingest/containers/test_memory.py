"""What a few kilobytes can unpack to is never held: memory does not grow with it."""

from __future__ import annotations

import bz2
import lzma
import subprocess
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import pytest
import zstandard

from tests import ROOT

SIZE = 64 << 20
LIMIT_KIB = 24 << 10

#: Reads a small file first, so that what is loaded once does not count.
READ = """
import resource, sys
from ingest.containers import contents

def read(path):
    return sum(len(block) for content in contents(path) for block in iter(lambda: content.stream.read(1 << 20), b""))

read(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
size = read(sys.argv[2])
print(size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def write(path: Path, kind: str, size: int) -> None:
    block = bytes(1 << 20)
    compressing: dict[str, Any] = {
        "gzip": lambda: zlib.compressobj(1, zlib.DEFLATED, 31),
        "zstd": lambda: zstandard.ZstdCompressor().compressobj(),
        "xz": lambda: lzma.LZMACompressor(preset=0),
        "bzip2": lambda: bz2.BZ2Compressor(1),
    }

    def fill(file: IO[bytes], *, count: int = size >> 20) -> None:
        for _ in range(count):
            file.write(block)

    if kind in compressing:
        packing = compressing[kind]()
        with open(path, "wb") as file:
            for _ in range(size >> 20):
                file.write(packing.compress(block))
            file.write(packing.flush())
    elif kind == "zip":
        with (
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
            archive.open("a", "w") as entry,
        ):
            fill(entry)
    elif kind == "zip in tar.gz":
        write(path.with_suffix(".zip"), "zip", size)
        with tarfile.open(path, "w:gz") as archive:
            archive.add(path.with_suffix(".zip"), "a.zip")
    else:
        entry = tarfile.TarInfo("a.index")
        entry.type = tarfile.GNUTYPE_SPARSE
        header = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
        header[483:495] = b"%011o\0" % size
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        path.write_bytes(header + bytes(1024))


@pytest.mark.parametrize("kind", ["gzip", "zstd", "xz", "bzip2", "zip", "zip in tar.gz", "sparse tar"])
def test_memory_does_not_grow_with_what_a_file_unpacks_to(kind: str, tmp_path: Path) -> None:
    write(tmp_path / "small", kind, 1 << 20)
    write(tmp_path / "large", kind, SIZE)
    command = [sys.executable, "-c", READ, str(tmp_path / "small"), str(tmp_path / "large")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    size, grown_kib = map(int, done.stdout.split())
    assert size == SIZE
    assert grown_kib < LIMIT_KIB
