"""``docs/tables.md``, written from the table specs: ``python -m jobs.docs.tables_doc [--check] FILE``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Final

from ingest.lake.tables import SCHEMAS, TABLES, Column, TableSpec
from jobs.docs.generated_doc import write_or_check

_HEAD: Final = """\
# Tables

Generated from the table specs in `ingest/lake/tables` by `make docs`: edit those.

Each table is a Delta table at `LAKE/<schema>/<table>`, named `schema.table` in SQL. Instants are UTC with microseconds.
Intervals are half-open, `[valid_from, valid_to)`; a `valid_to` of NULL is still open. A column is NULL where the
evidence does not say; *never* marks those that always hold a value.
"""
_SCHEMA_SENTENCES: Final = {
    "bronze": "What was read, as it was read: every file, every record, every record that could not be read.",
    "silver": "Typed events, and the timelines replayed from them.",
    "gold": "What the timelines amount to: elections, findings, availability, losses.",
    "quality": "What was checked, what was measured, and what cannot be said.",
}


def tables_markdown() -> str:
    """The whole document."""
    return "\n".join([_HEAD, *_contents(), *(line for schema in SCHEMAS for line in _schema(schema))])


def main(argv: Sequence[str] | None = None) -> int:
    """Write the file, or with ``--check`` compare it."""
    return write_or_check("jobs.docs.tables_doc", __doc__, tables_markdown, argv)


def _contents() -> Iterator[str]:
    yield "| table | one row per |"
    yield "|---|---|"
    for spec in TABLES.values():
        yield f"| [`{spec.full_name}`](#{_anchor(spec)}) | {_cell(spec.grain.removeprefix('one row per '))} |"
    yield ""


def _schema(schema: str) -> Iterator[str]:
    yield f"## {schema}"
    yield ""
    yield _SCHEMA_SENTENCES[schema]
    yield ""
    for spec in TABLES.values():
        if spec.schema == schema:
            yield from _table(spec)


def _table(spec: TableSpec) -> Iterator[str]:
    yield f"### {spec.full_name}"
    yield ""
    grain = spec.grain[:1].upper() + spec.grain[1:]
    key = ", ".join(f"`{name}`" for name in spec.key)
    yield f"{grain}. {f'Key: {key}. ' if key else ''}Version {spec.version}."
    yield ""
    yield "| column | type | NULL | meaning |"
    yield "|---|---|---|---|"
    for column in spec.columns:
        yield _column(column)
    yield ""
    for name, condition in spec.constraints.items():
        yield f"* `{name}`: `{condition}`"
    if spec.constraints:
        yield ""


def _column(column: Column) -> str:
    words = f" One of {', '.join(f'`{word}`' for word in column.vocabulary)}." if column.vocabulary else ""
    null = "" if column.nullable else "never"
    return f"| `{column.name}` | {column.type} | {null} | {_cell(column.comment + words)} |"


def _anchor(spec: TableSpec) -> str:
    """The anchor that Markdown renderers give the table's heading."""
    return spec.full_name.replace(".", "").lower()


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    sys.exit(main())
