"""A capture as it might come to a lake: its files in random slices and orders, logs in pieces, runs cut off."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from ingest.lake import delta, maintenance, rewriting
from ingest.lake.delta import Lake
from ingest.lake.tables import TABLES
from reconstruct.engine import staging
from tests.table_hashes import rows_of_tables, table_hashes

#: Such files are written on: a part of one is what it was some time before.
_GROWING: Final = (".log", ".jsonl")


class Cut(Exception):
    """A run ends here, as if it had been killed."""


def slices(source: Path, target: Path, count: int, seed: int) -> Iterator[Path]:
    """Copy ``source`` to ``target`` in so many random slices: after each, ``target`` holds a part of it, at the end
    all. Files come in any order; some logs come in pieces, each ending with a line."""
    chance = random.Random(seed)
    files = sorted(path for path in source.rglob("*") if path.is_file())
    due: list[list[tuple[Path, int | None]]] = [[] for _ in range(count)]
    for file in files:
        first, size = chance.randrange(count), file.stat().st_size
        if file.name.endswith(_GROWING) and chance.random() < 0.5 and size:
            for number in range(first, count - 1):
                due[number].append((file, chance.randrange(1, size + 1)))
            due[count - 1].append((file, None))
        else:
            due[first].append((file, None))
    for part in due:
        for file, size in part:
            _copy(file, target / file.relative_to(source), size)
        yield target


def _copy(source: Path, target: Path, size: int | None) -> None:
    content = source.read_bytes()
    if size is not None:
        content = content[: content.rfind(b"\n", 0, size) + 1]
    is_there = target.exists()
    if (is_there and target.stat().st_size < len(content)) or (not is_there and (content or size is None)):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def as_of_a_large_lake(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept from run to run, and how rows are replaced, is as in a lake of gigabytes and of many runs."""
    monkeypatch.setattr(staging, "IN_MEMORY_BYTES", -1)
    monkeypatch.setattr(Lake, "REWRITTEN_BYTES", 0)
    monkeypatch.setattr(Lake, "TOGETHER_BYTES", -1)
    monkeypatch.setattr(rewriting, "TINY_FILE_BYTES", 0)
    monkeypatch.setattr(maintenance, "MOST_TINY_FILES", 2)


@contextmanager
def cut_off_after(monkeypatch: pytest.MonkeyPatch, commits: int) -> Iterator[None]:
    """What is written in here ends after so many commits, wherever that is."""
    left = [commits]
    with monkeypatch.context() as patched:
        patched.setattr(delta, "commit_files", _counted(delta.commit_files, left))
        patched.setattr(rewriting, "commit", _counted(rewriting.commit, left))
        yield


def _counted(write: Any, left: list[int]) -> Any:
    def counted(*given: Any, **named: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Cut
        write(*given, **named)

    return counted


def hashes(lake: Lake, without: Sequence[str] = ()) -> dict[str, tuple[str, int]]:
    """A hash of the rows of each table of silver, gold and quality, and their number."""
    specs = [spec for spec in TABLES.values() if spec.schema != "bronze" and spec.name != "run_metrics"]
    return table_hashes(rows_of_tables(lake, specs), without)
