"""Captures whose logs did not reach the reader as they were written, and what they are then accused of: nothing.

    python -m tests.support.bends.mishaps FOLDER_OF_CAPTURES [TRIES] [FIRST_TRY]

What a shipper, an administrator or a search does to logs: lines dropped here and there, an hour's file missing, a
level set or lines of it filtered out, only what names a topic kept, times cut to seconds, a part copied into another
file or delivered twice; the clocks of all machines set at once, as daylight saving time ends; snapshots of the znodes
from before or after an instant only; a release that one broker's log states and the others' do not. Judged as in
:mod:`tests.support.bends.losses`; with ``offsets`` behind the numbers as in :mod:`tests.support.bends.offset_losses`.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Final

from tests.support.bends import losses, offset_losses
from tests.support.bends.losses import Loss, Trial
from tests.support.captures.text import CaptureText, Lines
from tests.support.evidence.corrected import later
from tests.support.evidence.znodes import rows_of

_LEVEL: Final = re.compile(r"^\[[^]]{23}\] (\w+) ")
_RECORD: Final = re.compile(r"^\[\d{4}-\d\d-\d\d ")
_VERSION: Final = re.compile(r"(Kafka version ?: ?)(\S+)")
_TOPIC: Final = re.compile(r"^/brokers/topics/([^/]+)$")
_RELEASES: Final = ("0.10.2.1", "1.0.0", "2.3.1", "2.8.1", "3.5.0")
#: By how much all clocks are set at once, and what zone all logs are in: s.
_ALL_BY_S: Final = (-3_600, -3_600, 3_600, 7_200, -18_000, 19_800)


def scattered_lines(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    """Lines here and there of one log, of all of a broker's or of all: what a shipper drops that is too slow."""
    names = _some_logs(text, chance)
    share = chance.choice((0.002, 0.01, 0.05, 0.2, 0.5))
    changed = {name: tuple(_kept(text.files[name], lambda _: chance.random() >= share)) for name in names}
    return f"{share:.1%} of the lines of {_told(names)}", _with(text, changed)


def lost_time(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    """What was written between two instants: the file of an hour, of one log, a broker or all."""
    names = _some_logs(text, chance)
    since, until = sorted(chance.sample(_times(text, names), 2))
    changed = {}
    for name in names:
        lines, at = [], ""
        for line in text.files[name]:
            at = line[1:24] if _RECORD.match(line) else at
            if not since <= at < until:
                lines.append(line)
        changed[name] = tuple(lines)
    return f"{since} to {until} of {_told(names)}", _with(text, changed)


def raised_level(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    """Nothing below a level: always, or from an instant on or up to it, as a level can be set meanwhile."""
    names = _some_logs(text, chance)
    dropped = chance.choice((("TRACE",), ("TRACE", "DEBUG"), ("TRACE", "DEBUG"), ("TRACE", "DEBUG", "INFO")))
    cut = chance.choice(["", *chance.sample(_times(text, names), 2)])
    is_later = chance.random() < 0.5

    def is_kept(line: str) -> bool:
        level = _LEVEL.match(line)
        return level is None or level[1] not in dropped or bool(cut and (line[1:24] < cut) is is_later)

    side = f"{' since ' if is_later else ' before '}{cut}" if cut else ""
    changed = {name: tuple(_kept(text.files[name], is_kept)) for name in names}
    return f"no {', '.join(dropped)} in {_told(names)}{side}", _with(text, changed)


def one_topic(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    """Only the records that name one topic, as ``grep`` leaves them; of one log, a broker or all."""
    names = _some_logs(text, chance)
    paths = {row["path"] for rounds in text.named("znodes/") for row in rows_of(text.files[rounds])}
    topics = sorted(found[1] for found in map(_TOPIC.match, paths) if found)
    topic = chance.choice(topics)
    changed = {name: tuple(line for line in text.files[name] if topic in line) for name in names}
    return f"only what names {topic} of {_told(names)}", _with(text, changed)


def whole_seconds(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    """Times without milliseconds."""
    names = _some_logs(text, chance)
    changed = {
        name: tuple(line[:21] + "000" + line[24:] if _RECORD.match(line) else line for line in text.files[name])
        for name in names
    }
    return f"whole seconds in {_told(names)}", _with(text, changed)


def copied_part(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    """A part of a log in another file beside it: what somebody cut out of it, or was rotated while it was copied."""
    name = chance.choice([name for name in text.named("/logs/") if len(text.files[name]) > 2])
    lines = text.files[name]
    starts = [number for number, line in enumerate(lines) if number and _RECORD.match(line)]
    first = chance.choice(starts)
    last = chance.choice((len(lines), chance.randrange(first, len(lines)) + 1))
    said = f"lines {first + 1} to {last} of {name} in another file, too"
    return said, _with(text, {f"{name}.1": lines[first:last]})


def delivered_twice(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    """A block of lines twice, one behind the other: what a shipper sends again that got no answer."""
    name = chance.choice([name for name in text.named("/logs/") if text.files[name]])
    lines = text.files[name]
    many = min(round(losses.MOST_LINES ** chance.random()), len(lines))
    first = chance.randrange(len(lines) - many + 1)
    again = lines[first : first + many]
    said = f"lines {first + 1} to {first + many} of {name} twice"
    return said, _with(text, {name: (*lines[: first + many], *again, *lines[first + many :])})


def all_clocks(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    """All brokers' clocks set at one instant, as daylight saving time ends; or their logs in another time zone."""
    seconds = chance.choice(_ALL_BY_S)
    since = chance.choice(("", *chance.sample(_times(text, text.named("/logs/")), 3)))
    for broker in _brokers(text):
        text = losses.set_from(text, broker, seconds, since)
    return _perhaps(f"all clocks {seconds:+} s {since and 'since '}{since}", text, chance)


def snapshots_of_a_time(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    """Snapshots of the znodes from before or after an instant only, or between two."""
    rounds = text.named("znodes/")
    first, last = sorted(chance.choices(range(len(rounds) + 1), k=2))
    first, last = chance.choice(((0, last), (first, len(rounds)), (first, last)))
    kept = {name: lines for name, lines in text.files.items() if name not in rounds or name in rounds[first:last]}
    return _perhaps(f"snapshots {first} to {last} of {len(rounds)} only", CaptureText(kept), chance)


def other_release(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    """A broker's log states another release at some of its starts, or none: as after a rolling upgrade."""
    broker, release = chance.choice(_brokers(text)), chance.choice((*_RELEASES, ""))
    changed = {}
    for name in text.named(f"{broker}/logs/server.log"):
        lines = text.files[name]
        changed[name] = tuple(
            line
            for line in (
                _VERSION.sub(rf"\g<1>{release}", line) if release or not _VERSION.search(line) else "" for line in lines
            )
            if line
        )
    return _perhaps(f"{broker} says that it is {release or 'of no release'}", _with(text, changed), chance)


def rolled_logs(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    """All logs in two to four files, one after the other, as Kafka's own configuration rolls them each hour; perhaps
    of one broker alone. Tried apart from :data:`MISHAPS`: no line is lost, so that warnings are false, too."""
    logs, given = text.named("/logs/"), chance.choice(("", "", *_brokers(text)))
    cuts = sorted(chance.sample(_times(text, logs), chance.choice((1, 2, 3))))
    files = {name: lines for name, lines in text.files.items() if name not in logs}
    for name in (name for name in logs if name.startswith(given)):
        pieces: list[list[str]] = [[] for _ in (*cuts, "")]
        number = 0
        for line in text.files[name]:
            if _RECORD.match(line):
                number = max(number, bisect_right(cuts, line[1:24]))
            pieces[number].append(line)
        for number, piece in enumerate(filter(None, reversed(pieces))):
            files[f"{name}.{number}" if number else name] = Lines(piece)
    return f"logs rolled at {', '.join(cuts)}{given and ' of '}{given}{given and ' alone'}", CaptureText(files)


def created_again(text: CaptureText, chance: Random) -> tuple[timedelta, CaptureText]:
    """All processes end at one instant, as machines lose their power, and hours or days later a cluster with a new
    ZooKeeper goes on in the same logs: the capture once more. Only logs and settings are left. Tried apart from
    :data:`MISHAPS`: nothing is missing, so that warnings are false, too. First comes how much later."""
    logs = text.named("/logs/")
    cut, after = chance.choice(_times(text, logs)), timedelta(hours=chance.choice((1, 5, 24, 72)))
    files = {name: text.files[name] for name in text.named("server.properties")}
    for name in logs:
        lines = [line for line in text.files[name] if "Cluster ID" not in line]
        first, at = [], ""
        for line in lines:
            at = line[1:24] if _RECORD.match(line) else at
            if at < cut:
                first.append(line)
        files[name] = Lines([*first, *(later(line, after) for line in lines)])
    return after, CaptureText(files)


def two_mishaps(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    one, text = chance.choice((scattered_lines, lost_time, raised_level, snapshots_of_a_time))(text, chance)
    other, text = chance.choice((all_clocks, whole_seconds, copied_part, other_release))(text, chance)
    return f"{one} and {other}", text


def _perhaps(said: str, text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    if chance.random() < 0.5:
        return said, text
    also, text = chance.choice((losses.lost_lines, losses.lost_log, losses.lost_end, losses.lost_snapshots))(
        text, chance
    )
    return f"{said} and {also}", text


def _kept(lines: Lines, is_kept: Callable[[str], bool]) -> Iterator[str]:
    """Whole records: what follows a record's first line goes with it."""
    keeps = True
    for line in lines:
        if _RECORD.match(line):
            keeps = is_kept(line)
        if keeps:
            yield line


def _some_logs(text: CaptureText, chance: Random) -> list[str]:
    """One log, all of a broker, all of a kind, or all."""
    logs = [name for name in text.named("/logs/") if len(text.files[name]) > 1]
    parts = chance.choice(
        (
            (chance.choice(logs),),
            (chance.choice(_brokers(text)) + "/",),
            (chance.choice(("state-change", "controller", "server.")),),
            (),
        )
    )
    return [name for name in logs if all(part in name for part in parts)] or logs


def _told(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} logs ({names[0]} to {names[-1]})"


def _times(text: CaptureText, names: list[str]) -> list[str]:
    times = sorted({line[1:24] for name in names for line in text.files[name] if _RECORD.match(line)})
    return times if len(times) > 2 else [*times, ""] * 3


def _brokers(text: CaptureText) -> list[str]:
    return sorted({name.split("/")[0] for name in text.named("/logs/")})


def _with(text: CaptureText, changed: Mapping[str, tuple[str, ...]]) -> CaptureText:
    return CaptureText({**text.files, **{name: Lines(lines) for name, lines in changed.items()}})


#: Each, and its share of the tries.
MISHAPS: Final[Mapping[Loss, float]] = {
    scattered_lines: 0.25,
    lost_time: 0.12,
    raised_level: 0.12,
    one_topic: 0.06,
    whole_seconds: 0.05,
    copied_part: 0.06,
    delivered_twice: 0.06,
    all_clocks: 0.08,
    snapshots_of_a_time: 0.08,
    other_release: 0.04,
    two_mishaps: 0.08,
}


def of_mishaps(folder: Path, *, offsets: bool = False) -> tuple[CaptureText, Trial]:
    """A capture's text, and what happens to it and is judged."""
    text, trial = offset_losses.of_offsets(folder) if offsets else (CaptureText.read(folder), losses.OF_PARTITIONS)
    return text, Trial(MISHAPS, trial.said)


if __name__ == "__main__":
    is_of_offsets = "offsets" in sys.argv
    sys.argv = [given for given in sys.argv if given != "offsets"]
    sys.exit(losses.main(lambda folder: of_mishaps(folder, offsets=is_of_offsets)))
