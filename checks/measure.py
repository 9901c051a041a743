"""Counting what breaks the checks, in Spark: one query per stage, and one more for examples of what is broken. Those of
several stages are planned side by side, since one thread plans a query."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from checks.catalog import Check, Pass, tables_in
from checks.registry import Registry
from ingest.lake.delta import Lake, LakeError, side_by_side
from ingest.lake.pinned import is_worth_it, pinned_table
from ingest.lake.tables import TABLES, TableSpec

EXAMPLES_COUNT: Final = 20
#: An example is a pointer, not a copy: a longer one is cut there.
EXAMPLE_LENGTH: Final = 4000


@dataclass(frozen=True, slots=True)
class Measurement:
    """What was found of one check.

    ``checked_count`` and ``broken_count`` are cases, None where the check cannot be judged; ``examples`` are the first
    broken cases, each a JSON object.
    """

    check: Check
    checked_count: int | None
    broken_count: int | None
    examples: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the check was judged and no case breaks it."""
        return self.broken_count == 0


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a table, the schema that Delta declares for them, and whether it is known that there are none."""

    rows: DataFrame
    schema: T.StructType
    is_empty: bool = False

    @classmethod
    def of(cls, rows: DataFrame) -> Table:
        """Rows that declare their schema themselves."""
        return cls(rows, rows.schema)


def measure(lake: Lake, registry: Registry) -> tuple[Measurement, ...]:
    """Every check of ``registry`` measured over ``lake``.

    A table whose schema is not the declared one is reported by its schema check, and what reads it cannot be judged.
    Raises :class:`~ingest.lake.delta.LakeError` where a table is missing.
    """
    tables = {name: open_table(lake, TABLES[name]) for name in sorted({check.table for check in registry.checks})}
    found: list[Measurement] = []
    unusable: set[str] = set()
    for check in registry.schema_checks:
        problems = schema_problems(tables[check.table].schema, TABLES[check.table])
        found.append(Measurement(check, len(TABLES[check.table].columns), len(problems), tuple(problems)))
        if is_unusable(problems):
            unusable.add(check.table)

    def measured(stage: str) -> list[Measurement]:
        passes = [each for each in registry.passes if each.stage == stage]
        usable = [each for each in passes if not unusable & set(each.reads)]
        unjudged = [check for each in passes if each not in usable for check in each.checks]
        return measure_passes(lake, usable, tables) + [Measurement(check, None, None) for check in unjudged]

    for of_stage in side_by_side(measured, dict.fromkeys(each.stage for each in registry.passes)):
        found += of_stage
    return tuple(found)


def measure_passes(lake: Lake, passes: Sequence[Pass], tables: Mapping[str, Table]) -> list[Measurement]:
    """The passes' checks, counted by one query; examples of those that are broken by another."""
    asked = {each.name: [c for c in each.checks if not _is_enforced(c, tables)] for each in passes}
    counts = {each.name: [0] * (1 + 2 * len(asked[each.name])) for each in passes}
    queries = [counts_sql(each, asked[each.name]) for each in passes if not _has_no_cases(each, tables)]
    if queries:
        rows = run_query(lake, " UNION ALL ".join(queries), tables).collect()  # one row per pass
        counts |= {row["pass"]: row["counts"] for row in rows}
    counted: list[tuple[Pass, Check, int, int]] = []
    for each in passes:
        cases, *answers = counts[each.name]
        of_check = dict(zip(asked[each.name], zip(answers[::2], answers[1::2], strict=True), strict=True))
        counted += [(each, check, *of_check.get(check, (cases, 0))) for check in each.checks]
    examples = _examples(lake, [(each, check) for each, check, _, broken in counted if broken], tables)
    return [
        Measurement(check, checked, broken, tuple(examples.get(check, ()))) for _, check, checked, broken in counted
    ]


def counts_sql(each: Pass, checks: Sequence[Check]) -> str:
    """One row: the pass's name, and its cases followed by, for each of ``checks``, those judged and those broken."""
    counts = ["count(*)"]
    for check in checks:
        if check.unique:
            counts += ["count(*)", f"count(*) - count(DISTINCT struct({', '.join(check.unique)}))"]
        elif check.applies == "true":
            counts += ["count(*)", f"count_if({check.broken})"]
        else:
            counts += [f"count_if({check.applies})", f"count_if(({check.applies}) AND ({check.broken}))"]
    return f"SELECT '{each.name}' AS pass, array({', '.join(counts)}) AS counts FROM ({each.cases})"


def examples_sql(each: Pass, check: Check) -> str:
    """The first cases of a pass that break a check, as JSON, in the order of the key; of doubled ones the number."""
    if check.unique:
        columns = ", ".join(check.unique)
        doubled = f"SELECT {columns}, count(*) AS copies FROM ({each.cases}) GROUP BY {columns} HAVING count(*) > 1"
        return (
            f"SELECT {_json(f'{columns}, copies')} AS example FROM ({doubled})"
            f" ORDER BY {columns} LIMIT {EXAMPLES_COUNT}"
        )
    shown = ", ".join(dict.fromkeys((*each.key, *check.shows)))
    return (
        f"SELECT {_json(shown)} AS example"
        f" FROM ({each.cases}) WHERE ({check.applies}) AND ({check.broken})"
        f" ORDER BY {', '.join((*each.key, 'example'))} LIMIT {EXAMPLES_COUNT}"
    )


def _json(columns: str) -> str:
    return f"left(to_json(struct({columns}), map('ignoreNullFields', 'false')), {EXAMPLE_LENGTH})"


def schema_problems(found: T.StructType, spec: TableSpec) -> list[str]:
    """What differs between a table's schema and its declaration, one JSON object per column."""
    there = {field.name: field for field in found.fields}
    problems = []
    for declared in spec.struct.fields:
        name, declared_type = declared.name, declared.dataType.simpleString()
        field = there.pop(name, None)
        if field is None:
            problems.append(_problem(name, "nothing", declared=declared_type))
        elif field.dataType.simpleString() != declared_type:  # no declaration speaks of elements' nullability
            problems.append(_problem(name, field.dataType.simpleString(), declared_type=declared_type))
        elif field.nullable and not declared.nullable:
            problems.append(_problem(name, "NULL allowed", declared="NOT NULL"))
        elif declared.nullable and not field.nullable:
            problems.append(_problem(name, "NOT NULL", declared="NULL allowed"))
    problems += [_problem(name, field.dataType.simpleString(), declared="nothing") for name, field in there.items()]
    return problems


def is_unusable(problems: Iterable[str]) -> bool:
    """Whether a table of these :func:`schema_problems` cannot be queried: a column is missing, or of another type."""
    return any('"found":"nothing"' in problem or '"declared_type"' in problem for problem in problems)


def _problem(column: str, found: str, **declared: str) -> str:
    return json.dumps({"column": column, "found": found, **declared}, separators=(",", ":"))


def _is_enforced(check: Check, tables: Mapping[str, Table]) -> bool:
    """Whether the table's own NOT NULL answers the check."""
    return check.not_null is not None and not tables[check.table].schema[check.not_null].nullable


def _has_no_cases(each: Pass, tables: Mapping[str, Table]) -> bool:
    """Whether the cases are the rows of a table without any."""
    return each.name in tables and tables[each.name].is_empty


def _examples(lake: Lake, broken: Sequence[tuple[Pass, Check]], tables: Mapping[str, Table]) -> dict[Check, list[str]]:
    """At most :data:`EXAMPLES_COUNT` of each, in their order."""
    examples: dict[Check, list[str]] = {}
    queries = [
        f"SELECT {number} AS number, example FROM ({examples_sql(each, check)})"
        for number, (each, check) in enumerate(broken)
    ]
    if queries:
        for row in run_query(lake, " UNION ALL ".join(queries), tables).collect():
            examples.setdefault(broken[row["number"]][1], []).append(row["example"])
    return examples


def run_query(lake: Lake, query: str, tables: Mapping[str, Table]) -> DataFrame:
    """The answer to a query in which ``{name}`` stands for the table of that name; ``tables`` are by full name."""
    frames: dict[str, Any] = {TABLES[name].name: tables[name].rows for name in tables_in(query)}
    return lake.spark.sql(query, **frames)


def open_table(lake: Lake, spec: TableSpec) -> Table:
    """The table as it is now, and stays: a small one of a local lake is read as files (:mod:`ingest.lake.pinned`).

    Raises :class:`~ingest.lake.delta.LakeError` where it is missing.
    """
    pinned = pinned_table(lake.spark, lake.path(spec)) if is_worth_it(lake.spark) else None
    if pinned is None:
        return Table.of(read_table(lake, spec))
    return Table(pinned.frame(lake.spark), pinned.struct, is_empty=pinned.rows_count == 0)


def read_table(lake: Lake, spec: TableSpec) -> DataFrame:
    """The table; raises :class:`~ingest.lake.delta.LakeError` where it is missing."""
    try:
        frame = lake.read(spec)
        frame.schema  # noqa: B018 - a table that is not there shows itself here
        return frame
    except AnalysisException as error:
        sentence = f"the lake {lake.root} has no table {spec.full_name}: run ingest and reconstruct first"
        raise LakeError(sentence) from error
