"""A capture with the times that the program takes for true, in memory: what the clocks step does on Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from reconstruct.clocks.evidence import LogFact, Mark, ZnodeFact, log_marks, znode_marks
from reconstruct.clocks.timeline import ClockSegment, correction_us, solve_clocks
from tests.support.captures.text import CaptureText, Lines, printed_at
from tests.support.evidence.clocks import pair_up, segment_at, with_announcements, with_previous
from tests.support.evidence.lines import lines_of
from tests.support.evidence.znodes import read_writes

_PRINTED: Final = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})")
_CAUGHT_UP: Final = re.compile(r"(?<=lastCaughtUpTimeMs: )[1-9]\d*")
_TIME: Final = "%Y-%m-%d %H:%M:%S,%f"
_MILLISECOND: Final = timedelta(milliseconds=1)
#: As in reconstruct.clocks.spark.step.
_STEP_BACK_US: Final = 1_000_000


def brokers(text: CaptureText) -> list[int]:
    """The brokers of which there are logs."""
    return sorted({int(name.split("/")[0].removeprefix("broker-")) for name in text.named("/logs/")})


def shifted(text: CaptureText, broker: int, shift: timedelta) -> CaptureText:
    """All logs of ``broker`` print ``shift`` more, to the millisecond."""
    files = {
        name: tuple(later(line, shift) for line in lines) if f"broker-{broker}/logs/" in name else lines
        for name, lines in text.files.items()
    }
    return CaptureText(files)


def later(line: str, shift: timedelta) -> str:
    """A line of a log that prints ``shift`` more, to the millisecond; itself where it prints no time. So are instants
    that it tells of by the same clock."""
    found = _PRINTED.match(line)
    if found is None:
        return line
    by_ms = round(shift / _MILLISECOND)
    at = datetime.strptime(found[1], _TIME) + by_ms * _MILLISECOND
    told = line[found.end() :]
    if "lastCaughtUpTimeMs" in told:
        told = _CAUGHT_UP.sub(lambda ms: str(int(ms[0]) + by_ms), told)
    return f"[{at:{_TIME}}"[:-3] + told


def solved(text: CaptureText) -> list[ClockSegment]:
    """The clocks of a capture."""
    written = with_previous(
        ZnodeFact(w.id, w.path, w.data, w.at, w.czxid, w.mzxid, w.version)
        for w in read_writes(text)
        if w.data is not None
    )
    marks = [mark for name in text.named("/logs/") for mark in _marks_of(name, text.files[name])]
    marks += [mark for fact in written for mark in znode_marks(fact)]
    return solve_clocks(pair_up(marks), brokers(text))


@lru_cache(maxsize=256)
def _marks_of(name: str, lines: Lines) -> Sequence[Mark]:
    """What one log says of clocks; captures that lost something share most of their logs."""
    facts = (
        LogFact(line.id, line.source_kind, line.event_type, line.at, line.broker_id, line.fields)
        for line in lines_of(name, lines)
    )
    return tuple(mark for fact in with_announcements(facts) for mark in log_marks(fact))


def corrected(text: CaptureText, segments: Sequence[ClockSegment] | None = None) -> CaptureText:
    """With each broker's times as the program corrects them, to the millisecond; itself where it corrects none.
    ``segments`` are its clocks, where they are known already."""
    segments = solved(text) if segments is None else segments
    wrong = {segment.broker_id for segment in segments if correction_us(segment)}
    files = dict(text.files)
    for broker in wrong:
        own = [segment for segment in segments if segment.broker_id == broker]
        for name in text.named(f"broker-{broker}/logs/"):
            files[name] = tuple(_as_true(text.files[name], own))
    return CaptureText(files) if wrong else text


def _as_true(lines: Lines, segments: Sequence[ClockSegment]) -> Iterator[str]:
    latest = 0
    for line in lines:
        found = _PRINTED.match(line)
        if found is not None:
            at = printed_at(found[1])
            latest = max(latest, at)
            segment = segment_at(segments, at, is_after_step_back=latest - at > _STEP_BACK_US)
            wrong_by = correction_us(segment) if segment is not None else None
            line = later(line, timedelta(microseconds=-(wrong_by or 0)))
        yield line
