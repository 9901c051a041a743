"""A captured cluster with its topics many times over, and then some more of them in the logs that follow."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from tests.support.captures.packed import TRUTH, unpack

CAPTURE: Final = "lifecycle-1.1.1"
_TOPIC: Final = re.compile(r"\b(orders|payments|scratch|doomed)(?=-\d|\b)")
_BEGIN: Final = re.compile(r"^\[\d{4}-\d\d-\d\d ")
_FIRST_DAY: Final = "2026-11-21"
#: By then the capture's last controller is elected: what was before, once more, would be of a cluster created again.
_LAST_ELECTED: Final = f"[{_FIRST_DAY} 03:31:37"
#: Logs that follow tell of as many seconds as the first ones do, and are of the hours that follow.
_LATER: Final = timedelta(hours=1)


def first_day(folder: Path, copies: int) -> Path:
    """The capture's files, and its logs with each record that names a topic ``copies`` times."""
    source = unpack(CAPTURE, folder / "once", without=TRUTH)
    target = folder / "cluster"
    shutil.copytree(source, target, ignore=lambda _, names: [name for name in names if name.endswith(".log")])
    for log in _logs(source):
        place = target / log.relative_to(source)
        _write(place.with_name(f"{place.name}.{_FIRST_DAY}-03"), _copied(log, range(copies)))
    return target


def next_logs(folder: Path, copies: Iterable[int], number: int = 1) -> None:
    """More topics: their lines alone, as far as they are of the last controller's time, in the logs that follow, the
    first time or a later one."""
    source, target = folder / "once" / CAPTURE, folder / "cluster"
    hour = datetime.fromisoformat(f"{_FIRST_DAY} 03:00") + timedelta(hours=number)
    for log in _logs(source):
        lines = (
            _moved(line, number * _LATER)
            for line in _copied(log, copies)
            if line >= _LAST_ELECTED and _TOPIC.search(line)
        )
        place = target / log.relative_to(source)
        _write(place.with_name(f"{place.name}.{hour:%Y-%m-%d-%H}"), lines)


def _moved(record: str, later: timedelta) -> str:
    at = datetime.strptime(record[1:24], "%Y-%m-%d %H:%M:%S,%f") + later
    return f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03}{record[24:]}"


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
