"""A captured cluster with its topics many times over, and then some more of them, or the same again, in later logs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from tests.support.captures.packed import TRUTH, unpack

CAPTURE: Final = "lifecycle-1.1.1"
_TOPIC: Final = re.compile(r"\b(orders|payments|scratch|doomed)(?=-\d|\b)")
_BEGIN: Final = re.compile(r"^\[\d{4}-\d\d-\d\d ")
_FIRST_DAY: Final = "2026-11-21"
#: By then the capture's last controller is elected: what was before, once more, would be of a cluster created again.
#: For 70 seconds from then on brokers start three times, leaders are elected, topics are deleted.
LAST_ELECTED: Final = f"[{_FIRST_DAY} 03:31:37"
#: Numbers that rise in that time, and by how much each time that it is told again.
_RISING: Final = (
    (re.compile(r"(leaderEpoch=|LeaderEpoch:|Leader Epoch |Leader Epoch was: |\{epoch:|leader epoch )(\d+)"), 4),
    (re.compile(r"(zkVersion=|version )(\d+)"), 12),
    (re.compile(r"(correlation ?[iI]d )(\d+)"), 1000),
    (re.compile(r"(offset[: ]|from offset )(\d+)"), 600),
)
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
    _next_logs(
        folder,
        number,
        lambda log: (
            _moved(line, number * _LATER)
            for line in _copied(log, copies)
            if line >= LAST_ELECTED and _TOPIC.search(line)
        ),
    )


def next_restarts(folder: Path, copies: Iterable[int], number: int) -> None:
    """The same topics: brokers start again, leaders are elected and topics deleted in the logs that follow."""
    _next_logs(
        folder,
        number,
        lambda log: (risen(record, number, _LATER) for record in _copied(log, copies) if record >= LAST_ELECTED),
    )


def _next_logs(folder: Path, number: int, lines: Callable[[Path], Iterable[str]]) -> None:
    source, target = folder / "once" / CAPTURE, folder / "cluster"
    hour = datetime.fromisoformat(f"{_FIRST_DAY} 03:00") + timedelta(hours=number)
    for log in _logs(source):
        place = target / log.relative_to(source)
        _write(place.with_name(f"{place.name}.{hour:%Y-%m-%d-%H}"), lines(log))


def risen(record: str, number: int, later: timedelta) -> str:
    """A record of the restarts as it is told again for the ``number``-th time, each ``later``."""
    text = _moved(record, number * later)
    for pattern, by in _RISING:
        text = pattern.sub(lambda found, more=by * number: f"{found[1]}{int(found[2]) + more}", text)  # type: ignore[misc]
    return text


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
    for record in records(log):
        if _TOPIC.search(record):
            told = _TOPIC.sub("\\1.\0", record)
            yield from (told.replace("\0", str(copy)) for copy in copies)
        else:
            yield record


def records(log: Path) -> Iterator[str]:
    """Each record with the lines that go on with it."""
    held = ""
    for line in log.read_text(encoding="utf-8").splitlines(keepends=True):
        if _BEGIN.match(line) and held:
            yield held
            held = ""
        held += line
    yield held
