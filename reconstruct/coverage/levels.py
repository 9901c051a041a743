"""Spans in which a log's level leaves out what the rules read.

The level a process logged at is nowhere in its log; the lowest level in a file is. A file with nothing below
INFO says nothing of what is logged at TRACE, whether its process was set to INFO or had nothing to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ingest.lake.tables.bronze import LOG_LEVELS, SourceKind
from reconstruct.coverage.gaps import LogFile

#: The highest floor at which a log still has all that the rules read. In state-change.log, transitions of replicas,
#: partitions that go offline, requests and the metadata cache are at TRACE in every version (config/log4j.properties
#: sets TRACE up to 2.5, INFO since 2.6: KAFKA-8470).
NEEDED_LEVEL: Final[Mapping[str, str]] = {
    SourceKind.STATE_CHANGE_LOG: "TRACE",
    SourceKind.CONTROLLER_LOG: "INFO",
    SourceKind.SERVER_LOG: "INFO",
}
#: So few records say little of the level they were logged at: their neighbours' level counts.
FEW_RECORDS: Final = 10


@dataclass(frozen=True, slots=True)
class CoarseSpan:
    """[start, end], µs, of one kind of log at one floor; ``source_file`` is the first file of it."""

    source_kind: str
    source_file: str
    level_floor: str
    start: int
    end: int
    records: int


def hides(source_kind: str, level_floor: str | None) -> bool:
    """Whether a log of this kind, in which no lower level stands, leaves out what the rules read."""
    needed = NEEDED_LEVEL.get(source_kind)
    if needed is None or level_floor not in LOG_LEVELS:
        return False
    return LOG_LEVELS.index(level_floor) > LOG_LEVELS.index(needed)


def coarse_spans(files: Sequence[LogFile]) -> list[CoarseSpan]:
    """The spans of one broker's logs that are too coarse, in order: one for files of one floor that follow."""
    spans: list[CoarseSpan] = []
    for kind in sorted(NEEDED_LEVEL):
        mine = sorted(
            (f for f in files if f.source_kind == kind and f.first is not None and f.last is not None),
            key=lambda f: (f.first, f.last, f.source_file),
        )
        is_fine_somewhere = any(not hides(kind, f.level_floor) for f in mine)
        open_span: CoarseSpan | None = None
        for file in mine:
            floor, first, last = file.level_floor, file.first, file.last
            if floor is None or first is None or last is None:
                continue
            if is_fine_somewhere and file.records < FEW_RECORDS:
                continue
            if not hides(kind, floor):
                open_span = None
            elif open_span is not None and open_span.level_floor == floor:
                open_span = replace(open_span, end=max(open_span.end, last), records=open_span.records + file.records)
                spans[-1] = open_span
            else:
                open_span = CoarseSpan(kind, file.source_file, floor, first, last, file.records)
                spans.append(open_span)
    return spans
