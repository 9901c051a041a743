"""Pack capture folders as ``tests/captures/NAME.tar.xz``, the same bytes from the same folders every time.

    python -m tests.support.captures.packing CAPTURE_DIR [CAPTURE_DIR ...] [--to DIR]

Everything in a folder is packed: the sources that the program reads, and the truth that only tests read
(``zk-version-2``, ``probes-*.jsonl``, ``events.jsonl``). Members are sorted by name, belong to nobody and carry no
time of their own, so that a pack changes only when a capture does; a reader therefore cannot take a file's time for
evidence, which it must not anyway.
"""

from __future__ import annotations

import argparse
import io
import lzma
import sys
import tarfile
from pathlib import Path
from typing import Final

from tests import ROOT

CAPTURES: Final = ROOT / "tests" / "captures"
LIMIT_BYTES: Final = 1_000_000
#: The strongest setting of xz that needs no more than 64 MiB to unpack.
_FILTERS: Final = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}]


def pack(capture: Path) -> bytes:
    """The capture as the bytes of a ``.tar.xz`` whose members lie below the folder's name.

    :raises ValueError: where the folder holds no file.
    """
    files = sorted(_by_kind(path, capture) for path in capture.rglob("*") if path.is_file())
    if not files:
        raise ValueError(f"{capture} holds no file: give the folder of one capture")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for _, path in files:
            archive.addfile(_member(f"{capture.name}/{path.relative_to(capture).as_posix()}", path), path.open("rb"))
    return lzma.compress(buffer.getvalue(), format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64, filters=_FILTERS)


def _by_kind(path: Path, capture: Path) -> tuple[tuple[str, ...], Path]:
    """Sort key: the same kind of file side by side, whatever broker it comes from, which packs smaller."""
    parts = path.relative_to(capture).parts
    return (*parts[1:], parts[0]), path


def _member(name: str, path: Path) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = path.stat().st_size
    member.mode = 0o644
    return member


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="pack_captures", description="Pack capture folders for the tests.")
    parser.add_argument("captures", nargs="+", type=Path, metavar="CAPTURE_DIR")
    parser.add_argument("--to", type=Path, default=CAPTURES, metavar="DIR")
    arguments = parser.parse_args(argv)
    arguments.to.mkdir(parents=True, exist_ok=True)
    for capture in sorted(arguments.captures):
        if not capture.is_dir():
            print(f"{capture} is not a folder: give the folder of one capture", file=sys.stderr)
            return 2
        (arguments.to / f"{capture.name}.tar.xz").write_bytes(pack(capture))
    sizes = {path.name: path.stat().st_size for path in sorted(arguments.to.glob("*.tar.xz"))}
    for name, size in sizes.items():
        print(f"{size:>9,} {name}")
    print(f"{sum(sizes.values()):>9,} bytes of {LIMIT_BYTES:,}")
    return 0 if sum(sizes.values()) < LIMIT_BYTES else 1


if __name__ == "__main__":
    raise SystemExit(main())
