"""A capture of which one broker's clock was wrong, in memory; and what is made of it once its clocks are solved."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime, timedelta
from typing import Final

from reconstruct.clocks.evidence import (
    LogFact,
    ZnodeFact,
    log_marks,
    znode_marks,
)
from reconstruct.clocks.timeline import ClockSegment, correction_us, solve_clocks
from reconstruct.partitions.case import Case
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from tests.support.captures.text import CaptureText
from tests.support.evidence.clocks import pair_up, with_announcements, with_previous
from tests.support.evidence.lines import Partition, matched_lines
from tests.support.evidence.znodes import read_writes

_PRINTED: Final = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})")
_TIME: Final = "%Y-%m-%d %H:%M:%S,%f"
_MILLISECOND: Final = timedelta(milliseconds=1)

#: A finding above info: partition, rule, type, severity, broker, what was observed.
Accusation = tuple[Partition, str, str, str, int | None, str]
#: What was decided, without its instants.
Decided = tuple[int, int, frozenset[int], int | None, int | None, str | None]


def brokers(text: CaptureText) -> list[int]:
    return sorted({int(name.split("/")[0].removeprefix("broker-")) for name in text.named("/logs/")})


def shifted(text: CaptureText, broker: int, shift: timedelta) -> CaptureText:
    """All logs of ``broker`` print ``shift`` more, to the millisecond."""

    def later(found: re.Match[str]) -> str:
        at = datetime.strptime(found[1], _TIME) + round(shift / _MILLISECOND) * _MILLISECOND
        return f"[{at:{_TIME}}"[:-3]

    files = {
        name: tuple(_PRINTED.sub(later, line) for line in lines) if f"broker-{broker}/logs/" in name else lines
        for name, lines in text.files.items()
    }
    return CaptureText(files)


def solved(text: CaptureText) -> list[ClockSegment]:
    """The clocks of a capture."""
    by_file: dict[str, list[LogFact]] = {}
    for line in matched_lines(text):
        fact = LogFact(line.id, line.source_kind, line.event_type, line.at, line.broker_id, line.fields)
        by_file.setdefault(line.file, []).append(fact)
    written = with_previous(
        ZnodeFact(w.id, w.path, w.data, w.at, w.czxid, w.mzxid, w.version)
        for w in read_writes(text)
        if w.data is not None
    )
    marks = [mark for facts in by_file.values() for fact in with_announcements(facts) for mark in log_marks(fact)]
    marks += [mark for fact in written for mark in znode_marks(fact)]
    return solve_clocks(pair_up(marks), brokers(text))


def corrected(text: CaptureText, segments: list[ClockSegment]) -> CaptureText:
    """A capture, each of whose clocks kept its offset, with the times that are taken for true."""
    assert [segment.sequence for segment in segments] == [0] * len(brokers(text)), segments
    for segment in segments:
        wrong_by = correction_us(segment)
        if wrong_by:
            text = shifted(text, segment.broker_id, timedelta(microseconds=-wrong_by))
    return text


def accusations(histories: dict[Partition, Case]) -> Counter[Accusation]:
    return Counter(
        (partition, f.rule_id, f.divergence_type, f.severity, f.broker_id, f.observed)
        for partition, history in histories.items()
        for f in history.verdicts.findings
        if f.severity != "info"
    )


def decided(histories: dict[Partition, Case]) -> dict[Partition, list[Decided | None]]:
    return {
        partition: [_decided(interval.value) for interval in history.decided]
        for partition, history in histories.items()
    }


def _decided(state: LeaderAndIsrState | None) -> Decided | None:
    if state is None:
        return None
    return (
        state.leader,
        state.leader_epoch,
        frozenset(state.isr),
        state.controller_epoch,
        state.partition_epoch,
        state.written_by,
    )
