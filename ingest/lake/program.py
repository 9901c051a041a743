"""Which program made a table's rows: another program may make other rows of the same evidence."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

_LIBRARIES: Final = ("pyspark", "delta-spark", "pyarrow")


@cache
def program(*packages: str) -> str:
    """A hash over the files of some of the program's packages, wherever it is installed, and the versions of what it
    stands on."""
    digest = hashlib.sha256()
    for name in _LIBRARIES:
        digest.update(f"{name} {version(name)}\n".encode())
    for package in packages:
        for path, file in sorted(_files(files(package), package)):
            digest.update(f"{path}\n".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:32]


def _files(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        below = f"{path}/{entry.name}"
        if entry.is_file():
            if not entry.name.endswith(".pyc"):
                yield below, entry
        elif entry.name != "__pycache__":
            yield from _files(entry, below)
