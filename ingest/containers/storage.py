"""Files, wherever they lie: the one module that knows file systems.

A path is a local path or a URI that Arrow's file systems know (``hdfs://``, ``s3://``, ``gs://``, ``file://``);
``s3a://`` is Hadoop's name for the second. Everything above this module handles *locations*: absolute local paths or
URIs, as strings.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, cast

from pyarrow import fs

#: What any file may unpack to; one of which :data:`MAX_RATIO` times its size is more, to that. Of a file with holes the
#: size is that of its data.
FREE_BYTES: Final = 8 << 30
#: Logs shrink to a fiftieth, with xz to a hundredth.
MAX_RATIO: Final = 1000
#: What is no file, and may have no end.
NO_FILE: Final = "a device, pipe or socket: not opened"
HOLE: Final = (
    f"a sparse file of more than {FREE_BYTES >> 30} GiB and more than {MAX_RATIO} times its data: not read; copy what"
    " it holds into a file without holes"
)
_URI = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]+)://")


class ByteStream(Protocol):
    """What is read: at most ``size`` bytes, empty at the end."""

    def read(self, size: int, /) -> bytes: ...


class SeekableStream(ByteStream, Protocol):
    """What is read at any place; ``seek`` gives the new position."""

    def seek(self, offset: int, whence: int = 0, /) -> int: ...


@dataclass(frozen=True)
class ListedFile:
    """A file below a path given.

    ``source_file`` is its path below the path given (its name, where the path given is the file itself);
    ``problem`` says why it must not be opened, None where it may. ``state`` is its size and when it last changed, as
    text: where it stays the same, the content did; no fact of the cluster. It is empty of a file that is gone.
    """

    location: str
    source_file: str
    problem: str | None = None
    state: str = ""

    @property
    def size_bytes(self) -> int:
        """How large it was when it was listed; 0 where that is not told."""
        told = self.state.partition("@")[0]
        return int(told) if told.isdigit() else 0

    @property
    def changed_at(self) -> float:
        """When it last changed, by the clock of its file system, in seconds since 1970; infinity where that is not
        told."""
        told = self.state.rpartition("@")[2]
        return int(told) / 1e9 if told.isdigit() else math.inf


class StorageError(Exception):
    """A path given cannot be listed; the message says what to do."""


def locate(path: str) -> str:
    """The location of a path: a URI as Arrow has it (``file://`` becomes a path), a local path made absolute."""
    scheme = _URI.match(path)
    if scheme is None:
        return os.path.abspath(path)
    if scheme.group(1).lower() == "file":
        return os.path.abspath(path[len("file://") :])
    return re.sub(r"^s3[an]://", "s3://", path.rstrip("/"), flags=re.IGNORECASE)


def is_local(location: str) -> bool:
    return _URI.match(location) is None


def list_files(path: str) -> list[ListedFile]:
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


def open_seekable(location: str) -> SeekableStream:
    """The file's bytes, to be read at any place; ``OSError`` where it cannot be read. Close it with :func:`close`."""
    if is_local(location):
        return open(location, "rb")
    system, inner = fs.FileSystem.from_uri(location)
    return cast(SeekableStream, system.open_input_file(inner))


def size_bytes(location: str) -> int:
    """The file's size; ``OSError`` where it is gone."""
    if is_local(location):
        return os.stat(location).st_size
    system, inner = fs.FileSystem.from_uri(location)
    return int(system.get_file_info(inner).size or 0)


def close(stream: ByteStream) -> None:
    """Close what can be closed."""
    closing = getattr(stream, "close", None)
    if closing is not None:
        closing()


def _list_local(path: str, location: str) -> Iterator[ListedFile]:
    if not os.path.exists(location):
        raise StorageError(f"{path} does not exist: give the path of a log, or of a folder of logs")
    if os.path.isfile(location):
        name = _printable(os.path.basename(location))
        yield ListedFile(location, name, _hole_problem(location), _local_state(location))
        return
    if not os.path.isdir(location):
        yield ListedFile(location, _printable(os.path.basename(location)), NO_FILE)
        return
    root = os.path.realpath(location)
    denied: list[OSError] = []
    for folder, folders, names in os.walk(location, onerror=denied.append):
        for name in sorted([*names, *(entry for entry in folders if os.path.islink(os.path.join(folder, entry)))]):
            full = os.path.join(folder, name)
            relative = _printable(Path(full).relative_to(location).as_posix())
            if os.path.islink(full):
                problem = _link_problem(root, full)
                if problem is None:
                    continue
                yield ListedFile(full, relative, problem)
            elif os.path.isfile(full):
                yield ListedFile(full, relative, _hole_problem(full), _local_state(full))
            elif os.path.exists(full):
                yield ListedFile(full, relative, NO_FILE)
    for error in denied:
        if error.filename is not None and os.path.abspath(error.filename) == location:
            raise StorageError(f"no permission to read {path}: run as a user who may, or give another path")
        name = str(error.filename)
        relative = _printable(Path(name).relative_to(location).as_posix())
        yield ListedFile(name, relative, f"the folder cannot be listed: {error.strerror}")


def _local_state(location: str) -> str:
    try:
        found = os.stat(location)
    except OSError:  # gone since it was listed: reading it will say so
        return ""
    # the time of the last change of the file itself nobody can set: a copy may come with the time of what it is of
    return f"{found.st_size}@{found.st_mtime_ns}@{found.st_ctime_ns}"


def _hole_problem(full: str) -> str | None:
    """Why a file that is nearly nothing but a hole is not read: its zeros would be work without end."""
    try:
        found = os.stat(full)
    except OSError:
        return None
    is_hole = found.st_size > max(FREE_BYTES, MAX_RATIO * found.st_blocks * 512)
    return HOLE if is_hole else None


def _remote_state(info: fs.FileInfo) -> str:
    return f"{info.size}@{info.mtime_ns}"


def _printable(name: str) -> str:
    """A local file's name as text that can be written anywhere: bytes that are no UTF-8 as escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _link_problem(root: str, full: str) -> str | None:
    """Why a symbolic link is not followed; None where its target lies in the tree and is listed by itself."""
    target = os.path.realpath(full)
    if not os.path.exists(target):
        return "a symbolic link whose target does not exist"
    if os.path.commonpath([root, target]) == root:
        return None
    return "a symbolic link that leads out of the folder given: give its target as a path of its own"


def _list_remote(path: str, location: str) -> Iterator[ListedFile]:
    try:
        system, inner = fs.FileSystem.from_uri(location)
        info = system.get_file_info(inner)
        if info.type == fs.FileType.NotFound:
            raise StorageError(f"{path} does not exist: give the path of a log, or of a folder of logs")
        if info.type == fs.FileType.File:
            yield ListedFile(location, inner.rsplit("/", 1)[-1], state=_remote_state(info))
            return
        for entry in system.get_file_info(fs.FileSelector(inner, recursive=True)):
            if entry.type == fs.FileType.File:
                relative = entry.path[len(inner) :].lstrip("/")
                yield ListedFile(f"{location}/{relative}", relative, state=_remote_state(entry))
    except (OSError, ValueError) as error:
        raise StorageError(f"{path} cannot be listed ({error}): check the address and the permissions") from error
