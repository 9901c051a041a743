"""Counting what breaks the checks, in Spark: one query per stage, and one more for examples of what is broken. Those of
several stages are planned side by side, since one thread plans a query."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import types as T

from checks.catalog import Check, Pass
from checks.registry import Registry
from checks.tables import NamedTables
from ingest.lake.delta import side_by_side
from ingest.lake.tables import TABLES, TableSpec

EXAMPLES_COUNT: Final = 20
#: An example is a pointer, not a copy: a longer one is cut there.
EXAMPLE_LENGTH: Final = 4000
#: What a check answers to a case, and the place of the count of all cases before those of the checks.
_NOT_JUDGED, _KEPT, _BROKEN = 0, 1, 2
_CASES: Final = 0


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


def measure(tables: NamedTables, registry: Registry) -> tuple[Measurement, ...]:
    """Every check of ``registry`` measured over ``tables``.

    A table whose schema is not the declared one is reported by its schema check, and what reads it cannot be judged.
    Raises :class:`~ingest.lake.delta.LakeError` where a table is missing.
    """
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
        return measure_passes(tables, usable) + [Measurement(check, None, None) for check in unjudged]

    for of_stage in side_by_side(measured, dict.fromkeys(each.stage for each in registry.passes)):
        found += of_stage
    return tuple(found)


def measure_passes(tables: NamedTables, passes: Sequence[Pass]) -> list[Measurement]:
    """The passes' checks, counted by one query; what may be doubled, and examples of what is broken, by two more."""
    asked = {each: [c for c in each.checks if not _is_enforced(c, tables)] for each in passes}
    with_cases = {each: checks for each, checks in asked.items() if not _has_no_cases(each, tables)}
    times: Counter[tuple[int, int, int]] = Counter()
    if with_cases:
        for row in tables.answer(counts_sql(with_cases)).collect():  # at most three per check
            times[row["pass"], row["place"], row["answer"]] = row["times"]
    numbers = {each: number for number, each in enumerate(with_cases)}
    counted: list[tuple[Pass, Check, int, int]] = []
    for each in passes:
        number = numbers.get(each, -1)  # without cases nothing is counted
        cases = times[number, _CASES, _KEPT]
        of_check = dict.fromkeys(each.checks, (cases, 0))
        for place, check in enumerate(asked[each], start=_CASES + 1):
            kept, broken = (times[number, place, answer] for answer in (_KEPT, _BROKEN))
            of_check[check] = (cases if check.unique else kept + broken, broken)
        counted += [(each, check, *of_check[check]) for check in each.checks]
    repeats = _repeats(tables, [(each, check) for each, check, _, broken in counted if check.unique and broken])
    counted = [(each, check, checked, repeats.get(check, broken)) for each, check, checked, broken in counted]
    examples = _examples(tables, [(each, check) for each, check, _, broken in counted if broken])
    return [
        Measurement(check, checked, broken, tuple(examples.get(check, ()))) for _, check, checked, broken in counted
    ]


def counts_sql(asked: Mapping[Pass, Sequence[Check]]) -> str:
    """Rows of (pass, place, answer, times): how many cases a check answers so. The pass is a number in their order from
    0, the place the check's among those asked from 1 on; at 0 all cases are *kept*. Of columns that no two cases may
    share there is *broken* alone: cases of which a hash of these repeats that of another. None is doubled that is not
    among them; not all of them need be, since NULL is no part of a hash (:func:`_repeats`).

    The answers to a case are one array, and cases that have all answers alike are counted together: a count for each
    check by itself would be two aggregates of the hundreds that Spark plans and hands to its tasks.
    """
    cases, alike = [], []
    for number, (each, checks) in enumerate(asked.items()):
        answers = [str(_KEPT), *map(_answer_sql, checks)]
        cases.append(f"SELECT {number} AS pass, array({', '.join(answers)}) AS answers FROM ({each.cases})")
        for place, check in enumerate(checks, start=_CASES + 1):
            if check.unique:
                own = f"{number} AS pass, {place} AS place, xxhash64({', '.join(check.unique)}) AS hash"
                alike.append(f"SELECT {own} FROM ({each.cases})")
    counted = f"SELECT pass, answers, count(*) AS times FROM ({' UNION ALL '.join(cases)}) GROUP BY pass, answers"
    exploded = f"SELECT pass, times, posexplode(answers) AS (place, answer) FROM ({counted})"
    of_answers = f"SELECT pass, place, answer, sum(times) AS times FROM ({exploded}) GROUP BY pass, place, answer"
    if not alike:
        return of_answers
    hashed = f"SELECT pass, place, count(*) AS times FROM ({' UNION ALL '.join(alike)}) GROUP BY pass, place, hash"
    repeated = f"SELECT pass, place, {_BROKEN} AS answer, sum(times - 1) AS times FROM ({hashed}) GROUP BY pass, place"
    return f"{of_answers} UNION ALL {repeated}"


def _answer_sql(check: Check) -> str:
    if check.unique:
        return str(_NOT_JUDGED)
    answer = f"IF({check.broken}, {_BROKEN}, {_KEPT})"
    return answer if check.applies == "true" else f"IF({check.applies}, {answer}, {_NOT_JUDGED})"


def examples_sql(each: Pass, check: Check) -> str:
    """The first cases of a pass that break a check, as JSON, in the order of the key; of doubled ones the number."""
    if check.unique:
        columns = ", ".join(check.unique)
        doubled = f"SELECT {columns}, count(*) AS copies FROM ({each.cases}) GROUP BY {columns} HAVING count(*) > 1"
        return (
            f"SELECT {_json(f'{columns}, copies')} AS example FROM ({doubled})"
            f" ORDER BY {columns} LIMIT {EXAMPLES_COUNT}"
        )
    shown, key = ", ".join(dict.fromkeys((*each.key, *check.shows))), ", ".join(each.key)
    cases = f"(SELECT * FROM ({each.cases}) WHERE ({check.applies}) AND ({check.broken}))"
    if each.beside and check.shows:
        cases += f" LEFT JOIN ({each.beside}) USING ({key})"
    return f"SELECT {_json(shown)} AS example FROM {cases} ORDER BY {key}, example LIMIT {EXAMPLES_COUNT}"


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


def _is_enforced(check: Check, tables: NamedTables) -> bool:
    """Whether the table's own NOT NULL answers the check."""
    return check.not_null is not None and not tables[check.table].schema[check.not_null].nullable


def _has_no_cases(each: Pass, tables: NamedTables) -> bool:
    """Whether the cases are the rows of a table without any."""
    return each.name in TABLES and tables[each.name].is_empty


def _repeats(tables: NamedTables, alike: Sequence[tuple[Pass, Check]]) -> dict[Check, int]:
    """How many cases repeat what no two may share, where hashes say that some may."""
    queries = [
        f"SELECT {number} AS number, count(*) - count(DISTINCT struct({', '.join(check.unique)})) AS times"
        f" FROM ({each.cases})"
        for number, (each, check) in enumerate(alike)
    ]
    rows = tables.answer(" UNION ALL ".join(queries)).collect() if queries else []
    return {alike[row["number"]][1]: row["times"] for row in rows}


def _examples(tables: NamedTables, broken: Sequence[tuple[Pass, Check]]) -> dict[Check, list[str]]:
    """At most :data:`EXAMPLES_COUNT` of each, in their order."""
    examples: dict[Check, list[str]] = {}
    queries = [
        f"SELECT {number} AS number, example FROM ({examples_sql(each, check)})"
        for number, (each, check) in enumerate(broken)
    ]
    if queries:
        for row in tables.answer(" UNION ALL ".join(queries)).collect():
            examples.setdefault(broken[row["number"]][1], []).append(row["example"])
    return examples
