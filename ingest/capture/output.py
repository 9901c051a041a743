"""The capture folder: whole files by rename, lines by appending; what a killed capturer left is put in order."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ingest.capture.params import CaptureError

_UNFINISHED: Final = ".tmp"
_TAIL_BYTES: Final = 64 << 10


class CaptureFolder:
    """The folder that one capturer writes; others may read it, and other capturers write folders of their own.

    Raises :class:`CaptureError` where it cannot be made, is no folder, or another capturer has it.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise cannot_write(path, error) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise CaptureError(f"another capture writes into {path}: give this one a folder of its own") from error
        self._tidy()

    def close(self) -> None:
        os.close(self._lock)

    def write(self, relative: str, content: bytes | Iterable[bytes]) -> None:
        """Write a file that is there whole or not at all; one of that name is replaced."""
        target = self.path / relative
        unfinished = target.with_name(f".{target.name}{_UNFINISHED}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(unfinished, "wb") as file:
                if isinstance(content, bytes):
                    file.write(content)
                else:
                    file.writelines(content)
            os.replace(unfinished, target)
        except OSError as error:
            raise cannot_write(str(target), error) from error

    def last_round_ms(self) -> int:
        """The last round that the folder holds, epoch ms; 0 where it holds none."""
        rounds = [0]
        for found in (*self.path.glob("znodes/*.jsonl"), *self.path.glob("broker-*/checkpoints/**/*")):
            name = found.name.removesuffix(".jsonl")
            if name.isdigit() and len(name) >= 12:
                rounds.append(int(name))
        return max(rounds)

    def _tidy(self) -> None:
        """Remove files that were being written when a capturer was killed: nothing but them is named so here."""
        for found in (*self.path.glob("znodes/.*.tmp"), *self.path.glob("broker-*/**/.*.tmp")):
            found.unlink(missing_ok=True)


class JsonLines:
    """A file of lines that grows. Several threads may append; each call's lines stay together and whole.

    A last line that a killed capturer left without its end is cut off. ``written`` counts lines.
    """

    def __init__(self, folder: CaptureFolder, relative: str) -> None:
        self._path = folder.path / relative
        self._lock = threading.Lock()
        self._file: int | None = None
        self.written = 0

    def append(self, lines: Iterable[bytes]) -> None:
        """Append lines, each with its line end; the file is made with the first."""
        taken = list(lines)
        if not taken:
            return
        with self._lock:
            try:
                if self._file is None:
                    self._file = open_at_line_end(self._path)
                append_whole(self._file, b"".join(taken))
            except OSError as error:
                raise cannot_write(str(self._path), error) from error
            self.written += len(taken)

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None


def open_at_line_end(path: Path) -> int:
    """A descriptor that appends to the file, from the end of its last whole line on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        end = os.fstat(file).st_size
        whole = end_of_last_line(file, end)
        if whole < end:
            os.ftruncate(file, whole)
    except OSError:
        os.close(file)
        raise
    return file


def end_of_last_line(file: int, end: int) -> int:
    """The offset behind the last line end before ``end``; 0 where there is none."""
    while end > 0:
        begin = max(0, end - _TAIL_BYTES)
        found = os.pread(file, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


def append_whole(file: int, data: bytes) -> None:
    """Append all of the data or, where the disk is full, nothing of it."""
    before = os.fstat(file).st_size
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(file, rest) :]
    except OSError:
        os.ftruncate(file, before)
        raise


def cannot_write(path: str, error: OSError) -> CaptureError:
    return CaptureError(f"cannot write {path}: {error.strerror or error}; give another folder with --out")
