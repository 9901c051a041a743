"""What a lake's tables and views are, in words: for ``help`` and ``\\d`` of the shell, and for whoever asks by SQL
without having seen them."""

from __future__ import annotations

from typing import Final

from dashboards.views import QUESTION_FUNCTIONS, QUESTION_VIEWS, VIEWS, View
from ingest.lake.tables import TABLES, TableSpec

RELATIONS: Final[dict[str, TableSpec | View]] = {**TABLES, **VIEWS, **QUESTION_VIEWS}


def listing() -> str:
    """Every table and view, a line each, with what one row of it is; functions with what they take."""
    lines = [(name, relation.grain) for name, relation in RELATIONS.items()]
    lines += [(function.called, function.grain) for function in QUESTION_FUNCTIONS.values()]
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{width}}  {grain}" for name, grain in lines)


def description(name: str) -> str | None:
    """What one row is, and the columns with their types and meanings; of a view or function its meaning. None: there is
    no such name."""
    relation = RELATIONS.get(name.lower()) or QUESTION_FUNCTIONS.get(name.lower())
    if relation is None:
        return None
    if isinstance(relation, View):
        kind = "function" if relation.parameters else "view"
        return f"{relation.called} ({kind})\n{relation.grain}\n{relation.meaning}"
    columns = relation.columns
    names, types = (max(map(len, cells)) for cells in ((c.name for c in columns), (c.type for c in columns)))
    lines = [f"  {c.name:<{names}}  {c.type:<{types}}  {c.comment}{_one_of(c.vocabulary)}" for c in columns]
    return "\n".join([relation.full_name, f"One row: {relation.grain}", *lines])


def words() -> list[str]:
    """All names that a statement may hold: tables, views, functions, columns."""
    columns = {column.name for spec in TABLES.values() for column in spec.columns}
    return sorted({*RELATIONS, *QUESTION_FUNCTIONS, *columns})


def _one_of(vocabulary: tuple[str, ...]) -> str:
    return f" One of {', '.join(vocabulary)}." if vocabulary else ""
