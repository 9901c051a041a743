"""Which program made a table's rows: another program may make other rows of the same evidence."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

#: What rows depend on: the packages that read evidence, that judge it, and that decide whether gold is published.
_PACKAGES: Final = ("ingest", "reconstruct", "checks")
_LIBRARIES: Final = ("pyspark", "delta-spark", "pyarrow")


@cache
def program() -> str:
    """A hash over the program's own files, wherever it is installed, and the versions of what it stands on."""
    digest = hashlib.sha256()
    for name in _LIBRARIES:
        digest.update(f"{name} {version(name)}\n".encode())
    for package in _PACKAGES:
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
