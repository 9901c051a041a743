"""A captured cluster with its topics many times over, and then some more of them a day later."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tests.support.captures.packed import TRUTH, unpack

CAPTURE: Final = "lifecycle-1.1.1"
_TOPIC: Final = re.compile(r"\b(orders|payments|scratch|doomed)(?=-\d|\b)")
_BEGIN: Final = re.compile(r"^\[\d{4}-\d\d-\d\d ")
_FIRST_DAY: Final = "2026-11-21"


def first_day(folder: Path, copies: int) -> Path:
    """The capture's files, and its logs with each record that names a topic ``copies`` times."""
    source = unpack(CAPTURE, folder / "once", without=TRUTH)
    target = folder / "cluster"
    shutil.copytree(source, target, ignore=lambda _, names: [name for name in names if name.endswith(".log")])
    for log in _logs(source):
        place = target / log.relative_to(source)
        _write(place.with_name(f"{place.name}.{_FIRST_DAY}-03"), _copied(log, range(copies)))
    return target


def next_day(folder: Path, copies: Iterable[int], day: int = 22) -> None:
    """More topics: their lines alone, in logs of another day."""
    source, target, date = folder / "once" / CAPTURE, folder / "cluster", f"2026-11-{day}"
    for log in _logs(source):
        lines = (line.replace(_FIRST_DAY, date) for line in _copied(log, copies) if _TOPIC.search(line))
        place = target / log.relative_to(source)
        _write(place.with_name(f"{place.name}.{date}-03"), lines)


def _logs(source: Path) -> list[Path]:
    return sorted(source.rglob("logs/*.log"))


def _write(place: Path, records: Iterable[str]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("w", encoding="utf-8") as file:
        file.writelines(records)


def _copied(log: Path, copies: Iterable[int]) -> Iterator[str]:
    for record in _records(log):
        if _TOPIC.search(record):
            yield from (_TOPIC.sub(rf"\1.{copy}", record) for copy in copies)
        else:
            yield record


def _records(log: Path) -> Iterator[str]:
    """Each record with the lines that go on with it."""
    held = ""
    for line in log.read_text(encoding="utf-8").splitlines(keepends=True):
        if _BEGIN.match(line) and held:
            yield held
            held = ""
        held += line
    yield held
