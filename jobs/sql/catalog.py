"""What a lake's tables and views are, in words: for ``help`` and ``\\d`` of the shell, and for whoever asks by SQL
without having seen them."""

from __future__ import annotations

from typing import Final

from dashboards.views import QUESTION_VIEWS, VIEWS, View
from ingest.lake.tables import TABLES, TableSpec

RELATIONS: Final[dict[str, TableSpec | View]] = {**TABLES, **VIEWS, **QUESTION_VIEWS}


def listing() -> str:
    """Every table and view, a line each, with what one row of it is."""
    width = max(map(len, RELATIONS))
    return "\n".join(f"{name:<{width}}  {relation.grain}" for name, relation in RELATIONS.items())


def description(name: str) -> str | None:
    """What one row is, and the columns with their types and meanings; of a view its meaning. None: there is no such
    table or view."""
    relation = RELATIONS.get(name.lower())
    if relation is None:
        return None
    if isinstance(relation, View):
        return f"{relation.full_name} (view)\n{relation.grain}\n{relation.meaning}"
    columns = relation.columns
    names, types = (max(map(len, cells)) for cells in ((c.name for c in columns), (c.type for c in columns)))
    lines = [f"  {c.name:<{names}}  {c.type:<{types}}  {c.comment}{_one_of(c.vocabulary)}" for c in columns]
    return "\n".join([relation.full_name, f"One row: {relation.grain}", *lines])


def words() -> list[str]:
    """All names that a statement may hold: tables, views, columns."""
    columns = {column.name for spec in TABLES.values() for column in spec.columns}
    return sorted({*RELATIONS, *columns})


def _one_of(vocabulary: tuple[str, ...]) -> str:
    return f" One of {', '.join(vocabulary)}." if vocabulary else ""
