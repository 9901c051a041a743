"""Files, wherever they lie: the one module that knows file systems.

A path is a local path or a URI that Arrow's file systems know (``hdfs://``, ``s3://``, ``gs://``,
``file://``). Everything above this module handles *locations*: absolute local paths or URIs, as strings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from pyarrow import fs

_URI = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]+)://")


class ByteStream(Protocol):
    """What is read: at most ``size`` bytes, empty at the end."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Found:
    """A file below a path given.

    ``source_file`` is its path below the path given (its name, where the path given is the file itself);
    ``problem`` says why it must not be opened, NULL where it may.
    """

    location: str
    source_file: str
    problem: str | None = None


class StorageError(Exception):
    """A path given cannot be listed; the message says what to do."""


def locate(path: str) -> str:
    """The location of a path: a URI as it is (``file://`` becomes a path), a local path made absolute."""
    scheme = _URI.match(path)
    if scheme is None:
        return os.path.abspath(path)
    if scheme.group(1).lower() == "file":
        return os.path.abspath(path[len("file://") :])
    return path.rstrip("/")


def is_local(location: str) -> bool:
    return _URI.match(location) is None


def list_files(path: str) -> list[Found]:
    """Every file at or below ``path``, by name. Symbolic links that leave the tree are named, not followed.

    Raises :class:`StorageError` where the path does not exist or cannot be listed.
    """
    location = locate(path)
    found = _list_local(path, location) if is_local(location) else _list_remote(path, location)
    return sorted(found, key=lambda file: file.location)


def open_stream(location: str, offset: int = 0) -> ByteStream:
    """The file's bytes from ``offset``; ``OSError`` where it cannot be read. Close it with :func:`close`."""
    if is_local(location):
        local = open(location, "rb")  # noqa: SIM115 - the caller closes it
        local.seek(offset)
        return local
    system, inner = fs.FileSystem.from_uri(location)
    if offset == 0:
        return cast(ByteStream, system.open_input_stream(inner, compression=None))
    remote = system.open_input_file(inner)
    remote.seek(offset)
    return cast(ByteStream, remote)


def close(stream: ByteStream) -> None:
    """Close what can be closed."""
    closing = getattr(stream, "close", None)
    if closing is not None:
        closing()


def _list_local(path: str, location: str) -> Iterator[Found]:
    if not os.path.exists(location):
        raise StorageError(f"{path} does not exist: give the path of a log, or of a folder of logs")
    if os.path.isfile(location):
        yield Found(location, os.path.basename(location))
        return
    root = os.path.realpath(location)
    denied: list[OSError] = []
    for folder, folders, names in os.walk(location, onerror=denied.append):
        for name in sorted([*names, *(entry for entry in folders if os.path.islink(os.path.join(folder, entry)))]):
            full = os.path.join(folder, name)
            relative = Path(full).relative_to(location).as_posix()
            if os.path.islink(full):
                problem = _link_problem(root, full)
                if problem is None:
                    continue
                yield Found(full, relative, problem)
            elif os.path.isfile(full):
                yield Found(full, relative)
    for error in denied:
        if error.filename is not None and os.path.abspath(error.filename) == location:
            raise StorageError(f"no permission to read {path}: run as a user who may, or give another path")
        name = str(error.filename)
        yield Found(name, Path(name).relative_to(location).as_posix(), f"the folder cannot be listed: {error.strerror}")


def _link_problem(root: str, full: str) -> str | None:
    """Why a symbolic link is not followed; NULL where its target lies in the tree and is listed by itself."""
    target = os.path.realpath(full)
    if not os.path.exists(target):
        return "a symbolic link whose target does not exist"
    if os.path.commonpath([root, target]) == root:
        return None
    return "a symbolic link that leads out of the folder given: give its target as a path of its own"


def _list_remote(path: str, location: str) -> Iterator[Found]:
    try:
        system, inner = fs.FileSystem.from_uri(location)
        info = system.get_file_info(inner)
        if info.type == fs.FileType.NotFound:
            raise StorageError(f"{path} does not exist: give the path of a log, or of a folder of logs")
        if info.type == fs.FileType.File:
            yield Found(location, inner.rsplit("/", 1)[-1])
            return
        for entry in system.get_file_info(fs.FileSelector(inner, recursive=True)):
            if entry.type == fs.FileType.File:
                relative = entry.path[len(inner) :].lstrip("/")
                yield Found(f"{location}/{relative}", relative)
    except (OSError, ValueError) as error:
        raise StorageError(f"{path} cannot be listed ({error}): check the address and the permissions") from error
