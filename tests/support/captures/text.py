"""A capture's text in memory, so that a test can bend a line of it and read it again at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Final

from reconstruct.time.instants import to_micros

_READ: Final = ("broker-*/logs/*.log", "broker-*/server.properties", "znodes/*.jsonl")


class Lines(tuple[str, ...]):
    """The lines of one file; hashed once, so that what was made of them is found again at once."""

    _hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = super().__hash__()
        return self._hash


@lru_cache(maxsize=8192)
def _lines(content: bytes) -> Lines:
    return Lines(content.decode(errors="replace").splitlines())


def printed_at(time: str) -> int:
    """The instant of ``2026-11-21 03:04:05,678``, in UTC, in microseconds since 1970."""
    return to_micros(datetime.fromisoformat(time).replace(tzinfo=UTC))


@dataclass(frozen=True)
class CaptureText:
    """Lines of the logs, the znode snapshots and the brokers' configuration, by the file's name below the folder."""

    files: Mapping[str, Lines]

    def __post_init__(self) -> None:
        whole = {name: lines if isinstance(lines, Lines) else Lines(lines) for name, lines in self.files.items()}
        object.__setattr__(self, "files", whole)

    @staticmethod
    def read(folder: Path, also: Sequence[str] = ()) -> CaptureText:
        """What is read of a capture, and the files of the patterns ``also``."""
        found = sorted(path for pattern in (*_READ, *also) for path in folder.glob(pattern))
        return CaptureText({str(path.relative_to(folder)): _lines(path.read_bytes()) for path in found})

    def named(self, *parts: str) -> list[str]:
        """The names of the files that hold all ``parts``, sorted."""
        return sorted(name for name in self.files if all(part in name for part in parts))

    def edited(self, edits: Mapping[tuple[str, int], str | None]) -> CaptureText:
        """With other text at (file, number of the line from 1); None takes the line out."""
        files = dict(self.files)
        for name in {name for name, _ in edits}:
            changed = [edits.get((name, number), line) for number, line in enumerate(files[name], 1)]
            files[name] = Lines(line for line in changed if line is not None)
        return CaptureText(files)

    def snapshots(self) -> tuple[tuple[str, Lines], ...]:
        """The snapshots of znodes, by the files' names."""
        return tuple((name, self.files[name]) for name in self.named("znodes/"))

    def matching(self, name: str, holds: Callable[[str], bool]) -> Sequence[int]:
        """The numbers of a file's lines for which ``holds`` is true."""
        return [number for number, line in enumerate(self.files[name], 1) if holds(line)]

    def write(self, folder: Path) -> None:
        """Write every file below ``folder``."""
        for name, lines in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{line}\n" for line in lines))
