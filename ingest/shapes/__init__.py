"""Message shapes: which of Kafka's log messages a record is, and what it says.

The shapes are data (``data/*.json``, see ``docs/message-shapes.md``): :func:`match` is the only thing that reads
message texts, and it never raises on one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Final

from ingest.lake.tables.bronze.kinds import SourceKind
from ingest.shapes.catalogue import SOURCE_KINDS, Shape, ShapeError, load_shapes
from ingest.shapes.matching import Match, Matcher

_CATALOGUE: Final = load_shapes()
#: Every shape, in the order of the data files.
SHAPES: Final[tuple[Shape, ...]] = _CATALOGUE[0]
#: What each event type means, a sentence each.
MEANINGS: Final[Mapping[str, str]] = _CATALOGUE[1]

#: Loggers that go to controller.log by default, today or since 3.3.2.
_CONTROLLER_PACKAGES: Final = ("kafka.controller.", "org.apache.kafka.controller.")

_BY_ID: Final = {shape.id: shape for shape in SHAPES}

#: The first line of a stack trace, or of the exception that it names as its cause.
_EXCEPTION: Final = re.compile(
    r"\s*(?:Caused by: )?(?P<name>[\w.$]*(?:Exception|Error))(?:: (?P<message>.*))?", re.ASCII
)


@cache
def _of_kind(source_kind: str) -> Matcher:
    """The shapes of a kind, arranged when the first line of it is read."""
    if source_kind not in SOURCE_KINDS:
        raise KeyError(source_kind)
    return Matcher(shape for shape in SHAPES if shape.source_kind == source_kind)


@lru_cache(maxsize=4096)
def _matcher(source_kind: str, logger: str | None) -> Matcher:
    """The shapes to try: those of the file's kind, but for a logger that Kafka sends to another file by default.

    Many installations write all loggers to one file; the shipped configuration has changed too.
    """
    if logger == "state.change.logger":
        return _of_kind(SourceKind.STATE_CHANGE_LOG)
    if source_kind == SourceKind.SERVER_LOG and logger is not None and logger.startswith(_CONTROLLER_PACKAGES):
        return _of_kind(SourceKind.CONTROLLER_LOG)
    return _of_kind(source_kind)


def match(source_kind: str, logger: str | None, message: str) -> Match | None:
    """The shape, event and fields of a record's text, or ``None`` where no known shape fits.

    ``source_kind`` is one of :data:`SOURCE_KINDS`; another one raises ``KeyError``. ``message`` is the text without
    header, logger and stack trace; it may have several lines. ``logger`` is the class that wrote it, ``None`` where the
    layout does not print it: it settles which of two shapes with one text is meant, and short texts are recognised only
    from the class, or after the log identifier, that writes them.
    """
    return _matcher(source_kind, logger).match(logger, message)


def match_cause(text: str) -> Match | None:
    """What an exception tells: the shape, event and fields of ``kafka.common.StateChangeFailedException: ...``.

    ``text`` is the first line of a stack trace, or a line ``Caused by: ...`` of it; ``None`` where it is no such line
    or no known shape fits. ``exception_class`` is among the fields. The class settles which shapes are meant, as the
    logger does for a record.
    """
    found = _EXCEPTION.match(text.rstrip())
    if found is None or found["message"] is None:
        return None
    cause = _of_kind("exception").match(found["name"], found["message"])
    return None if cause is None else cause._replace(fields={"exception_class": found["name"], **cause.fields})


def versions_of(shape_id: str) -> tuple[str, str]:
    """First and last release of Kafka that print this shape, inclusive; ``KeyError`` for an unknown id.

    The shape may be missing from releases between the two: ``Shape.versions`` has the exact ranges.
    """
    shape = _BY_ID[shape_id]
    return shape.since, shape.until


__all__ = ["MEANINGS", "SHAPES", "SOURCE_KINDS", "Match", "Shape", "ShapeError", "match", "match_cause", "versions_of"]
