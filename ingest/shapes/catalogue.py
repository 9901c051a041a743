"""The shapes as the data files declare them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

from ingest.lake.tables.bronze.kinds import LOG_KINDS

#: The logs, and the first line of the stack trace that may follow a record of any of them.
SOURCE_KINDS: Final = (*LOG_KINDS, "exception")


class ShapeError(ValueError):
    """A data file declares a shape that cannot be used; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One message shape.

    ``versions`` are the ranges of Kafka releases that print it, first and last inclusive, in order; ``4.0-dev`` is the
    trunk of October 2024. ``fields`` are constants that the text implies (``role``, ``api`` ...). ``quirk`` names a
    function of :mod:`ingest.shapes.quirks` for texts whose values must not be taken as printed. ``templates`` are the
    ids of the texts in the catalogue of Kafka's messages that this shape covers.
    """

    id: str
    source_kind: str
    loggers: tuple[str, ...]
    pattern: str
    event_type: str
    versions: tuple[tuple[str, str], ...]
    templates: tuple[str, ...]
    samples: tuple[str, ...]
    fields: Mapping[str, str]
    quirk: str | None
    note: str

    @property
    def since(self) -> str:
        """The first release that prints it."""
        return self.versions[0][0]

    @property
    def until(self) -> str:
        """The last release that prints it."""
        return self.versions[-1][1]


def load_shapes() -> tuple[tuple[Shape, ...], Mapping[str, str]]:
    """Every shape of every data file, in the order of the files' names, and the meaning of every event type.

    Raises :class:`ShapeError` where an id or a meaning is declared twice, or a shape's event type has no meaning.
    """
    shapes: dict[str, Shape] = {}
    meanings: dict[str, str] = {}
    folder = resources.files("ingest.shapes") / "data"
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".json"):
            declared, event_types = read_shapes(file.name, file.read_text(encoding="utf-8"))
            for shape in declared:
                if shapes.setdefault(shape.id, shape) is not shape:
                    raise ShapeError(f"the shape {shape.id} is declared twice: give one of them another id")
            for event_type, meaning in event_types.items():
                if meanings.setdefault(event_type, meaning) is not meaning:
                    raise ShapeError(f"{file.name} gives {event_type} a meaning that another file gives it already")
    without = sorted({shape.event_type for shape in shapes.values()} - set(meanings))
    if without:
        raise ShapeError(f"no data file says what {', '.join(without)} means: add it to event_types beside the shapes")
    return tuple(shapes.values()), dict(sorted(meanings.items()))


def read_shapes(name: str, text: str) -> tuple[list[Shape], Mapping[str, str]]:
    """The shapes and the meanings of event types that the data file ``name`` with this text declares;
    :class:`ShapeError` names what is wrong."""
    try:
        declared = json.loads(text)
    except ValueError as error:
        raise ShapeError(f"{name} is not JSON ({error}): mend it or take it out of ingest/shapes/data") from None
    return [_shape(name, declared, entry) for entry in declared["shapes"]], declared.get("event_types", {})


def _shape(name: str, declared: Mapping[str, Any], entry: Mapping[str, Any]) -> Shape:
    source_kind = declared["source_kind"]
    if source_kind not in SOURCE_KINDS:
        raise ShapeError(f"{name} has the source kind {source_kind!r}; it must be one of {', '.join(SOURCE_KINDS)}")
    try:
        return Shape(
            id=entry["id"],
            source_kind=source_kind,
            loggers=tuple(entry.get("loggers", declared.get("loggers", ()))),
            pattern=entry["pattern"],
            event_type=entry["event_type"],
            versions=tuple((first, last) for first, last in entry["versions"]),
            templates=tuple(entry.get("templates", ())),
            samples=tuple(entry["samples"]),
            fields=dict(entry.get("fields", {})),
            quirk=entry.get("quirk"),
            note=entry.get("note", ""),
        )
    except KeyError as missing:
        raise ShapeError(f"{name}: the shape {entry.get('id', '?')} lacks {missing}") from None
