"""What the page's script draws, as JSON made from the sections' dataclasses.

Rows are sent as columns: ``{"columns": {"leader": [1, 2], ...}}``, and a column of few different texts or lists as
these and a number for each row: ``{"values": [[1, 2], [1]], "rows": [0, 1, 0]}``. ``assets/view.js`` makes rows with
named fields of both again. Instants are relative to the cluster's first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final

from dashboards import overview
from dashboards.cards import SECTIONS
from dashboards.records import Record
from dashboards.section import Cluster
from dashboards.words import visible

#: In a page's script element even data must not close the element, nor break a line where JavaScript sees one.
_UNSAFE: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
#: Fields that are instants, ms since 1970.
_INSTANTS: Final = frozenset({"from_ms", "to_ms", "at_ms", "ended_before_ms"})
#: A field that holds a record's id, or ids: the page gets file and line instead.
EVIDENCE: Final = "evidence"


def script_json(value: Any) -> str:
    """JSON that is safe inside an HTML script element, whatever its strings hold."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return "".join(_UNSAFE.get(character, character) for character in text) if set(text) & set(_UNSAFE) else text


def cluster_payload(cluster: Cluster) -> dict[str, Any]:
    """One cluster's charts: those of each section by the last part of its name."""
    packing = Packing(cluster.span.first_ms, cluster.records)
    charts = {section.key: packing.value(section.chart(cluster.of(section))) for section in SECTIONS if section.chart}
    return {
        "base": cluster.span.first_ms,
        "from": packing.instant(cluster.span.from_ms),
        "to": packing.instant(cluster.span.to_ms),
        "last": packing.instant(cluster.span.last_ms),
        "broker_ids": overview.broker_ids(cluster),
        **charts,
    }


def evidence_ids(value: Any) -> Iterator[str]:
    """The ids of records in the fields ``evidence`` of dataclasses, however deep."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from evidence_ids(item)
    elif is_dataclass(value):
        for field in fields(value):
            inner = getattr(value, field.name)
            if field.name != EVIDENCE:
                yield from evidence_ids(inner)
            elif inner:
                yield from (inner,) if isinstance(inner, str) else inner


@dataclass(frozen=True)
class Packing:
    """Makes JSON of dataclasses; ``base_ms`` is the instant that others are relative to."""

    base_ms: float
    records: Mapping[str, Record]

    def value(self, value: Any) -> Any:
        """The value as JSON's: a dataclass as an object, several of one kind as columns."""
        if isinstance(value, str):
            return visible(value)
        if isinstance(value, (list, tuple)):
            if value and all(is_dataclass(item) for item in value):
                return {"columns": self._columns(value)}
            return [self.value(item) for item in value]
        return dict(self._fields(value)) if is_dataclass(value) else value

    def instant(self, value: float | None) -> float | None:
        """An instant relative to the first, whole where it is."""
        if value is None:
            return None
        rounded = round(value - self.base_ms, 3)
        return int(rounded) if rounded == int(rounded) else rounded

    def _fields(self, row: Any) -> Iterator[tuple[str, Any]]:
        for field in fields(row):
            value = getattr(row, field.name)
            if field.name in _INSTANTS:
                yield field.name, self.instant(value)
            elif field.name == EVIDENCE and (value is None or isinstance(value, str)):
                yield from self._place(self.records.get(value or "")).items()
            elif field.name == EVIDENCE:
                yield field.name, [self._place(record) for i in value if (record := self.records.get(i))]
            else:
                yield field.name, self.value(value)

    def _place(self, record: Record | None) -> dict[str, Any]:
        return {"file": visible(record.source_file) if record else None, "line": record.source_line if record else None}

    def _columns(self, rows: Sequence[Any]) -> dict[str, Any]:
        columns: dict[str, list[Any]] = {}
        for row in rows:
            for name, value in self._fields(row):
                columns.setdefault(name, []).append(value)
        return {name: _column(values) for name, values in columns.items()}


def _column(values: list[Any]) -> Any:
    """The values, or where most are repeated texts or lists: the different ones, and a number for each row."""
    if not any(isinstance(value, (str, list, dict)) for value in values):
        return values
    numbers: dict[str, int] = {}
    rows = [numbers.setdefault(json.dumps(value), len(numbers)) for value in values]
    if 2 * len(numbers) > len(values):
        return values
    return {"values": [json.loads(text) for text in numbers], "rows": rows}
