"""Rows of evidence as values of the rooms' dataclasses, and values as rows of tables: plain Python, no Spark.

A dataclass is the one declaration of a kind of evidence: its fields are the columns of the rows that Spark gathers, and
a row becomes a value by the names of its columns. In the other direction a column of a table takes its value from the
attribute of its name. So a new column is declared in a table and in a dataclass, and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from functools import cache
from operator import itemgetter
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from ingest.lake.tables import TableSpec
from ingest.lake.tables.gold import DIVERGENCES
from ingest.lake.tables.shared import PARTITION_KEY
from reconstruct.events.fields import fields_of
from reconstruct.findings.verdicts import Finding, Verdicts
from reconstruct.model.versions import MODEL_VERSION
from reconstruct.time.instants import to_datetime

Row = Mapping[str, Any]
Value = TypeVar("Value")

#: Column that says of which table a row is, where one step makes rows of several.
TABLE: Final = "table_name"
#: Column that says of which kind a row of evidence is, where there are several: the name of its dataclass.
KIND: Final = "row_kind"
#: Column of a row of evidence that holds what it says, as a JSON object; what is NULL is left out.
SAYS: Final = "says"
#: Pseudo table: how often each rule was kept, broken or could not be judged.
VERDICTS: Final = "verdicts"
VERDICT_COLUMNS: Final[Mapping[str, str]] = {"rule": "string", "verdict": "string", "times": "bigint"}

#: What a field may hold: Spark's type of it, and what makes it of what Arrow gives. Python's numbers have no width: the
#: widest is taken.
_TYPES: Final[Mapping[Any, tuple[str, Callable[[Any], Any] | None]]] = {
    str: ("string", None),
    int: ("bigint", None),
    bool: ("boolean", None),
    tuple[int, ...]: ("array<bigint>", tuple),
    tuple[str, ...]: ("array<string>", tuple),
    Mapping[str, str]: ("map<string,string>", fields_of),
}
#: The attributes of an interval, by the columns that they become.
_ENDS: Final[Mapping[str, str]] = {"valid_from": "start", "valid_to": "end"}
_JSON: Final = json.JSONDecoder()


class EvidenceRow(dict[str, Any]):
    """What a row of evidence says, by name; anything else is None."""

    def __missing__(self, name: str) -> None:
        return None


def evidence_row(row: Row) -> EvidenceRow:
    """A row as Spark gives it, with what it says beside its other columns."""
    own = EvidenceRow(row)
    own.update(_JSON.raw_decode(own.pop(SAYS, None) or "{}")[0])
    return own


def says(value: object) -> str:
    """What evidence of several kinds says of a value that is known here."""
    return json.dumps(row_of(value, **{KIND: type(value).__name__}))


def columns_of(*kinds: type, **beside: str) -> dict[str, str]:
    """The fields of dataclasses as columns, name and Spark type; ``beside`` names columns that no dataclass has.

    A field that no single column can hold (a tuple of values, a partition) has none: who reads the row gives it.
    Raises ``ValueError`` where two dataclasses give one name to fields of different types.
    """
    columns: dict[str, str] = {}
    for kind in kinds:
        for name, (type_, _, _) in _plan(kind).items():
            if columns.setdefault(name, type_) != type_:
                raise ValueError(f"{kind.__name__}.{name} is {type_}, elsewhere {columns[name]}")
    return columns | beside


def value_of(kind: Callable[..., Value], row: Row, /, **given: Any) -> Value:
    """A row of evidence as a value of its dataclass; ``given`` are the fields that the row does not hold.

    NULL is None, but for a field that cannot be None and has a default: then it is that.
    """
    made_of = _made_of(kind, tuple(row), tuple(given), isinstance(row, EvidenceRow))
    found = made_of.of_row(row)
    if made_of.changed:
        found = [*found]
        for place, convert, default in made_of.changed:
            if found[place] is None:
                found[place] = default
            elif convert is not None:
                found[place] = convert(found[place])
    value: Value = made_of.make(*made_of.in_order((*found, *given.values(), *made_of.beside)))
    return value


def row_of(value: object, /, **given: Any) -> dict[str, Any]:
    """The fields of a dataclass that are columns, and what is ``given`` beside them: :func:`value_of` reversed."""
    kind: Any = type(value)
    return {name: getattr(value, name) for name in _plan(kind)} | given


def rows_of_kind(kind: type, rows: Iterable[Row]) -> Iterator[Row]:
    """Of rows of several kinds of evidence those of one."""
    return (row for row in rows if row[KIND] == kind.__name__)


def values_of(kind: type[Value], rows: Iterable[Row]) -> list[Value]:
    """Of rows of several kinds of evidence those of one, as values."""
    return [value_of(kind, row) for row in rows_of_kind(kind, rows)]


def table_row(spec: TableSpec, /, *values: object, **given: Any) -> dict[str, Any]:
    """A row of a table: each column is ``given``, else an attribute of its name of the first value that has it.

    ``valid_from`` and ``valid_to`` may be the ``start`` and ``end`` of an interval. Instants are microseconds. What
    nothing gives is None; but the partition's key is left out, which the fold adds.
    """
    given.setdefault("model_version", MODEL_VERSION)
    asked = (id(spec), tuple(map(type, values)), tuple(given))
    known = _SOURCES.get(asked)
    if known is None:
        known = _SOURCES[asked] = spec, list(_sources(spec, values, given))
    row: dict[str, Any] = {TABLE: spec.full_name}
    for name, place, attribute, convert in known[1]:
        value = getattr(values[place], attribute) if attribute is not None else given.get(name)
        row[name] = value if value is None or convert is None else convert(value)
    return row


def table_rows(spec: TableSpec, intervals: Iterable[Any], /, **given: Any) -> Iterator[dict[str, Any]]:
    """The rows of one timeline, numbered in their order (``sequence``).

    Of an :class:`~reconstruct.time.intervals.Interval` the attributes of its value count too.
    """
    for sequence, interval in enumerate(intervals):
        yield table_row(spec, interval, getattr(interval, "value", None), sequence=sequence, **given)


def numbered(values: Iterable[Value], key: Callable[[Value], Any]) -> Iterator[tuple[int, Value]]:
    """Values, each with its number among those of the same key, from 0."""
    counts: dict[Any, int] = {}
    for value in values:
        counts[key(value)] = sequence = counts.get(key(value), -1) + 1
        yield sequence, value


def finding_row(finding: Finding, /, **given: Any) -> dict[str, Any]:
    """A finding as a row of ``gold.divergences``.

    Its id, ``rule_source`` and ``alternatives`` are added where all findings come together: only there is it known of
    each which partition it is of.
    """
    return table_row(DIVERGENCES, finding, divergence_id="", detected_at=finding.at, alternatives=(), **given)


def verdict_rows(verdicts: Verdicts, **given: Any) -> Iterator[dict[str, Any]]:
    """The findings, and a row of :data:`VERDICTS` for each rule and verdict."""
    for finding in verdicts.findings:
        yield finding_row(finding, **given)
    yield from count_rows(verdicts, **given)


def count_rows(verdicts: Verdicts, **given: Any) -> Iterator[dict[str, Any]]:
    """A row of :data:`VERDICTS` for each rule and verdict."""
    for (rule_id, verdict), times in sorted(verdicts.counts.items()):
        yield {TABLE: VERDICTS, "rule": rule_id, "verdict": verdict, "times": times, **given}


#: Where a column's value comes from: its name, which of the values, which attribute of it (None: what is given, if
#: anything), and what makes the column's value of that.
_Source = tuple[str, int, str | None, Callable[[Any], Any] | None]
#: By table (its id: it is held here), classes of the values and names of what is given: rows of a few kinds are made
#: again and again.
_SOURCES: Final[dict[tuple[int, tuple[type, ...], tuple[str, ...]], tuple[TableSpec, list[_Source]]]] = {}


def _sources(spec: TableSpec, values: Sequence[object], given: Mapping[str, Any]) -> Iterator[_Source]:
    for column in spec.columns:
        convert = _CONVERT.get("array" if column.type.startswith("array") else column.type)
        if column.name in given:
            yield column.name, 0, None, convert
            continue
        attributes = [name for name in (column.name, _ENDS.get(column.name)) if name is not None]
        found = [(n, a) for a in attributes for n, value in enumerate(values) if hasattr(value, a)]
        if found:
            yield column.name, *found[0], convert
        elif column.name not in PARTITION_KEY:
            yield column.name, 0, None, convert


def _text(value: Any) -> Any:
    return value.value if isinstance(value, StrEnum) else value


#: What makes a column's value, by its type.
_CONVERT: Final[Mapping[str, Callable[[Any], Any]]] = {"timestamp": to_datetime, "array": list, "string": _text}


@dataclass(frozen=True, slots=True)
class _MadeOf:
    """How rows with the same columns become values of a dataclass, each made by its fields in their order: by name they
    are found one by one, which takes twice as long for forty.

    ``of_row`` takes values out of a row; ``changed`` are the places of those that become something else, by what, and
    what they are where there is none; ``beside`` is the same for all; ``in_order`` puts these, between them what is
    given, in the order of the fields, and ``make`` makes the value of that.
    """

    of_row: Callable[[Any], Sequence[Any]]
    changed: tuple[tuple[int, Callable[[Any], Any] | None, Any], ...]
    beside: tuple[Any, ...]
    in_order: Callable[[Any], Sequence[Any]]
    make: Callable[..., Any]


@cache
def _made_of(kind: Any, columns: tuple[str, ...], given: tuple[str, ...], is_evidence: bool) -> _MadeOf:
    """Rows of one kind have few sets of columns. What a row of evidence leaves out is None where it may be. A default
    that is made is made once: nobody changes what is evidence."""
    plan = _plan(kind)
    names = [name for name in columns if name in plan and name not in given]
    defaults = {field.name: field.default for field in fields(kind) if field.default is not MISSING}
    defaults |= {field.name: field.default_factory() for field in fields(kind) if field.default_factory is not MISSING}
    changed = [
        (place, convert, None if is_none else defaults[name])
        for place, name in enumerate(names)
        for _, convert, is_none in (plan[name],)
        if convert is not None or not is_none
    ]
    left_out = {name: None for name, (_, _, is_none) in plan.items() if is_none} if is_evidence else {}
    beside = {name: value for name, value in (defaults | left_out).items() if name not in names and name not in given}
    places = {name: place for place, name in enumerate((*names, *given, *beside))}
    own = [field.name for field in fields(kind)]
    if differing := {*own} ^ {*places}:
        raise TypeError(f"{kind.__name__}: {', '.join(sorted(differing))} is no field of it, or has no value")
    by_name = any(field.kw_only for field in fields(kind))
    make = (lambda *values: kind(**dict(zip(own, values, strict=True)))) if by_name else kind
    in_order = _taking([places[name] for name in own])
    return _MadeOf(_taking(names), tuple(changed), tuple(beside.values()), in_order, make)


def _taking(keys: Sequence[Any]) -> Callable[[Any], Sequence[Any]]:
    """What takes the values of several keys: of one itemgetter gives what it is of, of none it cannot be made."""
    return itemgetter(*keys) if len(keys) > 1 else lambda of: tuple(of[key] for key in keys)


@cache
def _plan(kind: Any) -> dict[str, tuple[str, Callable[[Any], Any] | None, bool]]:
    """By field: its Spark type, what makes the value of what the row holds, and whether NULL is None."""
    hints = get_type_hints(kind)
    plan: dict[str, tuple[str, Callable[[Any], Any] | None, bool]] = {}
    for field in fields(kind):
        hint = hints[field.name]
        is_optional = get_origin(hint) is UnionType and NoneType in get_args(hint)
        is_none = is_optional or (field.default is MISSING and field.default_factory is MISSING)
        if is_optional:
            (hint,) = (one for one in get_args(hint) if one is not NoneType)
        if isinstance(hint, type) and issubclass(hint, StrEnum):
            plan[field.name] = ("string", hint, is_none)
        elif hint in _TYPES:
            plan[field.name] = (*_TYPES[hint], is_none)
    return plan
