"""The packed captures, unpacked for a test.

Each is a folder as the capturing left it (see ``tests/captures/README.md``), truth included; a test that runs the
program leaves the truth out with ``without=TRUTH``.
"""

from __future__ import annotations

import fnmatch
import os
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.support.captures.packing import CAPTURES

#: What only tests may read: the truth a reconstruction is measured against.
TRUTH: Final = ("zk-version-2", "probes-*.jsonl", "events.jsonl")
ZNODES: Final = ("znodes",)

Unpacker = Callable[..., Path]
#: What was unpacked for tests to share, by the session's folder, the capture and what was left out.
_SHARED: Final[dict[tuple[Path, str, tuple[str, ...]], Path]] = {}


def capture_names() -> tuple[str, ...]:
    """The packed captures, sorted."""
    return tuple(sorted(path.name.removesuffix(".tar.xz") for path in CAPTURES.glob("*.tar.xz")))


def kafka_version(name: str) -> str:
    """The Kafka version in a capture's name: ``unclean-3.9.1-info`` is of 3.9.1."""
    return name.split("-")[1]


def unpack(name: str, target: Path, without: Sequence[str] = ()) -> Path:
    """Unpack one packed capture below ``target`` and return its folder; see :func:`extract`."""
    return extract(CAPTURES / f"{name}.tar.xz", target, without)


def extract(pack: Path, target: Path, without: Sequence[str] = ()) -> Path:
    """Unpack ``pack`` below ``target`` and return the capture's folder, named like the pack.

    ``without`` holds patterns for the first part of a path below the capture's folder, or for the last one:
    ``("zk-version-2", "probes-*.jsonl")``, ``("controller.log",)``.
    """
    name = pack.name.removesuffix(".tar.xz")
    made: set[str] = set()
    with tarfile.open(pack) as archive:
        for member in archive:
            first, last = member.name.split("/", 2)[1], member.name.rpartition("/")[2]
            if any(fnmatch.fnmatchcase(part, pattern) for part in (first, last) for pattern in without):
                continue
            _put(archive, member, f"{target}/{member.name}", made)
    return target / name


def _put(archive: tarfile.TarFile, member: tarfile.TarInfo, place: str, made: set[str]) -> None:
    """Write one file of a pack, which :mod:`~tests.support.captures.packing` made, with its time; ``made``: folders
    that are there. What tarfile does besides (owners, links, names that lead elsewhere) takes ten times as long."""
    held = archive.extractfile(member)
    assert held is not None, f"{member.name} is no file"
    folder = place.rpartition("/")[0]
    if folder not in made:
        os.makedirs(folder, exist_ok=True)
        made.add(folder)
    with open(place, "wb") as file:
        file.write(held.read())
    os.utime(place, (member.mtime, member.mtime))


def unpack_once(name: str, folders: pytest.TempPathFactory, without: Sequence[str] = ()) -> Path:
    """The capture's folder, unpacked once per session and set of exclusions, for tests that do not change it."""
    key = (folders.getbasetemp(), name, tuple(without))
    if key not in _SHARED:
        _SHARED[key] = unpack(name, folders.mktemp("capture"), without)
    return _SHARED[key]


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Unpacker:
    """``unpacked(name, without=())``: the capture's folder, unpacked once per session and set of exclusions.

    Tests share the folder and must not change it; use :func:`unpack` for a copy of one's own.
    """
    return lambda name, without=(): unpack_once(name, tmp_path_factory, without)
